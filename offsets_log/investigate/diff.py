"""Find what changed between two states of an offsets partition: offsets, groups, members (`diff`).

Served offsets are compared in all that OffsetFetch answers: offset, leader epoch and metadata. The same value committed
again is no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from operator import attrgetter
from typing import NamedTuple, TypeVar

from offsets_log.investigate.removal import Removal
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata
from offsets_log.rows.groups import GROUP_COLUMNS, MEMBER_COLUMNS, MEMBERS_COUNT, members_count
from offsets_log.rows.missing_columns import without_missing_columns
from offsets_log.rows.tables import (
    GROUP_COLUMN,
    OFFSETS_PARTITION_COLUMN,
    TOPIC_PARTITION_COLUMNS,
    Column,
    Row,
    with_raw_texts,
)

DIFF_COLUMNS = (
    GROUP_COLUMN,
    *TOPIC_PARTITION_COLUMNS,
    Column(
        "change", "string", "new, advanced, rewound, deleted, expired; metadata or leader_epoch: the offset is the same"
    ),
    Column("from_offset", "bigint", "offset committed before; null if there was none"),
    Column("to_offset", "bigint", "offset committed after; null if there is none"),
    Column("from_record_offset", "bigint", "record offset of that commit"),
    Column("to_record_offset", "bigint", "record offset of that commit"),
    Column("from_timestamp_ms", "bigint", "commit time"),
    Column("to_timestamp_ms", "bigint", "commit time"),
)

WHY_COLUMNS = (
    Column("group_state", "string", "state of the group afterwards; Dead if there is none"),
    Column("removed_record_offset", "bigint", "record offset of the tombstone"),
    Column("removed_timestamp_ms", "bigint", "time of the tombstone"),
    Column("rule", "string", "rule by which the removal is called deleted or expired"),
    Column("reason", "string", "the reason in words; says so if it is unknown"),
)

DEAD = "Dead"

Key = TypeVar("Key", bound=tuple[object, ...])


class Change(NamedTuple):
    """A GroupTopicPartition whose answer changed; ``before`` or ``after`` is None where nothing is answered."""

    before: OffsetAndMetadata | None
    after: OffsetAndMetadata | None

    @property
    def key(self) -> GroupTopicPartition:
        """The group, topic and partition that it is the offset of."""
        value = self.after or self.before
        assert value is not None
        return value.key

    @property
    def is_removal(self) -> bool:
        """Whether nothing is answered any more."""
        return self.after is None

    @property
    def kind(self) -> str:
        """The value of the column ``change``; a removal is "deleted" until more is known."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "deleted"
        before, after = self.before.committed_offset, self.after.committed_offset
        if before != after:
            return "advanced" if after > before else "rewound"
        return "metadata" if self.before.metadata != self.after.metadata else "leader_epoch"


ANSWER = ("committed_offset", "leader_epoch", "metadata")


def changes_between(before: CoordinatorState, after: CoordinatorState) -> tuple[list[Change], int]:
    """Return what changed in the columns that both states have, and how many offsets did not change."""
    answer = attrgetter(*(name for name in ANSWER if name not in before.missing_columns | after.missing_columns))

    unknown = before.untold | after.untold
    old = {value.key: value for value in before.iter_served() if value.key not in unknown}
    new = {value.key: value for value in after.iter_served() if value.key not in unknown}
    changes, same = [], 0
    for key, value in new.items():
        earlier = old.pop(key, None)
        if earlier is not None and answer(earlier) == answer(value):
            same += 1
        else:
            changes.append(Change(earlier, value))
    changes += [Change(value, None) for value in old.values()]
    return changes, same


def diff_row(change: Change, removal: Removal | None, before: CoordinatorState, after: CoordinatorState) -> Row:
    """Return one row of `DIFF_COLUMNS`.

    Args:
        removal: how the offset was removed; None if it was not.
        before, after: the compared states, whose missing columns are null.
    """
    group, topic, partition = change.key
    old_offset, old_record_offset, old_ms = _commit(change.before, before.missing_columns)
    new_offset, new_record_offset, new_ms = _commit(change.after, after.missing_columns)
    row = {
        "group": group,
        "topic": topic,
        "partition": partition,
        "change": "expired" if removal is not None and removal.is_expiry else change.kind,
        "from_offset": old_offset,
        "to_offset": new_offset,
        "from_record_offset": old_record_offset,
        "to_record_offset": new_record_offset,
        "from_timestamp_ms": old_ms,
        "to_timestamp_ms": new_ms,
    }
    missing_columns = before.missing_columns if change.after is None else after.missing_columns
    return without_missing_columns(with_raw_texts(row, ("group", "topic")), missing_columns.intersection(KEY))


KEY = ("group", "topic", "partition")
COMMIT = ("committed_offset", "record_offset", "commit_timestamp_ms")
_commit_of = attrgetter(*COMMIT)


def _commit(value: OffsetAndMetadata | None, missing_columns: Set[str]) -> Iterable[int | None]:
    """Return the columns of one side."""
    if value is None:
        return (None,) * len(COMMIT)
    told: tuple[int, ...] = _commit_of(value)
    return (
        [None if name in missing_columns else number for name, number in zip(COMMIT, told, strict=True)]
        if missing_columns
        else told
    )


