"""A run of a command: its inputs, the account of what is wrong with them, and the engine that answers."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from cli.account import EXIT_ERROR, Account, fail, say
from cli.engine import Engine
from cli.inputs import Inputs
from cli.options import Output, ReadOptions
from cli.progress import progress
from offsets_log.disk.folders import refuse_inside_inputs
from offsets_log.disk.reader import open_logs
from offsets_log.disk.writer import atomic_directory, ensure_place
from offsets_log.errors import OffsetsLogError
from offsets_log.release_names import release_asked


@dataclass(frozen=True)
class Session:
    """A command's inputs, engine and account; use `open_session`."""

    inputs: Inputs
    account: Account
    engine: Engine

    @contextmanager
    def new_directory(self, to: str) -> Iterator[Path]:
        """Make a directory outside of the inputs, as `atomic_directory`."""
        refuse_inside_inputs(to, self.inputs.reading.paths, self.inputs.files)
        with atomic_directory(to) as directory:
            yield directory

    def bounded(self, until_offset: tuple[tuple[int | None, int], ...] = (), until_time: int | None = None) -> Session:
        """Return a session over the same logs with other bounds, whose reports and counts are not this run's."""
        inputs = self.inputs.bounded(until_offset, until_time)
        account = self.account.aside(inputs)
        return Session(inputs, account, Engine(inputs, account))


@contextmanager
def open_session(
    reading: ReadOptions,
    output: Output | None = None,
    *,
    needs: Set[str] = frozenset(),
    columns: Set[str] | None = None,
    internal_topic: str | None = None,
) -> Iterator[Session]:
    """Open the inputs; at the end the process exits with the run's status, and errors end it with one line.

    Args:
        needs: columns without which the answer would be guessed; a dump that does not tell them is refused.
        columns: those of the answer; notes on what a dump does not tell name no others. None to name all.
        internal_topic: a topic of `state_topics` to read instead of ``__consumer_offsets``.
    """
    if reading.quarantine is not None and output is not None and output.to == reading.quarantine:
        raise click.UsageError("--to and --quarantine name the same file")
    _tell_of_lost_pages()
    try:
        with ExitStack() as stack:
            inputs = _opened(reading, stack, internal_topic, columns)
            account = Account(inputs, stack, shows_progress=reading.progress)
            session = Session(inputs, account, Engine(inputs, account))
            session.inputs.check(needs)
            if output is not None and output.to not in (None, "-"):
                refuse_inside_inputs(output.to, (), session.inputs.files)
                ensure_place(output.to, session.inputs.files)
            for words in (*session.inputs.notes, *_of_release(reading), *_of_ending(output)):
                session.account.say(words)
            for damage in session.inputs.damages:
                session.account.on_damage(damage)
            for absent in session.inputs.absent:
                session.account.tell(absent)
            yield session
        _compile_rest()
    except OffsetsLogError as error:
        fail(error)
    sys.exit(session.account.exit_status)


def _of_release(reading: ReadOptions) -> list[str]:
    """Return what users should know of the release that they say wrote the log."""
    return [] if reading.kafka is None else release_asked(".".join(map(str, reading.kafka))).doubts


def _opened(reading: ReadOptions, stack: ExitStack, internal_topic: str | None, columns: Set[str] | None) -> Inputs:
    """Return the opened inputs."""
    if internal_topic is not None:
        from offsets_log.disk.state_topics import open_topic

        opened = open_topic(reading.paths, internal_topic, reading.offsets_partition)
    else:
        opened = open_logs(
            reading.paths,
            as_partition=reading.as_partition,
            partitions=reading.offsets_partition,
            input_format=reading.input_format,
            columns=columns,
            comparing=partial(progress, say=say, is_wanted=reading.progress, is_quiet=reading.quiet, done="compared"),
        )
    return Inputs(reading, stack.enter_context(opened))


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
