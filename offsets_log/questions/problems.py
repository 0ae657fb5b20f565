"""What was damaged, missing or doubtful, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from offsets_log.questions.question import FewRows
from offsets_log.rows.problems import PROBLEM_COLUMNS, load_problem, problem_of
from offsets_log.rows.tables import Column, Row
from offsets_log.session.rules import Rules
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.session.session import Session

_NOWHERE: Row = {column.name: None for column in PROBLEM_COLUMNS}


class Problems(FewRows):
    """The question, as `questions.question.Question`; the whole copy is read for it.

    Args:
        profile: whose rules decide what loads; None for what the files show.
    """

    columns: Sequence[Column] = PROBLEM_COLUMNS

    def __init__(self, session: Session, profile: str | None = None) -> None:
        self._session = session
        self._rules = Rules(session, profile)
        self._count = 0

    def rows(self) -> Iterator[Row]:
        """Yield the answer as rows. Raises OffsetsLogError."""
        for row in self._rows():
            self._count += 1
            yield row

    def _rows(self) -> Iterator[Row]:
        account, inputs = self._session.account, self._session.inputs
        partition_of = {segment.file: log.offsets_partition for log in inputs.logs for segment in log.segments}
        read = list(self._session.engine.load_all(self._rules.profile))
        for kind, row in account.pieces:
            yield _NOWHERE | row | {"kind": kind, "offsets_partition": partition_of.get(row["file"])}
        for missing in account.lost:
            yield _NOWHERE | problem_of(missing) | {"offsets_partition": missing.offsets_partition}
        for log, tail in account.tails:
            yield _NOWHERE | problem_of(tail) | {"offsets_partition": log.offsets_partition}
        for log, state, _ in read:
            if state.failure is not None:
                yield _NOWHERE | load_problem(state.failure, self._rules.profile.name, log.offsets_partition)
        yield from (_NOWHERE | {"kind": "start", "problem": words} for words in inputs.iter_starts())

    def tell(self) -> None:
        """Remark how many there are."""
        inputs = self._session.inputs
        self._session.account.finish(f"{counted(self._count, 'problem')}, {inputs.partitions_read}", found=self._count)
