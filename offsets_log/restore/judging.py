"""Judge the cluster that offsets are to be set on, before anything is touched: what would fail, move or go back there.

References: ``KafkaApis.scala`` (``handleOffsetCommitRequest``, ``handleAlterShareGroupOffsetsRequest``),
``ConsumerGroupCommand.java`` (``checkOffsetsRange``), ``SharePartition.java`` (``updateCacheAndOffsets``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from offsets_log.errors import ClusterError, ClusterLostError
from offsets_log.restore.changes import UNCHANGED, kind_of
from offsets_log.restore.doubts import is_active, named
from offsets_log.restore.policy import Policy, wish
from offsets_log.restore.rows import counted_rows, is_share_row, kind_of_row
from offsets_log.restore.target import NO_GROUP, UNKNOWN, Committed, Offsets, PartitionNow, TopicPartition
from offsets_log.rows.tables import Row

NO_TOPIC, NO_PARTITION, BELOW, BEYOND, NO_LOG = "no topic", "no partition", "below start", "beyond end", "no log"
OTHER_TOPIC, MEMBERS, AHEAD, DENIED, NOT_ASKED = "another topic", "members", "ahead", "denied", "not answered"

_SET_ALL_THE_SAME = (
    "kafkactl refuses them; rpk, kaf and client libraries set them, and consumers go where auto.offset.reset says; "
    "restore refuses them unless --out-of-range says otherwise"
)
PROBLEMS = {
    NO_TOPIC: (
        "of topics that it does not have or does not show",
        "brokers refuse them; kafka-consumer-groups stops there, after it has set some groups; restore refuses "
        "these alone: make the topics first",
    ),
    NO_PARTITION: (
        "of partitions that its topics do not have",
        "kafka-consumer-groups stops there, after it has set some groups; restore refuses these alone: "
        "add the partitions first",
    ),
    BELOW: (
        "below the start of its logs, where records are gone",
        f"kafka-consumer-groups sets the log start; {_SET_ALL_THE_SAME}",
    ),
    BEYOND: ("beyond the end of its logs", f"kafka-consumer-groups sets the log end; {_SET_ALL_THE_SAME}"),
    NO_LOG: ("of partitions whose log was not to be seen", "whether they lie in it is not known"),
    OTHER_TOPIC: (
        "of topics with another topic id there, made again or mirrored",
        "every tool sets them, and the same number may be another record: offsets-log translate, unless both have the "
        "same records at the same offsets",
    ),
    MEMBERS: ("of groups that have members there", "brokers take them from members alone: stop these first"),
    AHEAD: ("behind what the groups have there", "every tool moves them back; restore --only-behind leaves them"),
    DENIED: (
        "that this user may not set",
        "brokers refuse them: READ on the group and on the topic is needed; restore refuses these alone",
    ),
    NOT_ASKED: ("of groups that it does not tell of", "restore refuses these alone"),
}
"""Problem → what is so of offsets, and what the tools make of them."""

OF_COMMITS = (MEMBERS, BELOW, BEYOND, NO_LOG)
"""What is in the way of a commit: `restore` sends none for what is there already."""

_SET_SHARES = "AlterShareGroupOffsets sets them, and {}; restore refuses them unless --out-of-range says otherwise"
SHARE_EFFECTS = {
    NO_TOPIC: "brokers refuse them: make the topics first",
    NO_PARTITION: "brokers refuse them: add the partitions first",
    BELOW: _SET_SHARES.format("members go on at the log start"),
    BEYOND: _SET_SHARES.format("members get nothing until the log has got there"),
    MEMBERS: "brokers take them of groups without members alone: stop these first",
}
"""Problem → what is made of places where share groups start, if it is not the same."""

JUDGED_COLUMNS = (
    "group", "topic", "partition", "committed_offset", "problems", "current_offset", "log_start_offset",
    "log_end_offset", "group_state",
)  # fmt: skip
"""Of rows of ``target.jsonl``: the plan's offset, why it will not do (of `PROBLEMS`), and what the target has.

