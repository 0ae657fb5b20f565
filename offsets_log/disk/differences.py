"""What differs between two copies of one partition, batch by batch where both reach.

Copies of one log may have been cleaned at different times. A cleaner takes batches, or records out of them, and leaves
of a batch the first and the last offset; it never puts other records at an offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.batch_rows import UNCOUNTED, BatchRow, Found, batch_rows
from offsets_log.disk.extents import CONTENT, Extent, Piece
from offsets_log.errors import Damage
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.segment import Tail

BEYOND = int(np.iinfo(np.int64).max)
NO_PIECE = -1
Rows = Table[BatchRow]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Some:
    """Batches of one kind.

    Attributes:
        count: how many.
        first: the first offset of the first one; −1 of none.
        last: the last offset of the last one.
        records: how many records they have, as far as their headers tell.
    """

    count: int = 0
    first: int = -1
    last: int = -1
    records: int = 0

    def add(self, rows: Rows) -> None:
        """Count more batches, in any order."""
        if len(rows):
            first, last = int(rows.column(BatchRow.base_offset).min()), int(rows.column(BatchRow.last_offset).max())
            self.first = min(first, self.first) if self.count else first
            self.last = max(last, self.last)
            self.count += len(rows)
            self.records += int(rows.column(BatchRow.records_count).clip(min=1).sum())


@dataclass(slots=True)
class Side:
    """What one copy has of its own.

    Attributes:
        alone: batches at offsets of which the other one has none, and no damage either.
        fewer: batches that hold fewer records than the other's, or that only a cleaner's mark makes different.
        helps: number of a damaged piece of the other one → the whole batches that stand there.
    """

    alone: Some = field(default_factory=Some)
    fewer: Some = field(default_factory=Some)
    helps: dict[int, Some] = field(default_factory=dict)


@dataclass(slots=True)
class Differences:
    """What differs between two copies.

    Attributes:
        records: batches that hold other records at the same offsets, as no cleaner leaves them.
        epochs: batches that differ in their leader epoch alone.
        last_same: the base offset of the last batch that is the same in both; −1 without one.
        sides: the first one's and the other's.
        first_epochs: of the first of `epochs`, here and there.
    """

    records: Some = field(default_factory=Some)
    epochs: Some = field(default_factory=Some)
    last_same: int = -1
    sides: tuple[Side, Side] = field(default_factory=lambda: (Side(), Side()))
    first_epochs: tuple[int, int] = (-1, -1)

    @property
    def are_none(self) -> bool:
        """Whether both hold the same where both reach."""
        return self.are_of_cleaning and not self._are_cleaned

    @property
    def is_of_epochs(self) -> bool:
        """Whether both hold the same but for leader epochs."""
        return bool(self.epochs.count) and not self.records.count and not self._are_cleaned

    @property
    def are_of_cleaning(self) -> bool:
        """Whether a cleaner explains them all, if it took what one of them lacks."""
        return not (self.records.count or self.epochs.count or any(side.helps for side in self.sides))

    @property
    def _are_cleaned(self) -> bool:
        return any(side.alone.count or side.fewer.count for side in self.sides)


def differences(
    logs: tuple[PartitionLog, PartitionLog], extents: tuple[Extent, Extent], *, until: int = BEYOND, in_bulk: bool
) -> Differences:
    """Compare two copies between the later beginning and the earlier end of both.

    Args:
        extents: theirs.
        until: the offset from which on they are not compared.
        in_bulk: what it is in `batch_rows`.
    """
    found = Differences()
    begin, end = max(one.begin for one in extents), min(until, *(one.end for one in extents))
    ways = [_Way(log, begin, end, in_bulk=in_bulk) for log in logs]
    pieces = [_Gaps(one.damages) for one in extents]
    while any(len(way.rows) for way in ways):
        bound = min(way.bound for way in ways)
        taken = [way.take(bound) for way in ways]
        _compare(found, taken, [way.following for way in ways], [way.reached for way in ways], pieces)
        for way, rows in zip(ways, taken, strict=True):
            way.leave(rows)
    return found


class _Way:
    """The batches of a copy on their way, some at a time.

    Attributes:
        rows: those that are not compared yet.
        reached: the last offset of those that are.
    """

    def __init__(self, log: PartitionLog, begin: int, end: int, *, in_bulk: bool) -> None:
        self._found: Iterator[Found] = batch_rows(log, in_bulk=in_bulk)
        self._begin, self._end = begin, end
        self._has_ended = False
        self.rows: Rows = Table(BatchRow, 0)
        self.reached = -1
        self._fill()

    def _fill(self) -> None:
        """Have at least two batches, as far as there are any: of the last one it is not known what follows."""
        while len(self.rows) < 2 and not self._has_ended:
            found = next(self._found, None)
            if found is None:
                self._has_ended = True
            elif not isinstance(found, Damage | Tail):
                begins = found.column(BatchRow.base_offset)
                self._has_ended = bool(len(found)) and int(begins[-1]) >= self._end
                first, behind = begins.searchsorted([self._begin, self._end])
                within = found.numbers[first:behind]
                self.rows = Table.of_numbers(BatchRow, np.concatenate([self.rows.numbers, within]))

    @property
    def bound(self) -> int:
        """The offset below which all batches are here."""
        return BEYOND if self._has_ended else int(self.rows[-1].base_offset)

    def take(self, bound: int) -> Rows:
        """Return the batches that begin below an offset."""
        return self.rows.up_to(int(self.rows.column(BatchRow.base_offset).searchsorted(bound)))

    @property
    def following(self) -> npt.NDArray[np.int64]:
        """The first offsets of all batches that are here."""
        return self.rows.column(BatchRow.base_offset)

    def leave(self, taken: Rows) -> None:
        """Go on behind batches."""
        if len(taken):
            self.reached = int(taken[-1].last_offset)
            self.rows = Table.of_numbers(BatchRow, self.rows.numbers[len(taken) :])
        self._fill()


class _Gaps:
    """The damaged pieces of a copy, by their offsets; of those between the same batches only the first counts."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        first = {piece.begin: number for number, piece in reversed([*enumerate(pieces)])}
        self._numbers = np.array(sorted(first.values()), np.int64)
        self._begins = np.array([pieces[number].begin for number in self._numbers], np.int64)
        ends = [pieces[number].end for number in self._numbers]
        self._ends = np.array([BEYOND if end is None else end for end in ends], np.int64)

    def __bool__(self) -> bool:
        return bool(len(self._begins))

    def at(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of the pieces that may have held offsets; `NO_PIECE` where none may."""
        at = self._begins.searchsorted(offsets, "right") - 1
        return np.where((at >= 0) & (offsets < self._ends[at]), self._numbers[at], NO_PIECE)


def _compare(
    found: Differences,
    taken: list[Rows],
    here: list[npt.NDArray[np.int64]],
    reached: list[int],
    pieces: list[_Gaps],
) -> None:
    """Compare batches that begin in one range of offsets.

    Args:
        here: the first offsets of all batches that are known of each copy, those behind the range too.
        reached: the last offset before the range in each copy.
    """
    one, other = taken
    if np.array_equal(one.column(BatchRow.base_offset), other.column(BatchRow.base_offset)):
        _compare_pairs(found, one, other)
        return
    _, left, right = np.intersect1d(
        one.column(BatchRow.base_offset), other.column(BatchRow.base_offset), assume_unique=True, return_indices=True
    )
    _compare_pairs(found, one.of(left), other.of(right))
    for side, (own, matched, there) in enumerate([(one, left, other), (other, right, one)]):
        if len(matched) < len(own):
            is_alone = np.ones(len(own), np.bool_)
            is_alone[matched] = False
            rows = own.of(is_alone)
            _add_unmatched(found, side, rows, _meets(rows, there, here[1 - side], reached[1 - side]), pieces[1 - side])


def _compare_pairs(found: Differences, one: Rows, other: Rows) -> None:
    """Compare batches that begin at the same offsets."""
    is_same = (one.columns(*CONTENT) == other.columns(*CONTENT)).all(axis=1)
    if is_same.any():
        found.last_same = int(one.column(BatchRow.base_offset)[is_same][-1])
    other_epoch = is_same & (one.column(BatchRow.leader_epoch) != other.column(BatchRow.leader_epoch))
    if other_epoch.any():
        if not found.epochs.count:
            first = int(other_epoch.argmax())
            found.first_epochs = int(one[first].leader_epoch), int(other[first].leader_epoch)
        found.epochs.add(one.of(other_epoch))
    if is_same.all():
        return
    fewer, more = _fewer(one, other), _fewer(other, one)
    found.sides[0].fewer.add(one.of(~is_same & fewer))
    found.sides[1].fewer.add(other.of(~is_same & more & ~fewer))
    found.records.add(one.of(~is_same & ~fewer & ~more))


def _fewer(one: Rows, other: Rows) -> Mask:
    """Return which batches may be what a cleaner leaves of the others that begin at the same offsets."""
    count, whole = one.column(BatchRow.records_count), other.column(BatchRow.records_count)
    is_older = (count == UNCOUNTED) | (whole == UNCOUNTED)
    is_marked = (count == whole) & (one.column(BatchRow.delete_horizon) != 0)
    ends_as = one.column(BatchRow.last_offset) == other.column(BatchRow.last_offset)
    is_smaller = one.column(BatchRow.size_bytes) <= other.column(BatchRow.size_bytes)
    fewer: Mask = (is_older & is_smaller) | (~is_older & ends_as & ((count < whole) | is_marked))
    return fewer


def _meets(rows: Rows, taken: Rows, here: npt.NDArray[np.int64], reached: int) -> Mask:
    """Return which batches share offsets with one of the other copy that begins elsewhere."""
    begins, ends = rows.column(BatchRow.base_offset), rows.column(BatchRow.last_offset)
    lasts = np.concatenate([[reached], taken.column(BatchRow.last_offset)])
    before = lasts[taken.column(BatchRow.base_offset).searchsorted(begins)]
    behind = np.concatenate([here, [BEYOND]])[here.searchsorted(begins)]
    return (before >= begins) | (behind <= ends)


def _add_unmatched(found: Differences, side: int, rows: Rows, meets: Mask, pieces: _Gaps) -> None:
    """Count batches of one side that begin where the other has none."""
    own, is_older = found.sides[side], rows.column(BatchRow.records_count) == UNCOUNTED
    found.records.add(rows.of(meets & ~is_older))
    own.fewer.add(rows.of(meets & is_older))
    alone = rows.of(~meets)
    if not pieces:
        own.alone.add(alone)
        return
    numbers = pieces.at(alone.column(BatchRow.base_offset))
    own.alone.add(alone.of(numbers == NO_PIECE))
    for number in np.unique(numbers[numbers != NO_PIECE]).tolist():
        own.helps.setdefault(number, Some()).add(alone.of(numbers == number))
