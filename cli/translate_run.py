"""The work of `translate`: each partition's committed offsets, in the best way that the inputs allow.

Over 400 lines: the ways to translate are a few lines each, over one run's copies and its account.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cli.translate import TranslateOptions
from offsets_log.columnar.aligning.reading import NO_HEADERS, Headers
from offsets_log.columnar.arrays import Int64s
from offsets_log.data_directory.checkpoints import decode_leader_epoch_checkpoint
from offsets_log.data_directory.copied_logs import CopiedLogs, CopiedPartition
from offsets_log.disk.ahead import ahead
from offsets_log.disk.translating import Aligned, Headed, Made, Question, Reading, SentPartition, Synced, Timed
from offsets_log.disk.user_logs import find_user_topics, open_user_log
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.errors import Damage, InputError, OffsetsLogError
from offsets_log.log_format.file_names import LEADER_EPOCHS
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.mirror_maker import CHECKPOINTS, OFFSET_SYNCS, MirrorMakerTopic, mirror_maker_topic
from offsets_log.rows.tables import Row
from offsets_log.translation import map_file
from offsets_log.translation.answers import Answer, Told, Untold, better, is_exact
from offsets_log.translation.by_headers import by_headers
from offsets_log.translation.by_syncs import by_checkpoints
from offsets_log.translation.by_time import by_times
from offsets_log.translation.header_forms import headers_of, with_forms
from offsets_log.translation.names import by_policy, by_rules
from offsets_log.translation.offset_syncs import (
    Checkpoint,
    PartitionSyncs,
    SourcePartition,
    read_checkpoints,
    read_offset_syncs,
)
from offsets_log.translation.translated_plan import Place
from offsets_log.translation.unread import doubts_of, move_back

if TYPE_CHECKING:
    from offsets_log.cluster.live_target import LiveTarget

FORMER = "it was committed for a former topic of the same name"

Committed = Mapping[int, Sequence[int]]
"""Partition → committed offsets."""
Run = Callable[[Sequence[Question[Any]]], Iterable[Made[Any]]]
"""Answers questions, in their order."""
T = TypeVar("T")


class Translation:
    """One run. A context manager: opened logs are closed at its end.

    Attributes:
        rename_topic, rename_group: what they are called in the target.
        damages, notes: what could not be read of topics, and what was chosen.
        doubts: what the target's copy lacks, where that matters, a sentence each.

    Raises:
        InputError: a rule or a header makes no sense.
    """

    def __init__(self, asked: TranslateOptions) -> None:
        self.rename_topic = by_rules(asked.rename, "--rename", by_policy(asked.policy))
        self.rename_group = by_rules(asked.rename_group, "--rename-group")
        self._headers = headers_of(asked.offset_header)
        self.damages: list[Damage] = []
        self.doubts: list[str] = []
        self._asked = asked
        self._reading = Reading(int.from_bytes(os.urandom(7)), NO_HEADERS)
        self._map: map_file.OffsetMap = {}
        self._stack = ExitStack()
        self._source: CopiedLogs | None = None
        self._target: CopiedLogs | None = None
        self._live: LiveTarget | None = None
        self._chosen: dict[tuple[int, str], dict[int, CopiedPartition]] = {}
        self._aligned: dict[tuple[str, int], Made[dict[int, Told]]] = {}
        self._run: Run

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
        from cli.command_config import properties_of
        from offsets_log.cluster.live_target import LiveTarget
        from offsets_log.cluster.reader import ClusterReader

        properties = properties_of(self._asked.command_config, say)
        reader = self._stack.enter_context(closing(ClusterReader(self._asked.bootstrap_server, properties)))
        self._live = LiveTarget(reader)

    @property
    def notes(self) -> list[str]:
        """What was passed over or chosen among copies."""
        return [note for logs in self._sides() for note in logs.notes]

    def _sides(self) -> list[CopiedLogs]:
        return [logs for logs in (self._source, self._target) if logs is not None]

    def places(self, source: CopiedLogs, offsets: Sequence[Row], run: Run) -> Callable[[Row], Place]:
        """Translate the offsets of a plan; return what tells the place of each row.

        Args:
            run: answers what is asked of whole logs.
        """
        self._source, self._run = source, run
        if self._asked.target:
            self._target = find_user_topics(self._asked.target, self._stack)
        topics: dict[str, dict[int, list[int]]] = {}
        for row in offsets:
            topics.setdefault(row["topic"], {}).setdefault(row["partition"], []).append(row["committed_offset"])
        self._align(topics)
        found = {topic: self._topic(topic, committed) for topic, committed in topics.items()}
        for logs in self._sides():
            self.damages += logs.damages
        return lambda row: self._place(row, *found[row["topic"]][row["partition"]])

    def _place(self, row: Row, partition: int, told: Mapping[int, Told]) -> Place:
        topic = self.rename_topic(row["topic"])
        one = Untold(FORMER) if self._is_former(row) else told[row["committed_offset"]]
        epoch = None
        if isinstance(one, Answer) and self._asked.leader_epochs == "target":
            epoch = self._leader_epoch(topic, partition, one.target_offset - 1)
        return Place(topic, partition, one, epoch)

    def _is_former(self, row: Row) -> bool:
        """Whether an offset counts the records of another topic than the one that has the name in the source's copy."""
        assert self._source is not None
        now = None if row["topic_id"] is None else self._source.topic_id(row["topic"], row["partition"])
        return now is not None and str(now) != row["topic_id"]

    # ------------------------------------------------------------------------------------------- ways, best first

    def _topic(self, topic: str, committed: Committed) -> dict[int, tuple[int, Mapping[int, Told]]]:
        """Return, for each partition of a topic, its partition in the target, and what is told of its offsets."""
        target = self.rename_topic(topic)
        best: dict[int, tuple[int, Mapping[int, Told]]] = {
            number: (number, dict.fromkeys(some, Untold(self._why_not(target)))) for number, some in committed.items()
        }
        if (there := self._partitions(target)) is not None and not there:
            return best
        ways = (
            self._by_records, self._by_headers, self._by_syncs, self._by_checkpoints, self._by_map, self._by_times
        )  # fmt: skip
        for way in ways:
            left = {number: some for number, some in committed.items() if not is_exact(best[number][1])}
            if way == self._by_map:
                left = {number: some for number, some in committed.items() if self._holds(topic, number, *best[number])}
            for number, (place, told) in way(topic, target, left).items():
                before = best[number]
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
        return "the target" if self._target is None else "the target's copy"

    def _partitions(self, target: str) -> Collection[int] | None:
        """Return the partitions of a topic of the target; None where only a map tells of it."""
        if self._live is not None:
            return self._live.partitions(target)
        return None if self._target is None else self._copies(self._target, target)

    def _why_not(self, target: str) -> str:
        """Return what is said where no way tells anything."""
        side = self._live or self._target
        if side is None:
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

    def _align(self, topics: Mapping[str, Committed]) -> None:
        """Align the partitions of all topics that both sides have."""
        asked: dict[tuple[str, int], Aligned] = {}
        for topic, committed in topics.items():
            targets = self._copies(self._target, self.rename_topic(topic))
            if self._target is not None and not targets:
                continue
            sources = self._copies(self._source, topic)
            for number in (one for one in committed if one in sources and one in targets):
                is_same_count = max(*sources, *committed) == max(targets)
                try:
                    asked[topic, number] = self._pair(
                        sources[number], targets[number], committed[number], is_same_count
                    )
                except InputError as error:
                    self._aligned[topic, number] = Made(None, (), error)
        self._aligned |= zip(asked, self._run([*asked.values()]), strict=True)

    def _pair(
        self, source: CopiedPartition, target: CopiedPartition, committed: Sequence[int], is_same_count: bool
    ) -> Aligned:
        assert self._target is not None
        ends = self._target.ends(target.topic, target.partition)
        assert ends is not None
        sides = SentPartition.of(source), SentPartition.of(target)
        return Aligned(*sides, committed, ends.log_start_offset, ends.log_end_offset, is_same_count, self._reading)

    def _by_records(self, topic: str, target: str, committed: Committed) -> dict[int, tuple[int, dict[int, Told]]]:
        targets = self._copies(self._target, target)
        found: dict[int, tuple[int, dict[int, Told]]] = {}
        for number, some in committed.items():
            if (made := self._aligned.get((topic, number))) is not None:
                try:
                    told = self._take(made)
                    found[number] = number, self._moved_back(targets[number], told)
                except InputError as error:
                    found[number] = number, dict.fromkeys(some, Untold(str(error)))
        return found

    def _by_headers(self, topic: str, target: str, committed: Committed) -> dict[int, tuple[int, dict[int, Told]]]:
        targets = self._copies(self._target, target)
        if not targets or not committed:
            return {}
        try:
            with ExitStack() as stack:
                headers = with_forms(self._headers, partial(self._rows, targets, stack))
            if headers is None:
                return {}
            reading = replace(self._reading, headers=headers)
            asked = [Headed(SentPartition.of(copy), committed, reading) for _, copy in sorted(targets.items())]
            found = by_headers(map(self._take, self._run(asked)), committed)
        except InputError as error:
            return {number: (number, dict.fromkeys(some, Untold(str(error)))) for number, some in committed.items()}
        return {
            number: (place, self._moved_back(targets[place], one.told))
            for number, one in found.items()
            if (place := one.target_partition) is not None
        }

    def _moved_back(self, copy: CopiedPartition, told: Mapping[int, Told]) -> dict[int, Told]:
        """Return answers that do not lie behind what the target's copy lacks, and note what that is."""
        assert self._target is not None
        ends = self._target.ends(copy.topic, copy.partition)
        start = 0 if ends is None else ends.log_start_offset
        with ExitStack() as stack:
            moved, stretches = move_back(told, open_user_log(copy, stack), start)
        found = doubts_of(f"{copy.topic}-{copy.partition}", moved, stretches, start)
        self.doubts += [one for one in found if one not in self.doubts]
        for one in stretches:
            if not one.is_damaged:
                self._on_damage(one.error(copy.shown_path))
        return moved

    def _by_syncs(self, topic: str, target: str, committed: Committed) -> dict[int, tuple[int, dict[int, Told]]]:
        targets = self._copies(self._target, target)
        asked: dict[int, Synced] = {}
        for number, some in committed.items():
            if (syncs := self._syncs.get((topic, number))) is None:
                continue
            copy = targets.get(number)
            ends = None if self._target is None or copy is None else self._target.ends(target, number)
            log = None if copy is None or not _is_here(copy) else SentPartition.of(copy)
            asked[number] = Synced(syncs, some, log, None if ends is None else ends.log_end_offset)
        made = self._run([*asked.values()])
        return {number: (number, self._take(one)) for number, one in zip(asked, made, strict=True)}

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
            return {} if log is None else read_offset_syncs(log, self.damages)

    @cached_property
    def _checkpoints(self) -> dict[tuple[str, int], list[Checkpoint]]:
        """Checkpoints by topic of the target and partition."""
        found: dict[tuple[str, int], list[Checkpoint]] = {}
        with ExitStack() as stack:
            log = self._of_mirror_maker(CHECKPOINTS, stack)
            for (_, topic, number), one in {} if log is None else read_checkpoints(log, self.damages).items():
                found.setdefault((topic, number), []).append(one)
        return found

    def _of_mirror_maker(self, kind: MirrorMakerTopic, stack: ExitStack) -> PartitionLog | None:
        """Return the log of such a topic; None where there are several, each of another pair of clusters."""
        named = [(one, topic) for one in self._sides() for topic in one.topics if mirror_maker_topic(topic) is kind]
        copies = [copy for one, topic in named for copy in one.chosen(topic) if _is_here(copy)]
        return open_user_log(copies[0], stack) if len({topic for _, topic in named}) == 1 and copies else None

    def _holds(self, topic: str, number: int, place: int, told: Mapping[int, Told]) -> bool:
        """Whether nothing that was found contradicts the map; else it is said."""
        pairs = self._pairs(topic, self.rename_topic(topic), number) if place == number else []
        found = map_file.contradiction(pairs, told)
        self.doubts += [] if found is None else [f"the map is not used for {topic}-{number}: {found}"]
        return found is None

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
        sources, there = self._copies(self._source, topic), self._live.partitions(target)
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
        assert self._source is not None
        asked: dict[int, Timed] = {}
        found: dict[int, dict[int, int | Untold]] = {}
        for number, copy in copies.items():
            ends = self._source.ends(copy.topic, number)
            if ends is None or not _is_here(copy):
                reason = Untold("the source's copy has no log of it that can be read")
                found[number] = dict.fromkeys(committed[number], reason)
                continue
            end = max(ends.log_end_offset, ends.high_watermark or 0)
            sent = SentPartition.of(copy)
            asked[number] = Timed(sent, committed[number], ends.log_start_offset, end, self._reading)
        for number, made in zip(asked, self._run([*asked.values()]), strict=True):
            try:
                found[number] = self._take(made)
            except InputError as error:
                found[number] = dict.fromkeys(committed[number], Untold(str(error)))
        return found

    # ---------------------------------------------------------------------------------------------------- logs

    def _copies(self, logs: CopiedLogs | None, topic: str) -> dict[int, CopiedPartition]:
        """Return the partitions of a topic that a side has, each in the copy that counts."""
        key = id(logs), topic
        if key not in self._chosen:
            self._chosen[key] = {} if logs is None else {copy.partition: copy for copy in logs.chosen(topic)}
        return self._chosen[key]

    def _take(self, made: Made[T]) -> T:
        """Note what could not be read; return the answer. Raises OffsetsLogError where a problem ended it."""
        for damage in made.damages:
            self._on_damage(damage)
        if made.problem is not None:
            raise made.problem
        assert made.value is not None
        return made.value

    def _on_damage(self, damage: Damage) -> None:
        """Note a piece that cannot be read, once however often it is met."""
        if str(damage.error) not in {str(one.error) for one in self.damages}:
            self.damages.append(damage)

    def _rows(self, copies: Mapping[int, CopiedPartition], stack: ExitStack, headers: Headers) -> Iterator[Int64s]:
        """Yield the rows of partitions one after the other."""
        reader = replace(self._reading, headers=headers).reader(stack, self._on_damage)
        for _, copy in sorted(copies.items()):
            with ExitStack() as own:
                yield from ahead(reader.chunks(open_user_log(copy, own)))

    def _leader_epoch(self, topic: str, partition: int, offset: int) -> int | None:
        """Return the leader epoch of an offset of the target, by the checkpoint of its copy."""
        copy = self._copies(self._target, topic).get(partition)
        try:
            data = None if copy is None else copy.read(LEADER_EPOCHS)
            epochs = {} if data is None else decode_leader_epoch_checkpoint(data, LEADER_EPOCHS)
        except OffsetsLogError:
            return None
        return max((epoch for epoch, start in epochs.items() if start <= offset), default=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _is_here(copy: CopiedPartition) -> bool:
    """Whether the whole log is here, and not only its end."""
    return isinstance(copy, UserPartition)
