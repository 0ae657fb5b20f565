"""Every commit of groups in order, what was served after each, and who held the partition then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row, partition_name
from offsets_log.session.homes import Places
from offsets_log.session.inputs import read_topic_ids
from offsets_log.session.rules import Rules
from offsets_log.session.share_offsets import say_of_share_groups
from offsets_log.words import counted, given_time, rewinds_in_words

if TYPE_CHECKING:
    import pyarrow as pa

    from offsets_log.columnar.scan.reading import Seen
    from offsets_log.investigate.bulk_history import OrderedHistory
    from offsets_log.investigate.history import ShowsKey
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.session.session import Session

NEEDS = frozenset({"committed_offset"})
"""Columns without which nothing can be answered."""
NEEDED = Needed(
    ("group", "topic", "partition", "timestamp_ms", "effective_offset"),
    ("change", "event", "committed_offset", "client_id", "host"),
)
REWINDS_NEEDED = Needed(
    ("group", "topic", "partition", "timestamp_ms", "rewound_by", "client_id"), ("effective_offset", "host", "change")
)
SCAN = "history.kernels.scan"


@dataclass(frozen=True, kw_only=True)
class HistoryAsked:
    """What is asked of the history of offsets.

    Attributes:
        profile: whose rules to follow; None for what the files show.
        topic_ids: a file that names topics: a JSON object topic id → name.
        topic_partition: only these partitions of the consumed topics; empty for all.
        from_time: epoch ms; earlier rows are left out, but the first one is compared with them.
        rewinds: whether only rows are shown at which less was served than before.
    """

    profile: str | None = None
    topic_ids: str | None = None
    topic_partition: frozenset[int] = frozenset()
    from_time: int | None = None
    rewinds: bool = False


@dataclass(frozen=True, slots=True)
class _Counts:
    commits: int
    rewinds: int
    begun_below: int
    keys: int
    groups: int


def shows_key(session: Session, partitions: Set[int]) -> ShowsKey | None:
    """Return whether a key's topic is asked for, and its partition, if some are; None where all keys are.

    Args:
        partitions: those of the consumed topics that are asked for; empty for all.
    """
    if not partitions and not session.inputs.scope.topic:
        return None
    shows_topic = session.inputs.shows_topic
    return lambda key: shows_topic(key[1]) and (not partitions or key[2] in partitions)


class OffsetHistory:
    """The question, as `questions.question.Lines`; rows are in the order of `investigate.history`."""

    def __init__(self, session: Session, asked: HistoryAsked) -> None:
        self.needed = REWINDS_NEEDED if asked.rewinds else NEEDED
        self._session, self._asked = session, asked
        if asked.from_time is not None:
            session.inputs.check({"timestamp_ms"})
            for words in session.inputs.iter_beyond(asked.from_time):
                session.account.say(words)
        self._rules = Rules(session, asked.profile)
        self._shows_key = shows_key(session, asked.topic_partition)
        self._topic_ids: Mapping[bytes, str] = read_topic_ids(asked.topic_ids)
        self._counts = _Counts(0, 0, 0, 0, 0)

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of all rows."""
        from offsets_log.investigate.history_rows import HISTORY_COLUMNS

        return HISTORY_COLUMNS

    @property
    def schema(self) -> pa.Schema:
        """Types of the columns of all tables."""
        from offsets_log.investigate.history_tables import schema_with

        return schema_with()

    @property
    def is_bulk(self) -> bool:
        """Whether kernels read."""
        return self._session.engine.is_bulk_for(SCAN)

    def rows(self) -> Iterator[Row]:
        """Yield the answer row by row. Raises OffsetsLogError."""
        with ExitStack() as stack:
            ordered = self._ordered(stack)
            if ordered is None:
                yield from self._one_by_one()
            else:
                yield from ordered.rows(only_rewinds=self._asked.rewinds)

    def lines(self, line: Callable[[Row], bytes]) -> Iterator[bytes | memoryview]:
        """Yield the lines of all rows, as `questions.question.Lines.lines`."""
        with ExitStack() as stack:
            ordered = self._ordered(stack)
            if ordered is None:
                yield from map(line, self._one_by_one())
                return
            from offsets_log.investigate.history_lines import HistoryLines

            lines = HistoryLines(ordered, line, threads=self._session.engine.threads.count)
            yield from lines.pieces(only_rewinds=self._asked.rewinds)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the answer as Arrow tables, which are made when they are asked for. Raises OffsetsLogError."""
        with ExitStack() as stack:
            ordered = self._ordered(stack)
            from offsets_log.investigate.history_tables import HistoryTables, table_of_history

            if ordered is None:
                rows = list(self._one_by_one())
                names = {column.name for column in self.columns}
                yield table_of_history(rows, sorted({name for row in rows for name in row} - names))
                return
            threads = self._session.engine.threads.count
            tables = HistoryTables(ordered, only_rewinds=self._asked.rewinds, threads=threads)
            if not len(ordered.order):
                yield tables.schema.empty_table()
            yield from tables

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        counts, asked = self._counts, self._asked
        self._session.account.finish(
            f"{counted(counts.commits, 'commit')}, {rewinds_in_words(counts.rewinds, counts.begun_below)}, "
            f"{counted(counts.keys, 'topic partition')} of {counted(counts.groups, 'group')}"
            f"{self._rules.in_words(is_loaded=False)}",
            found=say_of_share_groups(self._session, counts.keys),
            names=[
                *(() if asked.from_time is None else ("--from-time", given_time(asked.from_time))),
                *(word for given in sorted(asked.topic_partition) for word in ("--topic-partition", str(given))),
            ],
        )

    def _one_by_one(self) -> Iterator[Row]:
        """Yield the rows, read record by record."""
        from offsets_log.columnar.choose.selection import Selection
        from offsets_log.investigate.history import History, in_order_of_time
        from offsets_log.investigate.history_rows import history_row
        from offsets_log.investigate.holders import TopicIds

        session = self._session
        selection = Selection(session.inputs.shows_group, with_names=True, with_markers=True)
        histories = []
        for log in session.inputs.logs:
            found = History(self._rules.profile, session.inputs.shows_group, self._shows_key or (lambda key: True))
            found.read(session.engine.selected(log, selection), on_damage=session.account.on_damage)
            histories.append((log, found))
            if found.entries:
                self._tell_cleaned(log)
        ids = TopicIds(self._topic_ids, session.inputs.topic_ids, *(found.state.topic_names for _, found in histories))
        self._tell_homes((log, {entry.key[0] for entry in found.entries}) for log, found in histories)
        entries = [
            (histories[number][0], entry)
            for number, entry in in_order_of_time([found.entries for _, found in histories])
            if self._has_time(entry.timestamp_ms)
        ]
        self._counts = _Counts(
            sum(entry.value is not None for _, entry in entries),
            sum(entry.change == "rewound" for _, entry in entries),
            sum(entry.begins_below for _, entry in entries),
            len({entry.key for _, entry in entries}),
            len({entry.key[0] for _, entry in entries}),
        )
        for log, entry in entries:
            if entry.goes_back or not self._asked.rewinds:
                yield history_row(entry, log.offsets_partition, ids, log.missing_columns)

    def _has_time(self, time_ms: int) -> bool:
        """Whether a record of this time is shown; one without a time is."""
        from_time = self._asked.from_time
        return from_time is None or time_ms >= from_time or time_ms == NO_TIMESTAMP

    def _ordered(self, stack: ExitStack) -> OrderedHistory | None:
        """Return the entries as kernels read them; None if they cannot tell all of it.

        Args:
            stack: closes what holds the entries.
        """
        if not self.is_bulk:
            return None
        from offsets_log.columnar.history.entries import CHANGE, COMMIT, EVENT, NEW_BELOW, REWOUND
        from offsets_log.columnar.history.slow_path import BeyondError
        from offsets_log.disk.scratch import Scratch
        from offsets_log.investigate.bulk_history import BulkHistory

        inputs, account = self._session.inputs, self._session.account
        self._session.engine.compile_first(SCAN, "sinks.kernels.write_lines")
        seen: list[tuple[PartitionLog, list[Seen], int]] = []
        history = BulkHistory(
            self._rules.profile,
            inputs.shows_group,
            self._shows_key,
            lambda kind, shape: Scratch(stack, kind, shape),
        )
        try:
            for log in inputs.logs:
                notes: list[Seen] = []
                until, release = inputs.until(log), inputs.scope.kafka
                count = history.read(log, note=notes.append, until=until, release=release, advance=account.advance)
                seen.append((log, notes, count))
        except BeyondError:
            return None
        groups = history.keys.groups_of_logs()
        if len(seen) > 1 and history.keys.are_in_several_logs:
            return None
        self._tell_homes((log, groups.get(number, set())) for number, (log, _, _) in enumerate(seen))
        for log, notes, count in seen:
            note = account.noting(log)
            for each in notes:
                note(each)
            if count:
                self._tell_cleaned(log)
        ordered = history.ordered(self._topic_ids, inputs.topic_ids)
        if self._asked.from_time is not None:
            ordered = ordered.since(self._asked.from_time)
        rewinds, below = (ordered.count(CHANGE, change) for change in (REWOUND, NEW_BELOW))
        self._counts = _Counts(ordered.count(EVENT, COMMIT), rewinds, below, ordered.keys, ordered.groups)
        return ordered

    def _tell_homes(self, found: Iterable[tuple[PartitionLog, Set[str]]]) -> None:
        """Report groups that are in several offsets partitions, or in one that is not theirs."""
        places = Places(self._session, self._rules.profile, of_all=False)
        for log, groups in found:
            places.add(log, groups)
        places.tell_of_groups("rows of a key are in the order of their times")

    def _tell_cleaned(self, log: PartitionLog) -> None:
        """Report what the cleaner has removed."""
        if log.cleaned_until:
            self._session.account.say(
                f"offsets partition {partition_name(log.offsets_partition)}: below record offset "
                f"{log.cleaned_until} superseded commits were compacted away"
            )
