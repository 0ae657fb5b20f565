"""Requests to stores: each in a thread of its own, for as long as it may take; none that holds up the end of a run.

Libraries of stores wait in C++, where no signal reaches them. Whoever asks waits for the thread, which a signal ends;
the thread itself ends with the process.
"""

from __future__ import annotations

import os
import queue
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, TypeVar

from offsets_log.errors import InputError

T = TypeVar("T")

WAITS_S = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""How long to wait at most before each further attempt, in seconds."""
PATIENCE_S = 12.0
"""No further attempt begins so long after the first one failed."""
ANSWER_S = 8.0
"""How long an answer may take, in seconds, besides the time for its bytes."""
SLOWEST_BYTES_S = 1 << 16
"""Bytes in a second that a slow network brings of one answer."""
QUIET_S = 3.0
"""A store that has not answered for so long is told of, once."""
NO_ANSWER = "the store does not answer; trying again"

_ended = threading.Event()
_unanswered: set[Future[Any]] = set()


def _say_nothing(words: str) -> None:
    """Tell nobody."""


tell: Callable[[str], None] = _say_nothing
"""Gets words about stores that do not answer, from any thread; whoever has a place for them sets it."""


def give_up() -> None:
    """Have everybody who waits for a store, now or later, get an error: the process is about to end."""
    _ended.set()
    for answer in [*_unanswered]:
        with suppress(InvalidStateError):
            answer.set_exception(_interrupted())


def is_unanswered() -> bool:
    """Return whether a thread still waits for a store; libraries may hold up the end of the process for it."""
    return bool(_unanswered)


def _interrupted() -> InputError:
    return InputError("it was interrupted while a store was asked")


_Works = queue.SimpleQueue[Callable[[], None]]
_idle: list[_Works] = []
"""Of threads that have nothing to do: each waits for its own."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def _have_done(work: Callable[[], None]) -> None:
    """Have something done by a thread that is not waited for when the process ends."""
    try:
        works = _idle.pop()
    except IndexError:
        works = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(works,), daemon=True).start()
    works.put(work)


def _serve(works: _Works) -> None:
    while True:
        works.get()()
        _idle.append(works)


def _is_done(answer: Future[T], limit_s: float | None) -> bool:
    with suppress(Exception):
        answer.exception(limit_s)
    return answer.done()


class Patience:
    """How long one store is waited for, and who is told.

    Attributes:
        shown: the store, as it may be shown.
    """

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self._is_told = False

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            tell(f"{self.shown}: {NO_ANSWER}")

    def answer(self, ask: Callable[[], T], limit_s: float | None, quiet_s: float = QUIET_S) -> T:
        """Return what a request does.

        Args:
            limit_s: how long it may take; None for as long as its library waits.
            quiet_s: how long it may take until that is told.

        Raises:
            TimeoutError: it took longer.
            InputError: the process is about to end.
            Exception: what the request raises.
        """
        answer: Future[T] = Future()

        def run() -> None:
            try:
                result = ask()
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                with suppress(InvalidStateError):
                    answer.set_exception(error)
            else:
                with suppress(InvalidStateError):
                    answer.set_result(result)
            finally:
                _unanswered.discard(answer)

        _unanswered.add(answer)
        if _ended.is_set():
            _unanswered.discard(answer)
            raise _interrupted()
        _have_done(run)
        first_s = quiet_s if limit_s is None else min(quiet_s, limit_s)
        if not _is_done(answer, first_s):
            self._tell()
            if not _is_done(answer, None if limit_s is None else limit_s - first_s):
                raise TimeoutError(f"no answer for {limit_s:.0f} seconds")
        return answer.result()

    def answered(self, ask: Callable[[], T], is_final: Callable[[Exception], bool], size_bytes: int | None) -> T:
        """Return what a request does, sent again while it fails and there is patience.

        Args:
            is_final: whether no further attempt mends an error.
            size_bytes: of the answer, as far as it is known to have any; None for one that takes its time.

        Raises:
            Exception: the last error.
        """
        more_s = (size_bytes or 0) / SLOWEST_BYTES_S
        failed = None
        for wait_s in (*WAITS_S, None):
            try:
                return self.answer(ask, None if size_bytes is None else ANSWER_S + more_s, QUIET_S + more_s)
            except Exception as error:  # libraries of stores raise what they like
                now = time.monotonic()
                failed = failed or now
                if wait_s is None or now - failed >= PATIENCE_S or is_final(error):
                    raise
                if now - failed >= QUIET_S:
                    self._tell()
                if _ended.wait(wait_s * random.uniform(0.5, 1)):
                    raise _interrupted() from None
        raise AssertionError
