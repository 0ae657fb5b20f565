"""A stream without Spark: what its driver, its tasks and its checkpoint do, in this process."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from click.testing import CliRunner
from pyspark.sql.streaming.datasource import ReadMaxBytes

from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log_cli.main import main as offsets_log
from spark_jobs.driver import plan_reading
from spark_jobs.following import STAGED, TABLES, FollowOrder, _replace_log
from spark_jobs.levels import LEVELS, columns_of
from spark_jobs.options import parse
from spark_jobs.streaming import LogStreamReader
from tests.following.grown import growing, rolled

Rows = dict[tuple[Any, ...], dict[str, Any]]


def reader_of(**options: str) -> LogStreamReader:
    """The reader of a stream, with all columns of its level."""
    reading = parse(options)
    return LogStreamReader(reading, schema_of(columns_of(reading)))


class Stream:
    """`follow`; `restart` forgets what its processes held."""

    def __init__(self, to: str, rng: random.Random, **options: str) -> None:
        self.options = {"level": "growth", **options}
        self.order = FollowOrder(options=options, to=to, checkpoint="", with_changes=True)
        self.rng = rng
        self.batches: list[dict[str, Any]] = [{}]
        self.restart()

    def restart(self) -> None:
        self.reader = reader_of(**self.options)
        self.order.tables.remove(STAGED)

    def step(self, most_bytes: int | None = None) -> bool:
        """Do a batch, often with a death before its end; return whether there was anything new."""
        start = self.batches[-1]
        end = json.loads(json.dumps(self.reader.latestOffset(start, most_bytes and ReadMaxBytes(most_bytes))))
        if end == start:
            return False
        self.batches.append(end)
        while self.rng.random() < 0.4:
            self._run(start, end, dies=True)
            self.reader.stop()
            self.restart()
        self._run(start, end, dies=False)
        return True

    def _run(self, start: Any, end: Any, *, dies: bool) -> None:
        parts = pickle.loads(pickle.dumps(self.reader.partitions(start, end)))
        rows = [row for part in parts for batch in self.reader.read(part) for row in batch.to_pylist()]
        grown = {row["offsets_partition"] for row in rows}
        found = plan_reading(self.order.reading)
        logs = [files for files in found.logs if files.log.offsets_partition in grown]
        moves: list[tuple[str, str]] = []
        for number in range(len(logs)):
            moves += _replace_log(logs, self.order, found.told, len(self.batches) - 2, number)
        for staged, place in moves[: self.rng.randrange(len(moves) + 1) if dies else None]:
            self.order.tables.move(staged, place)


def table(to: Path | str, kind: str) -> Rows:
    """The rows of a table by their keys."""
    return keyed(pq.read_table(Path(to, kind)).to_pylist())


def keyed(rows: list[dict[str, Any]]) -> Rows:
    made = {(row["group"], row.get("topic"), row.get("partition"), row["offsets_partition"]): row for row in rows}
    assert len(made) == len(rows)
    return made


def answer(command: str, place: Path | str, profile: str) -> Rows:
    """What a command says of the same bytes; a broker's directory tells lag, too."""
    found = CliRunner().invoke(offsets_log, [command, str(place), "--profile", profile, "-o", "jsonl", "-q"])
    table = {"compact": "offsets"}.get(command, command)
    names = [column.name for column in LEVELS[table] if column.name not in ("unstable", "doubtful")]
    assert table in TABLES
    return keyed([{name: row[name] for name in names} for row in map(json.loads, found.stdout.splitlines())])


def replayed(to: Path, kind: str) -> Rows:
    """The rows that the changes of all batches lead to."""
    found: Rows = {}
    for path in sorted(Path(to, kind).glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            del row["batch"]
            key = (row["group"], row.get("topic"), row.get("partition"), row["offsets_partition"])
            if row.get("committed_offset", row.get("type")) is None:
                del found[key]
            else:
                found[key] = row
    return found


def grow(source: Path, to: Path, rng: random.Random, *, steps: int, rolls: int) -> Iterator[None]:
    """Let a copy of a data directory grow: all partitions, rolled at random, in random cuts."""
    scratch = to.parent / f"{to.name}-rolled"
    parts = [
        growing(rolled(path, scratch / path.name, rng, rolls), to / path.name, rng, steps)
        for path in sorted(source.glob("__consumer_offsets-*"))
        if any(file.stat().st_size for file in path.glob("*.log"))
    ]
    for _ in zip_longest(*parts):
        yield
