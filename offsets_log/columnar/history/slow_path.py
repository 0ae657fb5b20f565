"""Process groups whose records kernels leave to Python: the newer kinds, and what is not plain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.history import entries as e
from offsets_log.columnar.history import kernels as k
from offsets_log.columnar.scan.waiting import taken
from offsets_log.errors import ReplayError
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.group import CLASSIC, Group
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.topic_names import NAMING_TYPES, topic_names_in

if TYPE_CHECKING:
    from offsets_log.columnar.history.state import HistoryState


class Holder(Protocol):
    """A member: its names, and its generation or epoch."""

    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...
    @property
    def client_id(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def epoch(self) -> int: ...


class Holders(Protocol):
    """Who holds what in a group, by topics' names or ids; and the member of a group that has no other."""

    @property
    def by_name(self) -> Mapping[tuple[str, int], Holder]: ...
    @property
    def by_id(self) -> Mapping[tuple[bytes, int], Holder]: ...
    @property
    def only(self) -> Holder | None: ...


HoldersOf = Callable[[Group | None], Holders]


class Growing(Protocol):
    """An array that can be made twice as long."""

    array: Any

    def grow(self) -> None:
        """Replace the array by one that is twice as long and begins with the same contents."""


def int64(number: int) -> int:
    """Return a number if an array can hold it. Raises BeyondError."""
    if not -(1 << 63) <= number < 1 << 63:
        raise BeyondError
    return number


class BeyondError(Exception):
    """The log holds something that only the construct path can handle, such as a number of more than 64 bits."""


def keep_text(texts: Growing, counts: a.Int64s, raw: bytes) -> tuple[int, int]:
    """Append a text to the others; return where it begins, and its size."""
    used = int(counts[e.TEXT_USED])
    while used + len(raw) > len(texts.array):
        texts.grow()
    texts.array[used : used + len(raw)] = np.frombuffer(raw, np.uint8)
    counts[e.TEXT_USED] += len(raw)
    return used, len(raw)


def add_member(members: Growing, texts: Growing, counts: a.Int64s, holder: Holder) -> int:
    """Add a member; return its number."""
    number = int(counts[e.MEMBERS])
    while number >= len(members.array):
        members.grow()
    row: list[int] = []
    for text in (holder.member_id, holder.group_instance_id, holder.client_id, holder.host):
        row += (0, a.NOTHING) if text is None else keep_text(texts, counts, text.encode())
    members.array[number] = *row, holder.epoch
    counts[e.MEMBERS] += 1
    return number


class Groups:
    """The groups of a log.

    Args:
        holders_of: a group as it is now → who holds what in it.

    Attributes:
        asked_later: who holds what by topic ids, not all of which are known yet; entries refer to it by number, from 1.
    """

    def __init__(self, state: HistoryState, holders_of: HoldersOf) -> None:
        self.state = state
        self.asked_later: list[Holders] = []
        self._holders_of = holders_of
        self._folds: dict[int, GroupFold] = {}

    def note(
        self, record: CoordinatorRecord, record_offset: int, timestamp_ms: int, group: int | None = None
    ) -> None:  # fmt: skip
        """Note a record of a group that is shown.

        Args:
            group: its number, if that is known.
        """
        state = self.state
        group = state.group_number(record.group) if group is None else group
        fold = self._fold(group, record.group)
        life = state.lives[group]
        if life[e.EXISTS]:
            fold.saw_offset()
        existed = fold.group is not None
        before = fold.group
        with suppress(ReplayError):  # as in a replay: that record is left out
            fold.replay(record)
        is_classic = fold.group is not None and fold.group.kind == CLASSIC
        life[e.TOLD_BY] = e.TOLD_BY_PYTHON if fold.group is None or is_classic else e.IS_NEWER
        if not is_classic or fold.group is not before:  # a classic group is exchanged, never changed
            life[e.HELD_BY_NOW] = a.NOTHING
        if is_classic and life[e.HELD_BY_NOW] < 0:
            self.find_holders(group)  # commits follow, and the kernel need not come back for them
        exists = fold.group is not None
        while existed != exists:
            need = k.turn_group(
                state.arrays.rows, state.history, group, int(exists), int64(record_offset), timestamp_ms
            )
            if need == oc.FINISHED:
                return
            state.give(need)

    def note_waiting(self) -> None:
        """Note the records that a kernel has put aside; those of shown groups change nothing but who holds what."""
        state, waiting = self.state, taken(self.state.waiting)
        groups = [one.group for one in waiting]
        is_shown = state.lives[groups, e.GROUP_SHOWN] == e.WANTED
        state.lives[groups, e.WAITS] = 0
        for one, shown in zip(waiting, is_shown.tolist(), strict=True):
            record = state.decode(one.key, one.value)
            if record.record_type in NAMING_TYPES:
                for topic_id, name in topic_names_in(record):
                    state.add_topic_name(topic_id, name, one.record_offset)
            if shown:
                with suppress(ReplayError):  # as in a replay: that record is left out
                    self._folds[one.group].replay(record)

    def _fold(self, group: int, name: str) -> GroupFold:
        """Return the fold of a group; of kernels' records, it knows only whether the group exists and is simple."""
        fold = self._folds.setdefault(group, GroupFold(name, self.state.profile))
        life = self.state.lives[group]
        if life[e.TOLD_BY] in (e.IS_SIMPLE, e.IS_CLASSIC):
            protocol_type = "" if life[e.TOLD_BY] == e.IS_SIMPLE else "classic"
            fold.group = Group(name, CLASSIC, protocol_type=protocol_type) if life[e.EXISTS] else None
        return fold

    def find_holders(self, group: int) -> None:
        """Find who holds what in a group from here on."""
        fold, state = self._folds.get(group), self.state
        found = self._holders_of(None if fold is None else fold.group)
        columns = [e.FIRST_MEMBER, e.ONLY_MEMBER, e.HELD_BY_NOW]
        state.lives[group, columns] = state.counts[e.MEMBERS], e.NOBODY, 0
        if found.by_id:
            self.asked_later.append(found)
            state.lives[group, e.HELD_BY_NOW] = len(self.asked_later)
            return
        numbers: dict[int, int] = {}
        for holder in (*found.by_name.values(), *([] if found.only is None else [found.only])):
            if id(holder) not in numbers:
                numbers[id(holder)] = add_member(state.members, state.texts, state.counts, holder)
        if found.only is not None:
            state.lives[group, e.ONLY_MEMBER] = numbers[id(found.only)]
        if fold is not None and found.by_name:
            rows = [state.key_row((fold.group_id, topic, partition)) for topic, partition in found.by_name]
            state.held[rows, e.HOLDER] = [numbers[id(holder)] for holder in found.by_name.values()]
