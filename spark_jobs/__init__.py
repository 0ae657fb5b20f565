"""Provide Spark's data source ``offsets_log``, and the jobs `replay`, `compact` and `rebuild` over DataFrames.

`joined_logs` of a `joined_table` returns, at the driver, the state after a load, the counts and the writers of each
log.

Importing this package registers the data source with the active session; if there is none yet, call `register` later.
"""

from pyspark.sql import SparkSession

from spark_jobs.jobs import Rebuilt, UndecidedWarning, compact, rebuild, replay
from spark_jobs.joined import JoinedLog, joined_logs
from spark_jobs.options import SourceOptions
from spark_jobs.run import joined_table
from spark_jobs.source import register

__all__ = [
    "JoinedLog",
    "Rebuilt",
    "SourceOptions",
    "UndecidedWarning",
    "compact",
    "joined_logs",
    "joined_table",
    "rebuild",
    "register",
    "replay",
]  # fmt: skip

if SparkSession.getActiveSession() is not None:
    register()
