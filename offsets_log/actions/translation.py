"""The work of `translate`: each partition's committed offsets, in the best way that the inputs allow."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from offsets_log.actions.translate_asked import TranslateAsked
from offsets_log.actions.translate_records import ByRecords
from offsets_log.actions.translate_sides import Asking, Committed, Side, is_here
from offsets_log.columnar.aligning.reading import NO_HEADERS, Headers
from offsets_log.columnar.jit.records import Rows
from offsets_log.data_directory.copied_logs import CopiedLogs, CopiedPartition
from offsets_log.data_directory.metadata_copies import Clusters
from offsets_log.data_directory.share_offsets import with_log_ends
from offsets_log.disk.ahead import ahead
from offsets_log.disk.translating import Headed, RowReading, Synced, Timed
from offsets_log.disk.user_logs import find_user_topics, open_user_log, whole
from offsets_log.errors import Damage, InputError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.mirror_maker import CHECKPOINTS, OFFSET_SYNCS, MirrorMakerTopic, mirror_maker_topic
from offsets_log.rows.tables import Row
from offsets_log.translation import map_file
from offsets_log.translation.answers import Answer, Told, Untold, Witness, better, is_exact
from offsets_log.translation.by_syncs import by_checkpoints
from offsets_log.translation.by_time import by_times
from offsets_log.translation.checking import contradiction, is_held, witnesses_of
from offsets_log.translation.header_forms import headers_of, with_forms
from offsets_log.translation.names import by_policy, by_rules
from offsets_log.translation.offset_syncs import (
    Checkpoint,
    PartitionSyncs,
    SourcePartition,
    read_checkpoints,
    read_offset_syncs,
)
from offsets_log.translation.translated_plan import PlacedOffset

if TYPE_CHECKING:
    from offsets_log.cluster.live_target import LiveTarget

FORMER = "it was committed for a former topic of the same name"

Way = Callable[[str, str, Committed], Mapping[int, tuple[int, Mapping[int, Told]]]]
"""Tells, of partitions of a topic by its names in the source and in the target, where offsets are."""


class Translation:
    """One run. A context manager: opened logs are closed at its end.

    Attributes:
        rename_topic, rename_group: what they are called in the target.
        damages, notes: what could not be read of topics, and what was chosen.
        doubts: what the target's copy lacks, where that matters, a sentence each.

    Raises:
        AskedError: a rule or a header makes no sense.
    """

    def __init__(self, asked: TranslateAsked) -> None:
        self.rename_topic = by_rules(asked.rename, "--rename", by_policy(asked.policy))
        self.rename_group = by_rules(asked.rename_group, "--rename-group")
        self._headers = headers_of(asked.offset_header)
        self._asked = asked
        self._reading = RowReading(int.from_bytes(os.urandom(7)), NO_HEADERS)
        self._map: map_file.OffsetMap = {}
        self._stack = ExitStack()
        self._live: LiveTarget | None = None
        self._source, self._target = Side(), Side()
        self._asking: Asking
        self._by_records: ByRecords

    def connect(self, say: Callable[[str], None]) -> None:
        """Read the map, if there is one, and connect to the target, if it is a live one.

        Raises:
            ClusterError: it does not answer.
            InputError: a property makes no sense, or the map cannot be read.
        """
        if self._asked.map is not None:
            self._map = map_file.decode_map(Path(self._asked.map).read_bytes(), self._asked.map)
        if self._asked.bootstrap_server is None:
            return
        from offsets_log.cluster.live_target import LiveTarget
        from offsets_log.cluster.properties import read_properties
        from offsets_log.cluster.reader import ClusterReader

        properties = read_properties(self._asked.command_config, say)
        reader = self._stack.enter_context(closing(ClusterReader(self._asked.bootstrap_server, properties)))
        self._live = LiveTarget(reader)

    @property
    def notes(self) -> list[str]:
        """What was passed over or chosen among copies."""
        return [note for logs in self._sides() for note in logs.notes]

    @property
    def damages(self) -> list[Damage]:
        """What could not be read of topics."""
        return [*self._asking.damages, *(damage for logs in self._sides() for damage in logs.damages)]

    @property
    def doubts(self) -> list[str]:
        """What is to be said of answers, a sentence each."""
        return self._asking.doubts

    def _sides(self) -> list[CopiedLogs]:
        return [side.logs for side in (self._source, self._target) if side.logs is not None]

    def places(self, source: CopiedLogs, clusters: Clusters, offsets: Sequence[Row]) -> Callable[[Row], PlacedOffset]:
        """Translate the offsets of a plan; return what tells the place of each row.

        Args:
            source, clusters: the logs of the source, and what its data directories say of their cluster.
        """
        self._source, self._asking = Side(source, clusters.metadata), Asking()
        if self._asked.target:
            logs, its_clusters = find_user_topics(self._asked.target, self._stack)
            self._target = Side(logs, its_clusters.metadata)
        self._by_records = ByRecords(self._source, self._target, self.rename_topic, self._asking, self._reading)
        topics: dict[str, dict[int, list[int]]] = {}
        for row in offsets:
            topics.setdefault(row["topic"], {}).setdefault(row["partition"], []).append(row["committed_offset"])
        self._by_records.align(topics)
        found = {topic: self._topic(topic, committed) for topic, committed in topics.items()}
        return lambda row: self._place(row, *found[row["topic"]][row["partition"]])

    def with_log_ends(self, rows: Sequence[Row]) -> Iterable[Row]:
        """Return rows of share offsets with what the target's copy tells of their logs."""
        return with_log_ends(rows, self._target.logs)

    def _place(self, row: Row, partition: int, told: Mapping[int, Told]) -> PlacedOffset:
        topic = self.rename_topic(row["topic"])
        one = Untold(FORMER) if self._is_former(row) else told[row["committed_offset"]]
        if isinstance(one, Answer) and self._asked.allow_skip:
            one = one.skipping()
        epoch = None
        if isinstance(one, Answer) and self._asked.leader_epochs == "target":
            epoch = self._target.leader_epoch(topic, partition, one.target_offset - 1)
        return PlacedOffset(topic, partition, one, epoch)

    def _is_former(self, row: Row) -> bool:
        """Return whether an offset counts records of another topic than that of the name in the source's copy."""
        assert self._source.logs is not None
        place, committed_ms = (row["topic"], row["partition"]), row.get("commit_timestamp_ms")
        return not self._source.logs.is_of_copy(*place, row["topic_id"], committed_ms)

    # ------------------------------------------------------------------------------------------- ways, best first

    def _topic(self, topic: str, committed: Committed) -> dict[int, tuple[int, Mapping[int, Told]]]:
        """Return, for each partition of a topic, its partition in the target, and what is told of its offsets."""
        target = self.rename_topic(topic)
        best: dict[int, tuple[int, Mapping[int, Told]]] = {
            number: (number, dict.fromkeys(some, Untold(self._why_not(target)))) for number, some in committed.items()
        }
        if (there := self._partitions(target)) is not None and not there:
            return best
        witnesses: dict[int, list[Witness]] = {}
        ways: tuple[Way, ...] = (
            self._by_records, self._by_headers, self._by_syncs, self._by_checkpoints, self._by_map, self._by_times
        )  # fmt: skip
        for way in ways[:1] if self._by_records.is_moved(topic) else ways:
            left = {
                number: sorted({*some, *(one.source_offset for one in witnesses.get(number, ()))})
                for number, some in committed.items()
                if way == self._by_map or not is_exact(best[number][1])
            }
            for number, (place, told) in way(topic, target, left).items():
                before = best[number]
                if way == self._by_records:
                    if any(isinstance(one, Answer) for one in told.values()):
                        witnesses[number] = witnesses_of(told)
                elif not self._holds(way, f"{topic}-{number}", target, place, told, witnesses.get(number)):
                    continue
                else:
                    told = self._as_far(way, target, place, {offset: told[offset] for offset in committed[number]})
                if place == before[0]:
                    best[number] = place, better(before[1], told)
                elif not any(isinstance(one, Answer) for one in before[1].values()):
                    best[number] = place, told
        return {number: self._there(target, *found) for number, found in best.items()}

    def _there(self, target: str, partition: int, told: Mapping[int, Told]) -> tuple[int, Mapping[int, Told]]:
        """Return what is told, if the target has the partition as far as that is known."""
        there = self._partitions(target)
        if there is None or partition in there:
            return partition, told
        return partition, dict.fromkeys(told, Untold(f"{self._called} has no {target}-{partition}"))

    @property
    def _called(self) -> str:
        return "the target" if self._target.logs is None else "the target's copy"

    def _partitions(self, target: str) -> Collection[int] | None:
        """Return the partitions of a topic of the target; None where only a map tells of it."""
        if self._live is not None:
            return self._live.partitions(target)
        return None if self._target.logs is None else self._target.copies(target)

    def _why_not(self, target: str) -> str:
        """Return what is said where no way tells anything."""
        side = self._live or self._target
        if self._live is None and self._target.logs is None:
            return "the map has no such partition"
        if not self._partitions(target):
            alike = sorted(name for name in side.topics if name.endswith((f".{target}", f"_{target}")))
            hint = f", but {', '.join(alike[:3])}: see --policy and --rename" if alike else ""
            return f"{self._called} has no topic {target}{hint}"
        if self._live is not None:
            return "the source's copy has no log of it, by which its times were known"
        return (
            "nothing tells where its records are in the target: the source's copy has no log of it, and the target's "
            "records have no header with their offset"
        )

    def _by_headers(self, topic: str, target: str, committed: Committed) -> dict[int, tuple[int, Mapping[int, Told]]]:
        targets = self._target.copies(target)
        if not targets or not committed:
            return {}
        try:
            with ExitStack() as stack:
                headers = with_forms(self._headers, partial(self._rows, targets, stack))
            if headers is None:
                return {}
            if self._has_header_itself(topic, headers):
                return {}
            reading = replace(self._reading, headers=headers)
            asked = {number: Headed(whole(copy), committed, reading) for number, copy in sorted(targets.items())}
            return self._by_records.by_headers(target, asked, committed)
        except InputError as error:
            return {number: (number, dict.fromkeys(some, Untold(str(error)))) for number, some in committed.items()}

    def _has_header_itself(self, topic: str, headers: Headers) -> bool:
        """Return whether records of the source have the header already: then it tells of another copy; it is said."""
        sources = {number: copy for number, copy in self._source.copies(topic).items() if is_here(copy)}
        with ExitStack() as stack:
            has_it = any((rows["source_offset"] >= 0).any() for rows in self._rows(sources, stack, headers))
        if has_it:
            self._asking.doubt(f"the headers with offsets are not used for {topic}: the source's records have them too")
        return has_it

    def _by_syncs(self, topic: str, target: str, committed: Committed) -> dict[int, tuple[int, dict[int, Told]]]:
        targets = self._target.copies(target)
        asked: dict[int, Synced] = {}
        for number, some in committed.items():
            if (syncs := self._syncs.get((topic, number))) is None:
                continue
            copy = targets.get(number)
            log = None if copy is None or not is_here(copy) else whole(copy)
            asked[number] = Synced(syncs, some, log, self._target.log_end(target, number))
        return {number: (number, told) for number, told in self._asking.each(asked, committed).items()}

    def _by_checkpoints(self, topic: str, target: str, committed: Committed) -> dict[int, tuple[int, dict[int, Told]]]:
        return {
            number: (number, by_checkpoints(self._checkpoints[target, number], some))
            for number, some in committed.items()
            if (target, number) in self._checkpoints
        }

    @cached_property
    def _syncs(self) -> dict[SourcePartition, PartitionSyncs]:
        with ExitStack() as stack:
            log = self._of_mirror_maker(OFFSET_SYNCS, stack)
            return {} if log is None else read_offset_syncs(log, self._asking.damages)

    @cached_property
    def _checkpoints(self) -> dict[tuple[str, int], list[Checkpoint]]:
        """Checkpoints by topic of the target and partition."""
        found: dict[tuple[str, int], list[Checkpoint]] = {}
        with ExitStack() as stack:
            log = self._of_mirror_maker(CHECKPOINTS, stack)
            for (_, topic, number), one in {} if log is None else read_checkpoints(log, self._asking.damages).items():
                found.setdefault((topic, number), []).append(one)
        return found

    def _of_mirror_maker(self, kind: MirrorMakerTopic, stack: ExitStack) -> PartitionLog | None:
        """Return the log of such a topic; None where there are several, each of another pair of clusters."""
        named = [
            (one, topic)
            for one in (self._source, self._target)
            for topic in one.topics
            if mirror_maker_topic(topic) is kind
        ]
        copies = [copy for one, topic in named for copy in one.copies(topic).values() if is_here(copy)]
        return open_user_log(copies[0], stack) if len({topic for _, topic in named}) == 1 and copies else None

    def _holds(
        self, way: Way, partition: str, target: str, place: int, told: Mapping[int, Told], found: list[Witness] | None
    ) -> bool:
        """Return whether a way's answers may replace others; it is said where something contradicts them.

        Args:
            found: what records showed of the partition; None if they told nothing of it.
        """
        named = {
            self._by_headers: "the headers with offsets of the source are not used for {}: they have {}",
            self._by_syncs: "the offset syncs are not used for {}: they have {}",
            self._by_checkpoints: "the checkpoints are not used for {}: they have {}",
            self._by_map: "the map is not used for {}: it has {}",
        }
        if way not in named:
            return True
        wrong = contradiction(told, found or (), self._target.log_end(target, place))
        if wrong is not None:
            self._asking.doubt(named[way].format(partition, wrong))
        return wrong is None and (found is None or is_held(told, found))

    def _as_far(self, way: Way, target: str, place: int, told: dict[int, Told]) -> dict[int, Told]:
        """Return the answers of headers and syncs, none of which lies behind what the target's copy lacks."""
        copy = self._target.copies(target).get(place)
        has_answer = any(isinstance(one, Answer) for one in told.values())
        if way not in (self._by_headers, self._by_syncs) or not has_answer or copy is None or not is_here(copy):
            return told
        return self._by_records.moved_back(copy, told)

    def _pairs(self, topic: str, target: str, number: int) -> map_file.Pairs:
        return self._map.get((topic, number)) or self._map.get((target, number)) or []

    def _by_map(self, topic: str, target: str, committed: Committed) -> dict[int, tuple[int, dict[int, Told]]]:
        return {
            number: (number, {offset: map_file.translate(own, offset) for offset in some})
            for number, some in committed.items()
            if (own := self._pairs(topic, target, number))
        }

    def _by_times(self, topic: str, target: str, committed: Committed) -> dict[int, tuple[int, dict[int, Told]]]:
        """Ask the live target for times of the source's records."""
        if self._live is None:
            return {}
        sources, there = self._source.copies(topic), self._live.partitions(target)
        copies = {number: sources[number] for number in committed if number in sources and number in there}
        if copies and max(*sources, *committed) != max(there):
            reason = Untold("the topic has another number of partitions in the target than is known of the source")
            return {number: (number, dict.fromkeys(committed[number], reason)) for number in copies}
        times = self._times(copies, committed)
        answers = self._live.first_at(
            {(target, number): {one for one in some.values() if isinstance(one, int)} for number, some in times.items()}
        )
        return {number: (number, by_times(some, answers[target, number])) for number, some in times.items()}

    def _times(self, copies: Mapping[int, CopiedPartition], committed: Committed) -> dict[int, dict[int, int | Untold]]:
        """Return what is to be asked of the live target for each offset, by the logs of the source's partitions."""
        assert self._source.logs is not None
        asked: dict[int, Timed] = {}
        found: dict[int, dict[int, int | Untold]] = {}
        for number, copy in copies.items():
            ends = self._source.logs.ends(copy.topic, number)
            if ends is None or not is_here(copy):
                reason = Untold("the source's copy has no log of it that can be read")
                found[number] = dict.fromkeys(committed[number], reason)
                continue
            end = max(ends.log_end_offset, ends.high_watermark or 0)
            sent = whole(copy)
            asked[number] = Timed(sent, committed[number], ends.log_start_offset, end, self._reading)
        return found | self._asking.each(asked, committed)

    # ---------------------------------------------------------------------------------------------------- logs

    def _rows(self, copies: Mapping[int, CopiedPartition], stack: ExitStack, headers: Headers) -> Iterator[Rows]:
        """Yield the rows of partitions one after the other."""
        reader = replace(self._reading, headers=headers).reader(stack, self._asking.note)
        for _, copy in sorted(copies.items()):
            with ExitStack() as own:
                yield from ahead(reader.chunks(open_user_log(copy, own)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
