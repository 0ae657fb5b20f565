"""A rescue plan of what a running cluster answers about its groups, where the offsets topic cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from offsets_log.cluster.groups import GONE, GroupNow, GroupsReader
from offsets_log.cluster.reader import ClusterNow, ClusterReader
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.share_offsets import SHARE_OFFSET_COLUMNS
from offsets_log.data_directory.stranded import Stranded, Topics, find_stranded
from offsets_log.data_directory.told_ends import ToldEnds
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.pulling.copy import ask_ends
from offsets_log.replay.group import CLASSIC, SHARE
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.partition_for import DEFAULT_PARTITIONS, partition_for
from offsets_log.restore import doubts
from offsets_log.restore.names import shown
from offsets_log.restore.plan import FORMAT, FORMAT_VERSION
from offsets_log.restore.rescue import partitions_needed
from offsets_log.rows.tables import COMPACT_COLUMNS, Row
from offsets_log.words import counted

UNKNOWN_COUNT = PartitionCount(DEFAULT_PARTITIONS, "default")
LACKS = (
    "this was asked of a running cluster, group by group: it is of no one moment, and it has no history",
    "when offsets were committed and when they expire is not told: how old they are is not known",
    "offsets that had expired or been deleted, open transactions' own offsets and groups that this user may not "
    "DESCRIBE are not told, nor how many there are of these",
)


def snapshot_plan(reader: ClusterReader, now: ClusterNow, groups: GroupsReader, began_ms: int, ended_ms: int) -> Row:
    """Return a plan as `restore.plan` describes it.

    Args:
        groups: after its `read`.

    Raises:
        ClusterLostError: no broker answers any more.
    """
    found = sorted((one for one in groups.groups.values() if one.problem != GONE), key=lambda one: one.group)
    rows = _Rows(now)
    ends, _ = ask_ends(reader, now, {key for one in found for key in one.offsets if key[0] in now.topics})
    offsets = [row for one in found if one.kind != SHARE for row in rows.offsets(one)]
    refused = [{"group": one.group, "problem": one.problem} for one in found if one.problem is not None]
    unstable = [
        {"group": one.group, "topic": topic, "partition": partition}
        for one in found
        for (topic, partition), offset in sorted(one.offsets.items())
        if offset.is_unstable
    ]
    plan: Row = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "snapshot": {"cluster_id": now.cluster_id, "began_ms": began_ms, "ended_ms": ended_ms},
        "profile": None,
        "as_broker": False,
        "until": {"time_ms": None, "offsets": []},
        "filters": {"groups": [], "topics": [], "offsets_partitions": []},
        "offsets_partitions": {"count": rows.count.number, "source": rows.count.source, "absent": None},
        "end_offsets": {},
        "loads": {},
        "history": {},
        "groups": [rows.group(one) for one in found],
        "topics": _topics(now, offsets),
        "offsets": offsets,
        "pending": [],
        "orphans": [],
        "duplicates": [],
        "refused": refused,
        "unstable": unstable,
        "share_offsets": [row for one in found if one.kind == SHARE for row in rows.share_offsets(one, ends)],
    }
    if not any(one.kind == SHARE for one in found):
        del plan["share_offsets"]
    plan["doubts"] = [
        *LACKS,
        *_of_refused(refused, groups.unlisted),
        *_of_unstable(unstable),
        *_of_share_groups(found),
        *_of_topics(now, offsets),
        *doubts.of_plan(plan),
        *doubts.of_stranded(_stranded(ends, offsets)),
    ]
    plan["problems"] = []
    return plan


class _Rows:
    """The rows of a plan, from what a cluster answers."""

    def __init__(self, now: ClusterNow) -> None:
        self._topics = now.topics
        topic = now.topics.get(OFFSETS_TOPIC)
        self.count = PartitionCount(len(topic.leaders), "metadata") if topic and topic.leaders else UNKNOWN_COUNT

    def _home(self, group: str) -> int | None:
        return None if self.count is UNKNOWN_COUNT else partition_for(group, self.count.number)

    def group(self, one: GroupNow) -> Row:
        return {
            "group": one.group,
            "type": one.kind,
            "state": one.state,
            "protocol_type": one.protocol_type if one.kind == CLASSIC else None,
            "offsets_partition": self._home(one.group),
            "members": one.members,
        }

    def _topic_id(self, topic: str) -> str | None:
        found = self._topics.get(topic)
        return None if found is None or found.topic_id is None else str(found.topic_id)

    def offsets(self, one: GroupNow) -> Iterator[Row]:
        """Yield rows of `compact`, with null in what is not told."""
        for (topic, partition), value in sorted(one.offsets.items()):
            if value.committed_offset >= 0:
                yield dict.fromkeys(column.name for column in COMPACT_COLUMNS) | {
                    "group": one.group,
                    "topic": topic,
                    "partition": partition,
                    "committed_offset": value.committed_offset,
                    "leader_epoch": value.leader_epoch,
                    "metadata": value.metadata,
                    "offsets_partition": self._home(one.group),
                }

    def share_offsets(self, one: GroupNow, ends: ToldEnds) -> Iterator[Row]:
        """Yield rows of a plan's share offsets, with null in what is not told."""
        for (topic, partition), value in sorted(one.offsets.items()):
            end = ends.ends(topic, partition)
            yield dict.fromkeys(column.name for column in SHARE_OFFSET_COLUMNS) | {
                "group": one.group,
                "topic": topic,
                "partition": partition,
                "topic_id": self._topic_id(topic),
                "start_offset": value.committed_offset,
                "leader_epoch": value.leader_epoch,
                "log_start_offset": None if end is None else end.log_start_offset,
                "log_end_offset": None if end is None else end.end_offset,
                "start_timestamp_ms": None,
                "redelivered": [],
            }