def why_columns(change: Change, removal: Removal | None, after: CoordinatorState) -> Row:
    """Return `WHY_COLUMNS` of a change."""
    group = after.groups.get(change.key[0])
    state = DEAD if group is None else group.state(after.profile)
    missing_columns = after.missing_columns if group is None else after.missing_columns_of(group)
    tells_places = "record_offset" not in after.missing_columns
    return {
        "group_state": None if "state" in missing_columns else state,
        "removed_record_offset": removal.record_offset if removal and tells_places else None,
        "removed_timestamp_ms": removal.time_ms if removal else None,
        "rule": removal.rule if removal else None,
        "reason": removal.reason if removal else None,
    }


# ------------------------------------------------------------------------------------ groups and members

GROUP_FACTS = ("type", "state", "protocol_type", "protocol", "leader", "generation", "group_epoch", "assignment_epoch")
MEMBER_FACTS = ("client_id", "host", "member_epoch", "subscribed_topics", "subscribed_regex", "assignment")


def _both_sides(columns: Iterable[Column], facts: Iterable[str]) -> Iterator[Column]:
    """Yield columns of facts before and after."""
    by_name = {column.name: column for column in columns}
    for fact in facts:
        for side, words in (("from", "before"), ("to", "after")):
            kind = by_name[fact].sql_type
            yield Column(f"{side}_{fact}", kind if kind in PLAIN else "json", f"{by_name[fact].doc}, {words}")


PLAIN = ("string", "int", "bigint", "boolean")
CHANGED = Column("change", "string", "new, deleted or changed; columns of a side that does not exist are null")
GROUPS_DIFF_COLUMNS = (
    GROUP_COLUMN,
    CHANGED,
    *_both_sides((*GROUP_COLUMNS, MEMBERS_COUNT), (*GROUP_FACTS, MEMBERS_COUNT.name)),
    OFFSETS_PARTITION_COLUMN,
)
MEMBERS_DIFF_COLUMNS = (
    *(column for column in MEMBER_COLUMNS if column.name in ("group", "member_id", "group_instance_id")),
    CHANGED,
    *_both_sides(MEMBER_COLUMNS, MEMBER_FACTS),
    OFFSETS_PARTITION_COLUMN,
)
"""Columns of groups and members, before and after."""


def group_changes(before: Iterable[Row], after: Iterable[Row], missing_columns: Set[str]) -> tuple[list[Row], int]:
    """Return groups that changed, and how many did not.

    Args:
        before, after: rows of `rows.groups.group_row`.
        missing_columns: columns that either side lacks, which are not compared.
    """

    def counted(rows: Iterable[Row]) -> dict[tuple[str, int | None], Row]:
        return {_place(row): row | {"members": members_count(row)} for row in rows}

    old, new = counted(before), counted(after)
    return _changes(old, new, ("group",), (*GROUP_FACTS, "members"), missing_columns)


def member_changes(before: Iterable[Row], after: Iterable[Row], missing_columns: Set[str]) -> tuple[list[Row], int]:
    """Return members that came, went or changed, and how many did not; arguments as in `group_changes`."""

    def by_member(rows: Iterable[Row]) -> dict[tuple[str, int | None, str], Row]:
        return {
            (*_place(row), member["member_id"]): {
                "group": row["group"],
                "offsets_partition": row["offsets_partition"],
                **member,
            }
            for row in rows
            for member in row["members"]
        }

    names = ("group", "member_id", "group_instance_id")
    return _changes(by_member(before), by_member(after), names, MEMBER_FACTS, missing_columns)


def _place(row: Row) -> tuple[str, int | None]:
    return row["group"], row["offsets_partition"]


def _changes(
    old: dict[Key, Row], new: dict[Key, Row], names: tuple[str, ...], facts: tuple[str, ...], missing_columns: Set[str]
) -> tuple[list[Row], int]:
    keys = old.keys() | new.keys()
    rows = list(_changed_rows(old, new, keys, names, facts, missing_columns))
    return sorted(rows, key=_order), len(keys) - len(rows)


def _changed_rows(
    old: dict[Key, Row],
    new: dict[Key, Row],
    keys: Iterable[Key],
    names: tuple[str, ...],
    facts: tuple[str, ...],
    missing_columns: Set[str],
) -> Iterator[Row]:
    for key in keys:
        before, after = old.get(key), new.get(key)
        if before and after and all(before[fact] == after[fact] for fact in facts if fact not in missing_columns):
            continue
        shown = after or before
        assert shown is not None
        row = {name: shown[name] for name in names}
        row["change"] = "new" if before is None else "deleted" if after is None else "changed"
        for fact in facts:
            row[f"from_{fact}"] = before[fact] if before else None
            row[f"to_{fact}"] = after[fact] if after else None
        yield row | {"offsets_partition": shown["offsets_partition"]}


def _order(row: Row) -> tuple[str, str, int]:
    return row["group"], row.get("member_id", ""), row["offsets_partition"] or 0