Those of places where share groups start have also ``is_share``.
"""


@dataclass(frozen=True, slots=True)
class Denied:
    """The names that the user may not READ there."""

    groups: Collection[str] = ()
    topics: Collection[str] = ()


class JudgedOffsets(Protocol):
    """The part of `GroupOffsets` that reads."""

    def offsets(self, group: str) -> Offsets:
        """Return what a group has committed, or where a share group starts."""


class Judged(JudgedOffsets, Protocol):
    """The part of a `Target` that reads, and the user's rights; a copy of a cluster has it too."""

    @property
    def share_groups(self) -> JudgedOffsets:
        """Where share groups start."""

    def cluster_id(self) -> str | None:
        """Return the cluster's own id."""

    def group_states(self) -> dict[str, str]:
        """Return group → state, for all groups."""

    def topics(self) -> dict[str, int]:
        """Return topic → number of partitions, for all topics."""

    def partitions(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, PartitionNow]:
        """Return the present state of partitions, which must exist."""

    def denied(self, groups: Sequence[str], topics: Sequence[str]) -> Denied:
        """Return which of these the user may not READ, which a commit needs."""


def judge(target: Judged, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a row of `JUDGED_COLUMNS` for each offset that will not do as it is.

    Args:
        rows: offsets of a plan, then where its share groups start, each in the order of compact.

    Raises:
        ClusterError: the cluster does not answer.
    """
    states, counts = target.group_states(), target.topics()
    keys = {(row["topic"], row["partition"]) for row in rows}
    there = {(topic, partition) for topic, partition in keys if 0 <= partition < counts.get(topic, 0)}
    partitions = target.partitions(there)
    denied = target.denied(sorted({row["group"] for row in rows}), sorted({topic for topic, _ in there}))
    for (group, is_share), own in groupby(rows, key=kind_of_row):
        state = states.get(group, NO_GROUP)
        try:
            current = (target.share_groups if is_share else target).offsets(group)
        except ClusterLostError:
            raise
        except ClusterError:
            current, of_group = {}, [DENIED if group in denied.groups else NOT_ASKED]
        else:
            of_group = [DENIED] if group in denied.groups else []
        if is_active(state):
            of_group.append(MEMBERS)
        for row in own:
            key = row["topic"], row["partition"]
            now, found = partitions.get(key, UNKNOWN), current.get(key)
            problems = [*of_group, *_problems(row, counts, now, found, denied)]
            if kind_of(wish(row, now, None, Policy()).wanted, found) == UNCHANGED:
                problems = [problem for problem in problems if problem not in OF_COMMITS]
            if problems:
                yield {
                    **{name: row[name] for name in JUDGED_COLUMNS[:4]},
                    "problems": list(dict.fromkeys(problems)),
                    "current_offset": found.committed_offset if found else None,
                    "log_start_offset": now.log_start_offset,
                    "log_end_offset": now.log_end_offset,
                    "group_state": state,
                    **({"is_share": True} if is_share else {}),
                }


def _problems(
    row: Row, counts: dict[str, int], now: PartitionNow, current: Committed | None, denied: Denied
) -> Iterator[str]:
    offset, start, end = row["committed_offset"], now.log_start_offset, now.log_end_offset
    if row["topic"] not in counts:
        yield NO_TOPIC
        return
    if not 0 <= row["partition"] < counts[row["topic"]]:
        yield NO_PARTITION
        return
    if row["topic"] in denied.topics:
        yield DENIED
    if start is None or end is None:
        yield NO_LOG
    elif offset < start and not now.is_tiered:
        yield BELOW
    elif offset > end:
        yield BEYOND
    if now.topic_id is not None and row.get("topic_id") not in (None, now.topic_id):
        yield OTHER_TOPIC
    if current is not None and current.committed_offset > offset:
        yield AHEAD


def in_words(judged: Iterable[Row], name: str) -> Iterator[str]:
    """Yield a sentence for each problem: how many offsets have it, of which groups, and what the tools make of them."""
    judged = list(judged)
    for is_share, effects in ((False, {}), (True, SHARE_EFFECTS)):
        own = [row for row in judged if is_share_row(row) == is_share]
        for problem, (what, effect) in PROBLEMS.items():
            if rows := [row for row in own if problem in row["problems"]]:
                groups = dict.fromkeys(row["group"] for row in rows)
                yield f"{name}: {counted_rows(rows)} {what}; of {named(groups)}; {effects.get(problem, effect)}"
