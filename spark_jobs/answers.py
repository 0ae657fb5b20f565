"""What one log answers, at every level that its state tells: its records are replayed once, by the local engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from offsets_log.broker.home import strays_of
from offsets_log.columnar.folds.replay import Replay, Replayed, replay_logs
from offsets_log.columnar.folds.surveys import SurveyedState, SurveyingReplay
from offsets_log.columnar.large import is_large
from offsets_log.columnar.materialize.arrow import SORTED_BY, schema_of, served_table
from offsets_log.columnar.materialize.values import finish as finish_bulk
from offsets_log.columnar.materialize.values import open_offsets
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Seen
from offsets_log.data_directory.decisions import Outcomes
from offsets_log.data_directory.open_transactions import transaction_rows
from offsets_log.errors import Damage, InputError
from offsets_log.events import Event, LogEvent, TailFound
from offsets_log.investigate import state_tables as st
from offsets_log.investigate.groups import groups_rows
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import Uuid
from offsets_log.pipeline import iter_events, replay
from offsets_log.questions.offsets_asked import DOUBTFUL, UNSTABLE
from offsets_log.questions.offsets_tables import with_doubts
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.topic_names import Resolved, TopicNames
from offsets_log.rows.activity import Activity
from offsets_log.rows.lost import lost_until, of_group
from offsets_log.rows.problems import problem_rows
from offsets_log.rows.survey import Survey, describe_tail
from offsets_log.rows.tables import (
    COMPACT_COLUMNS,
    Column,
    Row,
    committed_rows,
    damage_row,
    problem_row,
)
from spark_jobs.levels import LEVELS, SETTLED_COLUMNS, TIMELESS_COLUMNS
from spark_jobs.options import SourceOptions, matcher


@dataclass(frozen=True, slots=True)
class Told:
    """What the driver knows of all logs, which a task cannot.

    Attributes:
        topic_ids: topic id → name.
        count: how many partitions the offsets topic has; None if nothing tells.
        read: offsets partitions that are read.
        outcomes: what tells outcomes of transactions; None where nothing does.
        decides: whether transactions whose outcome is certain are ended.
    """

    topic_ids: Mapping[bytes, str] = field(default_factory=dict)
    count: PartitionCount | None = None
    read: frozenset[int | None] = frozenset()
    outcomes: Outcomes | None = None
    decides: bool = False


NOTHING_TOLD = Told()
Decide = Callable[[PartitionLog, Any, Iterable[OffsetAndMetadata]], None]


class Answers:
    """The answers of a log.

    Args:
        stack: keeps the buffers of kernels.
        replayed: the log replayed by kernels; None to replay it now, by kernels if it is large.
        events: its events, if it has no bytes.
        whole: whether members of groups are asked for, and when groups last wrote.
        surveys: whether records are counted, too.

    Attributes:
        seen: what could not be read, tails, and what is missing.
        found: what was counted; None if it is not asked for.
        records: how many were read.
    """

    def __init__(
        self,
        log: PartitionLog,
        reading: SourceOptions,
        told: Told,
        stack: ExitStack,
        *,
        replayed: tuple[Replayed, Scanner, Sequence[Seen]] | None = None,
        events: Iterator[LogEvent] | None = None,
        whole: bool = True,
        surveys: bool = False,
    ) -> None:
        self.log, self.reading, self.told, self._whole = log, reading, told, whole
        self.found = Survey.of(log) if surveys else None
        self.seen: list[Seen] = []
        self.last_ms: Mapping[str, int] = {}
        self._bulk: tuple[Replayed, Scanner] | None = None
        self._plain: CoordinatorState | None = None
        self._shows = {
            name: matcher(globs) or shows_all for name, globs in (("g", reading.group), ("t", reading.topic))
        }
        if replayed is not None:
            self._bulk = replayed[:2]
            self.seen += replayed[2]
        elif events is None and is_large(log.bytes_to_read):
            kind = SurveyingReplay if surveys else partial(Replay, notes_activity=whole)
            (found,) = replay_logs(
                [log],
                reading.rules,
                note=lambda log: self.seen.append,
                until=self._until,
                release=reading.kafka,
                replay=kind,
            )
            self._bulk = found, stack.enter_context(Scanner())
        if self._bulk is None:
            self._replay_plainly(events or iter_events(log, until=self._until(log), release=reading.kafka))
        else:
            self._begin_in_bulk(*self._bulk)

    def _until(self, log: PartitionLog) -> Any:
        return self.reading.until(log.offsets_partition)

    def _begin_in_bulk(self, replayed: Replayed, scanner: Scanner) -> None:
        if (decide := self._decide) is not None:
            decide(self.log, replayed.state, open_offsets(replayed.layout, replayed.state, scanner))
        self.records = replayed.state.records
        if self.found is not None:
            assert isinstance(replayed.state, SurveyedState)
            replayed.state.tell(self.found)
        self.last_ms = replayed.state.last_activity()

    def _replay_plainly(self, events: Iterator[LogEvent]) -> None:
        self.records, activity = 0, Activity()
        state = replay(self._watched(activity.watch(events)), self.reading.rules, on_damage=self.seen.append)
        if (decide := self._decide) is not None:
            decide(self.log, state, state.iter_pending())
        self._plain = replace(finish(state), missing_columns=self.log.missing_columns)
        self.last_ms = activity.last_ms

    def _watched(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        for event in events if self.found is None else self.found.watch(events):
            self.records += isinstance(event, Event)
            if isinstance(event, TailFound | Missing):
                self.seen.append(event)
            yield event

    @property
    def _lost(self) -> dict[int | None, int]:
        damages = [problem_row(one) for one in self.seen if isinstance(one, Damage)]
        return lost_until([(self.log, self.held.end_offset)], self._missing, damages)

    @property
    def _missing(self) -> list[Missing]:
        return [one for one in self.seen if isinstance(one, Missing)]

    @property
    def _decide(self) -> Decide | None:
        return self.told.outcomes.decide if self.told.decides and self.told.outcomes is not None else None

    # -------------------------------------------------------------------------------------------- states

    @cached_property
    def held(self) -> CoordinatorState:
        """All that is held but, of a large log, the committed offsets."""
        return self._held(with_offsets=False)

    @cached_property
    def _with_offsets(self) -> CoordinatorState:
        return self._held(with_offsets=True)

    def _held(self, *, with_offsets: bool) -> CoordinatorState:
        if self._bulk is None:
            assert self._plain is not None
            return self._plain
        replayed, scanner = self._bulk
        state = finish_bulk(
            replayed.layout, replayed.state, scanner, whole_groups=self._whole, with_offsets=with_offsets
        )
        return replace(state, missing_columns=self.log.missing_columns)

    @cached_property
    def strays(self) -> frozenset[str]:
        """Groups that another partition answers for, which is read too (`broker.home`).

        A coordinator with one cache may answer for them here; each partition answers for itself by its rules.
        """
        number, count, profile = self.log.offsets_partition, self.told.count, self.reading.rules
        if count is None or count.is_guess or number is None or profile.answers_from_one_cache:
            return frozenset()
        homes = strays_of(self.held.groups, count, number)
        return frozenset(group for group, home in homes.items() if home in self.told.read)

    def _shown(self, state: CoordinatorState) -> CoordinatorState:
        shows = self._shows["g"]
        return state.showing(lambda name: shows(name) and name not in self.strays, self._shows["t"])

    @cached_property
    def _names(self) -> _NamesAsked:
        return _NamesAsked(topic_ids_of(self.reading), self.told.topic_ids, self.held.topic_names)

    # -------------------------------------------------------------------------------------------- tables

    def table(self, level: str) -> pa.Table:
        """Return a level's rows, in the order of their keys."""
        return TABLES[level](self)

    def level(self, level: str) -> pa.Table:
        """Return a level with all its columns; those that say what is doubtful no program writes."""
        table = self.table(level)
        if level == "offsets":
            return with_doubts(table, self._lost)
        if level == "groups":
            why = of_group(self._lost[self.log.offsets_partition])
            return table.append_column(DOUBTFUL.name, pa.array([why] * len(table), pa.string()))
        return table

    def offsets(self) -> pa.Table:
        """Return the level ``offsets``."""
        table, orphans = None, self.reading.orphans
        if self._bulk is not None:
            replayed, scanner = self._bulk
            table = served_table(
                replayed.layout,
                replayed.state,
                scanner,
                shows_group=self._shows["g"],
                shows_topic=self._shows["t"],
                orphans=orphans,
                unstable=True,
            )
        if table is None:
            state = self._shown(self._with_offsets)
            rows = committed_rows(state, self.log.offsets_partition, orphans=orphans, unstable=True)
            table = st.table_of([*rows], (*COMPACT_COLUMNS, UNSTABLE))
        elif self.strays:
            table = table.filter(pc.invert(pc.is_in(table["group"].cast(pa.string()), pa.array(self.strays))))
        table = _cast(table, (*COMPACT_COLUMNS, UNSTABLE))
        return table.take(pc.sort_indices(table, SORTED_BY))

    def committed(self) -> pa.Table:
        """Return the same as programs write it."""
        table = self.offsets()
        return table if self.reading.unstable else table.drop_columns([UNSTABLE.name])

    def orphans(self) -> pa.Table:
        """Return committed offsets whose group does not exist."""
        return st.orphans_table(self._shown(self._with_offsets), self.log.offsets_partition)

    def pending(self) -> pa.Table:
        """Return the level ``pending``; with the columns of outcomes if these are told."""
        outcomes = self.told.outcomes
        cells = None if outcomes is None else partial(outcomes.cells, self.log)
        return st.pending_table(self._shown(self.held), self.log.offsets_partition, cells)

    def groups(self) -> pa.Table:
        """Return the level ``groups``."""
        rows = groups_rows(self._shown(self._with_offsets), self.log.offsets_partition, self.last_ms, 0)
        return st.table_of(rows, SETTLED_COLUMNS)

    @cached_property
    def _documents(self) -> list[Row]:
        return st.group_documents(self._shown(self.held), self.log.offsets_partition, self._names)

    def documents(self) -> pa.Table:
        """Return groups as the program ``rebuild`` has them."""
        return st.documents_table(self._documents)

    def members(self) -> pa.Table:
        """Return the level ``members``."""
        return st.members_table(self._documents)

    def transactions(self) -> pa.Table:
        """Return the level ``transactions``."""
        assert self.found is not None
        pending = (*self.held.pending, *self.held.hidden_pending)
        rows = transaction_rows(self.log, self.found, pending, self.told.outcomes, self._until(self.log))
        shown = {value.producer_id for value in self._shown(self.held).pending}
        is_chosen = self.reading.group or self.reading.topic
        return st.table_of([row for row in rows if row["producer_id"] in shown or not is_chosen], TIMELESS_COLUMNS)

    def problems(self) -> pa.Table:
        """Return the level ``problems``."""
        rows = problem_rows(self.seen, self.held.failure, self.reading.profile, self.log.offsets_partition)
        return st.table_of([*rows], LEVELS["problems"])

    def loads(self) -> pa.Table:
        """Return whether a coordinator would load the log."""
        return st.loads_table(self.held.failure, self.log.offsets_partition)

    def facts(self) -> Row:
        """Return what a program tells of the log, as plain data."""
        failure, damages = self.held.failure, [one for one in self.seen if isinstance(one, Damage)]
        outcomes = self.told.outcomes
        return {
            "offsets_partition": self.log.offsets_partition,
            "records": self.records,
            "unsupported": sum(damage.is_unsupported for damage in damages),
            "corrupt": sum(not damage.is_unsupported for damage in damages),
            "damages": [damage_row(damage) for damage in damages],
            "notes": list(self.log.notes),
            "tails": [f"{one.segment.file}: {describe_tail(one)}" for one in self.seen if isinstance(one, TailFound)],
            "lost": [asdict(one) for one in self._missing if one.is_lost],
            "load": None if failure is None else asdict(failure),
            "strays": sorted(self.strays),
            "names": {str(Uuid(topic_id)): name for topic_id, name in self.held.topic_names.items()},
            "asked": self._names.asked(self.told.topic_ids) if "_names" in self.__dict__ else {},
            "decided": None if outcomes is None else told_of_outcomes(outcomes),
        }


