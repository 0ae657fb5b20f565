"""End a run when the system asks for it, so that what it has written is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NoReturn


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Turn a request to end to an exception, as Ctrl-C does, so that incomplete outputs are removed."""

    def stop(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), stop) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set; a second one ends the process as it would without this."""
    stop = threading.Event()
    with ExitStack() as stack:

        def end(number: int, frame: object) -> None:
            stop.set()
            stack.close()

        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, number, signal.signal(number, end))
        yield stop
