"""How many examples random tests take: usually a quarter of what they name, ten times by ``OFFSETS_LOG_EXAMPLES=10``.

A test of rules has examples enough for each of them at a fifth; more of them look for what nobody thought of, as
``make fuzz`` does without end.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import settings

SHARE = float(os.environ.get("OFFSETS_LOG_EXAMPLES") or 1 / 4)
LEAST = 20


def so_many(count: int) -> int:
    """The share of a number of examples; few are never fewer."""
    return max(round(count * SHARE), min(count, LEAST))


def examples(count: int) -> Callable[[Any], Any]:
    """So many examples of a test of hypothesis, however long each takes."""
    return settings(max_examples=so_many(count), deadline=None)
