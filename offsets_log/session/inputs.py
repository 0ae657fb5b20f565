"""The inputs of a run: opened logs, the bounds and filters asked for, and remarks to make before reading."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterable, Iterator, Set
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offsets_log.columnar.large import is_large
from offsets_log.disk.beside import Beside
from offsets_log.disk.folder import DirectoryName
from offsets_log.disk.reader import DiskLogs
from offsets_log.errors import InputError
from offsets_log.events import Until
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog, batches_of
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.messages.named_groups import names_group
from offsets_log.messages.other_topic import first_groups, is_of_another_topic
from offsets_log.replay.partition_count import PartitionCount, count_of, count_of_groups
from offsets_log.replay.partition_for import partition_for
from offsets_log.rows.asked_names import AskedNames, idle_options
from offsets_log.rows.shown import Shown
from offsets_log.rows.tables import partition_name
from offsets_log.session.scope import Scope
from offsets_log.session.stops import is_of_wrong_clock, of_unread
from offsets_log.words import counted, shown_time

if TYPE_CHECKING:
    from offsets_log.columnar.scan.time_bound import Stop
    from offsets_log.replay.coordinator_state import CoordinatorState

TOLD_BY = {
    "option": "--partitions says",
    "metadata": "the cluster's metadata says",
    "checkpoints": "the data directory shows",
}
"""Source of `Inputs.offsets_partition_count` → who says so."""

SHOWN_BY_GROUPS = "the groups here show"
"""Who says so else."""

WHAT_TO_GIVE = f"Give a broker's data directory (log.dirs), or of its directories those named {OFFSETS_TOPIC}-N"

WALKED_BYTES = 4 << 20
"""The largest segment whose headers are all read to find its last batch; for others an index tells where that is."""


class Inputs(Beside):
    """The opened logs and what lies beside them, and the bounds and filters for them.

    Attributes:
        scope: what is read, and how far.
        files: real paths of the files that were opened, which no output may replace.
        absent: partitions that the data directory knows and that have no segment.
        partitions: how many partitions were read.
        are_open: whether the logs' files are.
        damages: what could not be read of dumps and archives when they were opened.
        has_broken_files, copies_in_doubt: what `DiskLogs` says.
        locate: sets the position of damage in a dump to its line there.
        shows_group: whether ``--group`` shows a group of this name.
        shows_topic: whether ``--topic`` shows a topic of this name.
        read_elsewhere: offsets partitions of the same copy that others read.
    """

    read_elsewhere: Collection[int | None] = ()

    def __init__(self, scope: Scope, opened: DiskLogs) -> None:
        super().__init__(opened)
        self.scope = scope
        self.files = opened.files
        self.absent = opened.absent
        self.damages = opened.damages
        self.has_broken_files = opened.has_broken_files
        self.copies_in_doubt = opened.copies_in_doubt
        self.partitions = len(opened.logs)
        self.are_open = True
        self.locate = opened.locate
        self.shows_group = AskedNames(scope.group, self.holds_group)
        self.shows_topic = AskedNames(scope.topic)
        self._stops: dict[Any, list[tuple[PartitionLog, Stop]]] = {}

    def holds_group(self, name: str) -> bool:
        """Return whether the logs are known to name a group exactly so."""
        return any(names_group(log, name) for log in self.logs)

    def close_logs(self) -> None:
        """Close the logs' files, where they are read in another way from here on."""
        self._opened.close()
        self.are_open = False

    @property
    def offsets_partition_count(self) -> PartitionCount | None:
        """How many partitions the offsets topic has, by --partitions, the metadata or checkpoints; None if none tells.

        Partitions without a gap among them are all, where checkpoints name some that are missing.
        """
        if self.scope.partitions is not None:
            return PartitionCount(self.scope.partitions, "option")
        told = None if self.metadata is None else self.metadata.partition_count(OFFSETS_TOPIC)
        if told is not None:
            return PartitionCount(told, "metadata")
        known = {*(log.offsets_partition for log in self.logs), *self.named_partitions}
        return PartitionCount(len(known), "checkpoints") if self.absent and known == set(range(len(known))) else None

    def count_of(self, states: Iterable[tuple[int | None, CoordinatorState]]) -> PartitionCount:
        """Return the same; where nothing tells, what was loaded shows it."""
        return self.offsets_partition_count or count_of(states, self.named_partitions)

    def count_of_groups(self, found: Iterable[tuple[int | None, Iterable[str]]]) -> PartitionCount:
        """Return the same for the groups of each offsets partition."""
        return self.offsets_partition_count or count_of_groups(found, self.named_partitions)

    @property
    def named_partitions(self) -> set[int]:
        """Partitions that the data directories name, whether they were read or not."""
        absent = (missing.offsets_partition for missing in self.absent)
        return self._opened.named_partitions.union(number for number in absent if number is not None)

    @property
    def idle_filters(self) -> list[str]:
        """The filters that fitted nothing while others did, as they may be given."""
        return [*idle_options("-g", self.shows_group), *idle_options("-t", self.shows_topic)]

    def iter_of_names(self) -> Iterator[str]:
        """Yield what there is to say of names that the filters are, or nearly are."""
        yield from self.shows_group.remarks("-g")
        yield from self.shows_topic.remarks("-t", "topic")

    def iter_elsewhere(self, groups: Iterable[str]) -> Iterator[str]:
        """Yield a sentence for each group that belongs to a partition that was not read, or that nobody can tell.

        Args:
            groups: names that nothing here has.
        """
        asked = [*groups]
        read = {log.offsets_partition for log in self.logs}
        if not asked or None in read:
            return
        count, shown_by = self.count_shown()
        if not count and self.are_open:
            yield (
                f"how many partitions {OFFSETS_TOPIC} has is not known, so a group may belong to one that was not "
                "read: offsets-log where GROUP --partitions N says to which"
            )
        for group in asked if count else ():
            if (home := partition_for(group, count)) not in read:
                yield f"{group} belongs to offsets partition {home} of {count} (as {shown_by}), which was not read"

    def count_shown(self) -> tuple[int, str]:
        """Return how many offsets partitions there are, 0 if that is not known, and what says so."""
        found = self.shown_count
        return (0, "") if found.is_guess else (found.number, TOLD_BY.get(found.source, SHOWN_BY_GROUPS))

    @cached_property
    def shown_count(self) -> PartitionCount:
        """How many offsets partitions there are; where nothing tells, the first groups of each log show it."""
        if (told := self.offsets_partition_count) is not None:
            return told
        logs = (log for log in self.logs if self.are_open and log.offsets_partition is not None)
        return count_of_groups(((log.offsets_partition, first_groups(log)) for log in logs), self.named_partitions)

    @property
    def partitions_read(self) -> str:
        """The number of partitions, in words."""
        return counted(self.partitions, "partition")

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said of the inputs, and of bounds that leave out nothing or too much, before an answer."""
        return (*self.iter_unread(), *self.iter_idle_bounds(), *self.remarks)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is said of the inputs, whatever is asked of them."""
        return (*self._opened.notes, *(note for log in self.logs for note in log.notes))

    @property
    def shown(self) -> Shown:
        """Which records ``--group`` and ``--topic`` ask for."""
        return Shown(self.shows_group if self.scope.group else None, self.shows_topic if self.scope.topic else None)

    def iter_starts(self) -> Iterator[str]:
        """Yield a sentence for each thing that the newest broker's start stumbles over in the data directories.

        None is known once the files are closed.
        """
        from offsets_log.broker.shutdowns import iter_starts
        from offsets_log.replay.profile import MODERN

        return iter_starts(self.logs if self.are_open else (), MODERN)

    @property
    def missing_columns(self) -> frozenset[str]:
        """Columns that one log or another does not tell."""
        return frozenset().union(*(log.missing_columns for log in self.logs))

    def until(self, log: PartitionLog) -> Until:
        """Return where the replay of this partition stops."""
        offsets = [
            offset
            for partition, offset in self.scope.until_offset
            if partition is None or partition == log.offsets_partition
        ]
        return Until(min(offsets, default=None), self.scope.until_time)

    def bounded(self, until_offset: tuple[tuple[int | None, int], ...], until_time: int | None) -> Inputs:
        """Return the same logs with other bounds, about which no remarks are made."""
        other = copy(self)
        other.scope = replace(self.scope, until_offset=until_offset, until_time=until_time)
        return other

    def asking(self, scope: Scope) -> Inputs:
        """Return the same logs for another question about them: with its own bounds and filters."""
        other = copy(self)
        other.scope = scope
        other.shows_group, other.shows_topic = AskedNames(scope.group, self.holds_group), AskedNames(scope.topic)
        return other

    def check(self, needs: Set[str]) -> None:
        """Refuse what cannot answer: sources without a needed column, and logs of other topics.

        Args:
            needs: columns without which the answer would be guessed.

        Raises:
            InputError: names the columns, or the first log of another topic.
        """
        if missing := sorted((needs | self._needed_by_bounds()) & self.missing_columns):
            raise InputError(
                f"this source does not tell {', '.join(missing)}, which would have to be guessed here: read the "
                f"segments of a broker's data directory"
            )
        for log in self.logs:
            self._check_topic(log)

    def _needed_by_bounds(self) -> set[str]:
        """Return the columns that the bounds need."""
        bounds = {"timestamp_ms": self.scope.until_time is not None, "record_offset": bool(self.scope.until_offset)}
        return {name for name, is_given in bounds.items() if is_given}

    def _check_topic(self, log: PartitionLog) -> None:
        """Refuse a log of another topic than `__consumer_offsets`, unless a directory's name says that it is one."""
        told = self.scope.as_partition  # by the user, who may have meant another file
        file = log.segments[0].file
        name = DirectoryName.parse(re.split("[/!]", f"/{file}")[-2])
        is_sure = log.offsets_partition not in (None, told) and not name.is_renamed
        if log.topic is not None or is_sure or log.missing_columns:
            return
        topic = name.topic
        is_empty = not any(segment.length for segment in log.segments)
        if is_of_another_topic(log) or (is_empty and topic.startswith("__")):
            raise InputError(
                (f"this is another topic, {topic}" if topic else f"this does not look like {OFFSETS_TOPIC}")
                + f": no group coordinator wrote its records. {WHAT_TO_GIVE}",
                file=file,
            )

    def iter_unread(self, option: str = "--until-offset") -> Iterator[str]:
        """Yield a sentence for each log of which the bound by time leaves out batches that are within it.

        Args:
            option: what bounds by record offset instead.
        """
        yield from of_unread(self.stops, option, self._end_within_bound)

    @property
    def stops(self) -> list[tuple[PartitionLog, Stop]]:
        """Return the logs that the bound by time ends, and where."""
        if (time_ms := self.scope.until_time) is None:
            return []
        bounds = time_ms, self.scope.until_offset
        if bounds not in self._stops:
            self._stops[bounds] = list(find_stops(self, time_ms))
        return self._stops[bounds]

    @property
    def lacks_some_in_time(self) -> bool:
        """Whether batches within the bound by time are not read, as `iter_unread` tells."""
        return any(stop.batches or is_of_wrong_clock(stop, self._end_within_bound) for _, stop in self.stops)

    @property
    def _end_within_bound(self) -> int | None:
        """When the logs end, if the bound by time is not before that."""
        until = self.scope.until_time
        end = None if until is None or not self.are_open else self.newest_ms
        return None if until is None or end is None or until < end else end

    def iter_idle_bounds(self) -> Iterator[str]:
        """Yield a sentence for each bound that leaves out nothing, or all, and for each log that no time can bound."""
        yield from self.iter_idle_offsets("--until-offset", self.scope.until_offset)
        if self.scope.until_time is not None:
            yield from self.iter_beyond(self.scope.until_time)

    def iter_idle_offsets(self, option: str, offsets: Iterable[tuple[int | None, int]]) -> Iterator[str]:
        """Yield a sentence for each bound of an option that is of no log here, or beyond its end."""
        found = {log.offsets_partition for log in self.logs}
        for partition, offset in offsets:
            given = f"{option} {offset}" if partition is None else f"{option} {partition}:{offset}"
            if partition is not None and partition not in found:
                yield f"{given} has no effect: no such offsets partition was found"
                continue
            ends = [end for number, end in self._end_offsets.items() if partition in (None, number)]
            if ends and offset > max(ends):
                ending = "the log ends" if len(ends) == 1 else "all logs end"
                yield f"{given} has no effect: {ending} before"

    def iter_beyond(self, time_ms: int) -> Iterator[str]:
        """Yield a sentence for each log that no time can bound, and one if the time is before or after all logs."""
        yield from self.iter_timeless()
        is_clock_wrong = time_ms == self.scope.until_time and self.lacks_some_in_time
        if not is_clock_wrong and (words := self.beyond(time_ms)):
            yield words

    def beyond(self, time_ms: int) -> str | None:
        """Say that a moment is before the logs begin or after they end; None for any other, or if that is not known.

        Raises:
            OffsetsLogError: a file cannot be read.
        """
        if self._times is None or self._times[0] <= time_ms <= self._times[1]:
            return None
        begin, end = map(shown_time, self._times)
        where = f"before the logs begin, at {begin}" if time_ms < self._times[0] else f"after the logs end, at {end}"
        return f"{shown_time(time_ms)} is {where}"

    @property
    def newest_ms(self) -> int | None:
        """The time of the last batch of all logs, as far as that is known."""
        return None if self._times is None else self._times[1]

    @cached_property
    def _times(self) -> tuple[int, int] | None:
        """The times of the first and the last batch of all logs, as far as that is known."""
        from offsets_log.serving.log_reader import times_of

        are_far = any(one.is_fetched for log in self.logs for one in log.segments[-1:]) and not self._has_quick_ends
        return (
            None if are_far or "timestamp_ms" in self.missing_columns else times_of(self.logs, int(time.time() * 1000))
        )

    @cached_property
    def _end_offsets(self) -> dict[int | None, int]:
        """Offsets partition → where its log ends, as far as that is known."""
        from offsets_log.serving.log_reader import ends_of

        ends = zip(self.logs, ends_of(self.logs), strict=True) if self._has_quick_ends else ()
        return {log.offsets_partition: one.log_end_offset for log, one in ends if one is not None}

    @property
    def _has_quick_ends(self) -> bool:
        """Whether the ends of all logs are found without reading them."""
        return all(
            f"{segment.base_offset or 0:020}.index" in log.beside or segment.size_bytes <= WALKED_BYTES
            for log in self.logs
            for segment in log.segments[-1:]
        )

    def iter_timeless(self) -> Iterator[str]:
        """Yield a sentence for each log that begins with records without a time, which no time can bound."""
        for log in self.logs:
            first = next(batches_of(log), None)
            if first is not None and first.max_timestamp_ms == NO_TIMESTAMP:
                yield (
                    f"offsets partition {partition_name(log.offsets_partition)} has records without a time (before "
                    "Kafka 0.10), which are read whatever time is asked for: bound them by record offset"
                )


def find_stops(inputs: Inputs, time_ms: int) -> Iterator[tuple[PartitionLog, Stop]]:
    """Yield the logs that a bound by time ends, and where; only headers are read."""
    from offsets_log.columnar.scan.time_bound import find_stop

    in_bulk = is_large(sum(log.bytes_to_read for log in inputs.logs), "scan.batch_rows._note")
    for log in inputs.logs:
        if (stop := find_stop(log, time_ms, inputs.until(log).record_offset, in_bulk=in_bulk)) is not None:
            yield log, stop


def read_topic_ids(file: str | None) -> dict[bytes, str]:
    """Read the file of --topic-ids: a JSON object topic id → name.

    Raises:
        InputError: it is anything else.
    """
    if file is None:
        return {}
    try:
        names = json.loads(Path(file).read_bytes())
        return {Uuid.from_text(topic_id): str(name) for topic_id, name in names.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"it is not a JSON object topic id -> name: {error}", file=file) from None
