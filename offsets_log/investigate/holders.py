"""Find who holds a partition of a topic in a group, by the group metadata in force (`history`, `top`).

A commit does not say who sent it. A group with members accepts plain commits from these only (``W-7``), and a member
commits for what it is assigned. So the sender is the member that held the partition, or the only member of a group with
one member. A transactional commit need not name a member. A group without members accepts commits from anybody, so
nobody is named then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat

from offsets_log.errors import OffsetsLogError
from offsets_log.messages.consumer_protocol import decode_assignment
from offsets_log.replay.group import CLASSIC, CONSUMER, STREAMS, Group, Member


@dataclass(frozen=True, slots=True)
class Holder:
    """A member as it was when it held something.

    Attributes:
        epoch: the generation of a classic group, else the member's epoch.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Holders:
    """The members of a group and what they hold at one moment; never changed.

    Attributes:
        by_name, by_id: (topic or its id, partition) → member.
        only: the member of a group that has no other.
    """

    by_name: Mapping[tuple[str, int], Holder] = field(default_factory=dict)
    by_id: Mapping[tuple[bytes, int], Holder] = field(default_factory=dict)
    only: Holder | None = None

    def of(self, topic: str, partition: int, topic_ids: Iterable[bytes], *, is_plain: bool) -> Holder | None:
        """Return the member that holds a partition; None if unknown.

        Args:
            topic_ids: ids of topics of that name; there are several if it was deleted and created again.
            is_plain: whether the commit in question is outside of transactions.
        """
        if (holder := self.by_name.get((topic, partition))) is not None:
            return holder
        held = (self.by_id.get((topic_id, partition)) for topic_id in topic_ids)
        return next((holder for holder in held if holder is not None), self.only if is_plain else None)


NOBODY = Holders()


def holders_of(group: Group | None) -> Holders:
    """Return who holds what in a group as it is now."""
    if group is None or not group.members:
        return NOBODY
    by_name: dict[tuple[str, int], Holder] = {}
    by_id: dict[tuple[bytes, int], Holder] = {}
    holder = None
    for member in group.members.values():
        holder = _holder(group, member)
        if group.kind == CLASSIC:
            by_name.update(dict.fromkeys(_assigned(group, member), holder))
        elif group.kind == CONSUMER:
            by_id.update(dict.fromkeys(member.owned, holder))
        elif group.kind == STREAMS:
            by_name.update(dict.fromkeys(_tasks(group, member), holder))
    return Holders(by_name, by_id, holder if len(group.members) == 1 else None)


def _holder(group: Group, member: Member) -> Holder:
    metadata = member.metadata
    return Holder(
        member.member_id,
        member.group_instance_id,
        metadata.get("client_id", ""),
        metadata.get("client_host", ""),
        group.generation if group.kind == CLASSIC else member.member_epoch,
    )


def _assigned(group: Group, member: Member) -> Iterator[tuple[str, int]]:
    """Yield what a classic member is assigned; bytes that do not parse yield nothing (``records:E1``, ``E2``)."""
    if group.protocol_type != "consumer":
        return
    try:
        rows = decode_assignment(member.metadata["assignment"]).fields["assigned_partitions"]
    except OffsetsLogError:
        return
    for row in rows:
        for partition in row["partitions"]:
            yield row["topic"], partition


def _tasks(group: Group, member: Member) -> Iterator[tuple[str, int]]:
    """Yield the partitions of a streams member's active tasks.

    Task n of a subtopology reads partition n of each of its topics.
    """
    if group.topology is None:
        return
    topics = {
        row["subtopology_id"]: (*row["source_topics"], *(info["name"] for info in row["repartition_source_topics"]))
        for row in group.topology["subtopologies"]
    }
    for row in member.current.get("active_tasks", ()):
        for topic in topics.get(row["subtopology_id"], ()):
            yield from zip(repeat(topic), row["partitions"], strict=False)


class TopicIds:
    """Topic name → all ids it is known by."""

    def __init__(self, *sources: Mapping[bytes, str]) -> None:
        self._ids: dict[str, list[bytes]] = {}
        for source in sources:
            for topic_id, name in source.items():
                self._ids.setdefault(name, []).append(bytes(topic_id))

    def of(self, topic: str) -> list[bytes]:
        """Return the ids of a topic."""
        return self._ids.get(topic, [])
