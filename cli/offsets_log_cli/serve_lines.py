"""What ends `serve` and moves it in time: signals, and lines on standard input."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from offsets_log.actions.serve import Serving
from offsets_log.errors import InputError
from offsets_log_cli.options import Time

if TYPE_CHECKING:
    from offsets_log.actions.serve_asked import ServeAsked
    from offsets_log.asked_time import OfLog
    from offsets_log.session.account import Account
    from offsets_log.session.moments import Moments

MOST_LINE_BYTES = 4096


def run(moments: Moments, asked: ServeAsked) -> None:
    """Serve until a signal comes, or a line says so. Raises OffsetsLogError."""
    serving = Serving(moments, asked, click.echo, _time_of)
    asyncio.run(_serve(serving, moments.session.account))


async def _serve(serving: Serving, account: Account) -> None:
    """Serve until a signal comes, or a line says so."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for signalled in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signalled, stop.set)
    await serving.begin()
    account.finish("serving; Ctrl-C ends it")
    if hasattr(signal, "SIGTTIN"):
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)  # in the background there are no lines from a terminal
    threading.Thread(target=_read_lines, args=(loop, stop, serving.take), daemon=True).start()
    await serving.run(stop)


def _read_lines(
    loop: asyncio.AbstractEventLoop,
    stop: asyncio.Event,
    take: Callable[[str, asyncio.Event], Coroutine[Any, Any, None]],
) -> None:
    """Hand on the lines of standard input; its end changes nothing.

    It is read without Python's buffer, whose lock would keep the process from ending.
    """
    begun = b""
    with suppress(OSError, ValueError, RuntimeError):
        while data := os.read(sys.stdin.fileno(), MOST_LINE_BYTES):
            *lines, begun = (begun + data).split(b"\n")
            begun = begun[-MOST_LINE_BYTES:]
            for line in lines:
                asyncio.run_coroutine_threadsafe(take(line.decode(errors="replace"), stop), loop).result()


def _time_of(text: str) -> int | OfLog:
    try:
        return Time().convert(text, None, None)
    except click.UsageError as error:
        raise InputError(error.message) from None
