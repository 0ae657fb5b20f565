"""Tasks of the cleaner on Spark, and the shuffle between its passes."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs import jobs
from spark_jobs.clean_tasks import (
    KEYS_SCHEMA,
    MADE_SCHEMA,
    GroupMade,
    GroupWork,
    KeysWork,
    clean_group,
    keys_of,
    standing,
)
from spark_jobs.cleaning import Work

BUCKET_BYTES = 256 << 20
"""Bytes of a log whose keys meet in one task."""


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A `cleaning.Cluster` on Spark."""

    spark: SparkSession

    @property
    def pieces(self) -> int:
        """How many tasks a stage has at most."""
        return jobs.PIECES_PER_CORE * self.spark.sparkContext.defaultParallelism

    def run(self, works: Sequence[Work]) -> list[Any]:
        """Implement `Cluster.run`."""
        return self._in_tasks(works, min(len(works), self.pieces))

    def run_each(self, works: Sequence[Work]) -> list[Any]:
        """Run each work in a task of its own, for works of which some are much larger than others."""
        return self._in_tasks(works, len(works))

    def _in_tasks(self, works: Sequence[Work], tasks: int) -> list[Any]:
        if not works:
            return []
        raw = [pickle.dumps(work) for work in works]
        parts = self.spark.sparkContext.parallelize(raw, tasks)
        return [pickle.loads(made) for made in parts.map(_run).collect()]

    def meet(self, keys: Sequence[KeysWork], groups: Sequence[GroupWork]) -> list[GroupMade]:
        """Implement `Cluster.meet`."""
        rows = self._frame([(pickle.dumps(work),) for work in keys], "work binary").mapInArrow(keys_of, KEYS_SCHEMA)
        rows.persist(StorageLevel.DISK_ONLY)
        try:
            failed = rows.where("unit < 0").select("last", "work").collect()
            if failed:
                raise pickle.loads(min(failed, key=lambda row: int(row["last"]))["work"])
            return self._made(rows, sum(work.file.size_bytes for work in keys), groups)
        finally:
            rows.unpersist()

    def _made(self, rows: DataFrame, size_bytes: int, groups: Sequence[GroupWork]) -> list[GroupMade]:
        buckets = max(self.pieces, size_bytes // BUCKET_BYTES)
        bucket = f.pmod(f.xxhash64("key"), f.lit(buckets)).cast("int")
        spread = rows.where("unit >= 0").withColumn("bucket", bucket).repartition(buckets, "bucket")
        of_units = spread.groupBy("bucket").applyInArrow(standing, KEYS_SCHEMA)
        works = self._frame([(i, None, None, pickle.dumps(work)) for i, work in enumerate(groups)], KEYS_SCHEMA)
        # A fixed number: Spark must not join partitions of few keys, because each has a segment to write.
        together = works.unionByName(of_units).repartition(min(len(groups), self.pieces), "unit")
        found = together.groupBy("unit").applyInArrow(clean_group, MADE_SCHEMA).collect()
        return [pickle.loads(row["made"]) for row in sorted(found, key=lambda row: int(row["unit"]))]

    def _frame(self, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        parts = self.spark.sparkContext.parallelize(rows, min(len(rows), self.pieces))
        return self.spark.createDataFrame(parts, schema)


def _run(raw: bytes) -> bytes:
    work: Work = pickle.loads(raw)
    return pickle.dumps(work.run())
