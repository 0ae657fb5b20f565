"""When kernels are worth their start. Nothing is imported here, so that whoever asks need not load them."""

from __future__ import annotations

BULK_FROM_BYTES = 4 << 20
"""Size of what is read from which on compiled kernels are worth their start."""
PLAIN_BYTES_PER_S = 1_500_000
"""How much a second reads record by record, of plain batches twice as much: what compression saves is not known."""


def is_large(size_bytes: int, largest: str = "folds.offsets.scan") -> bool:
    """Return whether kernels answer sooner than Python for logs of this size; they need not be compiled for small ones.

    Args:
        largest: the place of the largest kernel that this needs, as in `needs.WITH`.
    """
    if size_bytes < BULK_FROM_BYTES:
        return False
    from offsets_log.columnar.needs import seconds_to_compile

    return size_bytes >= PLAIN_BYTES_PER_S * seconds_to_compile(largest)