def _topics(now: ClusterNow, offsets: Sequence[Row]) -> dict[str, int]:
    """Return how many partitions the topics of offsets have: as the cluster shows, at least as many as have offsets."""
    needed = partitions_needed(offsets, ())
    return {
        name: max(count, len(now.topics[name].leaders) if name in now.topics else 0) for name, count in needed.items()
    }


def _of_share_groups(groups: Sequence[GroupNow]) -> Iterator[str]:
    if names := [one.group for one in groups if one.kind == SHARE]:
        yield (
            f"share groups ({len(names)}): what they had done above where they start is not told, and is "
            f"delivered again: of {doubts.named(names)}"
        )


def _of_refused(refused: Sequence[Row], unlisted: Mapping[int, str]) -> Iterator[str]:
    for node_id, problem in unlisted.items():
        yield f"broker {node_id} did not tell its groups, which are missing: {problem}"
    if refused:
        told = doubts.some_of(f"{shown(row['group'])} ({row['problem']})" for row in refused)
        yield f"groups whose offsets were refused ({len(refused)}): {told}"


def _of_unstable(unstable: Sequence[Row]) -> Iterator[str]:
    if unstable:
        groups = dict.fromkeys(row["group"] for row in unstable)
        yield (
            f"offsets under an open transaction ({len(unstable)}), whose own offset is not told, so that the values "
            f"before them are taken: of {doubts.named(groups)}"
        )


def _of_topics(now: ClusterNow, offsets: Sequence[Row]) -> Iterator[str]:
    if hidden := sorted({row["topic"] for row in offsets} - now.topics.keys()):
        count = sum(row["topic"] in hidden for row in offsets)
        yield (
            f"{counted(count, 'offset')} of topics that the cluster does not show to this user, or that are gone: "
            f"{doubts.named(hidden)}"
        )


def _stranded(ends: ToldEnds, offsets: Sequence[Row]) -> Iterator[Stranded]:
    logs = CopiedLogs((), told=(ends, []))
    return find_stranded(logs, Topics(logs, None), map(_value, offsets))


def _value(row: Row) -> OffsetAndMetadata:
    return OffsetAndMetadata(
        group=row["group"],
        topic=row["topic"],
        partition=row["partition"],
        committed_offset=row["committed_offset"],
        leader_epoch=row["leader_epoch"],
        metadata=row["metadata"],
        commit_timestamp_ms=-1,
        expire_timestamp_ms=None,
        topic_id=None,
        record_offset=-1,
        applied_offset=-1,
        producer_id=-1,
        producer_epoch=-1,
    )
