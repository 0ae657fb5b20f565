"""All that two copies of one log have, in the order of offsets.

A batch of one copy stands in the other's log, too, if both have the same batch somewhere behind it; or if nothing of
the other copy is behind it, and both have the same batch before it; or if the next batch of the other copy, or its list
of leader epochs, tells that it is of that epoch there (`one_log` says why).

A cleaner takes batches, and records out of them, at another time in each copy. All that either has is taken then: an
old value that one cleaner took stands before the tombstone that deleted it. If that tombstone may have been where its
copy is damaged, and the other copy's cleaner took it, the deleted key would come back: such copies are not joined
(``CL-22``, ``CL-23``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from offsets_log.columnar.scan.batch_rows import BatchRow
from offsets_log.repairing.copies import Copy, Longs
from offsets_log.repairing.one_log import (
    ForeignLogError,
    NotJoinedError,
    NotOneLogError,
    apart,
    check_lines,
    fuller,
    same_batches,
    settled,
    told_epoch,
)

NEVER = int(np.iinfo(np.int64).max)
BASE, OTHER = 0, 1
"""The copy that is read, and the one that completes it."""


@dataclass(slots=True)
class Run:
    """Batches of one copy that follow each other: from a number to below another one."""

    side: int
    first: int
    behind: int


@dataclass(frozen=True, slots=True)
class Broken:
    """Bytes of one copy that are no batch and that nothing replaces: from a place to another one."""

    side: int
    begin: int
    end: int


@dataclass(slots=True)
class Union:
    """Two copies as one.

    Attributes:
        copies: the one that is read, and the other one, without batches whose header is damaged.
        parts: what the log consists of.
    """

    copies: tuple[Copy, Copy]
    parts: list[Run | Broken] = field(default_factory=list)

    @property
    def is_other(self) -> bool:
        """Whether it is anything else than the chosen copy."""
        base = self.copies[BASE]
        kept = sum(part.end - part.begin for part in self.parts if isinstance(part, Broken))
        there = int((base.begins - base.ends).sum())
        return kept != there or any(part.side == OTHER for part in self.parts)


def union(base: Copy, other: Copy) -> Union:
    """Return two copies as one.

    Args:
        base, other: both have batches.

    Raises:
        NotJoinedError: they are not of one log, or that or what would come of it is in doubt.
    """
    base, other = settled(base, other)
    left, right = same_batches(base, other)
    if not len(left):
        raise _nothing_in_common(base, other)
    check_lines(base, other)
    joining = _Joining(base, other)
    joining.join(left, right)
    joining.check_cleaning()
    return joining.made


def _nothing_in_common(base: Copy, other: Copy) -> NotOneLogError:
    """Return the error for two copies, both of which have batches."""
    begins = tuple(copy.rows.column(BatchRow.base_offset) for copy in (base, other))
    _, left, right = np.intersect1d(begins[0], begins[1], assume_unique=True, return_indices=True)
    here, there = (int(left[0]), int(right[0])) if len(left) else (0, 0)
    error = apart("they have no batch in common", int(begins[0][here]), base.place(here), other.place(there))
    return ForeignLogError(error.problem, record_offset=error.record_offset) if len(left) else error


@dataclass(slots=True)
class _Replaced:
    """What another copy has at a damaged place.

    Attributes:
        size_bytes: of its batches there.
        behind: not every offset below it is there, up to the place; 0 if all are.
    """

    size_bytes: int = 0
    behind: int = 0


@dataclass(slots=True)
class _Cleaning:
    """What speaks for a cleaner that one copy met and the other did not.

    Attributes:
        has_more: whether this copy has records that the other one, which is whole there, has not.
        taken: the first offset from which on records of this copy are taken that the other one has not.
        replaced: number of the batch behind a damaged place of this copy → what the other one has there.
    """

    has_more: bool = False
    taken: int = NEVER
    replaced: dict[int, _Replaced] = field(default_factory=dict)


class _Joining:
    """The way along two copies."""

    def __init__(self, base: Copy, other: Copy) -> None:
        self.copies = base, other
        self.made = Union(self.copies)
        self._cleaning = _Cleaning(), _Cleaning()
        self._log_start = base.log.checkpoints.log_start_offset or 0
        self._next = min(base.begin_offset, max(other.begin_offset, self._log_start))
        self._last_side: int | None = None
        self._kept: dict[tuple[int, int], Broken] = {}
        self._lost: set[tuple[int, int]] = set()

    def join(self, left: Longs, right: Longs) -> None:
        """Go along both: batches that both have, and stretches between these, which differ or are damaged in one."""
        ends = [
            np.concatenate([[-1], side, [len(copy.rows)]])
            for side, copy in zip((left, right), self.copies, strict=True)
        ]
        is_plain = np.ones(len(left) + 1, np.bool_)
        for at, copy in zip(ends, self.copies, strict=True):
            is_plain &= (np.diff(at) == 1) & ~copy.is_broken[at[1:]] & (at[1:] < len(copy.rows)) & (at[:-1] >= 0)
        stretches = [*np.flatnonzero(~is_plain).tolist(), len(is_plain)]
        for stretch, following in pairwise(stretches):
            begin, end = ([int(at[number]) for at in ends] for number in (stretch, stretch + 1))
            self._stretch(begin[0] + 1, end[0], begin[1] + 1, end[1], is_last=stretch == len(left))
            if stretch < len(left):
                self._common(end[0], int(ends[0][following]) + 1)
        whole = {id(kept) for place, kept in self._kept.items() if place not in self._lost and self._is_whole(*place)}
        self.made.parts = [part for part in self.made.parts if id(part) not in whole]

    def _is_whole(self, side: int, number: int) -> bool:
        """Return whether damaged bytes are as many as those of the batches that replace them: they were these."""
        replaced = self._cleaning[side].replaced.get(number)
        return replaced is not None and replaced.size_bytes == self._damaged_bytes(side, number)

    def _common(self, first: int, behind: int) -> None:
        """Take batches that both copies have."""
        self._add(BASE, first, behind)
        self._last_side = None

    def _add(self, side: int, first: int, behind: int) -> None:
        parts = self.made.parts
        if parts and isinstance(last := parts[-1], Run) and last.side == side and last.behind == first:
            last.behind = behind
        else:
            parts.append(Run(side, first, behind))
        self._next = int(self.copies[side].rows[behind - 1].last_offset) + 1

    def _stretch(self, left: int, left_end: int, right: int, right_end: int, *, is_last: bool) -> None:
        """Take what either copy has between two batches that both have."""
        base, other = self.copies
        at, ends = [left, right], (left_end, right_end)
        while at[0] < ends[0] or at[1] < ends[1]:
            one = base.rows[at[0]] if at[0] < ends[0] else None
            two = other.rows[at[1]] if at[1] < ends[1] else None
            if two is not None and two.last_offset < self._log_start:
                at[1] += 1
            elif one is not None and (two is None or one.last_offset < two.base_offset):
                self._alone(BASE, at, is_last=is_last)
            elif two is not None and (one is None or two.last_offset < one.base_offset):
                self._alone(OTHER, at, is_last=is_last)
            else:
                self._both(at)
        behind = int(base.rows[left_end].base_offset) if left_end < len(base.rows) else None
        self._gap(at, behind)

    def _alone(self, side: int, at: list[int], *, is_last: bool) -> None:
        """Take a batch that one copy has."""
        copy, lacking = self.copies[side], self.copies[1 - side]
        number, there = at[side], at[1 - side]
        row = copy.rows[number]
        offset, last = int(row.base_offset), int(row.last_offset)
        self._gap(at, offset)
        self._check_epoch(side, number, is_last=is_last)
        is_lent = bool(lacking.is_broken[there]) or lacking.is_absent_before(there)
        self._cleaning[side].has_more |= not is_lent
        self._cleaning[side].taken = min(self._cleaning[side].taken, offset)
        if is_lent:
            replaced = self._cleaning[1 - side].replaced.setdefault(there, _Replaced())
            replaced.size_bytes += int(row.size_bytes)
            if int(row.records_count) != last - offset + 1:
                replaced.behind = last + 1
        self._add(side, number, number + 1)
        self._last_side = side
        at[side] += 1

    def _both(self, at: list[int]) -> None:
        """Take the fuller of two batches that a cleaner has met; that of the base where no more is needed."""
        side = fuller(self.copies[0], at[0], self.copies[1], at[1])
        offset = int(self.copies[BASE].rows[at[0]].base_offset)
        self._gap(at, offset)
        taken = OTHER if side == OTHER and self._cleaning[OTHER].taken < NEVER else BASE
        if side is not None:
            self._cleaning[side].has_more = True
        if side == taken:
            self._cleaning[side].taken = min(self._cleaning[side].taken, offset)
        self._add(taken, at[taken], at[taken] + 1)
        self._last_side = None
        at[0] += 1
        at[1] += 1

    def _gap(self, at: list[int], offset: int | None) -> None:
        """Keep damaged bytes of one copy where neither has the offsets before one; None at the end."""
        if offset is None:
            side = OTHER if self._last_side == OTHER else BASE
            if self.copies[side].is_broken[at[side]]:
                self._keep(side, at[side])
            return
        if offset <= self._next:
            return
        broken = [self._has_more(side, number, offset) for side, number in enumerate(at)]
        absent = [copy.is_absent_before(number) for copy, number in zip(self.copies, at, strict=True)]
        if broken[BASE] and (broken[OTHER] or absent[OTHER]):
            self._keep(BASE, at[BASE], is_lost=broken[OTHER])
        elif broken[OTHER] and absent[BASE]:
            self._keep(OTHER, at[OTHER], is_lost=False)
        for side in (BASE, OTHER):
            if broken[side] or absent[side]:
                self._cleaning[side].replaced.setdefault(at[side], _Replaced()).behind = offset

    def _has_more(self, side: int, number: int, offset: int) -> bool:
        """Return whether a copy has damaged bytes before a batch, in a file that begins before an offset.

        As many as those of the batches that were taken in their place do not count.
        """
        replaced = self._cleaning[side].replaced.get(number)
        if self.copies[side].first_offset_behind(number) >= offset:
            return False
        return self._damaged_bytes(side, number) > (0 if replaced is None else replaced.size_bytes)

    def _damaged_bytes(self, side: int, number: int) -> int:
        copy = self.copies[side]
        return int(copy.begins[number]) - int(copy.ends[number])

    def _keep(self, side: int, number: int, *, is_lost: bool = True) -> None:
        """Keep damaged bytes.

        Args:
            is_lost: whether a batch is lost there for certain, even if as many bytes are found to replace them.
        """
        if (side, number) not in self._kept:
            copy = self.copies[side]
            kept = self._kept[side, number] = Broken(side, int(copy.ends[number]), int(copy.begins[number]))
            self.made.parts.append(kept)
        if is_lost:
            self._lost.add((side, number))

    def _check_epoch(self, side: int, number: int, *, is_last: bool) -> None:
        """Check that a batch of one copy may follow one of the other.

        Raises:
            NotOneLogError: leader epochs fall, or nothing tells that both are of one log.
        """
        before = self._before()
        if before is None or before[0] == side:
            return
        earlier, row = self.copies[before[0]].rows[before[1]], self.copies[side].rows[number]
        places = self.copies[before[0]].place(before[1]), self.copies[side].place(number)
        if earlier.leader_epoch > row.leader_epoch:
            problem = f"leader epoch {row.leader_epoch} would follow {earlier.leader_epoch}"
            raise apart(problem, int(row.base_offset), *places)
        is_told = told_epoch(self.copies[side].line, int(earlier.base_offset)) == earlier.leader_epoch
        is_proven = earlier.leader_epoch == row.leader_epoch >= 0 or is_told
        if is_last and self._last_side is not None and not is_proven:
            problem = f"nothing tells that leader epoch {row.leader_epoch} followed {earlier.leader_epoch}"
            raise apart(problem, int(row.base_offset), *places)

    def _before(self) -> tuple[int, int] | None:
        """Return the last batch that was taken: its copy and number."""
        last = next((part for part in reversed(self.made.parts) if isinstance(part, Run)), None)
        return None if last is None else (last.side, last.behind - 1)

    def check_cleaning(self) -> None:
        """Check that no deleted key comes back.

        Raises:
            NotJoinedError: one may.
        """
        for side, found in enumerate(self._cleaning):
            behind = self._may_lack_before(side) if found.has_more else None
            if behind is not None:
                holds, lacks = (copy.log.segments[0].file.rpartition("/")[0] for copy in self._from(side))
                raise NotJoinedError(
                    f"from offset {found.taken} on {holds} holds records that {lacks} lacks (taken by a cleaner, or "
                    f"lost), and it is damaged before offset {behind}, where their tombstones may have been",
                    record_offset=found.taken,
                )

    def _from(self, side: int) -> tuple[Copy, Copy]:
        return self.copies[side], self.copies[1 - side]

    def _may_lack_before(self, side: int) -> int | None:
        """Return an offset below which a copy may have had more than the other one has there; None if there is none."""
        found = self._cleaning[side]
        return next(
            (
                replaced.behind
                for number, replaced in found.replaced.items()
                if replaced.behind > found.taken and not self._is_whole(side, number)
            ),
            None,
        )
