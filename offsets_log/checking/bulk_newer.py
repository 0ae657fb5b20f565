"""What a bulk check knows of groups of the newer kinds: whether they exist, and which of them ends a load first.

`columnar.folds.newer` has checked that members and partitions come and go in order. So only three things can end a
load: a simple group that was there before (``J-19``), a record that needs something and does not find it (``J-18``),
and at the end a streams group's member without a record of its own (``J-25``), for which its group is read again.
Whether a group exists depends only on how it began and whether it was removed: few timelines (`_shapes`) stand for all
groups. Two kinds of groups are read again, record by record: the one whose record ends a load first, and those that are
doubtful.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.materialize import timelines as tl
from offsets_log.columnar.overflow import More
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord
from offsets_log.replay.group import STREAMS
from offsets_log.replay.groups import replay_timeline
from offsets_log.replay.profile import Profile
from offsets_log.replay.timeline import GroupEvent, Timeline

Bools = npt.NDArray[np.bool_]

ALIVE, REMOVED, BACK = range(3)
"""How a group ends: it is there, it was removed, or offsets came after that."""


class NewerGroups:
    """The groups of a state, by number, as far as they have records of newer kinds.

    Attributes:
        shapes: the timelines that they can have; a group is told by the number of its own.
        doubtful: by group number, whether it must be read again, as the arrays do not tell enough.
    """

    def __init__(self, state: ColumnarState, count: int) -> None:
        groups = state.arrays.groups.up_to(count)
        flags, anchors = groups.column(a.Group.newer_flags), groups.column(a.Group.anchor_offset)
        value_offset = groups.column(a.Group.value_offset)
        self._kinds = groups.column(a.Group.newer_kind)
        self._since = groups.column(a.Group.newer_since)
        is_newer, is_made = self._kinds != 0, anchors != a.NEVER
        is_removed = is_made & (flags & newer.ENDED != 0)
        has_value = (groups.column(a.Group.metadata_offset) != a.NEVER) & (groups.column(a.Group.is_tombstone) == 0)
        is_unclear = (flags & newer.WHOLE != 0) | has_value | (~is_made & (value_offset != a.NEVER))
        self._missing, has_targets, has_members, is_nameless = _members(state, count)
        is_unclear |= is_nameless & (self._kinds == newer.KINDS[STREAMS])
        is_unclear |= (flags & newer.EPOCH_GONE != 0) & has_targets
        is_unclear |= is_removed & (has_members | (flags & newer.EPOCH_GONE == 0))
        is_unclear[list(state.events)] = True
        self._missing[anchors != self._since] = self._since[anchors != self._since]
        self.doubtful: Bools = is_newer & is_unclear
        self._is_plain: Bools = is_newer & ~is_unclear
        self._is_made: Bools = self._is_plain & is_made
        had_offset = groups.column(a.Group.value_before) != a.NEVER
        ends = is_removed * (REMOVED + (value_offset > groups.column(a.Group.newer_last)))
        self.shapes = list(_shapes())
        self._shape_of = np.where(self._is_made, ((self._kinds - 1) * 2 + had_offset) * (BACK + 1) + ends, 0)

    def known_to(self, profile: Profile) -> Bools:
        """Return by group whether the rules of a release know its kind, and it need not be read again."""
        kinds = [newer.TYPES[number, newer.KIND] for number in newer.HEADS if number in profile.known_types]
        return self._is_plain & np.isin(self._kinds, kinds)

    def shape_of(self, profile: Profile, others: a.Int64s, base: int) -> a.Int64s:
        """Return the number of each group's timeline, in a list that has `shapes` behind other timelines.

        Args:
            others: the numbers that groups have whose kind these rules do not know.
            base: the number of the first of `shapes` in that list.
        """
        return np.where(self._is_made & self.known_to(profile), self._shape_of + base, others)

    def first_failing(self, profile: Profile) -> int | None:
        """Return the group whose record is the first that ends a load; None if none of them does."""
        fails = np.array([bool(replay_timeline("", shape, profile)[1]) for shape in self.shapes])[self._shape_of]
        missing = self._missing if profile.tombstones_need_their_target else np.full(len(fails), _NONE)
        first = np.where(fails & self._is_made, self._since, missing)
        first[~self.known_to(profile)] = _NONE
        return int(first.argmin()) if len(first) and first.min() < _NONE else None


_NONE = np.iinfo(np.int64).max


def _members(state: ColumnarState, count: int) -> tuple[a.Int64s, Bools, Bools, Bools]:
    """Return by group the first record that needs a member and finds none, and three answers.

    Whether targets are left, whether members or targets are, and whether a member has no record of its own.
    """
    rows, states = tl.members(state)
    groups, known = rows.column(a.Row.group), states.column(More.state)
    missing = np.full(count, _NONE)
    for first in (states.column(More.needed), states.column(More.missed)):
        is_there = first != 0
        np.minimum.at(missing, groups[is_there], first[is_there] - 1)
    has_targets, has_members, is_nameless = (np.zeros(count, np.bool_) for _ in range(3))
    is_left = ~np.isin(known & newer.PHASE, (newer.UNKNOWN, newer.GONE))
    has_targets[groups[known & newer.HAS_TARGET != 0]] = True
    has_members[groups[is_left]] = True
    is_nameless[groups[is_left & (known & newer.PRESENT == 0)]] = True
    return missing, has_targets, has_members | has_targets, is_nameless


def _shapes() -> Iterator[Timeline]:
    """Yield a timeline for each kind, with an offset before or none, and for each end."""
    for head, epoch in zip(newer.HEADS, newer.EPOCHS, strict=True):
        removed = [GroupEvent(0, _record(epoch, False)), GroupEvent(0, _record(head, False))]
        offset = [GroupEvent(0, None)]
        for before, end in product(([], offset), ([], removed, removed + offset)):
            yield Timeline([*before, GroupEvent(0, _record(head, True)), *end])


def _record(number: int, is_value: bool) -> CoordinatorRecord:
    row = RECORD_TYPES[number]
    return CoordinatorRecord(
        record_type=number, key=row.key.zeros(0), value=row.values[0].zeros(0) if is_value else None
    )
