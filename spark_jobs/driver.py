"""What the driver finds before tasks read, and tells after them: a session of the library over all logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pyarrow as pa

from offsets_log.columnar.materialize.arrow import table_of_rows
from offsets_log.columnar.shuffle.packed import seen_of
from offsets_log.data_directory.decisions import BOUNDED, Outcomes
from offsets_log.data_directory.share_offsets import SHARE_OFFSET_COLUMNS
from offsets_log.disk.reader import DiskLogs
from offsets_log.errors import Damage, InputError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.questions.offsets_tables import with_lag
from offsets_log.release_names import rules_in_words
from offsets_log.replay.problem import Problem
from offsets_log.rows.tables import Row, damage_row
from offsets_log.session.account import Account
from offsets_log.session.decide import DecideOptions, begin_to_decide, say_of_decided
from offsets_log.session.inputs import Inputs
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.listener import Listener, Remarks
from offsets_log.session.scope import Scope
from offsets_log.session.session import begun_session
from offsets_log.session.share_offsets import share_offsets_of
from spark_jobs.answers import Told, add_outcomes
from spark_jobs.files import FoundFile, LogFiles, find_logs
from spark_jobs.kernels import compile_first
from spark_jobs.options import STREAMED, SourceOptions
from spark_jobs.rows import RECORDS, Piece


@dataclass(frozen=True, slots=True)
class BesideOptions:
    """What is asked of data directories.

    Attributes:
        lag: whether to tell lag; None if the data directories tell it.
        now_ms: the time to which ages count, and by when transactions would have timed out.
        decide: whether to end transactions whose outcome is certain.
        shows_outcomes: whether to tell what becomes of open transactions.
    """

    lag: bool | None = None
    now_ms: int | None = None
    decide: bool = False
    shows_outcomes: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What is read, and what all tasks are told."""

    logs: Sequence[LogFiles]
    told: Told


def plan(inputs: Inputs, reading: SourceOptions) -> Plan:
    """Return what is read; what tasks need of kernels is compiled here.

    Raises:
        InputError: some logs are no files, or topic ids are none.
    """
    count = inputs.offsets_partition_count
    if count is None and not any(segment.is_fetched for log in inputs.logs for segment in log.segments):
        count = inputs.shown_count
    told = Told(inputs.topic_ids | reading.ids, count, frozenset(log.offsets_partition for log in inputs.logs))
    logs = [*map(LogFiles.of, inputs.logs)]
    compile_first(max((files.size_bytes for files in logs), default=0), reading.level)
    return Plan(logs, told)


def plan_reading(reading: SourceOptions) -> Plan:
    """Return the plan of a reading.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    if reading.level == STREAMED[-1]:
        raise InputError(f"the level {reading.level} is for readStream")
    with ExitStack() as stack:
        return plan(Inputs(reading.scope, find_logs(reading, stack)), reading)


def pieces_of(files: LogFiles, reading: SourceOptions, *, is_cut: bool) -> list[Piece]:
    """Return the pieces of a log: one, or of a large one several about as large as a read says.

    Up to a time only one, for nobody knows where the first record beyond it is.
    """
    count = -(-files.size_bytes // reading.cut_bytes) if is_cut and reading.until_time is None else 1
    return [Piece(files, number, max(count, 1)) for number in range(max(count, 1))]


def pieces_to_read(found: Plan, reading: SourceOptions) -> list[Piece]:
    """Return what the tasks of a read get: whole logs, but for records, of which no task needs the others'."""
    is_cut = reading.level in RECORDS
    return [piece for files in found.logs for piece in pieces_of(files, reading, is_cut=is_cut)]


@dataclass(frozen=True, slots=True)
class _Home:
    """The broker whose copy each log is, which tasks know by its files alone."""

    by_file: dict[str, str]

    def __call__(self, log: PartitionLog) -> str:
        return self.by_file.get(log.segments[0].file, "")


