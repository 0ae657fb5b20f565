"""Ask a live cluster for its groups and what they have committed, without the right to read the offsets topic.

Each broker lists the groups that it coordinates, and is asked about these. No broker is asked who coordinates a group:
a cluster without an offsets topic makes one to answer that (``KafkaApis.scala``, ``getCoordinator``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from offsets_log.cluster.reader import ClusterReader, Pauses
from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.errors import ClusterError
from offsets_log.protocol.api import Api
from offsets_log.protocol.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from offsets_log.protocol.describe_groups import DESCRIBE_GROUPS
from offsets_log.protocol.describe_share_group_offsets import DESCRIBE_SHARE_GROUP_OFFSETS
from offsets_log.protocol.error_codes import (
    COORDINATOR_MOVES,
    GROUP_ID_NOT_FOUND,
    NO_ERROR,
    UNSTABLE_OFFSET_COMMIT,
    name_of,
)
from offsets_log.protocol.list_groups import LIST_GROUPS
from offsets_log.protocol.offset_fetch import OFFSET_FETCH, WITH_MANY_GROUPS, WITH_NAMES
from offsets_log.protocol.share_group_describe import SHARE_GROUP_DESCRIBE
from offsets_log.protocol.streams_group_describe import STREAMS_GROUP_DESCRIBE
from offsets_log.replay.group import CLASSIC, CONSUMER, SHARE, STREAMS

GROUPS_OF_A_REQUEST = 100
DESCRIBED_BY: Mapping[str, tuple[Api, str]] = {
    CLASSIC: (DESCRIBE_GROUPS, "groups"),
    CONSUMER: (CONSUMER_GROUP_DESCRIBE, "group_ids"),
    SHARE: (SHARE_GROUP_DESCRIBE, "group_ids"),
    STREAMS: (STREAMS_GROUP_DESCRIBE, "group_ids"),
}
"""Kind of group → the API that describes it, and its request's field for their names."""
_NO_MORE = {"include_authorized_operations": False, "include_topology_description": False}


@dataclass(slots=True)
class CommittedNow:
    """An offset as OffsetFetch answers it.

    Attributes:
        is_unstable: whether an open transaction holds another one.
    """

    committed_offset: int
    leader_epoch: int | None
    metadata: str
    is_unstable: bool = False


@dataclass(slots=True)
class GroupNow:
    """A group as its coordinator describes it.

    Attributes:
        state, members: None where brokers do not tell.
        problem: why nothing is known of its offsets.
        offsets: what was committed; of a share group where it starts.
    """

    group: str
    kind: str
    protocol_type: str | None
    state: str | None
    members: int | None = None
    problem: str | None = None
    offsets: dict[TopicPartition, CommittedNow] = field(default_factory=dict)


