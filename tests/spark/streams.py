"""A stream without Spark: what its driver, its tasks, its state and its checkpoint do, in this process."""

from __future__ import annotations

import json
import pickle
import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

from cli.main import main as offsets_log
from offsets_log.replay.profile import PROFILES
from spark_jobs.effects import DAMAGE, UNKNOWN
from spark_jobs.options import parse
from spark_jobs.stateful import COLUMNS, DAMAGED, OFFSETS, changed
from spark_jobs.streaming import LogStreamReader
from spark_jobs.upsert import TablePlace, Upsert
from tests.following.grown import growing, rolled

Rows = dict[tuple[Any, ...], dict[str, Any]]


class Stream:
    """One stream; `restart` forgets what its processes held."""

    def __init__(self, to: str, rng: random.Random, **options: str) -> None:
        self.options = {"level": "effects", **options}
        self.upsert = Upsert(TablePlace(to), with_changes=True)
        self.rng = rng
        self.batches: list[dict[str, Any]] = [{}]
        self.states: dict[tuple[int, int], bytes] = {}
        self.reader = LogStreamReader(parse(self.options))
        self.upsert.begin()

    def restart(self) -> None:
        self.reader.stop()
        self.reader = LogStreamReader(parse(self.options))
        self.upsert.begin()

    def step(self, most_bytes: int | None = None) -> bool:
        """Do a batch, often with a death before its end; return whether there was anything new."""
        start = self.batches[-1]
        end = json.loads(json.dumps(self.reader._grown.latest(start, most_bytes)))
        if end == start:
            return False
        self.batches.append(end)
        while self.rng.random() < 0.4:
            self._run(start, end, dies=True)
            self.restart()
        self.states = self._run(start, end, dies=False)
        return True

    def _run(self, start: Any, end: Any, *, dies: bool) -> dict[tuple[int, int], bytes]:
        effects: dict[tuple[int, int], list[tuple[int, bytes]]] = defaultdict(list)
        for partition in pickle.loads(pickle.dumps(self.reader.partitions(start, end))):
            for batch in self.reader.read(partition):
                for row in batch.to_pylist():
                    effects[row["offsets_partition"], row["bucket"]].append((row["begin"], row["held"]))
        states, tables = dict(self.states), defaultdict(list)
        for (number, bucket), some in effects.items():
            self.rng.shuffle(some)
            if bucket == DAMAGE:
                tables[number] += [(DAMAGED, held) for _, held in some]
                continue
            profile = PROFILES[self.options.get("profile", "modern")]
            told = None if number == UNKNOWN else number
            states[number, bucket], found = changed(profile, told, self.states.get((number, bucket)), sorted(some))
            tables[number] += found
        moves = []
        for number, found in tables.items():
            columns = [[number] * len(found), [kind for kind, _ in found], [held for _, held in found]]
            table = pa.table(dict(zip(("offsets_partition", "kind", "held"), columns, strict=True)))
            if len(table):
                moves += self.upsert.writer(len(self.batches) - 2)(table).to_pylist()
        for move in moves[: self.rng.randrange(len(moves) + 1) if dies else None]:
            self.upsert.place.move(move["staged"], move["place"])
        return states


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
    names = [column.name for column in COLUMNS[{"compact": OFFSETS}.get(command, command)]]
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