class _Account(Account):
    """An account that keeps the rows of the quarantine."""

    def __init__(self, inputs: Inputs, stack: ExitStack, listener: Listener) -> None:
        super().__init__(inputs, stack, listener)
        self.kept: list[Row] = []

    def open_quarantine(self, file: str, stack: ExitStack) -> None:
        """Do nothing: a table is made of the rows."""

    def keep(self, damage: Damage) -> None:
        self.kept.append(damage_row(damage))


class Driver:
    """The session of a program.

    Args:
        scope: as of the reading; a strict one raises what cannot be read.
        stack: closes what is opened.

    Attributes:
        remarks: what was said.

    Raises:
        InputError: less than the whole log is read, and transactions are to be decided at its end.
    """

    def __init__(
        self, scope: Scope, opened: DiskLogs, reading: SourceOptions, asked: BesideOptions, stack: ExitStack
    ) -> None:
        if asked.decide and scope.is_bounded:
            raise InputError(BOUNDED)
        self._reading, self._asked, self.remarks = reading, asked, Remarks()
        self.session = begun_session(Inputs(scope, opened), self.remarks, stack, accounting=_Account)
        self._lag = lag_logs(self.session, asked.lag)
        self._outcomes: Outcomes | None = None

    @property
    def plan(self) -> Plan:
        """What is read; tasks are told outcomes too, if they are asked for."""
        found, inputs = plan(self.session.inputs, self._reading), self.session.inputs
        if self._asked.decide or self._asked.shows_outcomes:
            self._outcomes = begin_to_decide(self.session, DecideOptions(self._asked.decide, self._asked.now_ms))
        if self._outcomes is None:
            return found
        logs = (log for log in inputs.logs if log.segments)
        homes = _Home({FoundFile.of(log.segments[0]).segment.file: inputs.home_of(log) for log in logs})
        states = replace(inputs.transaction_states, damages=[])
        sent = Outcomes(states, self._asked.now_ms, homes)
        return replace(found, told=replace(found.told, outcomes=sent, decides=self._asked.decide))

    def with_lag(self, offsets: pa.Table) -> pa.Table:
        """Append the columns of lag, if they are told."""
        return offsets if self._lag is None else with_lag(offsets, self._lag, self._asked.now_ms)

    @property
    def tells_lag(self) -> bool:
        """Whether there is lag to tell."""
        return self._lag is not None

    @property
    def share_offsets(self) -> pa.Table | None:
        """Where share groups are; None without a copy of ``__share_group_state``, or where a bound ends it."""
        found = share_offsets_of(self.session, self._lag)
        return None if found is None else table_of_rows(found.rows(), SHARE_OFFSET_COLUMNS)

    def take(self, facts: Iterable[Row]) -> None:
        """Tell what tasks have seen of logs. Raises OffsetsLogError: the scope is strict, and something is wrong."""
        account, logs = self.session.account, {log.offsets_partition: log for log in self.session.inputs.logs}
        for one in facts:
            number = one["offsets_partition"]
            note = account.noting(logs.get(number) or PartitionLog(number, ()))
            for seen in one["seen"]:
                note(seen_of(seen))
            for words in one["said"]:
                account.say_once(words)
            account.is_wrong |= one["is_wrong"]
            for failure in one["unloaded"]:
                account.unloaded[number] = Problem(**failure)
            if self._outcomes is not None and one["decided"] is not None:
                add_outcomes(self._outcomes, one["decided"])

    def finish(self, words: str, partitions: Iterable[int | None], *, tells_loads: bool) -> None:
        """Say the result, and what it lacks.

        Args:
            partitions: those that were read.
            tells_loads: whether it is not told yet which of them a coordinator would not load.
        """
        say_of_lag(self.session, self._lag)
        say_of_decided(self.session)
        if tells_loads:
            self.session.account.tell_loads(self._reading.profile, {*partitions})
        self.session.account.finish(f"{words}; by the rules of {rules_in_words(self._reading.profile)}")

    @property
    def damages(self) -> list[Row]:
        """What could not be read, as rows of the quarantine."""
        assert isinstance(self.session.account, _Account)
        return self.session.account.kept
