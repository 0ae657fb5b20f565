"""Keep what a coordinator holds of one offsets partition while records come.

It is the state that `coordinator_state.finish` makes of the whole log, kept by what each run of records does. Groups
are folded on as their records come; of offsets, groups and transactions that are gone nothing is kept. Nor are
tombstones: records behind one are beyond its reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from itertools import chain

from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.group import Group
from offsets_log.replay.groups import GroupFold, add_simple_groups
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata, PartialState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile


@dataclass(slots=True)
class Touched:
    """What a run of records was about.

    Attributes:
        keys: all keys of which the answer may have changed.
        problems: what would end a load.
    """

    keys: set[GroupTopicPartition]
    groups: set[str]
    problems: list[Problem] = field(default_factory=list)


class LiveState:
    """The offsets, groups and open transactions of one partition."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._offsets = PartialState(profile)
        self._folds: dict[str, GroupFold] = {}  # of groups that exist
        self._absent = GroupFold("", profile)
        self._keys: dict[str, set[GroupTopicPartition]] = {}  # by group, those that have committed offsets

    def add(self, later: PartialState) -> Touched:
        """Take what the records that follow do; it must not be used afterwards."""
        timelines, later.timelines = later.timelines, {}
        problems, later.problems = later.problems, []
        known = self._offsets.producers
        keys = {*later.keys, *chain.from_iterable(known[each].open for each in later.producers if each in known)}
        keys.update(key for producer in later.producers.values() for key in (*producer.open, *producer.cancelled))
        self._offsets.merge(later)
        for producer_id in [each for each, producer in known.items() if not producer.open]:
            del known[producer_id]  # nothing stands before this run that its markers could decide
        for key in keys:
            self._note(key)
        touched = Touched(keys, {key[0] for key in keys} | timelines.keys(), problems)
        for group_id, timeline in timelines.items():
            fold = self._folds.pop(group_id, None) or GroupFold(group_id, self.profile)
            existed = fold.group is not None
            problems += fold.go_on(timeline)
            if fold.group is not None:
                self._folds[group_id] = fold
            if existed != (fold.group is not None):
                touched.keys |= self._keys.get(group_id, set())
        return touched

    def _note(self, key: GroupTopicPartition) -> None:
        """Note a key of its group if it has a committed offset, and else forget it."""
        held, keys = self._offsets.keys.get(key), self._keys.setdefault(key[0], set())
        if held is not None and held.committed is not None:
            keys.add(key)
            return
        self._offsets.keys.pop(key, None)
        keys.discard(key)
        if not keys:
            del self._keys[key[0]]

    # ------------------------------------------------------------------------------------ what is held

    def group(self, group_id: str) -> Group | None:
        """Return a group; None if it does not exist (``J-6``, ``J-15``, ``L-36``)."""
        return self.fold(group_id).group or self.state({group_id}).groups.get(group_id)

    def groups(self) -> dict[str, Group]:
        """Return all groups that exist, by id."""
        return self.state().groups

    def fold(self, group_id: str) -> GroupFold:
        """Return the fold of a group, that of one that does not exist if there is none of that name."""
        return self._folds.get(group_id, self._absent)

    def names(self) -> set[str]:
        """Return the names of groups of which anything is held."""
        return {*self._folds, *self._keys, *(value.group for value in self.iter_pending())}

    def committed(self, key: GroupTopicPartition) -> OffsetAndMetadata | None:
        """Return the committed offset, even of a group that does not exist."""
        held = self._offsets.keys.get(key)
        return None if held is None else held.committed

    def committed_keys(self, group_id: str) -> list[GroupTopicPartition]:
        """Return the keys of a group's committed offsets, by topic and partition."""
        return sorted(self._keys.get(group_id, ()))

    def iter_pending(self) -> Iterator[OffsetAndMetadata]:
        """Yield the offsets of open transactions."""
        return self._offsets.iter_pending()

    def pending_keys(self, group_id: str) -> list[GroupTopicPartition]:
        """Return the keys of a group's offsets in open transactions, by topic and partition."""
        return sorted({value.key for value in self.iter_pending() if value.group == group_id})

    def is_pending(self, key: GroupTopicPartition) -> bool:
        """Whether an open transaction holds an offset for a key."""
        return any(key in producer.open for producer in self._offsets.producers.values())

    def state(self, group_ids: Set[str] | None = None) -> CoordinatorState:
        """Return the state that a load of the log ends in, without problems; its groups are the live ones.

        Args:
            group_ids: whose offsets and groups it has; None for all.
        """
        asked = self.names() if group_ids is None else group_ids
        keys = (key for group_id in asked for key in self._keys.get(group_id, ()))
        committed = tuple(value for value in map(self.committed, keys) if value is not None)
        pending = tuple(value for value in self.iter_pending() if value.group in asked)
        groups = {name: group for name in sorted(asked) if (group := self.fold(name).group) is not None}
        add_simple_groups(groups, self.profile, (value.group for value in (*committed, *pending)))
        return CoordinatorState(
            self.profile, groups, committed, pending, (), self._offsets.topic_names, self._offsets.end_offset
        )

    @property
    def topic_names(self) -> dict[bytes, str]:
        """Topic id → name, as far as records tell names."""
        return self._offsets.topic_names
