"""What one log answers: the library's questions, asked in a task that has this log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from offsets_log.columnar.folds.replay import Replay, Replayed
from offsets_log.columnar.materialize.arrow import schema_of, table_of_rows
from offsets_log.columnar.scan.reading import Note, Seen
from offsets_log.columnar.shuffle.packed import told_of
from offsets_log.coordinator_document import Memory
from offsets_log.data_directory.decisions import Outcomes
from offsets_log.disk.dumps import Dumps
from offsets_log.disk.finder import Finder
from offsets_log.disk.reader import DiskLogs
from offsets_log.errors import Damage, InputError
from offsets_log.events import TailFound
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import Uuid
from offsets_log.questions.groups import Groups, GroupsAsked
from offsets_log.questions.history import HistoryAsked, OffsetHistory
from offsets_log.questions.offsets import Offsets
from offsets_log.questions.offsets_asked import OffsetsAsked
from offsets_log.questions.problems import Problems
from offsets_log.questions.question import Question
from offsets_log.questions.raw_records import RawRecords
from offsets_log.questions.records import Records
from offsets_log.questions.state import State, StateAsked
from offsets_log.questions.transactions import Transactions
from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.profile import Profile
from offsets_log.rows.asked_names import AskedNames
from offsets_log.rows.groups import GROUP_COLUMNS, MEMBERS_COUNT, nested_member
from offsets_log.rows.tables import COMPACT_COLUMNS, OFFSETS_PARTITION_COLUMN, Column, Row, partition_name, to_json
from offsets_log.session.account import Account
from offsets_log.session.engine import Engine
from offsets_log.session.inputs import Inputs
from offsets_log.session.listener import Remarks
from offsets_log.session.scope import Scope
from offsets_log.session.session import Session
from spark_jobs.files import LogFiles
from spark_jobs.levels import LEVELS
from spark_jobs.options import SourceOptions

LOAD_COLUMNS = (
    OFFSETS_PARTITION_COLUMN,
    Column("ok", "boolean", "whether a coordinator would load it"),
    Column("record_offset", "bigint", "the record that prevents it"),
    Column("rule", "string", "the rule by which it does"),
    Column("problem", "string", "what is wrong, in words"),
)
DOCUMENT_COLUMNS = (*GROUP_COLUMNS, MEMBERS_COUNT, Column("document", "json", "all that `rebuild` tells about it"))
"""Groups with all that `rebuild` tells."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the driver knows of all logs, which a task cannot.

    Attributes:
        topic_ids: topic id → name, also those that the reading gives.
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


class OneLog:
    """A log that is open in a task, which the library's questions are asked of.

    Args:
        stack: closes what questions open.
        joined: the log replayed in pieces, and what was seen in it; None to replay it when that is asked for.
        damages: what could not be read before there was a log.
    """

    def __init__(
        self,
        log: PartitionLog,
        reading: SourceOptions,
        told: Told,
        stack: ExitStack,
        *,
        joined: tuple[Replayed, Sequence[Seen]] | None = None,
        damages: Sequence[Damage] = (),
    ) -> None:
        self.log, self.reading, self.told = log, reading, told
        self._stack, self._damages = stack, damages
        self.replayed = joined

    def session(self) -> Session:
        """Begin a session; what is seen in it and said of it is its own."""
        inputs = _Inputs(self.reading.scope, self.log, self.told, self._stack)
        inputs.check(frozenset())
        account = _Account(inputs, self._stack)
        for damage in self._damages:
            account.on_damage(damage)
        return Session(inputs, account, _Engine(inputs, account, self))

    def tables(self, level: str) -> Iterator[pa.Table]:
        """Yield the rows of a level, with all columns of `levels.LEVELS`."""
        names = [column.name for column in LEVELS[level]]
        for table in QUESTIONS[level](self.session(), self.reading).tables():
            yield table.select(names)

    def table(self, level: str) -> pa.Table:
        """Return the same as one table, with the types of its columns."""
        schema = schema_of(LEVELS[level])
        return pa.concat_tables([table.cast(schema) for table in self.tables(level)] or [schema.empty_table()])


