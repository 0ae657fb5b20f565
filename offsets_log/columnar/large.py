"""When kernels are worth their start. Nothing is imported here, so that whoever asks need not load them."""

from __future__ import annotations

BULK_FROM_BYTES = 4 << 20
"""Size of what is read from which on compiled kernels are worth their start."""


def is_large(size_bytes: int) -> bool:
    """Return whether kernels are worth their start for logs of this size."""
    return size_bytes >= BULK_FROM_BYTES
