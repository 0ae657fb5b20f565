"""Waiting for what other processes and threads do: for the event, on a machine of any speed, and naming it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

PATIENCE_S = 300
"""Seconds after which something will not happen any more. No test passes because they are over."""

Found = TypeVar("Found")


def wait_for(
    event: str,
    happens: Callable[[], Found],
    *,
    of: subprocess.Popen[Any] | None = None,
    said: Callable[[], str] = str,
    every_s: float = 0.02,
) -> Found:
    """Return the first answer that is true; fail with the event's name if there will be none.

    Args:
        of: the process without which it cannot happen.
        said: what there is to read of it, for the failure.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        ended = of.poll() if of else None
        if found := happens():
            return found
        assert ended is None, f"the process ended with {ended} before {event}: {said()}"
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {event}: {said()}"
        time.sleep(every_s)