def _state(table: str) -> Callable[[Session, SourceOptions], Question]:
    return lambda session, reading: State(session, StateAsked(profile=reading.profile, lag=False), table)


def _offsets(session: Session, reading: SourceOptions) -> Offsets:
    asked = OffsetsAsked(profile=reading.profile, orphans=reading.orphans, unstable=True, lag=False, doubtful=True)
    return Offsets(session, asked)


def _groups(session: Session, reading: SourceOptions) -> Groups:
    return Groups(session, GroupsAsked(profile=reading.profile, now_ms=0, lag=False, doubtful=True))


QUESTIONS: dict[str, Callable[[Session, SourceOptions], Question]] = {
    "offsets": _offsets,
    "pending": _state("pending"),
    "groups": _groups,
    "members": _state("members"),
    "transactions": lambda session, reading: Transactions(session, reading.profile, now_ms=0),
    "history": lambda session, reading: OffsetHistory(session, HistoryAsked(profile=reading.profile)),
    "problems": lambda session, reading: Problems(session, reading.profile),
    "records": lambda session, reading: Records(session),
    "raw_records": lambda session, reading: RawRecords(session),
}
"""Level → the question of the library that it is."""
OFFSET_OF = {"records": "record_offset", "raw_records": "offset"}
"""Level of which no task needs the whole log → the column of a record's offset."""


def rows(files: LogFiles, reading: SourceOptions, told: Told) -> Iterator[pa.Table]:
    """Yield the rows of a log, or of records of a part of it, at the reading's level, with all columns of `LEVELS`.

    Raises:
        InputError: a file cannot be read, or has what the part behind it has too.
    """
    with ExitStack() as stack:
        for table in OneLog(files.open(stack), reading, told, stack).tables(reading.level):
            last = None if files.following is None else pc.max(table[OFFSET_OF[reading.level]]).as_py()
            if last is not None and last >= files.following:
                raise InputError(
                    f"segments overlap at offset {files.following}: give the option cut_bytes more than the log's size",
                    file=files.log.segments[-1].file,
                )
            yield table


class _Inputs(Inputs):
    """One log of several that tasks read, and what the driver knows of the others."""

    def __init__(self, scope: Scope, log: PartitionLog, told: Told, stack: ExitStack) -> None:
        super().__init__(scope, DiskLogs([log], Dumps(None), Finder((), stack), stack))
        self.shows_group = AskedNames(scope.group)  # which names other logs hold is not known: every glob is one
        self.read_elsewhere = told.read
        self._told = told

    @property
    def topic_ids(self) -> dict[bytes, str]:
        return dict(self._told.topic_ids)

    @property
    def offsets_partition_count(self) -> PartitionCount | None:
        return self._told.count

    def outcomes(self, now_ms: int | None) -> Outcomes | None:
        return self._told.outcomes


class _Account(Account):
    """An account that keeps what was seen, for the driver's to tell.

    Attributes:
        remarks: what else was said.
        seen: damage, tails and missing log, in their order.
    """

    def __init__(self, inputs: Inputs, stack: ExitStack) -> None:
        self.remarks, self.seen = Remarks(), list[Seen]()
        super().__init__(inputs, stack, self.remarks)
        self.sums_up = True

    def on_damage(self, damage: Damage) -> None:
        self.seen.append(damage)
        super().on_damage(damage)

    def tell_tail(self, log: PartitionLog, seen: TailFound) -> None:
        self.seen.append(seen)
        super().tell_tail(log, seen)

    def tell(self, seen: TailFound | Missing) -> None:
        if isinstance(seen, Missing):
            self.seen.append(seen)
        super().tell(seen)


