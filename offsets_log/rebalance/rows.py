"""Output rows of timelines, one for each generation: complete for programs, short for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from offsets_log.log_format.java_text import MalformedString
from offsets_log.rebalance.generation import Generation, GenerationMember
from offsets_log.rebalance.verify import Verification
from offsets_log.rows.missing_columns import with_following, without_missing_columns
from offsets_log.rows.tables import Column, Row, to_base64

_MEMBERS = "array<struct<member_id:string,client_id:string,host:string,group_instance_id:string>>"

REBALANCE_COLUMNS = (
    Column("group", "string", "group id"),
    Column("type", "string", "classic, consumer, share or streams"),
    Column("offsets_partition", "int", "partition of __consumer_offsets"),
    Column("record_offset", "bigint", "offset of the record that has this generation"),
    Column("timestamp_ms", "bigint", "time of that record; null if it has none"),
    Column("generation", "int", "generation of a classic group, group epoch of others; null if the group was deleted"),
    Column("state", "string", "state, as the coordinator names it"),
    Column("protocol_type", "string", "consumer, connect ..."),
    Column("protocol", "string", "protocol that the members voted for, or the broker's assignor"),
    Column("leader", "string", "member id of the leader"),
    Column("members", "int", "how many members there are"),
    Column("joined", _MEMBERS, "members that were not there before"),
    Column("left", _MEMBERS, "members that are no longer there"),
    Column("assigned", "int", "how many partitions are assigned"),
    Column("kept", "int", "how many of these stay with their owners"),
    Column("stickiness", "double", "share of the previous assignment that is kept; null if there was none"),
    Column(
        "moved",
        "array<struct<topic:string,partition:int,from:string,to:string>>",
        "partitions that moved from one member to another",
    ),
    Column("duration_ms", "bigint", "time until the next generation; null for the last"),
    Column("skipped", "array<int>", "generations before this one that are not in the log"),
    Column(
        "skipped_because",
        "string",
        "why: never synced; or, if that is not certain, never synced or removed by the cleaner",
    ),
    Column("is_storm", "boolean", "whether this generation is part of a storm, as --storm defines it"),
    Column("flapping", "array<string>", "members that returned twice within the storm's time"),
)

VERIFIED_COLUMNS = (
    Column("verdict", "string", "same, same as sets, differs, not reproducible; null if nothing was assigned"),
    Column("rules", "string", "the rules that give this assignment, named by the first release that has them"),
    Column("reason", "string", "how the assignment differs, or why it cannot be computed"),
    Column("broken", "array<string>", "guarantees of the assignor that the assignment breaks"),
)
"""Additional columns of ``--verify``."""

ASSIGN_COLUMNS = (
    Column("member_id", "string", "id of the member"),
    Column("partitions", "int", "how many partitions it gets"),
    Column("assigned", "json", "[topic, partition] of each of them"),
)
ROUND_COLUMNS = (
    Column("generation", "int", "generation of the group"),
    Column("protocol", "string", "assignor of this generation"),
    Column("leader", "string", "member id of the leader"),
    Column("member_id", "string", "id of the member; null in a generation without any"),
    Column("partitions", "int", "how many partitions it has"),
    Column("assigned", "json", "[topic, partition] of each of them"),
    Column("gained", "json", "those that it had not in the generation before"),
    Column("lost", "json", "those of the generation before that it has no more"),
)
"""Of ``assign --rounds``."""
VOTE_COLUMNS = (
    Column("protocol", "string", "a protocol that some member names"),
    Column("candidate", "boolean", "whether all members name it"),
    Column("votes", "int", "how many members vote for it: of the candidates each votes for the one it names first"),
    Column("selected", "boolean", "whether it wins"),
)

FOLLOWING = {
    "assignment": {"assigned", "kept", "stickiness", "moved"},
    "generation": {"skipped", "skipped_because"},
    "timestamp_ms": {"duration_ms", "is_storm", "flapping"},
}
"""A column of ``decode`` or ``rebuild`` that a source lacks → the columns here that depend on it."""
TABLE_COLUMNS = (
    "group", "generation", "timestamp_ms", "state", "protocol", "members", "joined", "left", "kept", "moved",
    "duration_ms", "remarks",
)  # fmt: skip


def rebalance_row(entry: Generation) -> Row:
    """Return a row of `REBALANCE_COLUMNS`."""
    change = entry.change
    row: Row = {
        "group": entry.group_id,
        "type": entry.kind,
        "offsets_partition": entry.offsets_partition,
        "record_offset": entry.record_offset,
        "timestamp_ms": entry.timestamp_ms,
        "generation": entry.number,
        "state": entry.state,
        "protocol_type": entry.protocol_type,
        "protocol": entry.protocol,
        "leader": entry.leader,
        "members": len(entry.members),
        "joined": list(map(member_row, change.joined)),
        "left": list(map(member_row, change.left)),
        "assigned": len(entry.owners),
        "kept": change.kept,
        "stickiness": entry.stickiness,
        "moved": [
            {
                "topic": move.unit[0],
                "partition": move.unit[1],
                "from": move.source.member_id,
                "to": move.target.member_id,
            }
            for move in change.moved
        ],
        "duration_ms": entry.duration_ms,
        "skipped": list(entry.skipped),
        "skipped_because": _why_skipped(entry),
        "is_storm": entry.is_storm,
        "flapping": [member.member_id for member in entry.flapping],
    }
    return row | raw_names(entry)


def raw_names(entry: Generation) -> Row:
    """Return additional columns with the bytes of names that are not UTF-8."""
    return {"group_base64": to_base64(entry.group_id.raw)} if isinstance(entry.group_id, MalformedString) else {}


def numbers_of_row(entry: Generation) -> dict[str, int]:
    """Return what rows of one kind differ in."""
    return {
        "record_offset": entry.record_offset,
        "timestamp_ms": entry.timestamp_ms or 0,
        "generation": entry.number or 0,
        "duration_ms": entry.duration_ms or 0,
    }


def kind_of_row(entry: Generation) -> Hashable:
    """Return what decides a row of `rebalance_row` beside `numbers_of_row`, while the entry is kept."""
    numbers = entry.timestamp_ms, entry.number, entry.duration_ms
    if None in numbers or entry.skipped or entry.flapping:
        return id(entry)
    return (
        entry.group_id, entry.kind, entry.offsets_partition, entry.state, entry.protocol_type, entry.protocol,
        entry.leader, id(entry.held), id(entry.held_before), entry.is_storm,
    )  # fmt: skip


def verified_row(verification: Verification | None) -> Row:
    """Return a generation's `VERIFIED_COLUMNS`; None in all if nothing was assigned."""
    if verification is None:
        return {"verdict": None, "rules": None, "reason": None, "broken": []}
    return {
        "verdict": str(verification.verdict),
        "rules": verification.rules,
        "reason": verification.reason,
        "broken": list(verification.broken),
    }


