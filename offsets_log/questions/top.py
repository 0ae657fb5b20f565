"""Who writes to the offsets topic, and how much of it the next record makes useless."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from offsets_log.investigate.writers import COUNT_COLUMNS, HELD, NEEDS, WRITER_COLUMNS, Remains, top_rows
from offsets_log.log_format.partition_log import BYTES, POSITION
from offsets_log.questions.question import FewRows
from offsets_log.replay.profile import MODERN
from offsets_log.session.inputs import read_topic_ids
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.investigate.writer_counts import Writers
    from offsets_log.rows.tables import Column, Row
    from offsets_log.session.session import Session


@dataclass(frozen=True, kw_only=True)
class TopAsked:
    """What is asked of writers.

    Attributes:
        by: a key of `investigate.writers.ORDERS`; None for bytes, or records where a dump does not tell sizes.
        per: a key of `WRITER_COLUMNS`, what records are counted by.
        limit: how many rows are shown; None for all.
        topic_ids: a file with a JSON object of topic ids and names, besides those in the files; None for no more.
    """

    by: str | None = None
    per: str = "group"
    limit: int | None = None
    topic_ids: str | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Columns without which nothing can be answered."""
        return frozenset(NEEDS.get(self.by or "", set()) | NEEDS.get(self.per, set()))


class Top(FewRows):
    """The question, as `questions.question.Question`; the largest come first."""

    def __init__(self, session: Session, asked: TopAsked) -> None:
        self._session, self._asked = session, asked
        self._names = session.inputs.topic_ids | read_topic_ids(asked.topic_ids)
        self._tells_bytes = "bytes" not in session.inputs.missing_columns
        self._remains = Remains()
        self._total: Counter[str] = Counter()
        self._shown = self._found = 0

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of all rows."""
        return *WRITER_COLUMNS[self._asked.per], *COUNT_COLUMNS

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        is_bulk = self._session.engine.is_bulk_for(_largest(self._asked.per))
        read = _in_bulk if is_bulk else _one_by_one
        writers = read(self._session, self._asked.per, self._names, self._remains)
        by = self._asked.by or ("bytes" if self._tells_bytes else "records")
        rows = top_rows(writers, by, self._session.inputs.missing_columns)
        for row in rows:
            self._total.update({name: row[name] or 0 for name in ("records", "bytes", "garbage_bytes", "noop_commits")})
        shown = rows[: self._asked.limit]
        self._shown, self._found = len(shown), len(rows)
        return shown

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        session, remains, total = self._session, self._remains, self._total
        if remains.gone and not session.inputs.missing_columns - {POSITION, BYTES}:
            session.account.say(
                f"{remains.gone} of the {counted(remains.offsets, 'offset')} that these logs span hold no record any "
                "more: cleaned away, missing or unreadable, whose is not known. All shares are of what is left"
            )
        in_bytes = f"{counted(total['bytes'], 'byte')}, of which {total['garbage_bytes']} are garbage"
        if not self._tells_bytes:
            in_bytes = "bytes not known, since the source does not tell the sizes of batches"
        session.account.finish(
            f"{self._shown} of {counted(self._found, 'row')}; in all {counted(total['records'], 'record')}, "
            f"{in_bytes}, {counted(total['noop_commits'], 'no-op commit')}; {session.inputs.partitions_read}",
            found=total["records"],
        )


def _in_bulk(session: Session, per: str, names: dict[bytes, str], remains: Remains) -> Writers:
    from offsets_log.columnar.folds.ledgers import LedgerState
    from offsets_log.investigate.writer_counts import WriterCounts, Writers, counting

    session.engine.compile_first(_largest(per))
    writers = Writers(per)
    replay = counting(per, session.inputs.shown, names)
    for replayed in session.engine.replays(MODERN, session.account.noting, replay):
        state = replayed.state
        assert isinstance(state, LedgerState)
        assert isinstance(state.question, WriterCounts)
        remains.add(replayed.log, state.first_offset, state.end_offset, state.records)
        writers.add(state.question, replayed.log.offsets_partition)
    return writers.finish()


def _one_by_one(session: Session, per: str, names: dict[bytes, str], remains: Remains) -> Writers:
    from offsets_log.investigate.writer_counts import Writers, count_writers

    writers = Writers(per)
    for log in session.inputs.logs:
        events = remains.watch(log, session.engine.events(log))
        session.account.drain(count_writers(events, writers, log.offsets_partition, names, shown=session.inputs.shown))
    return writers.finish()


def _largest(per: str) -> str:
    """Return the place of a kernel with which `columnar.needs` knows what counts."""
    return "folds.holding.scan" if per in HELD else "ledger.kernels.name_keys"
