"""Committed offsets as an Arrow table: from replays in bulk, or from rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from offsets_log.columnar.materialize.arrow import SORTED_BY, served_table, table_of_rows
from offsets_log.columnar.materialize.values import finish
from offsets_log.data_directory.lag_columns import lag_table
from offsets_log.questions.offsets_asked import DOUBTFUL, UNSTABLE, Counts, OffsetsAsked, count_alone
from offsets_log.rows.lost import UNTOLD, End, in_words
from offsets_log.rows.tables import COMPACT_COLUMNS, Row, committed_rows

if TYPE_CHECKING:
    from offsets_log.columnar.folds.replay import Replayed
    from offsets_log.data_directory.copied_logs import CopiedLogs
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.replay.partial import OffsetAndMetadata
    from offsets_log.session.decide import Open
    from offsets_log.session.homes import Places
    from offsets_log.session.rules import Rules
    from offsets_log.session.session import Session


def of_rows(rows: list[Row]) -> pa.Table:
    """Return rows, which have the column ``unstable``, as a table."""
    return table_of_rows(rows, (*COMPACT_COLUMNS, UNSTABLE))


def with_lag(table: pa.Table, logs: CopiedLogs, now_ms: int | None) -> pa.Table:
    """Append `LAG_COLUMNS` to the columns."""
    lags = lag_table(logs, table, now_ms)
    for field in lags.schema:
        table = table.append_column(field, lags[field.name])
    return table


def with_doubts(table: pa.Table, lost: Mapping[int | None, int]) -> pa.Table:
    """Append the column `DOUBTFUL`."""
    whys = pa.nulls(len(table), pa.string())
    for partition, until in lost.items():
        if until >= 0:
            number = table["offsets_partition"]
            is_of = pc.is_null(number) if partition is None else pc.equal(number, partition)
            is_before = pc.less(pc.fill_null(table["record_offset"], -1), until)
            whys = pc.if_else(pc.and_(pc.fill_null(is_of, False), is_before), in_words(until), whys)
    whys = pc.if_else(pc.is_null(table["committed_offset"]), UNTOLD, whys)
    return table.append_column(DOUBTFUL.name, whys)


class InBulk:
    """Replays of partitions in bulk as one table.

    Attributes:
        opened: gets the offsets of open transactions, as of `say_of_hanging`.
        counts: gets what is counted of the rows.
        ends: gets the logs and their ends.
    """

    def __init__(
        self, session: Session, rules: Rules, places: Places, asked: OffsetsAsked, opened: Open, counts: Counts
    ) -> None:
        self._session, self._places, self._asked = session, places, asked
        self._is_unsure = not rules.told.is_sure
        self.opened, self.counts = opened, counts
        self.ends: list[End] = []

    def table(self, replays: Iterable[Replayed]) -> pa.Table:
        """Return the rows that count, with the column ``unstable``."""
        tables = [of_rows([]), *map(self._of_log, replays)]
        table = self._settled(pa.concat_tables(tables, promote_options="default"))
        counts = self.counts
        counts.rows, counts.groups = len(table), pc.count_distinct(table["group"]).as_py()
        counts.unknown = table["committed_offset"].null_count
        counts.unstable = pc.sum(table[UNSTABLE.name]).as_py() or 0
        counts.partitions = set(pc.unique(table["offsets_partition"]).to_pylist())
        return table.take(pc.sort_indices(table, SORTED_BY))

    def _of_log(self, replayed: Replayed) -> pa.Table:
        """Return a partition's rows; note what is pending."""
        inputs, orphans = self._session.inputs, self._asked.orphans
        with replayed.scanner() as scanner:
            table = served_table(
                replayed.layout,
                replayed.state,
                scanner,
                shows_group=inputs.shows_group,
                shows_topic=inputs.shows_topic,
                orphans=orphans or self._is_unsure,
                unstable=True,
            )
            with_offsets = table is None  # something was read on the slow path
            held = finish(replayed.layout, replayed.state, scanner, whole_groups=False, with_offsets=with_offsets)
        if table is None:
            state = held.showing(inputs.shows_group, inputs.shows_topic)
            rows = list(committed_rows(state, replayed.log.offsets_partition, orphans=orphans, unstable=True))
            table = of_rows(rows)
        elif self._is_unsure:
            table = self._of_groups(replayed.log, table, held.groups)
        self._places.add(replayed.log, held.groups)
        self.ends.append((replayed.log, held.end_offset))
        self._session.account.note_load(replayed.log, held.failure)
        self.opened.append((replayed.log, held.pending))
        asked = [one for one in held.pending if inputs.shows_group(one.group) and inputs.shows_topic(one.topic)]
        self.counts.alone += _count_alone_in(table, asked)
        return table

    def _of_groups(self, log: PartitionLog, table: pa.Table, groups: Iterable[str]) -> pa.Table:
        """Return rows of groups that exist, or all; others are noted, for other rules may serve them."""
        exist = pc.is_in(table["group"].cast(pa.string()), pa.array(groups, pa.string()))
        if pc.all(exist, min_count=0).as_py():
            return table
        self._session.engine.by_rules.add(id(log))
        return table if self._asked.orphans else table.filter(exist)

    def _settled(self, table: pa.Table) -> pa.Table:
        """Return the rows that count, as `Places.settled` does."""
        places = self._places
        if not places.has_something:
            return table
        groups = pa.array({group for _, group in places.homes.strays} | places.homes.doubled, pa.string())
        is_asked = pc.is_in(table["group"].cast(pa.string()), groups)
        asked = table.filter(is_asked)
        rows = asked.to_pylist()
        kept = {id(row) for row in places.settled(rows)}
        counts = pa.array([id(row) in kept for row in rows], pa.bool_())
        return pa.concat_tables([table.filter(pc.invert(is_asked)), asked.filter(counts)])


def _count_alone_in(table: pa.Table, pending: Sequence[OffsetAndMetadata]) -> int:
    """Return `count_alone` of a table's rows."""
    if not pending:
        return 0
    groups = pa.array({value.group for value in pending}, pa.string())
    rows = table.filter(pc.is_in(table["group"].cast(pa.string()), groups))
    return count_alone(pending, rows.select(["group", "topic", "partition"]).to_pylist())