class _Engine(Engine):
    """An engine that replays a log by kernels once, for all questions that need no more of it."""

    def __init__(self, inputs: Inputs, account: Account, of: OneLog) -> None:
        super().__init__(inputs, account)
        self._of = of

    def is_large_for(self, largest: str) -> bool:
        return self._of.replayed is not None or super().is_large_for(largest)

    def replays(
        self, profile: Profile, note: Callable[[PartitionLog], Note], replay: Callable[..., Replay]
    ) -> Iterator[Replayed]:
        if getattr(replay, "func", replay) is not Replay:
            yield from super().replays(profile, note, replay)
            return
        kept = self._of.replayed
        if kept is None or not (replay is Replay or kept[0].state.arrays.scan_state.notes_activity):
            seen: list[Seen] = []
            (replayed,) = super().replays(profile, lambda log: seen.append, replay)
            kept = self._of.replayed = replayed, seen
        for one in kept[1]:
            note(kept[0].log)(one)
        yield kept[0]


Written = tuple[dict[str, pa.Table], Row]
"""Folder → its table, and what the driver is told of the log, as plain data."""


def compacted(one: OneLog) -> Written:
    """Return what `compact` writes of a log."""
    of = one.reading
    asked = OffsetsAsked(
        profile=of.profile, orphans=of.orphans, unstable=of.unstable, lag=False, decide=one.told.decides
    )  # fmt: skip
    question = Offsets(session := one.session(), asked)
    schema = schema_of(question.columns)
    tables = [table.select(schema.names).cast(schema) for table in question.tables()]
    return {"": pa.concat_tables(tables)}, _facts(session, one)


def rebuilt(one: OneLog) -> Written:
    """Return what `rebuild` writes of a log."""
    asked = StateAsked(profile=one.reading.profile, lag=False, decide=one.told.decides)
    question = State(session := one.session(), asked)
    document, memory = question.document, question.memory
    for words in memory.warnings():
        session.account.say(words)
    load = document["loads"][partition_name(one.log.offsets_partition)]
    load |= {"offsets_partition": one.log.offsets_partition}
    groups = [row | {"members": len(row["members"]), "document": to_json(row)} for row in document["groups"]]
    tables = {
        "groups": _table(groups, DOCUMENT_COLUMNS),
        "members": _table(map(nested_member, memory.rows(document, "members")), memory.columns("members")),
        "orphans": _table(document["orphans"], COMPACT_COLUMNS),
        **{name: _table(memory.rows(document, name), memory.columns(name)) for name in ("offsets", "pending")},
    }
    return tables | {"loads": _table([load], LOAD_COLUMNS)}, _facts(session, one) | _names(memory, one.told)


def looked_at(one: OneLog) -> Written:
    """Return no table, only what is seen in a log."""
    session = one.session()
    for _ in session.engine.load_all(one.reading.rules, whole_groups=False):
        pass
    return {}, _facts(session, one)


def _table(rows: Any, columns: Sequence[Column]) -> pa.Table:
    """Return rows as a table of these columns alone: there is no room for raw bytes of names that are not UTF-8."""
    return table_of_rows([*rows], columns).select([column.name for column in columns])


def _facts(session: Session, one: OneLog) -> Row:
    account, outcomes = session.account, one.told.outcomes
    assert isinstance(account, _Account)
    return {
        "offsets_partition": one.log.offsets_partition,
        "seen": [*map(told_of, account.seen)],
        "said": account.remarks,
        "is_wrong": account.is_wrong,
        "unloaded": [asdict(failure) for failure in account.unloaded.values()],
        "decided": outcomes and (outcomes.transactions, outcomes.offsets, outcomes.without_marker),
    }


def _names(memory: Memory, told: Told) -> Row:
    """Return the names of topics that a log knows, and the ids that it asked for, with its own names for them."""
    own, known = memory.parts[0].state.topic_names, memory.names.names
    return {
        "names": {str(Uuid(topic_id)): name for topic_id, name in own.items()},
        "asked": {str(Uuid(topic_id)): known.get(topic_id) for topic_id in memory.names.asked - told.topic_ids.keys()},
    }


def add_outcomes(outcomes: Outcomes, decided: Sequence[Any]) -> None:
    """Add what a task has decided to what is told of all."""
    transactions, offsets, without_marker = decided
    outcomes.transactions += Counter(transactions)
    outcomes.offsets += Counter(offsets)
    outcomes.without_marker += map(tuple, without_marker)
