"""``offsets-log history``: every commit of a group in order, and what was answered after each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from cli.follow_options import follow_options, is_followed
from cli.options import (
    PARTITIONS,
    PROFILE,
    TABLES,
    TOPIC_IDS,
    Output,
    ReadOptions,
    Time,
    gather,
    output_option,
    reading_options,
)
from offsets_log.actions.follow_asked import FollowAsked
from offsets_log.words import counted, given_time, rewinds_in_words

if TYPE_CHECKING:
    from pyarrow import ChunkedArray

    from offsets_log.columnar.scan.reading import Seen
    from offsets_log.investigate.bulk_history import OrderedHistory
    from offsets_log.investigate.history import ShowsKey
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.profile import Profile
    from offsets_log.rows.tables import Row
    from offsets_log.session.session import Session

TABLE_COLUMNS = (
    "group", "topic", "partition", "event", "record_offset", "timestamp_ms", "committed_offset", "metadata",
    "transaction", "effective_offset", "change", "client_id", "host",
)  # fmt: skip
"""Columns that fit a terminal; the other formats have all."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Options that choose rows.

    Attributes:
        table: one of `TABLES`.
    """

    table: str
    from_time: int | None
    rewinds: bool

    def has_time(self, time_ms: int) -> bool:
        """Whether a record of this time is shown; one without a time is."""
        from offsets_log.log_format.batch import NO_TIMESTAMP

        return self.from_time is None or time_ms >= self.from_time or time_ms == NO_TIMESTAMP


@click.command(
    "history",
    epilog="Examples: offsets-log history /var/lib/kafka/data -g billing -t orders --topic-partition 3 · "
    "offsets-log history backup.tar.gz -g '*' --rewinds --from-time 2026-11-21T02:00Z --until-time 2026-11-21T03:00Z",
)
@reading_options
@PROFILE
@PARTITIONS
@TOPIC_IDS
@click.option(
    "--topic-partition",
    metavar="N",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition of the consumed topics; repeatable.",
)
@click.option("--partition", metavar="N", type=click.IntRange(min=0), multiple=True, hidden=True)
@gather(
    "rows",
    Rows,
    (
        click.option(
            "--table",
            type=click.Choice(TABLES),
            default=TABLES[0],
            show_default=True,
            help="Which history to show: share-offsets is that of share groups, from __share_group_state in the copy.",
        ),
        click.option(
            "--from-time",
            type=Time(),
            help="Only rows for records of that time and later; the first row is compared with the offset from before.",
        ),
        click.option(
            "--rewinds",
            is_flag=True,
            help="Only rows at which the served offset went back, at once or after it was deleted or had expired.",
        ),
    ),
)
@follow_options("rewound")
@output_option("table", "jsonl", "json", "csv", "parquet")
def command(
    reading: ReadOptions,
    output: Output,
    profile: str | None,
    topic_ids: str | None,
    topic_partition: tuple[int, ...],
    partition: tuple[int, ...],
    rows: Rows,
    follow: FollowAsked,
) -> None:
    """Show every commit of a group in order, which offset was served after each, and who held the partition then.

    Needs -g. One row for each commit, tombstone and end of a transaction. `effective_offset` is what OffsetFetch
    answers after it, and `change` how this answer changed: new, advanced, rewound, same (the same offset again),
    deleted; null if the answer is not affected, such as by a commit in an open transaction. `group_gone` and
    `group_back` are rows at which the group, but not its offsets, was removed or came back: in between, the offsets are
    served to nobody.

    A commit does not say who sent it: the row names the member to which the latest group metadata before it had
    assigned the partition. Superseded commits that the cleaner removed are missing.

    --follow prints rows in the order of the logs as they come; the end of an open transaction is a row of its own.
    """
    from cli.session import open_session
    from offsets_log.session.inputs import read_topic_ids
    from offsets_log.session.rules import Rules

    _check_usage(reading, rows)
    asked = {*topic_partition, *partition}
    shows_all = not asked and not reading.topic
    shows = partial(_shows_key, asked)
    if is_followed(
        reading,
        output,
        follow,
        {"--table share-offsets": rows.table != TABLES[0], "--from-time": rows.from_time is not None},
    ):
        from cli.follow_runs import follow_history

        follow_history(
            reading,
            output,
            follow,
            profile,
            None if shows_all else shows,
            topic_ids=topic_ids,
            only_rewinds=rows.rewinds,
        )
        return
    if rows.table == "share-offsets":
        _write_share_history(reading, output, asked, rewinds=rows.rewinds)
        return
    with open_session(reading, output, needs={"committed_offset"}) as session:
        if rows.from_time is not None:
            session.inputs.check({"timestamp_ms"})
            for words in session.inputs.iter_beyond(rows.from_time):
                session.account.say(words)
        rules = Rules(session, profile)
        shows_key = None if shows_all else shows(session)
        asking = _Asking(session, output, rules.profile, shows_key, read_topic_ids(topic_ids), rows)
        counts = _answer_in_bulk(asking) if session.engine.is_bulk_for(SCAN) else None
        counts = counts or _answer(asking)
        session.account.finish(
            f"{counted(counts.commits, 'commit')}, {rewinds_in_words(counts.rewinds, counts.begun_below)}, "
            f"{counted(counts.keys, 'topic partition')} of {counted(counts.groups, 'group')}"
            f"{rules.in_words(is_loaded=False)}",
            found=counts.keys,
            names=[
                *(() if rows.from_time is None else ("--from-time", given_time(rows.from_time))),
                *(word for given in sorted(asked) for word in ("--topic-partition", str(given))),
            ],
        )


def _check_usage(reading: ReadOptions, rows: Rows) -> None:
    if not reading.group:
        raise click.UsageError("give the group: -g GROUP; -g '*' gives all")
    if rows.from_time is not None and rows.table == "share-offsets":
        raise click.UsageError("--table share-offsets knows no bounds: leave out --from-time")
    if rows.from_time is not None and reading.until_time is not None and rows.from_time > reading.until_time:
        raise click.UsageError("--from-time is later than --until-time")


def _write_share_history(reading: ReadOptions, output: Output, partitions: set[int], *, rewinds: bool) -> None:
    """Write the rows of ``--table share-offsets``."""
    from cli.session import open_session
    from cli.share_offsets import write_history

    if reading.is_bounded:
        raise click.UsageError("--table share-offsets knows no bounds: leave out --until-offset and --until-time")
    with open_session(reading, output) as session:
        inputs = session.inputs

        def shows(group: str, topic: str, partition: int) -> bool:
            is_asked = not partitions or partition in partitions
            return is_asked and inputs.shows_group(group) and inputs.shows_topic(topic)

        write_history(session, output, shows, rewinds)


def _shows_key(asked: set[int], session: Session) -> ShowsKey:
    """Return whether a key's topic is asked for, and its partition, if some are."""
    return lambda key: session.inputs.shows_topic(key[1]) and (not asked or key[2] in asked)


