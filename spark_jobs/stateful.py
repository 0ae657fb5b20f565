"""Keep the latest offsets and the groups of partitions in Spark's state: what was held, joined with what records do.

The state of a bucket of groups (`effects`) is a `following.keeping.KeptPartition` with all of its open transactions: a
marker of a later batch decides the commits of earlier ones. What changed in a batch comes out as tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.errors import InputError
from offsets_log.following.keeping import Held, KeptPartition
from offsets_log.investigate.groups import GROUPS_COLUMNS, groups_rows
from offsets_log.replay.partial import GroupTopicPartition
from offsets_log.replay.profile import PROFILES, Profile
from offsets_log.rows.tables import COMPACT_COLUMNS, Row, offset_row
from spark_jobs.effects import DAMAGE, UNKNOWN, effect_of, packed, unpacked

STATE = "held binary"
CHANGES = "offsets_partition int, kind string, held binary"
"""Rows of what comes out: a table of changes, as a stream of Arrow; of kind ``damage`` a row as JSON."""
OFFSETS, GROUPS, DAMAGED = "offsets", "groups", "damage"
VERSION = 1
"""Of the form in which a state is kept."""

TIME_CHANGES_IT = "commit_age_ms"
COLUMNS = {
    OFFSETS: COMPACT_COLUMNS,
    GROUPS: tuple(column for column in GROUPS_COLUMNS if column.name != TIME_CHANGES_IT),
}
"""The columns of each table: those of `compact`, and of `groups` but the age, which time alone changes."""
KEYS = {OFFSETS: ("group", "topic", "partition"), GROUPS: ("group",)}
TELLS_GONE = {OFFSETS: "committed_offset", GROUPS: "type"}
"""The column that is null in a change that says that there is no such row any more."""


class Bucket:
    """The state of some groups of an offsets partition.

    Attributes:
        last_ms: group → when it last wrote, of groups that exist.
        end: the last offset before the slice that was added last.
    """

    def __init__(self, profile: Profile, number: int | None, held: bytes | None) -> None:
        self.kept = KeptPartition(profile, number)
        self.last_ms: dict[str, int] = {}
        self.end: int | None = None
        if held is not None:
            version, self.end, self.last_ms, *parts = unpacked(held)
            if version != VERSION:
                raise InputError(f"the checkpoint was written by a version of another form ({version}): begin anew")
            self.kept.go_on_from(Held(*parts))

    def add(self, begin: int, effect: bytes) -> None:
        """Take what the records of a slice do. Raises InputError: it was taken before."""
        if self.end is not None and begin <= self.end:
            raise InputError(
                f"what follows record offset {begin} was read before, up to what follows {self.end}: the checkpoint's "
                "offsets and its state are not of the same stream"
            )
        self.end = begin
        state, last_ms = effect_of(effect, self.kept.profile)
        self.kept.add(state)
        for group, time_ms in last_ms.items():
            self.last_ms[group] = max(time_ms, self.last_ms.get(group, time_ms))

    def held(self) -> bytes:
        """Return all of it as bytes."""
        held = self.kept.held()
        last_ms = {group: self.last_ms[group] for group in sorted(self.kept.names() & self.last_ms.keys())}
        return packed((VERSION, self.end, last_ms, held.committed, held.pending, held.groups))

    def groups(self, names: Iterable[str]) -> dict[str, Row]:
        """Return the rows of those of some groups that exist."""
        rows = groups_rows(self.kept.state(set(names)), self.kept.offsets_partition, self.last_ms, 0)
        return {row["group"]: row for row in rows}


def keeper(profile: str) -> Callable[[tuple[Any, ...], Iterator[Any], Any], Iterator[Any]]:
    """Return the function for ``applyInPandasWithState`` of effects by offsets partition and bucket."""

    def keep(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        number, bucket = (int(part) for part in key)
        effects = sorted(
            (int(begin), bytes(held))
            for frame in frames
            for begin, held in zip(frame["begin"], frame["held"], strict=True)
        )
        if bucket == DAMAGE:
            found = [(DAMAGED, held) for _, held in effects]
        else:
            held = bytes(state.get[0]) if state.exists else None
            now, found = changed(PROFILES[profile], None if number == UNKNOWN else number, held, effects)
            if now != held:
                state.update((now,))
        yield pd.DataFrame(
            {"offsets_partition": [number] * len(found), "kind": [kind for kind, _ in found],
             "held": [held for _, held in found]}
        )  # fmt: skip

    return keep


def changed(
    profile: Profile, number: int | None, held: bytes | None, effects: Sequence[tuple[int, bytes]]
) -> tuple[bytes, list[tuple[str, bytes]]]:
    """Add effects to a state; return it, and the tables of what changed by their kinds."""
    before, now = Bucket(profile, number, held), Bucket(profile, number, held)
    times = dict(now.last_ms)
    for begin, effect in effects:
        now.add(begin, effect)
    touched = now.kept.touched.groups | {group for group, time_ms in now.last_ms.items() if times.get(group) != time_ms}
    tables = {
        OFFSETS: [
            _offset_change(now.kept, key)
            for key in sorted(now.kept.touched.keys)
            if before.kept.answered(key) != now.kept.answered(key)
        ],
        GROUPS: _group_changes(before.groups(touched), now.groups(touched), number),
    }
    return now.held(), [(kind, as_stream(rows, kind)) for kind, rows in tables.items() if rows]


def _offset_change(now: KeptPartition, key: GroupTopicPartition) -> Row:
    value = now.answered(key)
    if value is not None:
        return offset_row(value, now.offsets_partition)
    return dict(zip(KEYS[OFFSETS], key, strict=True)) | {"offsets_partition": now.offsets_partition}


def _group_changes(before: Mapping[str, Row], now: Mapping[str, Row], number: int | None) -> list[Row]:
    gone = [{"group": group, "offsets_partition": number} for group in before.keys() - now.keys()]
    rows = [row for group, row in now.items() if before.get(group) != row]
    return sorted(gone + rows, key=lambda row: str(row["group"]))


def as_stream(rows: Sequence[Row], kind: str) -> bytes:
    """Return rows of a kind as a stream of Arrow."""
    schema = schema_of(COLUMNS[kind])
    table = pa.Table.from_arrays(
        [pa.array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
