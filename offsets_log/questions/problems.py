"""What was damaged, missing or doubtful, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from offsets_log.questions.question import FewRows
from offsets_log.rows.tables import OFFSETS_PARTITION_COLUMN, Column, Row, partition_name
from offsets_log.session.rules import Rules
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.session.session import Session

PROBLEM_COLUMNS = (
    Column("kind", "string", "corrupt, unsupported, missing, tail, load (no broker would serve it) or start"),
    OFFSETS_PARTITION_COLUMN,
    Column("file", "string", "file that it is in, or next to"),
    Column("position", "bigint", "bytes from the start of the file"),
    Column("record_offset", "bigint", "offset of the record, or the first one that is missing"),
    Column("problem", "string", "what is wrong"),
)
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
            yield _NOWHERE | {
                "kind": "missing",
                "offsets_partition": missing.offsets_partition,
                "file": missing.file,
                "record_offset": missing.first_offset,
                "problem": missing.in_words(),
            }
        for log, state, found in read:
            place = _NOWHERE | {"offsets_partition": log.offsets_partition}
            yield from (place | {"kind": "tail", "problem": words} for words in found.tails)
            if state.failure is not None:
                yield place | {
                    "kind": "load",
                    "record_offset": state.failure.record_offset,
                    "problem": state.failure.in_words(self._rules.name, partition_name(log.offsets_partition)),
                }
        yield from (_NOWHERE | {"kind": "start", "problem": words} for words in inputs.iter_starts())

    def tell(self) -> None:
        """Remark how many there are."""
        inputs = self._session.inputs
        self._session.account.finish(f"{counted(self._count, 'problem')}, {inputs.partitions_read}", found=self._count)
