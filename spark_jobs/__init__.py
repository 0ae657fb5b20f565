"""Provide Spark's data source ``offsets_log``, and the jobs `replay`, `compact` and `rebuild` over DataFrames.

Importing this package registers the data source with the active session; if there is none yet, call `register` later.
"""

from pyspark.sql import SparkSession

from spark_jobs.jobs import Rebuilt, UndecidedWarning, compact, rebuild, replay
from spark_jobs.options import SourceOptions
from spark_jobs.source import register

__all__ = [
    "Rebuilt",
    "SourceOptions",
    "UndecidedWarning",
    "compact",
    "rebuild",
    "register",
    "replay",
]  # fmt: skip

if SparkSession.getActiveSession() is not None:
    register()
