"""The memory of one offsets partition while it is led: what was loaded, joined with what was appended since.

Appended bytes are read back and replayed by the same code that loads a log (`pipeline.replay`), and joined by the
merge that joins the pieces of a split log. So what is held is by construction what another load would give, and that
is what the Java coordinator does (``B-12``). The Scala coordinator's live memory differs from its loaded one where an
offset or a group is deleted under an open transaction (``B-11``); here it is the loaded one.
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
    """What the partition knows of a producer id (``W-3``, ``W-4``).

    Attributes:
        in_transaction: data was written since its last marker, whatever became of it.
    """

    producer_epoch: int = -1
    coordinator_epoch: int = -1
    in_transaction: bool = False


class LiveState:
    """Offsets, groups and open transactions of one partition.

    Attributes:
        writers: by producer id, all since the partition was loaded.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.writers: dict[int, Writer] = {}
        self._offsets = PartialState(profile)
        self._groups: dict[str, Group] = {}
        self._keys: dict[str, set[GroupTopicPartition]] = {}

    # ------------------------------------------------------------------------------------------ changes

    def load(self, events: Iterable[LogEvent], on_damage: OnDamage) -> CoordinatorState:
        """Replay a whole log into this fresh memory, and give what `finish` says of it."""
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
        """Merge, and forget what only an earlier piece would need: nothing comes before the log's beginning."""
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
        """A group that exists (``J-6``, ``J-15``, ``L-36``)."""
        found = self._groups.get(group_id)
        makes_groups = found is None and self.profile.offsets_make_groups
        return _simple(group_id) if makes_groups and (group_id in self._keys or self.pending(group_id)) else found

    def groups(self) -> dict[str, Group]:
        """All that exist, by id."""
        if not self.profile.offsets_make_groups:
            return dict(self._groups)
        with_offsets = [*self._keys, *(value.group for value in self._offsets.iter_pending())]
        return {group_id: _simple(group_id) for group_id in with_offsets} | self._groups

    def committed(self, key: GroupTopicPartition) -> OffsetAndMetadata | None:
        """The committed offset, also of a group that does not exist."""
        state = self._offsets.keys.get(key)
        return None if state is None else state.committed

    def committed_keys(self, group_id: str) -> list[GroupTopicPartition]:
        """What the group has committed offsets of, by topic and partition."""
        return sorted(self._keys.get(group_id, ()))

    def pending(self, group_id: str) -> list[GroupTopicPartition]:
        """What open transactions hold offsets of, for the group, by topic and partition."""
        return sorted({value.key for value in self._offsets.iter_pending() if value.group == group_id})

    def is_pending(self, key: GroupTopicPartition) -> bool:
        """Whether an open transaction holds an offset."""
        return any(key in producer.open for producer in self._offsets.producers.values())

    def state(self) -> CoordinatorState:
        """All of it, as `finish` gives it for a log. Its groups are the live ones: to be read, not kept."""
        return replace(finish(self._offsets), groups=self.groups())

    @property
    def topic_names(self) -> dict[bytes, str]:
        """Topic id → name, as far as the records tell."""
        return self._offsets.topic_names


def _simple(group_id: str) -> Group:
    return Group(group_id, CLASSIC, has_record=False)


def _raise(damage: Damage) -> None:
    raise damage.error
