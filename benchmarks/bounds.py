"""What the machine can do with the same bytes at best."""

from __future__ import annotations

import google_crc32c
import numpy as np

from benchmarks.inputs import Log
from benchmarks.timing import Measured, repeated, seconds_of

PIECE = 1 << 20


def _bytes(log: Log) -> bytes:
    return b"".join(segment.read_bytes() for segment in log.segments)


def copying(log: Log, repeat: int) -> Measured:
    """memcpy into pages that exist."""
    source = np.frombuffer(_bytes(log), np.uint8)
    target = np.zeros_like(source)
    return Measured(seconds=repeated(lambda: seconds_of(lambda: np.copyto(target, source)), repeat))


def reading(log: Log, repeat: int) -> Measured:
    """Files that are in the page cache, into one buffer."""
    buffer = bytearray(PIECE)

    def read() -> None:
        for segment in log.segments:
            with segment.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass

    return Measured(seconds=repeated(lambda: seconds_of(read), repeat))


def checksums(log: Log, repeat: int) -> Measured:
    """CRC-32C of all bytes in one call."""
    data = _bytes(log)
    return Measured(seconds=repeated(lambda: seconds_of(lambda: google_crc32c.value(data)), repeat))
