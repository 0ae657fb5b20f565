"""What is open in the offsets topic: of whom, since when, what it holds up, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from offsets_log.data_directory.open_transactions import TRANSACTION_COLUMNS, transaction_rows, with_ages
from offsets_log.questions.question import FewRows
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row
from offsets_log.session.decide import outcomes_of
from offsets_log.session.newest import counted_to, iter_ahead, newest_ms
from offsets_log.session.rules import Rules
from offsets_log.words import counted, shown_span

if TYPE_CHECKING:
    from offsets_log.session.session import Session

NEEDS = frozenset({"is_transactional"})
"""Columns without which nothing can be answered."""


class Transactions(FewRows):
    """The question, as `questions.question.Question`: a row for each transaction and offsets partition, oldest first.

    Filters choose transactions with such an offset; a row tells of the whole transaction.

    Args:
        profile: whose rules to follow; None for what the files show.
        now_ms: until when ages are counted, and at which transactions have timed out; None for the
            end of the copy.
    """

    columns: Sequence[Column] = TRANSACTION_COLUMNS
    needed = Needed(
        ("transactional_id", "first_timestamp_ms", "producer_id", "outcome"),
        ("groups", "age_ms", "offsets_partition", "offsets", "first_offset", "kept_bytes"),
    )  # fmt: skip

    def __init__(self, session: Session, profile: str | None = None, now_ms: int | None = None) -> None:
        self._session = session
        self._counted_to = counted_to(session.inputs, now_ms)
        self._now_ms = self._counted_to.ms
        self._outcomes = outcomes_of(session, self._now_ms)
        self._rules = Rules(session, profile)
        self._newest: dict[int | None, int | None] = {}

    def rows(self) -> list[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        return self._found

    def commands(self) -> Iterator[str]:
        """Yield the command lines that end those that hang."""
        yield from dict.fromkeys(filter(None, (row["abort_command"] for row in self._found)))

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        from offsets_log.restore.doubts import of_hanging

        session, rows = self._session, self._found
        if rows and self._outcomes is None:
            session.account.say(
                "what becomes of them is told where the whole log is read: leave out the bounds"
                if session.inputs.scope.is_bounded
                else "what becomes of them is not told: no __transaction_state lies beside these partitions: give the "
                "broker's whole data directory"
            )
        told = self._counted_to.words if rows else ()
        for words in (*told, *iter_ahead(session.inputs, self._newest), *of_hanging(self.commands())):
            session.account.say(words)
        oldest = max((row["log_age_ms"] or 0 for row in rows), default=0)
        session.account.finish(
            f"{counted(len(rows), 'open transaction')}, {session.inputs.partitions_read}"
            + (f"; at the log's end the oldest was open for {shown_span(oldest)}" if oldest else "")
            + self._rules.in_words(),
            found=len(rows),
        )

    @cached_property
    def _found(self) -> list[Row]:
        inputs = self._session.inputs
        is_chosen = bool(inputs.scope.group or inputs.scope.topic)
        rows: list[Row] = []
        for log, found, held in self._session.engine.survey_all(self._rules.profile):
            self._newest[log.offsets_partition] = found.kinds.last_timestamp_ms
            shown = {
                one.producer_id for one in held.pending if inputs.shows_group(one.group) & inputs.shows_topic(one.topic)
            }
            found_rows = transaction_rows(log, found, held.pending, self._outcomes, inputs.until(log))
            rows += [row for row in found_rows if row["producer_id"] in shown or not is_chosen]
        end_ms = newest_ms(inputs, self._newest)
        return [with_ages(row, self._now_ms, None if end_ms < 0 else end_ms) for row in rows]
