"""Follow the groups of an offsets partition to know who holds what in them (`top` by clients and members)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from offsets_log.errors import ReplayError
from offsets_log.investigate.holders import Holder, Holders, TopicIds, holders_of
from offsets_log.log_format.batch import RecordBatch
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.group import Group
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.profile import MODERN
from offsets_log.replay.topic_names import topic_names_in


class Clients:
    """Facts about groups and topic ids from the records read so far.

    Args:
        topic_ids: topic id → name, known from elsewhere.
    """

    def __init__(self, topic_ids: Mapping[bytes, str]) -> None:
        self._names = dict(topic_ids)
        self._ids = TopicIds(self._names)
        self._folds: dict[str, GroupFold] = {}
        self._holders: dict[str, Holders] = {}

    @property
    def names_told(self) -> int:
        """The number of topic ids that have a name."""
        return len(self._names)

    def saw(self, record: CoordinatorRecord) -> None:
        """Note what a record says of groups and topic ids."""
        for topic_id, name in topic_names_in(record):
            if topic_id not in self._names:
                self._names[topic_id] = name
                self._ids = TopicIds(self._names)
        if not record.is_offset_commit:
            with suppress(ReplayError):  # as in a replay, the record is skipped
                self._fold(record.group).replay(record)
            self._holders.pop(record.group, None)

    def take(self, group_id: str, group: Group | None) -> None:
        """Set what a group is now, from records that were not seen here."""
        self._fold(group_id).group = group
        self._holders.pop(group_id, None)

    def _fold(self, group_id: str) -> GroupFold:
        return self._folds.setdefault(group_id, GroupFold(group_id, MODERN))

    def holders(self, group_id: str) -> Holders:
        """Return who holds what in a group."""
        holders = self._holders.get(group_id)
        if holders is None:
            fold = self._folds.get(group_id)
            holders = self._holders[group_id] = holders_of(fold.group if fold else None)
        return holders

    def named(self, held: Mapping[tuple[bytes, int], Holder]) -> dict[tuple[str, int], Holder]:
        """Return who holds partitions of topics by their names, from who holds those of topic ids."""
        of_ids: dict[bytes, list[tuple[int, Holder]]] = {}
        for (topic_id, partition), holder in held.items():
            of_ids.setdefault(topic_id, []).append((partition, holder))
        found: dict[tuple[str, int], Holder] = {}
        for topic in dict.fromkeys(self._names[topic_id] for topic_id in of_ids if topic_id in self._names):
            for topic_id in reversed(self._ids.of(topic)):  # the first that is held counts, see `Holders.of`
                found |= {(topic, partition): holder for partition, holder in of_ids.get(topic_id, ())}
        return found

    def holder(self, record: CoordinatorRecord | None, batch: RecordBatch) -> Holder | None:
        """Return the member that sent a commit, as far as the group metadata in force shows.

        Args:
            batch: that of the record: it may be of a transaction (``J-5``).
        """
        if record is None or not record.is_offset_commit or record.value is None:
            return None
        own = record.value.get("topic_id")
        ids = [*([bytes(own)] if own and any(own) else []), *self._ids.of(record.key["topic"])]
        is_plain = not MODERN.is_transactional(batch)
        return self.holders(record.group).of(record.key["topic"], record.key["partition"], ids, is_plain=is_plain)
