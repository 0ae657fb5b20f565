"""Spark: the data source ``offsets_log``, and the jobs `replay`, `compact` and `rebuild` over DataFrames.

Importing this registers the data source with the active session; where there is none yet, call `register` later.
"""

from pyspark.sql import SparkSession

from spark_jobs.jobs import Rebuilt, UndecidedWarning, compact, rebuild, replay
from spark_jobs.source import register

__all__ = ["Rebuilt", "UndecidedWarning", "compact", "rebuild", "register", "replay"]

if SparkSession.getActiveSession() is not None:
    register()
