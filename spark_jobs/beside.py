"""What lies beside the offsets topic in data directories, here or in a store: the driver reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from offsets_log.columnar.choose.selected import selected_events
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.large import is_large
from offsets_log.columnar.materialize.arrow import table_of_rows
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.decisions import BOUNDED, NO_STATES, Outcomes
from offsets_log.data_directory.lag import BOUNDED as LAG_BOUNDED
from offsets_log.data_directory.lag import NO_LOGS
from offsets_log.data_directory.lag_columns import lag_table
from offsets_log.data_directory.share_offsets import (
    SHARE_OFFSET_COLUMNS,
    STATE_PARTITION_METADATA,
    ShareGroupTopics,
    ShareOffsets,
)
from offsets_log.disk.beside import Beside
from offsets_log.disk.reader import DiskLogs
from offsets_log.errors import Damage, InputError, OffsetsLogError
from offsets_log.events import Event
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.internal_topics import SHARE_GROUP_STATE
from offsets_log.messages.registry import decode_coordinator_record, record_type_of
from offsets_log.pipeline import iter_events
from spark_jobs.account import Account
from spark_jobs.answers import Told, shows_all
from spark_jobs.files import FoundFile
from spark_jobs.options import SourceOptions, matcher


@dataclass(frozen=True, slots=True)
class BesideOptions:
    """What is asked of data directories.

    Attributes:
        lag: whether to tell lag; None if the data directories tell it.
        now_ms: the time to which ages count, and by when transactions would have timed out.
        decide: whether to end transactions whose outcome is certain.
    """

    lag: bool | None = None
    now_ms: int | None = None
    decide: bool = False


@dataclass(frozen=True, slots=True)
class Home:
    """The broker whose copy each log is, which tasks know by its files alone."""

    by_file: dict[str, str]

    def __call__(self, log: PartitionLog) -> str:
        """Return it."""
        return self.by_file.get(log.segments[0].file, "")


class Directories:
    """The data directories that are read, and what they tell beside the offsets topic.

    Raises:
        InputError: less than the whole log is read, and transactions are to be decided at its end.
    """

    def __init__(self, opened: DiskLogs, reading: SourceOptions, asked: BesideOptions) -> None:
        self._opened, self._reading, self._asked = opened, reading, asked
        self._beside = Beside(opened)
        self._is_bounded = bool(reading.until_offset) or reading.until_time is not None
        if asked.decide and self._is_bounded:
            raise InputError(BOUNDED)

    @cached_property
    def logs(self) -> CopiedLogs | None:
        """What tells the ends of partitions; None if lag is not told."""
        is_told = self._asked.lag is not False and bool(self._beside.copied_logs)
        return self._beside.copied_logs if is_told else None

    @cached_property
    def outcomes(self) -> Outcomes | None:
        """What tells outcomes of transactions; None if these are not told."""
        if self._is_bounded or self._beside.outcomes(self._asked.now_ms) is None:
            return None
        homes = {
            FoundFile.of(log.segments[0]).path: self._beside.home_of(log) for log in self._opened.logs if log.segments
        }
        states = replace(self._beside.transaction_states, damages=[])  # which is sent to tasks
        return Outcomes(states, self._asked.now_ms, Home(homes))

    def told(self, told: Told) -> Told:
        """Return what tasks are told, with this."""
        return replace(told, outcomes=self.outcomes, decides=self._asked.decide)

    def with_lag(self, offsets: pa.Table) -> pa.Table:
        """Append the columns of lag, if they are told."""
        if self.logs is None:
            return offsets
        lags = lag_table(self.logs, offsets, self._asked.now_ms)
        for field in lags.schema:
            offsets = offsets.append_column(field, lags[field.name])
        return offsets

    def share_offsets(self) -> pa.Table | None:
        """Return where share groups are; None without a copy of ``__share_group_state``, or where a bound ends it."""
        if self._is_bounded or not self._beside.copied_logs.partition_count(SHARE_GROUP_STATE):
            return None
        shows = {name: matcher(globs) for name, globs in (("g", self._reading.group), ("t", self._reading.topic))}
        found = ShareOffsets(
            self._beside.share_states,
            self._topics({key.group for key in self._beside.share_states.by_key}),
            self._beside.topic_ids,
            self.logs,
            is_whole=self._beside.has_all_partitions,
            shows_group=shows["g"] or shows_all,
            shows_topic=shows["t"] or shows_all,
        )
        return table_of_rows(found.rows(), SHARE_OFFSET_COLUMNS)

    def _topics(self, groups: set[str]) -> ShareGroupTopics:
        """Return what records of these groups say of their topics."""
        topics = ShareGroupTopics()
        selection = Selection(groups.__contains__, record_types=frozenset())
        for log in self._opened.logs if groups else ():
            is_bulk = is_large(log.bytes_to_read, "choose.choice.choose")
            release = self._reading.kafka
            for event in (
                selected_events(log, selection, release=release) if is_bulk else iter_events(log, release=release)
            ):
                if isinstance(event, Event) and record_type_of(event.record.key) == STATE_PARTITION_METADATA:
                    with suppress(OffsetsLogError):  # the account has it
                        record = event.record
                        topics.take(decode_coordinator_record(record.key, record.value, self._reading.kafka))
        return topics

    def tell(self, account: Account) -> None:
        """Add what was said of these directories, and what could not be read."""
        opened, asked = self._opened, self._asked
        account.words += self._beside.clusters.notes
        account.is_wrong |= self._beside.clusters.are_mixed or opened.has_broken_files or opened.copies_in_doubt
        if self.logs is not None:
            account.words += [*([LAG_BOUNDED] if self._is_bounded else []), *self.logs.in_words()]
        elif asked.lag:
            account.words.append(NO_LOGS)
        if asked.decide:
            account.words += [NO_STATES] if self.outcomes is None else self.outcomes.in_words()
        for damage in (*opened.damages, *self._damages()):
            account.on_damage(damage)

    def _damages(self) -> Iterator[Damage]:
        if self.logs is not None:
            yield from self.logs.damages
        if self.outcomes is not None:
            yield from self._beside.transaction_states.damages
        if not self._is_bounded and self._beside.copied_logs.partition_count(SHARE_GROUP_STATE):
            yield from self._beside.share_states.damages
