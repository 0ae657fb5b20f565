"""Keep what a coordinator would hold of one partition, and which of it the last records touched.

It is the state that `replay.coordinator_state.finish` makes of the whole log, kept by what each run of records does:
groups are folded on as their records come, and of the offsets only what later records need is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.group import CLASSIC, Group
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.partial import (
    GroupTopicPartition,
    KeyState,
    OffsetAndMetadata,
    PartialState,
    ProducerState,
)
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile


@dataclass(frozen=True, slots=True)
class Held:
    """All of a state that later records can change, or be changed by: to be kept elsewhere, and continued.

    A tombstone is not part of it: records behind it are beyond its reach.

    Attributes:
        committed: also of groups that do not exist.
        pending: by producer id.
    """

    committed: tuple[OffsetAndMetadata, ...] = ()
    pending: Mapping[int, Mapping[GroupTopicPartition, OffsetAndMetadata]] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()


class KeptPartition:
    """The state of one offsets partition.

    Attributes:
        problems: what would end a load, in the order it was met.
        keys, groups: what was touched since `settle` was called.
    """

    def __init__(self, profile: Profile, offsets_partition: int | None) -> None:
        self.profile = profile
        self.offsets_partition = offsets_partition
        self.problems: list[Problem] = []
        self.keys: set[GroupTopicPartition] = set()
        self.groups: set[str] = set()
        self._state = PartialState(profile)
        self._folds: dict[str, GroupFold] = {}
        self._keys_of: dict[str, set[GroupTopicPartition]] = {}

    def add(self, effect: PartialState) -> None:
        """Take what the records that follow do; it must not be used afterwards."""
        timelines, effect.timelines = effect.timelines, {}
        problems, effect.problems = effect.problems, []
        ended = [self._state.producers[each] for each in effect.producers if each in self._state.producers]
        touched = {*effect.keys, *(key for producer in ended for key in producer.open)}
        touched.update(key for producer in effect.producers.values() for key in (*producer.open, *producer.cancelled))
        self._state.merge(effect)
        for producer_id in [each for each, producer in self._state.producers.items() if not producer.open]:
            del self._state.producers[producer_id]  # nothing stands before this run that its markers could decide
        self._note_keys(touched)
        self.groups |= timelines.keys()
        for group_id, timeline in timelines.items():
            fold = self._folds.setdefault(group_id, GroupFold(group_id, self.profile))
            existed = fold.group is not None
            problems += fold.replay_timeline(timeline)
            if existed != (fold.group is not None):
                self.keys |= self._keys_of.get(group_id, set())
            if fold.group is None and group_id not in self._keys_of:
                del self._folds[group_id]
        self.problems += problems

    def held(self) -> Held:
        """Return what is held now; its groups change with the state."""
        return Held(
            tuple(self._state.iter_committed()),
            {producer_id: producer.open for producer_id, producer in self._state.producers.items()},
            tuple(fold.group for fold in self._folds.values() if fold.group is not None),
        )

    def go_on_from(self, held: Held) -> None:
        """Take what was held, into a state that is empty."""
        for value in held.committed:
            self._state.keys[value.key] = KeyState(value)
            self._keys_of.setdefault(value.group, set()).add(value.key)
        for producer_id, pending in held.pending.items():
            self._state.producers[producer_id] = ProducerState(open=dict(pending))
        for group in held.groups:
            fold = self._folds[group.group_id] = GroupFold(group.group_id, self.profile)
            fold.group = group

    def _note_keys(self, touched: Iterable[GroupTopicPartition]) -> None:
        for key in touched:
            self.keys.add(key)
            self.groups.add(key[0])
            self._keys_of.setdefault(key[0], set()).add(key)

    @property
    def failure(self) -> Problem | None:
        """The problem that ends a load of this partition; None if it loads."""
        first = min(self.problems, key=lambda problem: problem.record_offset, default=None)
        return None if first is None or first.is_served else first

    def settle(self) -> None:
        """Begin to note anew what is touched."""
        self.keys, self.groups = set(), set()

    # ------------------------------------------------------------------------------------ what is held

    def committed(self, key: GroupTopicPartition, *, orphans: bool = False) -> OffsetAndMetadata | None:
        """Return what is answered for a key; None if nothing.

        Args:
            orphans: also of a group that does not exist.
        """
        held = self._state.keys.get(key)
        if held is None or held.committed is None or not (orphans or self._exists(key[0])):
            return None
        return held.committed

    def served(self) -> Iterator[OffsetAndMetadata]:
        """Yield all offsets that are answered."""
        found = map(self.committed, self._state.keys)
        return (value for value in found if value is not None)

    def group(self, group_id: str) -> Group | None:
        """Return a group that has records; None without any."""
        fold = self._folds.get(group_id)
        return None if fold is None else fold.group

    def _exists(self, group_id: str) -> bool:
        fold = self._folds.get(group_id)
        return self.profile.offsets_make_groups or (fold is not None and fold.group is not None)

    def pending(self) -> Iterator[OffsetAndMetadata]:
        """Yield the offsets of open transactions."""
        return self._state.iter_pending()

    def is_pending(self, key: GroupTopicPartition) -> bool:
        """Whether an open transaction holds an offset for a key."""
        return any(key in producer.open for producer in self._state.producers.values())

    def of_groups(self, group_ids: Set[str]) -> CoordinatorState:
        """Return what is held of some groups."""
        committed = tuple(
            value for group_id in group_ids for value in map(self._held, self._keys_of.get(group_id, ())) if value
        )
        pending = tuple(value for value in self.pending() if value.group in group_ids)
        groups: dict[str, Group] = {}
        for group_id in sorted(group_ids):
            fold = self._folds.get(group_id)
            if fold is not None and fold.group is not None:
                groups[group_id] = fold.group
        if self.profile.offsets_make_groups:
            for value in (*committed, *pending):
                groups.setdefault(value.group, Group(value.group, CLASSIC, has_record=False))
        return CoordinatorState(
            self.profile, groups, committed, pending, tuple(self.problems), self._state.topic_names,
            self._state.end_offset,
        )  # fmt: skip

    def _held(self, key: GroupTopicPartition) -> OffsetAndMetadata | None:
        held = self._state.keys.get(key)
        return None if held is None else held.committed
