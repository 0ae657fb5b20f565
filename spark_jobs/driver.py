"""What the driver finds before tasks read, and tells after them: a session of the library over all logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from offsets_log.columnar.shuffle.packed import seen_of
from offsets_log.data_directory.decisions import BOUNDED, Outcomes
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.release_names import rules_in_words
from offsets_log.replay.problem import Problem
from offsets_log.rows.tables import Row
from offsets_log.session.decide import DecideOptions, begin_to_decide, say_of_decided
from offsets_log.session.inputs import Inputs
from offsets_log.session.lag import lag_logs, say_of_lag
from offsets_log.session.listener import Remarks
from offsets_log.session.session import begun_session
from spark_jobs.answers import OFFSET_OF, Told, add_outcomes
from spark_jobs.files import LogFiles, find_logs
from spark_jobs.kernels import compile_first
from spark_jobs.options import STREAMED, SourceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """The options of a program.

    Attributes:
        output: the directory to make.
        strict: write nothing if something could not be read.
        lag: whether to tell lag; None if the data directories tell it.
        now_ms: the time to which ages count, and by when transactions would have timed out.
        decide: whether to end transactions whose outcome is certain.
    """

    reading: SourceOptions
    output: str
    strict: bool = False
    lag: bool | None = None
    now_ms: int | None = None
    decide: bool = False


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
    is_fetched = any(segment.is_fetched for log in inputs.logs for segment in log.segments)
    if count is None and reading.level not in OFFSET_OF and not is_fetched:
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


def parts_to_read(logs: Sequence[LogFiles], reading: SourceOptions) -> list[LogFiles]:
    """Return what the tasks of a read get: whole logs, but for records of large ones, of which no task needs all.

    Up to a time only one task reads a log, for nobody knows where the first record beyond it is.
    """
    is_cut = reading.level in OFFSET_OF and reading.until_time is None
    return [part for files in logs for part in (files.cut(reading.cut_bytes) if is_cut else [files])]


def _home(by_file: Mapping[str, str], log: PartitionLog) -> str:
    """Return the broker whose copy a log is, which tasks know by its files alone."""
    return by_file.get(log.segments[0].file, "")


class Driver:
    """The session of a program.

    Args:
        stack: closes what is opened.
        shows_outcomes: whether to tell what becomes of open transactions.

    Attributes:
        remarks: what was said.
        plan: what is read; tasks are told outcomes too, if they are asked for.
        lag: what tells how far offsets are from their partitions' ends; None where nothing does, or nobody asks.

    Raises:
        InputError: nothing was found; less than the whole log is read, and transactions are to be decided at its end.
    """

    def __init__(self, order: JobOptions, stack: ExitStack, *, shows_outcomes: bool) -> None:
        scope = replace(order.reading.scope, strict=order.strict)
        if order.decide and scope.is_bounded:
            raise InputError(BOUNDED)
        inputs = Inputs(scope, find_logs(order.reading, stack))
        self._profile, self.remarks = order.reading.profile, Remarks()
        self.session = begun_session(inputs, self.remarks, stack)
        self.session.account.keeps_pieces = "; the level problems names the pieces"
        self.lag = lag_logs(self.session, order.lag)
        self.plan = plan(inputs, order.reading)
        self._outcomes: Outcomes | None = None
        if order.decide or shows_outcomes:
            self._outcomes = begin_to_decide(self.session, DecideOptions(order.decide, order.now_ms))
        if self._outcomes is not None:
            logs = zip(self.plan.logs, inputs.logs, strict=True)
            by_file = {first.file: inputs.home_of(log) for files, log in logs for first in files.log.segments[:1]}
            sent = Outcomes(replace(inputs.transaction_states, damages=[]), order.now_ms, partial(_home, by_file))
            told = replace(self.plan.told, outcomes=sent, decides=order.decide)
            self.plan = Plan(self.plan.logs, told)

    def take(self, facts: Iterable[Row]) -> None:
        """Tell what tasks have seen of logs. Raises OffsetsLogError: the scope is strict, and something is wrong."""
        account, logs = self.session.account, {log.offsets_partition: log for log in self.session.inputs.logs}
        for one in facts:
            number = one["offsets_partition"]
            note = account.noting(logs[number])
            for seen in one["seen"]:
                note(seen_of(seen))
            for words in one["said"]:
                if words not in self.remarks:
                    account.say(words)
            account.is_wrong |= one["is_wrong"]
            for failure in one["unloaded"]:
                account.unloaded[number] = Problem(**failure)
            if self._outcomes is not None and one["decided"] is not None:
                add_outcomes(self._outcomes, one["decided"])

    def finish(self, words: str, *, tells_loads: bool) -> None:
        """Say the result, and what it lacks.

        Args:
            tells_loads: whether it is not told yet which partitions a coordinator would not load.
        """
        session, profile = self.session, self._profile
        say_of_lag(session, self.lag)
        say_of_decided(session)
        if tells_loads:
            session.account.tell_loads(profile, {log.offsets_partition for log in session.inputs.logs})
        session.account.finish(f"{words}; by the rules of {rules_in_words(profile)}")
