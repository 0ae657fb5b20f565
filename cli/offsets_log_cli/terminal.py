"""What is said to people, on standard error, and how a run ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import NoReturn

import click

from offsets_log.disk import asking
from offsets_log.errors import AskedError, OffsetsLogError
from offsets_log.release_names import AskedRelease
from offsets_log.session.listener import BYTES, LONG_BYTES, Advance
from offsets_log.words import visible
from offsets_log_cli.colours import are_shown, with_coloured_begin
from offsets_log_cli.progress import BARS, progress

EXIT_ERROR = 1


@dataclass(frozen=True, slots=True)
class Terminal:
    """Hears of a run, for people; as `offsets_log.session.listener.Listener`.

    Attributes:
        is_quiet: whether nothing is said but errors.
        shows_progress: None for the default: on a terminal a bar for long work, else lines for work that takes long.
    """

    is_quiet: bool = False
    shows_progress: bool | None = None

    def say(self, words: str) -> None:
        """Print a remark, unless the user asked for quiet."""
        if not self.is_quiet:
            say(words)

    def progress(
        self, total: int, *, unit: str = BYTES, long: int = LONG_BYTES, done: str = "read"
    ) -> AbstractContextManager[Advance]:
        """Show how far something is."""
        return progress(
            total, say, is_wanted=self.shows_progress, is_quiet=self.is_quiet, unit=unit, long=long, done=done
        )


def say(words: str) -> None:
    """Print a line on standard error; if that is closed or full, ignore it, as the answer matters more."""
    with suppress(OSError, AttributeError):
        shown = with_coloured_begin(visible(words)) if are_shown(sys.stderr) else visible(words)
        if BARS:
            BARS[-1].say(shown)
        else:
            click.echo(shown, err=True)


def hide_bars() -> None:
    """End the bars of progress that a terminal shows, before something else is written there."""
    if sys.stdout.isatty():
        for bar in BARS:
            bar.hide()


asking.tell = say


def say_of_release(asked: AskedRelease | None) -> None:
    """Say, also to those who asked for quiet, if an answer is by the rules of another release than the asked one."""
    for words in () if asked is None else asked.doubts:
        say(words)


def fail(error: OffsetsLogError) -> NoReturn:
    """Print one line and exit with status 1."""
    say(f"offsets-log: error: {error}")
    sys.exit(EXIT_ERROR)


@contextmanager
def as_usage() -> Iterator[None]:
    """End with the words of an `AskedError` as those of wrong usage."""
    try:
        yield
    except AskedError as error:
        raise click.UsageError(error.problem) from None
