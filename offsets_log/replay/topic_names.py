"""Find names of topics that records give by id only (types 7, 8, 13 and 14 of the newer groups).

A name comes from the user, from the topics' own folders, or from records that hold both: type 1 version 4, types
4, 9 and 15, of any offsets partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import (
    OFFSET_COMMIT_TYPES,
    RECORD_TYPES,
    CoordinatorRecord,
    record_type_of,
    value_version_of,
)
from offsets_log.messages.schema import ArrayOf, Struct

TOPIC_LISTS = ("topics", "initializing_topics", "initialized_topics", "deleting_topics")
"""Fields of types 4, 9 and 15 that hold rows with ``topic_id`` and ``topic_name``."""


ONE_TAG = b"\1"
"""The number of tagged fields, as it stands before a single one."""


def topic_names_in(record: CoordinatorRecord) -> Iterator[tuple[bytes, str]]:
    """Yield the topic ids in this record that it also names, each with its name."""
    value = record.value
    if value is None:
        return
    if record.is_offset_commit:
        topic_id = value.get("topic_id", ZERO_UUID)
        if topic_id != ZERO_UUID:
            yield topic_id, record.key["topic"]
        return
    for name in TOPIC_LISTS:
        for row in value.get(name, ()):
            if isinstance(row, dict) and "topic_name" in row:
                yield row["topic_id"], row["topic_name"]


NAMING_TYPES = OFFSET_COMMIT_TYPES | {
    number
    for number, row in RECORD_TYPES.items()
    for layout in row.values
    for field in layout.fields
    if field.name in TOPIC_LISTS and isinstance(field.type, ArrayOf) and isinstance(field.type.element, Struct)
}
"""Record types whose values may hold topic ids with their names."""


def may_name(record: Record) -> bool:
    """Whether `topic_names_in` may find names in a data record, judged by its type alone."""
    return record_type_of(record.key) in NAMING_TYPES


@cache
def topic_id_mark(record_type: int, value_version: int) -> bytes | None:
    """Return what precedes a topic id in an offset commit of that version: its tag and size, or nothing without a tag.

    The answer is None for a version without topic ids. A version that no table describes may have them anywhere.
    """
    layouts = list(RECORD_TYPES[record_type].layouts(value_version))
    rows = (row for layout in layouts for row in layout.fields_of(value_version) if row.name == "topic_id")
    row = next(rows, None)
    if row is None:
        return None if layouts else b""
    return b"" if row.tag is None else bytes((row.tag, len(ZERO_UUID)))


def is_named_in(key: bytes | None, value: bytes | None, known: Mapping[bytes, str]) -> bool:
    """Whether an undecoded offset commit may name a topic id that is not known yet."""
    record_type, value_version = record_type_of(key), value_version_of(value)
    if record_type is None or value is None or value_version is None:
        return False
    mark = topic_id_mark(record_type, value_version)
    if mark is None or mark not in value:
        return False
    tags, topic_id = value[: -len(ZERO_UUID)], value[-len(ZERO_UUID) :]
    return not (mark and tags.endswith(ONE_TAG + mark) and topic_id in known)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Partitions of topics by name, and those that have no name.

    Attributes:
        partitions: (name, partition), sorted.
        unresolved: (topic id, partition), sorted.
        inferred: names found by elimination only.
    """

    partitions: list[tuple[str, int]]
    unresolved: list[tuple[str, int]]
    inferred: list[str]


class TopicNames:
    """Topic id → name, from several sources: the first source that knows an id wins.

    Attributes:
        asked: the ids that were asked for.
    """

    def __init__(self, *sources: Mapping[bytes, str]) -> None:
        self.asked: set[bytes] = set()
        self.names: dict[bytes, str] = {}
        for source in reversed(sources):
            self.names.update({bytes(topic_id): name for topic_id, name in source.items()})

    def resolve(self, rows: list[dict[str, Any]], subscribed: list[str]) -> Resolved:
        """Name the partitions of an assignment.

        If exactly one id has no name and exactly one subscribed topic has no id, they belong together.

        Args:
            rows: rows of ``topic_id`` and ``partitions``, as in types 7, 8, 13 and 14.
            subscribed: topics the member subscribed to by name.
        """
        names, asked = self.names, {bytes(row["topic_id"]) for row in rows}
        self.asked |= asked
        unknown = asked - names.keys()
        left = set(subscribed) - set(names.values()) if len(unknown) == 1 else set()
        inferred: list[str] = []
        if len(left) == 1:
            (name_left,) = inferred = list(left)
            names = names | dict.fromkeys(unknown, name_left)
        found, missing = [], []
        for row in rows:
            name = names.get(bytes(row["topic_id"]))
            for partition in row["partitions"]:
                if name is None:
                    missing.append((str(row["topic_id"]), partition))
                else:
                    found.append((name, partition))
        return Resolved(sorted(found), sorted(missing), inferred)
