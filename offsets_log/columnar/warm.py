"""All kernels compiled in one process, which makes parts that they share once.

What is made here is found on disk by whoever asks for it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from threading import Thread
from typing import Any

from offsets_log.columnar.jit.compiled import Kernel, code_of
from offsets_log.columnar.jit.keeping import as_rest, leave
from offsets_log.columnar.jit.sources import MACHINE, PACKAGE, place_of, stamp_of
from offsets_log.columnar.needs import WITH

LOOK_EVERY_S = 0.5
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _modules() -> Iterator[str]:
    """Return the names of all modules that may hold kernels; only packages are imported."""
    names = (module.name for module in walk_packages(import_module(PACKAGE).__path__, f"{PACKAGE}."))
    return (name for name in names if name not in (__name__, f"{PACKAGE}.warm", MACHINE))


def kernels() -> Iterator[Kernel[Any]]:
    """Yield all kernels that there are."""
    for name in _modules():
        found = vars(import_module(name)).values()
        yield from (item for item in found if isinstance(item, Kernel) and item.__module__ == name)


def warm() -> None:
    """Have all kernels compiled, those of common questions first."""
    for name in _modules():
        stamp_of(name)  # of the texts before they are imported
    order = [place for item in WITH.items() for place in (item[0], *item[1])]

    def turn(of: Kernel[Any]) -> int:
        place = place_of(of.function)
        return order.index(place) if place in order else len(order)

    for of in sorted(kernels(), key=turn):
        code_of(of)


def rest() -> None:
    """Do so when no other process has anything to do, unless one does it already, until the user's session ends.

    The session is that of the terminal, the timer or the service that started this: it ends with the process that
    leads it.
    """
    with as_rest() as is_alone:
        if is_alone:
            os.nice(19)
            with suppress(OSError, AttributeError):
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            Thread(target=_leave_with, args=(os.getsid(0),), daemon=True).start()
            warm()


def _leave_with(session: int) -> None:
    """End this process when the one that leads its session has ended."""
    with suppress(ProcessLookupError):
        while True:
            with suppress(PermissionError):
                os.kill(session, 0)
            time.sleep(LOOK_EVERY_S)
    leave()


def _leave_at_signals() -> None:
    """End this process at once when it is asked to: its main thread, which handlers run in, compiles for seconds."""
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno())
    for number in ENDING:
        signal.signal(number, lambda number, frame: None)

    def wait() -> None:
        with told:
            leave(128 + heard.recv(1)[0])

    Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    _leave_at_signals()
    (rest if sys.argv[1:] else warm)()
