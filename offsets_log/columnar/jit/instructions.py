"""Instructions: what machine code does in a step or two, and Python in many."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar.jit.compiled import U, instruction

POLYNOMIAL = 0x82F63B78


def crc_tables(polynomial: int) -> np.ndarray[Any, Any]:
    """Return eight tables of 256: the CRC of a byte followed by 0 to 7 zero bytes, for a reflected polynomial."""
    tables = np.zeros((8, 256), np.uint64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
        tables[0, byte] = crc
    for i in range(1, 8):
        previous = tables[i - 1]
        tables[i] = (previous >> U(8)) ^ tables[0][(previous & U(0xFF)).astype(np.int64)]
    return tables


CRC_TABLES = crc_tables(POLYNOMIAL)


@instruction
def crc32c_word(crc: Any, word: Any) -> Any:
    """Add eight bytes, given as a little-endian integer, to a CRC-32C."""
    mixed = crc ^ word
    result = U(0)
    for i in range(8):
        byte = mixed >> U(8 * i) & U(0xFF)
        result ^= CRC_TABLES[7 - i, byte]
    return result


@instruction
def crc32c_byte(crc: Any, byte: Any) -> Any:
    """Add one byte to a CRC-32C."""
    return crc >> U(8) ^ CRC_TABLES[0, (crc ^ U(byte)) & U(0xFF)]


@instruction
def prefetch(array: Any, index: Any) -> None:
    """Request the cache line of an element that will be needed soon."""


@instruction
def load64(data: Any, position: Any) -> Any:
    """Return 8 bytes as a little-endian integer; the caller has checked the end."""
    at = U(position)
    return (
        U(data[at])
        | U(data[at + U(1)]) << U(8)
        | U(data[at + U(2)]) << U(16)
        | U(data[at + U(3)]) << U(24)
        | U(data[at + U(4)]) << U(32)
        | U(data[at + U(5)]) << U(40)
        | U(data[at + U(6)]) << U(48)
        | U(data[at + U(7)]) << U(56)
    )
