"""The memory of one offsets partition while this broker leads it: what was loaded, and what was appended since.

Appended bytes are read back, replayed by the code that loads a log (`pipeline.replay`), and merged as the pieces of a
split log are. So the memory always equals what a new load would give, as with the Java coordinator (``B-12``). The
Scala coordinator's live memory differs from a loaded one if an offset or a group is deleted while a transaction is open
(``B-11``); here it is as loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from offsets_log.errors import Damage
from offsets_log.events import Event, LogEvent
from offsets_log.pipeline import replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.fold import OnDamage
from offsets_log.replay.group import CLASSIC, Group
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata, PartialState
from offsets_log.replay.profile import Profile
from offsets_log.replay.timeline import Timeline


@dataclass(slots=True)
class Writer:
    """What the partition knows of one producer id (``W-3``, ``W-4``).

    Attributes:
        in_transaction: whether data was written since its last marker, whatever became of that data.
    """

    producer_epoch: int = -1
    coordinator_epoch: int = -1
    in_transaction: bool = False


class LiveState:
    """The offsets, groups and open transactions of one partition.

    Attributes:
        writers: producer id → its writer, for all since the partition was loaded.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.writers: dict[int, Writer] = {}
        self._offsets = PartialState(profile)
        self._groups: dict[str, Group] = {}
        self._keys: dict[str, set[GroupTopicPartition]] = {}

    # ------------------------------------------------------------------------------------------ changes

    def load(self, events: Iterable[LogEvent], on_damage: OnDamage) -> CoordinatorState:
        """Replay a whole log into this new memory, and return the state that it ends in."""
        loaded = replay(self._watch(events), self.profile, on_damage=on_damage)
        state = finish(loaded)
        for group_id, group in state.groups.items():
            if group.has_record or not self.profile.offsets_make_groups:
                self._groups[group_id] = group
        self._join(loaded)
        return state

    def append(self, events: Iterable[LogEvent]) -> None:
        """Replay what was just written."""
        appended = replay(self._watch(events), self.profile, on_damage=_raise)
        for group_id, timeline in appended.timelines.items():
            self._replay_group(group_id, timeline)
        self._join(appended)

    def _watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        for event in events:
            if isinstance(event, Event) and event.batch.producer_id >= 0:
                writer = self.writers.setdefault(event.batch.producer_id, Writer())
                writer.producer_epoch = max(writer.producer_epoch, event.batch.producer_epoch)
                writer.in_transaction = event.control is None
                if event.control is not None:
                    writer.coordinator_epoch = max(writer.coordinator_epoch, event.control.coordinator_epoch or 0)
            yield event

    def _replay_group(self, group_id: str, timeline: Timeline) -> None:
        fold = GroupFold(group_id, self.profile)
        fold.group = self._groups.pop(group_id, None)
        for event in timeline.events:
            if event.record is None:
                fold.saw_offset()
            else:
                fold.replay(event.record)
        if fold.group is not None:
            self._groups[group_id] = fold.group

    def _join(self, later: PartialState) -> None:
        """Merge a later piece, and forget what only an earlier one would need, as there is none."""
        changed = set(later.keys)
        for producer_id in later.producers:
            if producer_id in self._offsets.producers:
                changed.update(self._offsets.producers[producer_id].open)
        later.timelines = {}
        self._offsets.merge(later)
        for key in changed & self._offsets.keys.keys():
            keys = self._keys.setdefault(key[0], set())
            if self._offsets.keys[key].committed is not None:
                keys.add(key)
                continue
            keys.discard(key)
            del self._offsets.keys[key]
            if not keys:
                del self._keys[key[0]]
        for producer_id in later.producers:
            if not self._offsets.producers[producer_id].open:
                del self._offsets.producers[producer_id]

    # ------------------------------------------------------------------------------------------ answers

    def group(self, group_id: str) -> Group | None:
        """Return a group; None if it does not exist (``J-6``, ``J-15``, ``L-36``)."""
        found = self._groups.get(group_id)
        makes_groups = found is None and self.profile.offsets_make_groups
        return _simple(group_id) if makes_groups and (group_id in self._keys or self.pending(group_id)) else found

    def groups(self) -> dict[str, Group]:
        """Return all groups that exist, by id."""
        if not self.profile.offsets_make_groups:
            return dict(self._groups)
        with_offsets = [*self._keys, *(value.group for value in self._offsets.iter_pending())]
        return {group_id: _simple(group_id) for group_id in with_offsets} | self._groups

    def committed(self, key: GroupTopicPartition) -> OffsetAndMetadata | None:
        """Return the committed offset, even of a group that does not exist."""
        state = self._offsets.keys.get(key)
        return None if state is None else state.committed

    def committed_keys(self, group_id: str) -> list[GroupTopicPartition]:
        """Return the keys of a group's committed offsets, by topic and partition."""
        return sorted(self._keys.get(group_id, ()))

    def pending(self, group_id: str) -> list[GroupTopicPartition]:
        """Return the keys of a group's offsets in open transactions, by topic and partition."""
        return sorted({value.key for value in self._offsets.iter_pending() if value.group == group_id})

    def is_pending(self, key: GroupTopicPartition) -> bool:
        """Return whether an open transaction has an offset for the key."""
        return any(key in producer.open for producer in self._offsets.producers.values())

    def state(self) -> CoordinatorState:
        """Return the whole state, as a replay of the log ends in it.

        Its groups are the live ones: read them at once.
        """
        return replace(finish(self._offsets), groups=self.groups())

    @property
    def topic_names(self) -> dict[bytes, str]:
        """Topic id → name, as far as records tell names."""
        return self._offsets.topic_names


def _simple(group_id: str) -> Group:
    return Group(group_id, CLASSIC, has_record=False)


def _raise(damage: Damage) -> None:
    raise damage.error
