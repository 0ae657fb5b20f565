"""When kernels are worth their start, and how many threads run them."""

from __future__ import annotations

import os

BULK_FROM_BYTES = 4 << 20
"""Size of a log from which on compiled kernels are worth their start."""


def is_large(size_bytes: int) -> bool:
    """Return whether kernels are worth their start for logs of this size."""
    return size_bytes >= BULK_FROM_BYTES


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
