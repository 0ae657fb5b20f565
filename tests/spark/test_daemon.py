"""Python workers that are forked with what tasks import."""

from __future__ import annotations

from typing import Any


def test_a_worker_has_what_tasks_import_before_it_has_a_task(spark: Any) -> None:
    names = ["spark_jobs.jobs", "spark_jobs.source", "pandas", "llvmlite.binding", "spark_jobs.no_such_module"]
    found = spark.sparkContext.parallelize(names, len(names)).map(lambda name: name in __import__("sys").modules)
    assert found.collect() == [True, True, True, True, False]
