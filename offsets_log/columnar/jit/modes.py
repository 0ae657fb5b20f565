"""How kernels run in this process, as its environment says."""

from __future__ import annotations

import os


def _is_set(name: str) -> bool:
    return os.environ.get(name, "0").strip() not in ("", "0")


IS_PYTHON = _is_set("NUMBA_DISABLE_JIT")
"""Whether kernels run as plain Python."""
IS_CHECKED = _is_set("NUMBA_BOUNDSCHECK")
"""Whether numba checks every index."""
LEVEL = 1 if IS_CHECKED else 2
"""How much machine code is optimized."""
IS_COMPILING = _is_set("OFFSETS_LOG_COMPILES") and not IS_PYTHON
"""Whether this process is one that compiles kernels for others."""
