"""A copy that is open: its files, and how a question to them is begun."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from offsets_log.asked_time import UNDERSTOOD, OfLog, parse_time
from offsets_log.disk.urls import without_secrets
from offsets_log.errors import InputError
from offsets_log.session.inputs import Inputs
from offsets_log.session.listener import Remarks
from offsets_log.session.scope import Scope
from offsets_log.session.session import Session, begun_session, opened_inputs

if TYPE_CHECKING:
    from offsets_log.questions.question import Question
    from offsets_log.table import Table

Names = str | Iterable[str] | None
"""A name or glob, several, or None for those that the copy was opened for, which are all by default."""
Moment = str | int | datetime
"""A time as the command line takes it (``2026-11-21 14:00``, ``end-2h``, ``13:00``), epoch ms, or a datetime."""


class OpenedCopy:
    """The files of a copy, opened when they are asked for, closed at the end of a with statement.

    Args:
        scope: what is read, and how far.
        until: a time that ends the reading, if the logs' end decides which it is.
        files: opens them; None to open what the scope names.
    """

    def __init__(self, scope: Scope, until: OfLog | None = None, files: Callable[[], Inputs] | None = None) -> None:
        self._scope, self._until, self._files = scope, until, files
        self._stack = ExitStack()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, map(without_secrets, self._scope.paths)))})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; nothing can be asked any more, of copies `at` other moments neither."""
        self._is_closed = True
        self._stack.close()

    def at(self, until: Moment) -> Self:
        """Return the same files read up to another moment: from the first later batch on, nothing is read.

        Raises:
            ValueError: it is no time.
        """
        moment = moment_of(until)
        until_time, of_log = (None, moment) if isinstance(moment, OfLog) else (moment, None)
        return type(self)(replace(self._scope, until_time=until_time), of_log, self._opened)

    @cached_property
    def _inputs(self) -> Inputs:
        """The opened files. Raises OffsetsLogError."""
        if self._files is None:
            inputs = opened_inputs(self._scope, Remarks(), self._stack)
        else:
            inputs = self._files().asking(self._scope)
        if self._until is None:
            return inputs
        return inputs.asking(replace(self._scope, until_time=_at_end(self._until, inputs)))

    def _opened(self) -> Inputs:
        """Return the opened files. Raises OffsetsLogError: they are closed, or cannot be opened."""
        if self._is_closed:
            raise InputError("this copy is closed: ask within the with statement, or open it again")
        return self._inputs

    def _ms(self, moment: Moment) -> int:
        """Return a moment in epoch milliseconds. Raises ValueError: it is no time; InputError: nothing tells it."""
        found = moment_of(moment)
        return _at_end(found, self._opened()) if isinstance(found, OfLog) else found

    def _asking(self, group: Names, topic: Names) -> Scope:
        scope = self._opened().scope
        return replace(
            scope,
            group=scope.group if group is None else names_of(group),
            topic=scope.topic if topic is None else names_of(topic),
        )

    def _begun(self, scope: Scope, remarks: Remarks, needs: frozenset[str] = frozenset()) -> Session:
        return begun_session(self._opened().asking(scope), remarks, self._stack, needs)

    def _table(
        self,
        question: Callable[[Session], Question],
        *,
        needs: frozenset[str] = frozenset(),
        group: Names = None,
        topic: Names = None,
        columns: Iterable[str] | None = None,
    ) -> Table:
        """Return the table of a question that is begun whenever it is read."""
        from offsets_log.table import Asked, Table

        def ask() -> Asked:
            remarks = Remarks()
            scope = self._asking(group, topic)
            session = self._begun(scope, remarks, needs)
            return Asked(question(session), lambda: remarks, lambda: session.account.exit_status == 0)

        return Table(ask, None if columns is None else tuple(columns))


def _at_end(moment: OfLog, inputs: Inputs) -> int:
    if (newest_ms := inputs.newest_ms) is None:
        raise InputError(f"{moment.text} depends on where the log ends, and nothing here tells that time")
    return moment.at(newest_ms)


def moment_of(moment: Moment) -> int | OfLog:
    """Return a moment in epoch milliseconds, or what the logs' end decides. Raises ValueError: it is no time."""
    if isinstance(moment, int):
        return moment
    if isinstance(moment, str):
        return parse_time(moment, int(time.time() * 1000))
    if not isinstance(moment, datetime):
        raise ValueError(f"{moment!r} is no time: {UNDERSTOOD}, or a datetime")
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def names_of(names: Names) -> tuple[str, ...]:
    """Return names or globs as a scope has them."""
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)
