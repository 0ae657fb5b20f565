"""Tasks of the cleaner on Spark, and the shuffle between its passes.

Spark moves packs of keys, of which it knows nothing but where they go: a row for each key would cost it more than the
cleaner takes for the key.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs import jobs
from spark_jobs.clean_tasks import Failed, GroupMade, GroupsWork, KeysWork, clean_groups, keys_of, standing
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

    def meet(self, keys: Sequence[KeysWork], groups: Sequence[GroupsWork]) -> list[GroupMade]:
        """Implement `Cluster.meet`."""
        context = self.spark.sparkContext
        size_bytes = sum(work.size_bytes for work in keys)
        buckets = max(self.pieces, size_bytes // BUCKET_BYTES)
        parts = context.parallelize([pickle.dumps(work) for work in keys], len(keys))
        spread = parts.flatMap(partial(keys_of, buckets=buckets)).partitionBy(buckets, int)
        works = context.parallelize([(number, pickle.dumps(work)) for number, work in enumerate(groups)], 1)
        together = works.union(spread.values().mapPartitions(standing)).partitionBy(len(groups), int)
        made = together.values().mapPartitions(_clean_groups).collect()
        return in_order([pickle.loads(each) for each in made])


def in_order(made: Sequence[GroupMade | Failed]) -> list[GroupMade]:
    """Return the groups' results.

    Raises:
        OffsetsLogError: pass 1 cannot read a segment; the error is that of the first one in the log.
    """
    failed = [each for each in made if isinstance(each, Failed)]
    if failed:
        raise min(failed, key=lambda each: each.number).error
    return [each for each in made if isinstance(each, GroupMade)]


def _clean_groups(items: Iterable[Any]) -> Iterable[bytes]:
    return map(pickle.dumps, clean_groups(items))


def _run(raw: bytes) -> bytes:
    work: Work = pickle.loads(raw)
    return pickle.dumps(work.run())
