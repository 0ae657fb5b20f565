"""The latest committed offset of every group, topic and partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from offsets_log.data_directory.lag import LAG_COLUMNS, with_lag
from offsets_log.questions.offsets_asked import DOUBTFUL, UNSTABLE, Counts, OffsetsAsked, count_alone
from offsets_log.rows.lost import End, doubt, lost_until
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import COMPACT_COLUMNS, Column, Row, committed_rows, offset_row_order
from offsets_log.session.decide import DecideOptions, Open, decide_if_asked, say_of_decided, say_of_hanging
from offsets_log.session.homes import Places
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.rules import Rules
from offsets_log.session.share_offsets import say_of_share_groups
from offsets_log.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.coordinator_state import CoordinatorState
    from offsets_log.session.session import Session


class Offsets:
    """The question, as `questions.question.Question`; rows are sorted by group, topic and partition."""

    needed = Needed(
        ("group", "topic", "partition", "committed_offset"),
        ("unstable", "lag", "behind_ms", "commit_timestamp_ms", "doubtful", "log_end_offset", "metadata",
         "record_offset", "offsets_partition", "leader_epoch"),
    )  # fmt: skip

    def __init__(self, session: Session, asked: OffsetsAsked) -> None:
        self._session, self._asked = session, asked
        decide_if_asked(session, DecideOptions(asked.decide, asked.now_ms))
        self.rules = Rules(session, asked.profile)
        self._lag = lag_logs(session, asked.lag)
        self._places = Places(session, self.rules.profile)
        self._opened: Open = []
        self._counts = Counts()
        self._ends: list[End] = []

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of all rows."""
        more = (UNSTABLE,) if self._asked.unstable else ()
        last = (DOUBTFUL,) if self._asked.doubtful else ()
        return (*COMPACT_COLUMNS, *more, *(() if self._lag is None else LAG_COLUMNS), *last)

    def rows(self) -> Iterable[Row]:
        """Return the answer as rows. Raises OffsetsLogError."""
        rows = self._settled()
        if not self._asked.unstable:
            for row in rows:
                del row["unstable"]
        told = rows if self._lag is None else with_lag(self._lag, rows, self._asked.now_ms)
        if not self._asked.doubtful:
            return told
        lost = self._lost()
        return (row | {DOUBTFUL.name: doubt(lost, row)} for row in told)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the answer as one Arrow table. Raises OffsetsLogError."""
        is_bulk = self._session.engine.is_bulk and not self._asked.broker.as_broker
        replays = self._session.engine.replay_in_bulk(self.rules.profile) if is_bulk else None
        from offsets_log.questions import offsets_tables as t  # loads Arrow while the threads work

        how = t.InBulk(self._session, self.rules, self._places, self._asked, self._opened, self._counts)
        table = t.of_rows(self._settled()) if replays is None else how.table(replays)
        self._ends += how.ends
        if not self._asked.unstable:
            table = table.drop_columns([UNSTABLE.name])
        if self._lag is not None:
            table = t.with_lag(table, self._lag, self._asked.now_ms)
        yield t.with_doubts(table, self._lost()) if self._asked.doubtful else table

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        session, counts = self._session, self._counts
        say_of_lag(session, self._lag)
        say_of_decided(session)
        if counts.unstable and not self._asked.unstable:
            have = "has a newer value" if counts.unstable == 1 else "have newer values"
            session.account.say(
                f"{counts.unstable} of these offsets {have} in an open transaction: --unstable shows which"
            )
        if counts.alone:
            session.account.say(
                f"{counted(counts.alone, 'offset')} {'exists' if counts.alone == 1 else 'exist'} only in open "
                "transactions, and not in this answer: offsets-log state --table pending shows them"
            )
        say_of_hanging(session, self._opened)
        session.account.tell_loads(self.rules.profile.name, counts.partitions)
        found = say_of_share_groups(session, counts.rows + counts.alone)
        of_them = f" ({counts.unknown} of them unknown)" if counts.unknown else ""
        session.account.finish(
            f"{counted(counts.rows, 'offset')}{of_them} of {counted(counts.groups, 'group')}, "
            f"{session.inputs.partitions_read}{self.rules.in_words()}",
            found=found,
        )

    def _settled(self) -> list[Row]:
        """Return the rows that count, with the column ``unstable``."""
        rows: list[Row] = []
        for log, state in self._states():
            found = list(committed_rows(state, log.offsets_partition, orphans=self._asked.orphans, unstable=True))
            self._counts.alone += count_alone(state.pending, found if state.pending else ())
            self._opened.append((log, (*state.pending, *state.hidden_pending)))
            rows += found
        rows = self._places.settled(sorted(rows, key=offset_row_order))
        counts = self._counts
        counts.rows, counts.groups = len(rows), len({row["group"] for row in rows})
        counts.unknown = sum(row["committed_offset"] is None for row in rows)
        counts.unstable = sum(row["unstable"] or 0 for row in rows)
        counts.partitions = {row["offsets_partition"] for row in rows}
        return rows

    def _lost(self) -> dict[int | None, int]:
        return lost_until(self._ends, self._session.account.lost, self._session.account.damages)

    def _states(self) -> Iterator[tuple[PartitionLog, CoordinatorState]]:
        session, profile = self._session, self.rules.profile
        if self._asked.broker.as_broker:
            from offsets_log.session.brokers import Brokers

            brokers = Brokers(session, profile, self._asked.broker)
            for part in brokers.load():
                brokers.say(part)
                self._ends.append((part[0], part[1].end_offset))
                yield part[:2]
            return
        for log, state, _ in self._places.passing(session.engine.load_all(profile, whole_groups=False)):
            session.account.note_load(log, state.failure)
            self._ends.append((log, state.end_offset))
            yield log, state