@dataclass(frozen=True, slots=True)
class _Asking:
    """The question; ``shows_key`` is None if it is about all keys."""

    session: Session
    output: Output
    profile: Profile
    shows_key: ShowsKey | None
    topic_ids: Mapping[bytes, str]
    rows: Rows

    @property
    def columns(self) -> Sequence[str]:
        """Columns of the rows."""
        from cli.output import chosen_format
        from offsets_log.investigate.history import HISTORY_COLUMNS

        return TABLE_COLUMNS if chosen_format(self.output) == "table" else [column.name for column in HISTORY_COLUMNS]

    def write(self, rows: Iterable[Row]) -> None:
        """Write rows one by one."""
        from cli.output import chosen_format, destination, write_rows

        if chosen_format(self.output) == "parquet":
            from cli.parquet import write_history
            from offsets_log.investigate.history_tables import table_of_history

            held = [*rows]
            more = sorted({name for row in held for name in row if name not in self.columns})
            table = table_of_history(held, more)
            write_history(self.session, self.output, [table], table.schema)
            return
        with destination(self.output, self.session.inputs.files) as stream:
            write_rows(stream, rows, self.columns, chosen_format(self.output))

    def tell_homes(self, found: Iterable[tuple[PartitionLog, Set[str]]]) -> None:
        """Report groups that are in several offsets partitions, or in one that is not theirs."""
        from offsets_log.session.homes import Places

        places = Places(self.session, self.profile, of_all=False)
        for log, groups in found:
            places.add(log, groups)
        places.tell_of_groups("rows of a key are in the order of their times")

    def tell_cleaned(self, log: PartitionLog) -> None:
        """Report what the cleaner has removed."""
        from offsets_log.rows.tables import partition_name

        if log.cleaned_until:
            self.session.account.say(
                f"offsets partition {partition_name(log.offsets_partition)}: below record offset "
                f"{log.cleaned_until} superseded commits were compacted away"
            )


@dataclass(frozen=True, slots=True)
class _Counts:
    commits: int
    rewinds: int
    begun_below: int
    keys: int
    groups: int


