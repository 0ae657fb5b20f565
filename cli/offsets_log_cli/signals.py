"""End a run when the system asks for it, so that what it has written is whole."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Turn a request to end to an exception, as Ctrl-C does, so that incomplete outputs are removed."""

    def stop(number: int, frame: object) -> NoReturn:
        _end_what_is_waited_for()
        raise SystemExit(128 + number)

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), stop) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


ASKING = "offsets_log.disk.asking"
"""The module whose threads wait for stores."""
MAKING = "offsets_log.columnar.jit.making"
"""The module whose processes compile."""


def _end_what_is_waited_for() -> None:
    """End the processes that compile, and requests to stores: threads may wait for them, and an exit for these."""
    making: Any = sys.modules.get(MAKING)
    asking: Any = sys.modules.get(ASKING)
    if hasattr(making, "end_all"):  # a signal may come while a module is imported
        making.end_all()
    if hasattr(asking, "give_up"):
        asking.give_up()


def end_at_interrupts() -> None:
    """Have an interrupt end all that the run waits for."""

    def interrupt(number: int, frame: object) -> None:
        _end_what_is_waited_for()
        signal.default_int_handler(number, None)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


def leave_the_unanswered(error: BaseException | None) -> None:
    """End the process at once if a store was asked and did not answer yet: its library would wait for it at exit.

    Args:
        error: what the run ends with; one that Python has to show is left to it.
    """
    asking = sys.modules.get(ASKING)
    if asking is None or not asking.is_unanswered() or not isinstance(error, SystemExit | None):
        return
    code = None if error is None else error.code
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


AGAIN_S = 1.0
"""A signal that comes again so soon means what the first one does."""


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set; a later one ends the process as it would without this.

    Once one has come they stay so beyond the context, where the run's result is told.
    """
    stop = threading.Event()
    with ExitStack() as stack:
        began = 0.0

        def end(number: int, frame: object) -> None:
            nonlocal began
            if not stop.is_set():
                began = time.monotonic()
                stop.set()
            elif time.monotonic() - began >= AGAIN_S:
                before.close()
                signal.raise_signal(number)

        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, number, signal.signal(number, end))
        before = stack
        yield stop
        if stop.is_set():
            before = stack.pop_all()