class GroupsReader:
    """Reads all groups that a cluster shows.

    Attributes:
        groups: what was found, by name.
        unlisted: broker → why it did not list its groups.
    """

    def __init__(self, reader: ClusterReader, tell: Callable[[str], None]) -> None:
        self.groups: dict[str, GroupNow] = {}
        self.unlisted: dict[int, str] = {}
        self._reader = reader
        self._tell = tell

    def read(self) -> None:
        """Ask all brokers; groups that move meanwhile are asked for again.

        Raises:
            ClusterLostError: no broker answers any more.
        """
        pauses = Pauses(self._reader.patience)
        done: set[str] = set()
        while True:
            self.unlisted = {}
            for node_id in self._reader.metadata().brokers:
                try:
                    listed = self._list(node_id)
                    self._read([group for group in listed if group.group not in done], node_id)
                except (OSError, ClusterError) as error:
                    self.unlisted[node_id] = str(error)
                    self._tell(f"broker {node_id}: {error}; it is tried again")
            left = {group.group for group in self.groups.values() if group.problem in MOVES}
            if self.groups.keys() - left - done:
                pauses.go_on()
            done = self.groups.keys() - left
            if not (left or self.unlisted) or not pauses.wait():
                return

    def _list(self, node_id: int) -> list[GroupNow]:
        answer = self._reader.ask(node_id, LIST_GROUPS, {"states_filter": [], "types_filter": []})
        if answer["error_code"] != NO_ERROR:
            raise ClusterError(f"it lists no groups: {name_of(answer['error_code'])}")
        return [
            GroupNow(
                row["group_id"],
                (row.get("group_type") or CLASSIC).lower(),
                row["protocol_type"] or None,
                row.get("group_state") or None,
            )
            for row in answer["groups"]
        ]

    def _read(self, groups: Sequence[GroupNow], node_id: int) -> None:
        """Read what groups of one coordinator are and have committed."""
        by_kind: dict[str, list[GroupNow]] = defaultdict(list)
        for group in groups:
            by_kind[group.kind].append(group)
        for kind, same in by_kind.items():
            for some in _batches(same):
                self._describe(some, kind, node_id)
                self._offsets(some, kind, node_id)
                self.groups.update((group.group, group) for group in some)

    def _describe(self, groups: Sequence[GroupNow], kind: str, node_id: int) -> None:
        if kind not in DESCRIBED_BY:
            return
        api, field_name = DESCRIBED_BY[kind]
        names = [group.group for group in groups]
        try:
            answer = self._reader.ask(node_id, api, {field_name: names, **_NO_MORE})
        except ClusterError:  # members are good to know, and no more
            return
        told = {row["group_id"]: row for row in answer["groups"] if row["error_code"] == NO_ERROR}
        for group in groups:
            if group.group in told:
                group.state = told[group.group]["group_state"] or group.state
                group.members = len(told[group.group]["members"])

    # ------------------------------------------------------------------------------------------- offsets

    def _offsets(self, groups: Sequence[GroupNow], kind: str, node_id: int) -> None:
        if kind == SHARE:
            self._share_offsets(groups, node_id)
            return
        self._fetch(groups, node_id, is_stable=True)
        unsure = [group for group in groups if any(offset.is_unstable for offset in group.offsets.values())]
        if unsure:
            self._fetch(unsure, node_id, is_stable=False)

    def _fetch(self, groups: Sequence[GroupNow], node_id: int, *, is_stable: bool) -> None:
        """Ask for offsets.

        Args:
            is_stable: whether those under open transactions are left out, which brokers of 2.5 and later can.
        """
        by_name = {group.group: group for group in groups}
        many = self._reader.version_of(node_id, OFFSET_FETCH, WITH_NAMES) >= WITH_MANY_GROUPS
        for names in [list(by_name)] if many else [[name] for name in by_name]:
            body = {
                "group_id": names[0],
                "topics": None,
                "groups": [{"group_id": name, "member_id": None, "member_epoch": -1, "topics": None} for name in names],
                "require_stable": is_stable,
            }
            answer = self._reader.ask(node_id, OFFSET_FETCH, body, WITH_NAMES)
            for row in answer["groups"] if many else [answer | {"group_id": names[0]}]:
                if row["group_id"] in by_name:
                    _take_offsets(by_name[row["group_id"]], row)

    def _share_offsets(self, groups: Sequence[GroupNow], node_id: int) -> None:
        by_name = {group.group: group for group in groups}
        body = {"groups": [{"group_id": name, "topics": None} for name in by_name]}
        for row in self._reader.ask(node_id, DESCRIBE_SHARE_GROUP_OFFSETS, body)["groups"]:
            group = by_name.get(row["group_id"])
            if group is None:
                continue
            group.problem = None if row["error_code"] == NO_ERROR else name_of(row["error_code"])
            for topic in row["topics"]:
                for one in topic["partitions"]:
                    if one["error_code"] == NO_ERROR and one["start_offset"] >= 0:
                        key = topic["topic_name"], one["partition_index"]
                        group.offsets[key] = CommittedNow(one["start_offset"], _epoch(one["leader_epoch"]), "")


MOVES = frozenset(map(name_of, COORDINATOR_MOVES))
GONE = name_of(GROUP_ID_NOT_FOUND)
"""The problem of a group that was deleted since it was listed."""


def _batches(groups: Sequence[GroupNow]) -> Iterator[Sequence[GroupNow]]:
    return (groups[i : i + GROUPS_OF_A_REQUEST] for i in range(0, len(groups), GROUPS_OF_A_REQUEST))


def _epoch(told: int) -> int | None:
    return told if told >= 0 else None


def _take_offsets(group: GroupNow, row: Mapping[str, Any]) -> None:
    code = row.get("error_code", NO_ERROR)
    group.problem = None if code == NO_ERROR else name_of(code)
    for topic in row["topics"]:
        for one in topic["partitions"]:
            key = topic["name"], one["partition_index"]
            if one["error_code"] == UNSTABLE_OFFSET_COMMIT:
                group.offsets[key] = CommittedNow(-1, None, "", is_unstable=True)
            elif one["error_code"] != NO_ERROR:
                group.problem = name_of(one["error_code"])
            elif one["committed_offset"] >= 0:
                is_unstable = key in group.offsets and group.offsets[key].is_unstable
                epoch, metadata = _epoch(one.get("committed_leader_epoch", -1)), one["metadata"] or ""
                group.offsets[key] = CommittedNow(one["committed_offset"], epoch, metadata, is_unstable)
