"""The few batches by which a segment changes transactions, so that a later segment can be cleaned alone.

    segment ─► `steps_of`: few batches ─┐
    segment ─► `steps_of`: few batches ─┼─► `take_steps`, in log order ─► `Transactions` where any of them begins
    segment ─► `steps_of`: few batches ─┘

Between two aborts of a producer, and while none of its aborted transactions begins, three of its batches do the same
as all of them: the first and the last with data, and the last marker of a commit. Data is noted once, and after a
commit again; nothing else is made of it (``CL-16``, ``CL-17``). What a producer did before an abort is forgotten once
it commits behind it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from offsets_log.broker.batches import HEADER_UP_TO_MAGIC, FileBatch, entry_in_memory
from offsets_log.broker.indexes import AbortedTransaction
from offsets_log.broker.log_file import LogFile
from offsets_log.cleaner.batches import batches
from offsets_log.cleaner.transactions import Transactions, control_kind
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format import batch as b

if TYPE_CHECKING:
    from offsets_log.broker.bulk import Follower

FIRST_DATA, LAST_DATA, LAST_COMMIT = range(3)

Begins = Mapping[int, Sequence[int]]
"""Producer → where its aborted transactions begin, rising."""


def begins_of(entries: Iterable[AbortedTransaction]) -> Begins:
    """Return where transactions begin, by the entries of all indexes of a log."""
    found: dict[int, set[int]] = {}
    for entry in entries:
        found.setdefault(entry.producer_id, set()).add(entry.first_offset)
    return {producer_id: sorted(offsets) for producer_id, offsets in found.items()}


def begins_in(begins: Begins, first: int, end: int | None) -> Begins:
    """Return what matters of them to batches between two offsets: those there, and the last one before.

    Args:
        end: None if there is none.
    """
    found = {}
    for producer_id, offsets in begins.items():
        before = max(bisect_right(offsets, first) - 1, 0)
        if some := offsets[before : None if end is None else bisect_left(offsets, end)]:
            found[producer_id] = some
    return found


@dataclass(slots=True)
class Steps:
    """Few batches of a segment.

    Attributes:
        taken: position of each, its offset, and its header; of a control batch all of it.
        base_offset: of the segment.
        is_rising: whether no batch ends below one before it, or begins below the segment; else three batches are not
            enough.
        last_offset: the largest of the segment, −1 of an empty one.
    """

    base_offset: int
    taken: list[tuple[int, int, bytes]] = field(default_factory=list)
    is_rising: bool = True
    last_offset: int = -1
    _stretches: dict[int, tuple[int, list[FileBatch | None]]] = field(default_factory=dict)

    def note(self, batch: FileBatch, begins: Begins) -> None:
        """Take the next batch. Raises OffsetsLogError: it says nothing that can be read."""
        last_offset = batch.last_offset
        self.is_rising &= last_offset >= self.last_offset and batch.offset >= self.base_offset
        self.last_offset = max(self.last_offset, last_offset)
        kind = control_kind(batch) if batch.is_control else "" if batch.is_transactional else None
        if kind not in ("", "COMMIT", "ABORT"):
            return
        offsets = begins.get(batch.producer_id, ())
        number = bisect_right(offsets, last_offset)
        if kind == "ABORT":
            self._end(batch.producer_id)
            if offsets:
                self._take(batch)
            return
        if batch.producer_id in self._stretches and self._stretches[batch.producer_id][0] != number:
            self._end(batch.producer_id)
        _, stretch = self._stretches.setdefault(batch.producer_id, (number, [None, None, None]))
        place = LAST_COMMIT if kind else FIRST_DATA if stretch[FIRST_DATA] is None else LAST_DATA
        stretch[place] = batch

    def close(self) -> None:
        """Note the end of the segment."""
        for producer_id in [*self._stretches]:
            self._end(producer_id)
        self.taken.sort()

    def _end(self, producer_id: int) -> None:
        for batch in self._stretches.pop(producer_id, (0, []))[1]:
            if batch is not None:
                self._take(batch)

    def _take(self, batch: FileBatch) -> None:
        end = batch.end if batch.is_control else batch.position + b.BATCH_HEADER_SIZE
        self.taken.append((batch.position, batch.offset, bytes(batch.view[batch.position : end])))


def steps_of(
    file: LogFile,
    start: int,
    begins: Begins,
    follower: Follower | None = None,
    noted: Callable[[], Iterable[int]] = tuple,
) -> Steps:
    """Return the steps of a segment from a position on, up to what cannot be read, where cleaning it fails.

    Args:
        follower: passes over runs of batches.
        noted: returns the positions of those of the last run that may be steps.
    """
    steps, view = Steps(file.base_offset), file.view

    def passing(position: int) -> int:
        if follower is None:
            return position
        end = follower.follow(position, last_offset=max(steps.last_offset, file.base_offset - 1))
        for at in noted():
            batch = entry_in_memory(file.file, view, at, file.size_bytes)
            assert batch is not None
            steps.note(batch, begins)
        if end > position and follower.next_offset is not None:
            steps.last_offset = max(steps.last_offset, follower.next_offset - 1)
        return end

    try:
        for batch in batches(file, start, passing):
            steps.note(batch, begins)
    except OffsetsLogError:
        pass
    steps.close()
    return steps


def take_steps(transactions: Transactions, file: str, steps: Steps) -> None:
    """Bring transactions to the segment's end."""
    for _, offset, raw in steps.taken:
        magic = raw[HEADER_UP_TO_MAGIC - 1]
        transactions.can_discard(FileBatch(file, memoryview(raw), 0, len(raw), offset, magic, len(raw)))
    transactions.reach(steps.last_offset)
