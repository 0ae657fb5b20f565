"""Tasks without Spark: in any order, in this process, with nothing but what can be pickled."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import spark_jobs.__main__
import spark_jobs.clean
import spark_jobs.jobs


class Frame:
    """Rows that tasks have made."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self._batches = batches

    def collect(self) -> list[dict[str, Any]]:
        return [row for batch in self._batches for row in batch.to_pylist()]

    def groupBy(self, name: str) -> SimpleNamespace:
        table = pa.Table.from_batches(self._batches)
        keys = random.Random(2).sample(sorted(set(table[name].to_pylist())), len(set(table[name].to_pylist())))

        def apply(work: Callable[..., pa.Table], schema: str) -> Frame:
            made = []
            for key in keys:
                of_key = [row for row in table.to_pylist() if row[name] == key]
                some = pa.Table.from_pylist(random.Random(3).sample(of_key, len(of_key)), table.schema)
                made += _sent(work)((pa.scalar(key),), some).to_batches()
            return Frame(made)

        return SimpleNamespace(applyInArrow=apply)


def _sent(work: Any) -> Any:
    return pickle.loads(cloudpickle.dumps(work))


def in_tasks(spark: Any, count: int, work: Callable[[int], Iterator[pa.RecordBatch]], schema: str) -> Frame:
    numbers = random.Random(1).sample(range(count), count)
    return Frame([batch for number in numbers for batch in _sent(work)(number)])


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's place is taken."""
    opening = SimpleNamespace(result=lambda: None)
    monkeypatch.setattr(spark_jobs.jobs, "in_tasks", in_tasks)
    monkeypatch.setattr(spark_jobs.clean, "Opening", lambda *words, **how: opening)
    monkeypatch.setattr(spark_jobs.clean, "session", lambda opening: nullcontext())
    monkeypatch.setattr(spark_jobs.__main__, "Opening", lambda *words, **how: opening)
    monkeypatch.setattr(spark_jobs.__main__, "session", lambda opening: nullcontext(opening.result))
