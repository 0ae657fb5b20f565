"""A run of a command: the session that the library opens, and the process's end with the run's status."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from offsets_log.disk.folders import refuse_inside_inputs
from offsets_log.disk.reader import Choosing
from offsets_log.disk.replicas import choose_replica
from offsets_log.disk.writer import ensure_place
from offsets_log.errors import AskedError, OffsetsLogError
from offsets_log.release_names import release_asked
from offsets_log.session.session import Session, opened_session
from offsets_log_cli.options import Output, ReadOptions
from offsets_log_cli.terminal import EXIT_ERROR, Terminal, fail, say_of_release


@contextmanager
def open_session(
    reading: ReadOptions,
    output: Output | None = None,
    *,
    needs: Set[str] = frozenset(),
    columns: Set[str] | None = None,
    internal_topic: str | None = None,
    choosing: Choosing = choose_replica,
) -> Iterator[Session]:
    """Open the inputs; at the end the process exits with the run's status, and errors end it with one line.

    Args:
        needs: columns without which the answer would be guessed; a dump that does not tell them is refused.
        columns: those of the answer; notes on what a dump does not tell name no others. None to name all.
        internal_topic: a topic of `state_topics` to read instead of ``__consumer_offsets``.
        choosing: makes one log of several copies of a partition.
    """
    if reading.quarantine is not None and output is not None and output.to == reading.quarantine:
        raise click.UsageError("--to and --quarantine name the same file")
    _tell_of_lost_pages()
    listener = Terminal(is_quiet=reading.quiet, shows_progress=reading.progress)
    how: Any = {"needs": needs, "columns": columns, "internal_topic": internal_topic, "choosing": choosing}
    try:
        with opened_session(reading, listener, **how) as session:
            if output is not None and output.to not in (None, "-"):
                refuse_inside_inputs(output.to, (), session.inputs.files)
                ensure_place(output.to, session.inputs.files)
            if reading.kafka is not None:
                say_of_release(release_asked(".".join(map(str, reading.kafka))))
            for words in _of_ending(output):
                listener.say(words)
            yield session
        _compile_rest()
    except AskedError as error:
        raise click.UsageError(error.problem) from None
    except OffsetsLogError as error:
        fail(error)
    sys.exit(session.account.exit_status)


def _compile_rest() -> None:
    """After the answer, have all kernels compiled if this run lacked some: later ones wait for none."""
    if (needs := sys.modules.get("offsets_log.columnar.needs")) is not None and needs.LACKED:
        from offsets_log.columnar.jit.making import start_rest

        start_rest()


def _of_ending(output: Output | None) -> Iterator[str]:
    """Yield a sentence about a file whose name ends as if it were in a format that was not asked for."""
    if output is None or output.output is not None or output.to is None:
        return
    ending = Path(output.to).suffix.removeprefix(".")
    if ending in FORMATS_ASKED_FOR:
        yield f"{output.to} holds JSON all the same, for no -o {ending} was given"


FORMATS_ASKED_FOR = ("csv", "parquet")
"""Formats that are written only if -o names them."""

_HANDLERS: list[Any] = []


def _tell_of_lost_pages() -> None:
    """Print why the process ends if a mapped file is cut off while it is read."""
    import ctypes

    def tell(number: int) -> None:
        os.write(2, b"offsets-log: error: a file was cut off while it was read: copy it, and read the copy\n")
        os._exit(EXIT_ERROR)

    if not _HANDLERS and hasattr(signal, "SIGBUS"):
        _HANDLERS.append(ctypes.CFUNCTYPE(None, ctypes.c_int)(tell))
        ctypes.CDLL(None).signal(signal.SIGBUS, _HANDLERS[0])
