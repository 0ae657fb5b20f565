"""A segment file's bytes as a sequence of batches, whatever happened to the file.

`iter_batches` walks from batch to batch by their sizes. If that fails — the checksum does not match, the length is
impossible, there is a hole — the piece comes as `Damage`, and the walk goes on at the next whole batch with a right
checksum. A batch cut off by the end of the file and a tail of zeros (a preallocated file) are normal at the end of a
partition's last segment: they come as a `Tail`.

References: ``FileLogInputStream.java``, ``LogSegment.recover``; ``records:T1``–``T6``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from offsets_log.errors import CorruptBatchError, Damage, OffsetsLogError, TruncatedBatchError
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch

Buffer = bytes | bytearray | memoryview

ReadAt = Callable[[int, int], Buffer]
"""Position and size → the bytes there, fewer at the end of the file and none behind it."""


class Pieces(NamedTuple):
    """A file of which only what is asked for is read."""

    size_bytes: int
    read_at: ReadAt


def pieces_of(data: Buffer) -> Pieces:
    """Return `Pieces` of bytes in memory."""
    return Pieces(len(data), lambda position, size_bytes: data[position : position + size_bytes])


NO_PIECES = pieces_of(b"")
"""Anything with bytes; a mapped file is a memoryview."""

MAX_QUARANTINED_BYTES = 16 * 1024 * 1024
"""How many bytes of one damaged piece are kept; its size is reported in any case."""

SEARCH_FACTOR = 8
MIN_SEARCH_BYTES = 64 * 1024 * 1024
"""How many bytes the search for the next batch may check in any file; in large files, a multiple of their size."""

PLAUSIBLE = re.compile(rb"(?=\x00\x00.{6}(?!\x00\x00\x00[\x00-\x0d])[\x00-\x07].{7}[\x00-\x02])", re.DOTALL)
"""Matches a place that may be a batch: plausible offset and length, and a magic of 0, 1 or 2."""

MAX_TORN_LENGTH_BYTE = 0x07
"""First byte of the length of a batch of 128 MiB, far beyond what a broker accepts."""

LARGE_BATCH = 1 << 20
"""Size in bytes; brokers accept no larger batches unless configured to."""

MIN_CANDIDATE_COST = 64
"""Counted for each place that turns out at once to be no batch, so that the search ends in a file full of them."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The bytes after the last whole batch.

    Attributes:
        kind: ``torn`` (a batch cut off by the end of the file) or ``zeros`` (preallocated and never written).
        position: where it begins in the file.
        size_bytes: its size, to the end of the file.
    """

    kind: str
    position: int
    size_bytes: int


def iter_batches(
    buffer: Buffer,
    *,
    is_last: bool = True,
    start: int = 0,
    verify_crc: bool = True,
    search: Search | None = None,
    zeros_behind: int = 0,
) -> Iterator[RecordBatch | Damage | Tail]:
    """Yield the batches of a segment in file order.

    Args:
        buffer: the whole file without the zeros behind it.
        is_last: whether it is the last segment of its partition, the only one that may have a tail.
        start: byte position of a batch to start at.
        verify_crc: whether a batch with a wrong checksum is damage, as in log recovery, or is read all the same, as a
            coordinator's load does (``records:B4``).
        search: that of an earlier walk over the same buffer which this one continues: its bound is for the whole file.
        zeros_behind: how many zeros follow the buffer. A batch that reaches into them is torn.
    """
    view = memoryview(buffer)
    search = search or Search(view)
    size = len(view) + zeros_behind
    position = start
    while position < len(view):
        found = _entry_at(view, position, verify_crc)
        if isinstance(found, RecordBatch):
            yield found
            position += found.size_bytes
            continue
        if _is_zero(view, position):
            yield from _tail("zeros", view, position, size, is_last)
            return
        next_position = search.next_after(position)
        if next_position is None and isinstance(found, TruncatedBatchError) and _may_be_torn(view, position):
            yield from _tail("torn", view, position, size, is_last)
            return
        end = size if next_position is None else next_position
        yield _damage(found, view, position, end)
        position = end
    if position < size:
        yield from _tail("zeros", view, position, size, is_last)


def _entry_at(view: memoryview, position: int, verify_crc: bool) -> RecordBatch | OffsetsLogError:
    """Return the whole batch at a position, or why there is none."""
    left = len(view) - position
    if left <= b.MAGIC_POSITION:
        return TruncatedBatchError(f"{left} bytes are too few for a batch")
    length = int.from_bytes(view[position + 8 : position + b.LOG_OVERHEAD], signed=True)
    magic = int.from_bytes(view[position + b.MAGIC_POSITION : position + b.MAGIC_POSITION + 1], signed=True)
    try:
        size = b.size_of_entry(length, magic)
    except OffsetsLogError as error:
        return error
    if size > left:
        return TruncatedBatchError(f"the batch takes {size} bytes, {left} are left", field="batch_length")
    batch = b.decode_batch_header(bytes(view[position : position + size]), position)
    if verify_crc and not batch.is_valid():
        return CorruptBatchError(
            f"the checksum is {batch.computed_crc():#010x}, the batch says {batch.crc:#010x}",
            record_offset=batch.base_offset,
            field="crc",
        )
    return batch


def _may_be_torn(view: memoryview, position: int) -> bool:
    """Return whether the rest of the file looks like the beginning of a batch that was not completely written.

    It does not if its header makes no sense, or if only the length field keeps it from being a whole batch.
    """
    rest = view[position:]
    if rest[:2].tobytes().strip(b"\0") or (len(rest) > 8 and rest[8] > MAX_TORN_LENGTH_BYTE):
        return False
    if len(rest) <= b.BATCH_HEADER_SIZE:
        return True
    length = (len(rest) - b.LOG_OVERHEAD).to_bytes(4)
    return not b.decode_batch_header(rest[:8].tobytes() + length + rest[b.LOG_OVERHEAD :].tobytes()).is_valid()


class Search:
    """Looks for the next whole batch after a damaged place, with a bound on the bytes it checks in a file.

    Without the bound a file made of headers that all claim to be large would cost the square of its size.
    """

    def __init__(self, view: memoryview, bytes_to_check: int | None = None) -> None:
        """Args:
        bytes_to_check: what other searches in the file have left of the bound; None for the first.
        """
        self.view = view
        self.bytes_to_check = max(MIN_SEARCH_BYTES, SEARCH_FACTOR * len(view))
        if bytes_to_check is not None:
            self.bytes_to_check = bytes_to_check

    def next_after(self, position: int) -> int | None:
        """Return where the walk goes on; None if no whole batch follows, or none was found within the bound.

        It goes on at the declared end if a whole batch, zeros or the end of the file is there. If the length is
        damaged, every place that looks like a batch is tried: a large one only if there is none inside it, because
        most of what looks like a large batch is none, and checking it is slow.
        """
        end = self._declared_end(position)
        if end is not None and (end == len(self.view) or self._is_batch(end) or _is_zero(self.view, end)):
            return end
        found = self._first_batch(position + 1, len(self.view), is_large=False)
        large = self._first_batch(position + 1, len(self.view) if found is None else found, is_large=True)
        return found if large is None else large

    def _first_batch(self, start: int, stop: int, *, is_large: bool) -> int | None:
        """Return the first large or other batch that begins and ends in a range."""
        for match in PLAUSIBLE.finditer(self.view, start, stop):
            position = match.start()
            end = self._declared_end(position) or stop + 1
            if (end - position > LARGE_BATCH) != is_large or end > stop:
                self.bytes_to_check -= MIN_CANDIDATE_COST
            elif self._is_batch(position):
                return position
            if self.bytes_to_check <= 0:
                return None
        return None

    def _declared_end(self, position: int) -> int | None:
        """Return where the entry says that it ends, if that is inside the file."""
        length = int.from_bytes(self.view[position + 8 : position + b.LOG_OVERHEAD], signed=True)
        end = position + b.LOG_OVERHEAD + length
        return end if length >= b.MIN_SIZE[0] and end <= len(self.view) else None

    def _is_batch(self, position: int) -> bool:
        end = self._declared_end(position) or position
        self.bytes_to_check -= max(MIN_CANDIDATE_COST, end - position)
        return isinstance(_entry_at(self.view, position, True), RecordBatch)


def _is_zero(view: memoryview, position: int) -> bool:
    """Return whether only zero bytes are left."""
    step = 1 << 16
    return all(
        view[at : at + step].tobytes().count(0) == len(view[at : at + step]) for at in range(position, len(view), step)
    )


def _tail(kind: str, view: memoryview, position: int, size: int, is_last: bool) -> Iterator[Damage | Tail]:
    if is_last:
        yield Tail(kind, position, size - position)
        return
    problem = {"torn": "a batch is cut off", "zeros": "zeros fill the rest of the file"}[kind]
    error = TruncatedBatchError(f"{problem}, but this is not the last segment")
    yield _damage(error, view, position, size)


def _damage(error: OffsetsLogError, view: memoryview, position: int, end: int) -> Damage:
    error.problem += f" ({end - position} bytes left out)"
    return Damage(
        error.at(position=position, field="batch"), bytes(view[position : min(end, position + MAX_QUARANTINED_BYTES)])
    )