def member_row(member: GenerationMember) -> Row:
    """Return the ids, client and host of a member."""
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "group_instance_id": member.group_instance_id,
    }


def short_row(entry: Generation) -> Row:
    """Return a row of `TABLE_COLUMNS`, with lists as text."""
    change, before = entry.change, entry.held_before.owners
    moved = Counter((_name(move.source), _name(move.target)) for move in change.moved)
    return {
        "group": entry.group_id,
        "generation": entry.number,
        "timestamp_ms": entry.timestamp_ms,
        "state": entry.state,
        "protocol": entry.protocol,
        "members": len(entry.members),
        "joined": ", ".join(map(_name, change.joined)) or None,
        "left": ", ".join(map(_name, change.left)) or None,
        "kept": f"{change.kept} of {len(before)}" if before else None,
        "moved": ", ".join(f"{count} {source} → {target}" for (source, target), count in moved.items()) or None,
        "duration_ms": entry.duration_ms,
        "remarks": "; ".join(remarks(entry)) or None,
    }


def without_untold(row: Row, missing_columns: frozenset[str]) -> Row:
    """Return a row of either kind with null for what its source does not tell, of members too."""
    if not missing_columns:
        return row
    row = without_missing_columns(row, with_following(missing_columns, FOLLOWING))
    return row | {
        name: [without_missing_columns(member, missing_columns) for member in row[name]]
        for name in ("joined", "left")
        if isinstance(row.get(name), list)
    }


def remarks(entry: Generation) -> list[str]:
    """Return what else there is to say of a generation."""
    found = []
    if entry.skipped:
        found.append(f"{_numbers(entry.skipped)} {_why_skipped(entry)}")
    if entry.changes_members_only:
        found.append("a static member came back")
    if entry.is_storm:
        found.append("storm")
    if entry.flapping:
        found.append("flapping: " + ", ".join(map(_name, entry.flapping)))
    return found


def _numbers(skipped: tuple[int, ...]) -> str:
    return str(skipped[0]) if len(skipped) == 1 else f"{skipped[0]} to {skipped[-1]}"


def _why_skipped(entry: Generation) -> str | None:
    """Say why numbers were skipped (``W-14``); if the log has holes, the cleaner may have removed them."""
    if not entry.skipped:
        return None
    return "never synced" if entry.skipped_certainly else "never synced, or cleaned away"


def _name(member: GenerationMember) -> str:
    return member.group_instance_id or member.client_id or member.member_id
