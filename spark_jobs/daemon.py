"""Start Spark's Python workers with all that tasks import: for ``spark.python.daemon.module``.

Each worker is a fork of the daemon, and would else import it again for seconds: Arrow's functions, which Arrow itself
imports with the first call, and pandas, too. Beside the daemon's own thread runs one of Arrow's allocator, which knows
forks.
"""

import gc

import llvmlite.binding
import pandas
import pyarrow.compute
import pyarrow.pandas_compat
from pyspark import worker
from pyspark.daemon import manager
from pyspark.sql.worker import plan_data_source_read

from spark_jobs import jobs, source

__all__ = ["jobs", "llvmlite", "pandas", "plan_data_source_read", "pyarrow", "source", "worker"]

if __name__ == "__main__":
    gc.freeze()  # workers search for cycles after each task, and find none in what was imported
    manager()
