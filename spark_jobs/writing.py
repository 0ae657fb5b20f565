"""Write tables as Parquet directories that appear whole or not at all, on any file system that Hadoop knows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from offsets_log.errors import OutputError

NO_MARK = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""Setting that omits the success mark: a directory that exists is whole, and holds nothing but rows."""


def write_parquet(
    spark: SparkSession, tables: Mapping[str, DataFrame], path: str, *, partition_by: Sequence[str] = ()
) -> None:
    """Write tables into a new directory: each below its name, one without a name into the directory itself.

    They are written beside it and renamed; a store that cannot rename, such as an object store, shows them one by one.

    Raises:
        OutputError: the path exists and is not an empty directory, or cannot be written.
    """
    make_path: Any = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
    target = make_path(path)
    try:
        files = target.getFileSystem(spark._jsc.hadoopConfiguration())
        target = files.makeQualified(target)
        check_free(spark, path)
        staged = make_path(target.getParent(), f".{target.getName()}.{secrets.token_hex(4)}.tmp")
        try:
            for name, frame in tables.items():
                place = make_path(staged, name) if name else staged
                frame.write.options(**NO_MARK).partitionBy(*partition_by).parquet(place.toString())
            files.delete(target, False)
            if not files.rename(staged, target):
                raise OutputError("what was written beside it cannot be renamed", file=path)
        finally:
            files.delete(staged, True)
    except Py4JJavaError as error:
        raise OutputError(f"cannot be written: {error.java_exception.getMessage()}", file=path) from None


def check_free(spark: SparkSession, path: str) -> None:
    """Check that a directory can be made at a path. Raises OutputError."""
    target = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
    try:
        files = target.getFileSystem(spark._jsc.hadoopConfiguration())
        is_taken = files.exists(target) and not (
            files.getFileStatus(target).isDirectory() and len(files.listStatus(target)) == 0
        )
    except (Py4JJavaError, PySparkException) as error:
        raise OutputError(f"cannot be written: {error}", file=path) from None
    if is_taken:
        raise OutputError("this exists and is not an empty directory: give a new one", file=path)
