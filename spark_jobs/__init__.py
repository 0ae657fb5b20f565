"""Spark: the data source ``offsets_log``, and the jobs `replay`, `compact` and `rebuild` over it.

Importing this registers the data source with the active session; without one, call `register`.
"""

from pyspark.sql import SparkSession

from spark_jobs.source import register

__all__ = ["register"]

if SparkSession.getActiveSession() is not None:
    register()
