"""Start Spark's Python workers with all that tasks import: for ``spark.python.daemon.module``.

Each worker is a fork of the daemon, and would else import it anew for more than a second. Arrow's functions, which
Arrow itself imports with the first call, take as long. Beside the daemon's own
thread runs one of Arrow's allocator, which knows forks.
"""

import gc

import pyarrow.compute
from pyspark.daemon import manager

from spark_jobs import clean_tasks, fold, source, tasks

__all__ = ["clean_tasks", "fold", "pyarrow", "source", "tasks"]

if __name__ == "__main__":
    gc.freeze()  # workers search for cycles after each task, and find none in what was imported
    manager()