TABLES: dict[str, Callable[[Answers], pa.Table]] = {
    "offsets": Answers.offsets,
    "committed": Answers.committed,
    "orphans": Answers.orphans,
    "pending": Answers.pending,
    "groups": Answers.groups,
    "documents": Answers.documents,
    "members": Answers.members,
    "transactions": Answers.transactions,
    "problems": Answers.problems,
    "loads": Answers.loads,
}
"""Tables by their names: levels, and what programs write beside them."""


class _NamesAsked(TopicNames):
    """Names of topics that knows of which ids it was asked."""

    def __init__(self, given: Mapping[bytes, str], told: Mapping[bytes, str], own: Mapping[bytes, str]) -> None:
        super().__init__(given, told, own)
        self._given = {bytes(topic_id) for topic_id in given}
        self._asked: set[bytes] = set()

    def resolve(self, rows: list[Row], subscribed: list[str]) -> Resolved:
        """Do what `TopicNames.resolve` does."""
        self._asked |= {bytes(row["topic_id"]) for row in rows}
        return super().resolve(rows, subscribed)

    def asked(self, told: Mapping[bytes, str]) -> dict[str, str | None]:
        """Return the ids that were asked for, and the names that the log itself knows for them."""
        known = self._given | {bytes(topic_id) for topic_id in told}
        return {str(Uuid(topic_id)): self.names.get(topic_id) for topic_id in self._asked - known}


def shows_all(name: str) -> bool:
    """Show every name."""
    return True


def topic_ids_of(reading: SourceOptions) -> dict[bytes, str]:
    """Return topic id → name, as the reading says. Raises InputError: an id is none."""
    try:
        return {bytes(Uuid.from_text(topic_id)): str(name) for topic_id, name in reading.topic_ids.items()}
    except (ValueError, AttributeError) as error:
        raise InputError(f"topic_ids are no JSON object topic id -> name: {error}") from None


def _cast(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    schema = schema_of(columns)
    return table.select(schema.names).cast(schema)


def told_of_outcomes(outcomes: Outcomes) -> Row:
    """Return what was decided, for `add_outcomes`."""
    return {
        "transactions": dict(outcomes.transactions),
        "offsets": dict(outcomes.offsets),
        "without_marker": outcomes.without_marker,
    }


def add_outcomes(outcomes: Outcomes, told: Row) -> None:
    """Add what a task has decided to what is told of all."""
    outcomes.transactions += Counter(told["transactions"])
    outcomes.offsets += Counter(told["offsets"])
    outcomes.without_marker += [(partition, name) for partition, name in told["without_marker"]]
