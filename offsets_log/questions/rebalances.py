"""Who joined groups, who left, what was assigned, and whether it was right: one row for each generation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from offsets_log.columnar.choose.selection import Selection
from offsets_log.questions.question import FewRows
from offsets_log.rebalance.generation import Generation
from offsets_log.rebalance.rows import (
    REBALANCE_COLUMNS,
    TABLE_COLUMNS,
    VERIFIED_COLUMNS,
    kind_of_row,
    numbers_of_row,
    raw_names,
    rebalance_row,
    short_row,
    verified_row,
    without_untold,
)
from offsets_log.rebalance.storms import Limits, mark_storms
from offsets_log.rebalance.timeline import Timelines
from offsets_log.rebalance.verify import Verification, verify_all
from offsets_log.replay.groups import GROUP_METADATA
from offsets_log.rows.alike import AlikeLines
from offsets_log.rows.asked_names import AskedNames
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import Column, Row
from offsets_log.session.inputs import read_topic_ids
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.session.session import Session


@dataclass(frozen=True, kw_only=True)
class RebalancesAsked:
    """What is asked of rebalances.

    Attributes:
        topic_ids: a file that names topics: a JSON object topic id → name.
        storm: how many generations of a group within how many milliseconds are a storm; a member that returns twice
            within that time flaps.
        verify: whether each assignment is computed again, and rows have `VERIFIED_COLUMNS`.
        topic_partitions: topic → how many partitions it has, for that; others have what assignments show.
    """

    topic_ids: str | None = None
    storm: tuple[int, int] = (5, 300_000)
    verify: bool = False
    topic_partitions: Mapping[str, int] = field(default_factory=dict)


class Rebalances(FewRows):
    """The question, as `questions.question.Lines`; rows are those of groups in turn, in the order of their records."""

    is_bulk = False
    needed = Needed(
        ("group", "generation", "timestamp_ms", "state"),
        ("members", "joined", "left", "moved", "duration_ms"),
    )  # fmt: skip

    def __init__(self, session: Session, asked: RebalancesAsked) -> None:
        self._session, self._asked = session, asked
        self._verified: Mapping[int, Verification] = {}
        if session.inputs.scope.topic:
            session.account.say("-t has no effect: a rebalance is of the whole group")

    @property
    def columns(self) -> Sequence[Column]:
        """Columns of all rows."""
        return (*REBALANCE_COLUMNS, *(VERIFIED_COLUMNS if self._asked.verify else ()))

    @property
    def flat_columns(self) -> Sequence[Column]:
        """The same columns, in which lists are JSON."""
        return [replace(column, sql_type="json") if "<" in column.sql_type else column for column in self.columns]

    @property
    def raw_names(self) -> list[str]:
        """Further columns of some rows, with the bytes of names that are not UTF-8. Raises OffsetsLogError."""
        groups = {entry.group_id: entry for entry in self._entries}
        return sorted({name for entry in groups.values() for name in raw_names(entry)})

    @property
    def short_names(self) -> Sequence[str]:
        """Columns of `short_rows`."""
        return (*TABLE_COLUMNS, *(column.name for column in VERIFIED_COLUMNS))

    def short_rows(self) -> Iterator[Row]:
        """Yield the answer in short, for people: lists as words. Raises OffsetsLogError."""
        for entry in self._entries:
            row = self._told(entry, short_row(entry))
            yield {name: None if value == [] else value for name, value in row.items()}

    def rows(self) -> Iterator[Row]:
        """Yield the answer row by row. Raises OffsetsLogError."""
        return (self._told(entry, rebalance_row(entry)) for entry in self._entries)

    def lines(self, line: Callable[[Row], bytes]) -> Iterator[bytes | memoryview]:
        """Yield the lines of all rows, as `questions.question.Lines.lines`."""
        if self._asked.verify or self._session.inputs.missing_columns:
            yield from map(line, self.rows())
            return
        alike = AlikeLines(line)
        for entry in self._entries:
            yield alike.of(kind_of_row(entry), partial(rebalance_row, entry), numbers_of_row(entry))

    def tell(self) -> None:
        """Remark what is to be known of the answer."""
        session, entries = self._session, self._entries
        if self._asked.verify:
            found = (self._verified[id(entry)] for entry in entries if id(entry) in self._verified)
            verdicts = Counter(str(each.verdict) for each in found)
            session.account.say(
                "assignments: " + (", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()) or "none")
            )
        session.account.finish(
            f"{counted(len(entries), 'generation')} of {counted(len({entry.group_id for entry in entries}), 'group')}, "
            f"{session.inputs.partitions_read}; "
            f"{sum(entry.is_storm for entry in entries)} in storms, "
            f"{sum(bool(entry.flapping) for entry in entries)} with flapping members",
            found=len(entries),
        )

    @cached_property
    def _entries(self) -> list[Generation]:
        """The generations that are shown; read once. What is verified is noted too."""
        session, asked = self._session, self._asked
        shows_group = session.inputs.shows_group if not asked.verify else AskedNames(())
        timelines = Timelines(shows_group)
        selection = Selection(shows_group, record_types=frozenset({GROUP_METADATA}), with_names=True, is_bare=True)
        for log in session.inputs.logs:
            timelines.read(session.engine.selected(log, selection, timelines.wants), session.account.on_damage)
        timelines.name_topics(read_topic_ids(asked.topic_ids), session.inputs.topic_ids)
        count, window_ms = asked.storm
        for entries in timelines.generations.values():
            mark_storms(entries, Limits(count, window_ms=window_ms))
        if asked.verify:
            self._verified = {id(entry): each for entry, each in verify_all(timelines, asked.topic_partitions)}
        return [entry for entry in timelines if session.inputs.shows_group(entry.group_id)]

    def _told(self, entry: Generation, row: Row) -> Row:
        """Return a row with its verdict, and without what its source does not tell."""
        row = without_untold(row, self._missing_columns[entry.offsets_partition])
        return row | verified_row(self._verified.get(id(entry))) if self._asked.verify else row

    @cached_property
    def _missing_columns(self) -> Mapping[int | None, frozenset[str]]:
        """Offsets partition → columns that one source or another of it does not tell."""
        found: dict[int | None, frozenset[str]] = {}
        for log in self._session.inputs.logs:
            number = log.offsets_partition
            found[number] = found.get(number, frozenset()) | log.missing_columns
        return found