def _answer(asking: _Asking) -> _Counts:
    """Write the history, read record by record; return what to report."""
    from offsets_log.columnar.choose.selection import Selection
    from offsets_log.investigate.history import History, history_row, in_order_of_time
    from offsets_log.investigate.holders import TopicIds

    session = asking.session
    selection = Selection(session.inputs.shows_group, with_names=True, with_markers=True)
    histories = []
    for log in session.inputs.logs:
        found = History(asking.profile, session.inputs.shows_group, asking.shows_key or (lambda key: True))
        found.read(session.engine.selected(log, selection), on_damage=session.account.on_damage)
        histories.append((log, found))
        if found.entries:
            asking.tell_cleaned(log)
    ids = TopicIds(asking.topic_ids, session.inputs.topic_ids, *(found.state.topic_names for _, found in histories))
    asking.tell_homes((log, {entry.key[0] for entry in found.entries}) for log, found in histories)
    entries = [
        (histories[number][0], entry)
        for number, entry in in_order_of_time([found.entries for _, found in histories])
        if asking.rows.has_time(entry.timestamp_ms)
    ]
    asking.write(
        history_row(entry, log.offsets_partition, ids, log.missing_columns)
        for log, entry in entries
        if not asking.rows.rewinds or entry.goes_back
    )
    return _Counts(
        sum(entry.value is not None for _, entry in entries),
        sum(entry.change == "rewound" for _, entry in entries),
        sum(entry.begins_below for _, entry in entries),
        len({entry.key for _, entry in entries}),
        len({entry.key[0] for _, entry in entries}),
    )


SCAN = "history.kernels.scan"


def _answer_in_bulk(asking: _Asking) -> _Counts | None:
    """Write the history by kernels; return None before anything is written if they cannot tell all of it."""
    from offsets_log.columnar.history.entries import CHANGE, COMMIT, EVENT, NEW_BELOW, REWOUND
    from offsets_log.columnar.history.slow_path import BeyondError
    from offsets_log.disk.scratch import Scratch
    from offsets_log.investigate.bulk_history import BulkHistory

    session = asking.session
    session.engine.compile_first(SCAN, "history.lines.write")
    seen: list[tuple[PartitionLog, list[Seen], int]] = []
    with ExitStack() as stack:
        history = BulkHistory(
            asking.profile,
            session.inputs.shows_group,
            asking.shows_key,
            lambda kind, shape: Scratch(stack, kind, shape),
        )
        try:
            for log in session.inputs.logs:
                notes: list[Seen] = []
                until, release = session.inputs.until(log), session.inputs.scope.kafka
                count = history.read(
                    log, note=notes.append, until=until, release=release, advance=session.account.advance
                )
                seen.append((log, notes, count))
        except BeyondError:
            return None
        groups = history.keys.groups_of_logs()
        if len(seen) > 1 and history.keys.are_in_several_logs:
            return None
        asking.tell_homes((log, groups.get(number, set())) for number, (log, _, _) in enumerate(seen))
        for log, notes, count in seen:
            note = session.account.noting(log)
            for each in notes:
                note(each)
            if count:
                asking.tell_cleaned(log)
        ordered = history.ordered(asking.topic_ids, session.inputs.topic_ids)
        if asking.rows.from_time is not None:
            ordered = ordered.since(asking.rows.from_time)
        _write_in_bulk(asking, ordered)
        rewinds, below = (ordered.count(CHANGE, change) for change in (REWOUND, NEW_BELOW))
        return _Counts(ordered.count(EVENT, COMMIT), rewinds, below, ordered.keys, ordered.groups)


def values_of(column: ChunkedArray) -> list[Any]:
    """Return the values of a column; those of a dictionary are looked up at once, not one by one."""
    import pyarrow as pa

    values: list[Any] = (column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column).to_pylist()
    return values


def _write_in_bulk(asking: _Asking, ordered: OrderedHistory) -> None:
    from cli.output import TEXT_FORMATS, chosen_format, destination, text_around
    from offsets_log.investigate.history_lines import HistoryLines

    format_name = chosen_format(asking.output)
    threads = asking.session.engine.threads.count
    if format_name == "parquet":
        from cli.parquet import write_history
        from offsets_log.investigate.history_tables import HistoryTables

        tables = HistoryTables(ordered, only_rewinds=asking.rows.rewinds, threads=threads)
        write_history(asking.session, asking.output, tables, tables.schema)
        return
    if format_name == "table":
        from cli.text_table import TextTable
        from offsets_log.investigate.history_tables import HistoryTables

        with destination(asking.output, asking.session.inputs.files) as stream, TextTable(asking.columns) as text:
            for table in HistoryTables(ordered, only_rewinds=asking.rows.rewinds, threads=threads):
                text.add_columns([values_of(table[name]) for name in asking.columns])
            text.write(stream)
        return
    form = TEXT_FORMATS[format_name](asking.columns)
    with destination(asking.output, asking.session.inputs.files) as stream, text_around(stream, form) as write:
        lines = HistoryLines(ordered, form.line, threads=threads)
        for piece in lines.pieces(only_rewinds=asking.rows.rewinds):
            write(piece)
