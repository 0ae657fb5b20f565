"""Keep the end of a segment that is read once, forwards: what tells where its log ends, in little memory."""

from __future__ import annotations

import struct
from typing import NamedTuple, Protocol

from offsets_log.log_format.segment import Buffer

TAIL_BYTES = 1 << 16
"""So much of whole batches is kept, and two of them however large."""
CHUNK_BYTES = 1 << 18

_ENTRY = struct.Struct(">qi")
"""Offset and size of what follows, of batches of all magics."""
_LEAST_SIZE = 14


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Tail(NamedTuple):
    """The end of a segment.

    Attributes:
        data: its last batches, and what follows them.
        size_bytes: how many bytes the stream had.
        first_offset: of the first batch there; None if nothing was left out before it.
    """

    data: Buffer
    size_bytes: int
    first_offset: int | None


def read_tail(stream: _Stream, size_bytes: int) -> Tail:
    """Read a segment to its end.

    Args:
        size_bytes: how many bytes it should have. A batch that goes on behind them ends what is looked at.
    """
    kept, starts, read, at = bytearray(), [0], 0, 0
    is_readable, first_offset = True, None
    while read < size_bytes and (chunk := stream.read(min(CHUNK_BYTES, size_bytes - read))):
        read += len(chunk)
        if not is_readable:
            kept += chunk[: max(0, TAIL_BYTES - len(kept) + starts[-1])]
            continue
        kept += chunk
        while len(kept) - starts[-1] >= _ENTRY.size:
            size = _ENTRY.size + _ENTRY.unpack_from(kept, starts[-1])[1]
            is_readable = _ENTRY.size + _LEAST_SIZE <= size <= size_bytes - at
            if not is_readable or len(kept) - starts[-1] < size:
                break
            at += size
            starts.append(starts[-1] + size)
        cut = _where_to_cut(starts)
        if cut:
            begin = starts[cut]
            first_offset = _ENTRY.unpack_from(kept, begin)[0]
            del kept[:begin]
            starts = [start - begin for start in starts[cut:]]
    return Tail(bytes(kept), read, first_offset)


def _where_to_cut(starts: list[int]) -> int:
    """Return how many batches before the last two are not needed: those before the last `TAIL_BYTES`."""
    cut = 0
    while cut + 3 < len(starts) and starts[-1] - starts[cut + 1] >= TAIL_BYTES:
        cut += 1
    return cut
