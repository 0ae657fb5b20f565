"""Make a plan from the coordinator's memory: what to restore, what was pending, what is missing or doubtful."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from offsets_log.broker.home import Homes
from offsets_log.coordinator_document import Memory
from offsets_log.data_directory.stranded import Stranded
from offsets_log.log_format.completeness import Missing
from offsets_log.replay.group import STREAMS
from offsets_log.replay.partition_count import PartitionCount, doubt_in_words
from offsets_log.replay.partition_for import partition_for
from offsets_log.restore import doubts
from offsets_log.restore.doubtful import NAME as DOUBTFUL
from offsets_log.restore.doubtful import doubtful_rows
from offsets_log.restore.plan import FORMAT, FORMAT_VERSION
from offsets_log.rows.groups import members_count
from offsets_log.rows.tables import Row

PLAN_GROUP_COLUMNS = ("group", "type", "state", "protocol_type", "offsets_partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class RescueOptions:
    """What the user asked for: bounds and filters, as the plan keeps them.

    Attributes:
        until_offsets: (offsets partition or None for all, record offset).
        partitions: how many ``__consumer_offsets`` has.
        absent: those that a data directory names and that were asked for, but of which no segment was found.
    """

    as_broker: bool
    partitions: PartitionCount
    until_time_ms: int | None = None
    until_offsets: Sequence[tuple[int | None, int]] = ()
    groups: Sequence[str] = ()
    topics: Sequence[str] = ()
    offsets_partitions: Collection[int] = ()
    absent: Sequence[Missing] = ()


def make_plan(
    memory: Memory,
    asked: RescueOptions,
    damages: list[Row],
    *,
    unread: Sequence[str] = (),
    notes: Sequence[str] = (),
    corrupt: int,
    unsupported: int,
    stranded: Sequence[Stranded] = (),
) -> Row:
    """Return the plan described in `restore.plan`; doubts of single partitions, which may be many, are its last.

    Args:
        unread: remarks about what the bounds left out and should not have.
        notes: remarks about the inputs from before they were read.
        damages: rows of pieces that could not be read; possibly not all of them.
        corrupt, unsupported: total numbers of such pieces.
        stranded: offsets that lead to no record.
    """
    document = memory.document(damages)
    count = asked.partitions
    places = [(part.log.offsets_partition, part.state.groups) for part in memory.parts]
    homes = Homes(places, count)
    offsets, duplicates = settle_duplicates(document["offsets"], count, homes.superseded())
    plan: Row = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "profile": document["profile"],
        "as_broker": asked.as_broker,
        "until": {"time_ms": asked.until_time_ms, "offsets": [list(pair) for pair in asked.until_offsets]},
        **what_was_read(memory, asked),
        "end_offsets": document["end_offsets"],
        "loads": document["loads"],
        "history": document["history"],
        "groups": [
            {name: row[name] for name in PLAN_GROUP_COLUMNS} | {"members": members_count(row)}
            for row in document["groups"]
        ],
        "topics": partitions_needed(offsets, document["groups"]),
        "offsets": offsets,
        "pending": document["pending"],
        "orphans": document["orphans"],
        "duplicates": duplicates,
    }
    if memory.share_offsets is not None:
        plan["share_offsets"] = list(memory.share_offsets.plan_rows())
    if doubtful := doubtful_rows(offsets, memory, damages):
        plan[DOUBTFUL] = doubtful
    plan["doubts"] = [
        *unread,
        *filter(None, [doubt_in_words(count, places)]),
        *doubts.of_damage(corrupt, unsupported),
        *doubts.of_untold(document.get("untold", ())),
        *doubts.of_doubtful(doubtful),
        *notes,
        *doubts.of_sources(frozenset().union(*(part.log.missing_columns for part in memory.parts))),
        *doubts.of_plan(plan),
        *doubts.of_stranded(stranded),
        *memory.warnings(),
        *doubts.of_logs(memory),
        *(missing.in_words() for missing in asked.absent if missing.is_lost),
    ]
    plan["problems"] = document["problems"]
    return plan


def partitions_needed(offsets: Sequence[Row], groups: Sequence[Row]) -> dict[str, int]:
    """Return how many partitions the topics of offsets have at least, by these and by what members were assigned.

    Args:
        groups: as ``rebuild`` has them.
    """
    found = [(row["topic"], row["partition"]) for row in offsets]
    topics = {topic for topic, _ in found}
    for group in groups:
        if group["type"] != STREAMS:  # whose assignments name subtopologies
            for member in group["members"] or ():
                found += [(topic, number) for topic, number in member["assignment"] or () if topic in topics]
    needed: dict[str, int] = {}
    for topic, number in sorted(found):
        needed[topic] = number + 1
    return needed


def what_was_read(memory: Memory, asked: RescueOptions) -> Row:
    """Return the filters, and which offsets partitions there are."""
    count, present = asked.partitions, {part.log.offsets_partition for part in memory.parts}
    named = {missing.offsets_partition for missing in asked.absent} - {None}
    return {
        "filters": {
            "groups": list(asked.groups),
            "topics": list(asked.topics),
            "offsets_partitions": sorted(asked.offsets_partitions),
        },
        "offsets_partitions": {
            "count": count.number,
            "source": "guess" if count.is_guess else count.source,
            "absent": None if None in present else sorted(named.union(range(count.number)) - present),
        },
    }


def settle_duplicates(
    rows: Sequence[Row], count: PartitionCount, superseded: Set[tuple[int, str]] = frozenset()
) -> tuple[list[Row], list[Row]]:
    """Choose at most one row for each group, topic and partition; return the chosen rows and the others.

    A row from the group's own offsets partition wins. If no row is from there, the one committed last wins, as far as
    commit times are known.

    Args:
        superseded: offsets partitions and groups of which no row wins, as the group's own partition has the group.
    """
    kept: list[Row] = []
    others: list[Row] = []
    for (group, _, _), found in groupby(rows, key=itemgetter("group", "topic", "partition")):
        same = list(found)
        if superseded:
            others += (row for row in same if (row["offsets_partition"], group) in superseded)
            same = [row for row in same if (row["offsets_partition"], group) not in superseded]
        if len(same) > 1:
            home = partition_for(group, count.number)
            same.sort(key=lambda row: (row["offsets_partition"] == home, *_age(row)))
        kept += same[-1:]
        others += same[:-1]
    return kept, others


def _age(row: Row) -> tuple[int, int]:
    """Return a sort key: later commits are greater, unknown times and offsets smallest."""
    committed_ms, record_offset = row["commit_timestamp_ms"], row["record_offset"]
    return -1 if committed_ms is None else committed_ms, -1 if record_offset is None else record_offset
