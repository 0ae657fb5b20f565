"""The logs of other topics in copies of data directories: which copy of a partition counts, where its log ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from offsets_log.data_directory.checkpoints import (
    TopicPartition,
    decode_leader_epoch_checkpoint,
    decode_offset_checkpoint,
)
from offsets_log.data_directory.cluster_image import TopicImage
from offsets_log.data_directory.directory import Opener
from offsets_log.data_directory.identity import decode_partition_metadata
from offsets_log.data_directory.log_ends import LogEnds, find_log_ends
from offsets_log.data_directory.segment_batches import PartitionFiles
from offsets_log.data_directory.told_ends import ToldEnds
from offsets_log.errors import Damage, MissingLogError, OffsetsLogError
from offsets_log.log_format.file_names import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    PARTITION_METADATA,
)
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.internal_topics import INTERNAL_TOPICS
from offsets_log.words import counted

SAID = 5
"""How many notes are told one by one."""


class CopiedPartition(PartitionFiles, Protocol):
    """A partition's directory in a data directory."""

    @property
    def above(self) -> Mapping[str, Opener]:
        """The files of the data directory: name → how to read it."""
        ...

    @property
    def dated_from(self) -> int:
        """The offset from which on all of the log is here; of a disk 0."""
        ...

    def read(self, name: str) -> bytes | None:
        """Read a small file beside the segments; None if there is none. Raises InputError."""
        ...


@dataclass(frozen=True, slots=True)
class _Noted:
    """What a data directory's own files say of its partitions."""

    high_watermarks: Mapping[TopicPartition, int]
    log_starts: Mapping[TopicPartition, int]
    is_clean: bool


@dataclass(frozen=True, slots=True)
class LeaderCopies:
    """Who led a partition last, by the cluster's metadata.

    Attributes:
        node_id: the broker.
        epoch: in which leader epoch.
        directories: those of the partition's copies that are its own.
    """

    node_id: int
    epoch: int
    directories: Collection[str] = ()


class CopiedLogs:
    """The logs of other topics that lie beside the offsets topic, looked at when they are asked for.

    Attributes:
        newest_timestamp_ms: of the logs that were looked at.
    """

    def __init__(
        self,
        partitions: Iterable[CopiedPartition],
        leaders: Mapping[TopicPartition, LeaderCopies] | None = None,
        told: tuple[ToldEnds, list[Damage]] | None = None,
        in_order: Callable[..., Iterator[Any]] = map,
        made: Callable[[], Iterable[TopicImage]] = tuple,
    ) -> None:
        """Args:
        leaders: of partitions with several copies who led them last, where the cluster's metadata tells.
        told: ends of logs that have no copy, and what could not be read of them.
        made: asked once which topics the cluster's metadata says to have been made, and when.
        in_order: as `map`; one that asks several copies at once is faster where each waits for a network.
        """
        self._in_order = in_order
        self._ask_made = made
        self._told, damages = told or (ToldEnds(), [])
        self._notes: dict[str, None] = {}
        self._damages = {str(one.error): one for one in damages}
        self._copies: dict[TopicPartition, list[CopiedPartition]] = {}
        for copy in partitions:
            self._copies.setdefault((copy.topic, copy.partition), []).append(copy)
        self._leaders = leaders or {}
        self._noted: dict[int, _Noted] = {}
        self._ends: dict[TopicPartition, LogEnds | None] = {}
        self._chosen: dict[TopicPartition, CopiedPartition] = {}
        self._short: dict[str, dict[int, Damage]] = {}
        self._topic_ids: dict[TopicPartition, Uuid | None] = {}
        self.newest_timestamp_ms: int | None = None
        self._of_leaders: set[TopicPartition] = set()
        self._of_others: set[TopicPartition] = set()

    @property
    def notes(self) -> list[str]:
        """What was passed over or chosen, one sentence each."""
        return list(self._notes)

    def in_words(self) -> Iterator[str]:
        """Yield which copies count, and the first notes, a sentence each."""
        if several := self.of_leaders + self.of_others:
            has = counted(several, "partition of other topics has", "partitions of other topics have")
            yield (
                f"{has} several copies: {self.of_leaders} times that of the last leader counts, by the cluster's "
                f"metadata; {self.of_others} times another of the latest leader epoch, of these the longest"
            )
        yield from self.notes[:SAID]
        if len(self.notes) > SAID:
            yield f"{len(self.notes) - SAID} more of this kind"

    @property
    def damages(self) -> list[Damage]:
        """What could not be read."""
        return list(self._damages.values())

    @property
    def of_leaders(self) -> int:
        """Of how many partitions with several copies their last leader's was chosen."""
        return len(self._of_leaders)

    @property
    def of_others(self) -> int:
        """Of how many another was."""
        return len(self._of_others)

    def __bool__(self) -> bool:
        """Whether there is a topic that users write to: the logs of internal ones alone tell no lag."""
        return bool(self._told) or any(topic not in INTERNAL_TOPICS for topic, _ in self._copies)

    @property
    def topics(self) -> set[str]:
        """The topics that have a copy."""
        return {topic for topic, _ in self._copies}

    def ends(self, topic: str, partition: int) -> LogEnds | None:
        """Return where the log begins and ends; None without a copy that can be read."""
        key = topic, partition
        if key not in self._ends:
            self.look_at({key: ()})
        return self._ends[key]

    def ends_for(
        self, topic: str, partition: int, topic_id: str | None, committed_ms: int | None = None
    ) -> LogEnds | None:
        """Return the same for one topic of that name; None where the copy is of a former or later one (``DD-4``).

        Args:
            topic_id: None where it is not known. Then any will do, unless it was made after the commit.
            committed_ms: the time of the commit; None where it is not known.
        """
        return self.ends(topic, partition) if self.is_of_copy(topic, partition, topic_id, committed_ms) else None

    def is_of_copy(self, topic: str, partition: int, topic_id: str | None, committed_ms: int | None = None) -> bool:
        """Return whether an offset counts records of the copy, not of a former or later topic of that name (``DD-4``).

        Args:
            topic_id, committed_ms: as of `ends_for`.
        """
        if topic_id is None:
            return self.made_after(topic, partition, committed_ms) is None
        own = self.topic_id(topic, partition)
        return own is None or str(own) == topic_id

    def made_after(
        self, topic: str, partition: int, committed_ms: int | None, topic_id: Uuid | None = None
    ) -> int | None:
        """Return when a topic was made, if that was after a commit, which then was for a former one (``DD-4``).

        Args:
            committed_ms: the time of the commit; None, 0 or below where it is not known.
            topic_id: of the topic; None for that of the copy that counts.
        """
        if committed_ms is None or not 0 < committed_ms < self.newest_made_ms(topic):
            return None
        own = topic_id or self.topic_id(topic, partition)
        own_ms = None if own is None else self._made[0].get(own)
        return own_ms if own_ms is not None and committed_ms < own_ms else None

    def newest_made_ms(self, topic: str) -> int:
        """Return when the newest topic of a name was made; −1 where the metadata does not tell."""
        return self._made[1].get(topic, -1)

    @cached_property
    def _made(self) -> tuple[dict[Uuid, int], dict[str, int]]:
        """Topic id → when it was made; name → when the newest topic of that name was."""
        made_ms, newest_ms = dict[Uuid, int](), dict[str, int]()
        for topic in self._ask_made():
            if topic.created_at_ms is not None:
                made_ms[topic.topic_id] = topic.created_at_ms
                newest_ms[topic.name] = max(topic.created_at_ms, newest_ms.get(topic.name, -1))
        return made_ms, newest_ms

    def chosen(self, topic: str) -> list[CopiedPartition]:
        """Return the copies that count of a topic's partitions, in their order."""
        partitions = sorted(partition for name, partition in self._copies if name == topic)
        self.find((topic, partition) for partition in partitions)
        ends = {partition: self.ends(topic, partition) for partition in partitions}
        return [self._chosen[topic, partition] for partition in partitions if ends[partition] is not None]

    def copy_that_counts(self, topic: str, partition: int) -> CopiedPartition | None:
        """Return the copy of one partition that counts; None without one that can be read."""
        return None if self.ends(topic, partition) is None else self._chosen.get((topic, partition))

    def look_at(self, asked: Mapping[TopicPartition, Collection[int]]) -> None:
        """Find the ends of logs, each file opened once, and when the records at offsets in them were written."""
        copies = {key: self._copies.get(key, []) for key in asked}
        dating = [asked[key] if len(some) == 1 else () for key, some in copies.items() for _ in some]
        read = self._in_order(self._read, [copy for some in copies.values() for copy in some], dating)
        for key, some in copies.items():
            found = [(copy, ends) for copy in some if (ends := self._noting_damage(next(read))) is not None]
            self._ends[key] = self._choose(key, found, asked[key])

    def find(self, keys: Iterable[TopicPartition]) -> None:
        """Find the ends of those logs that were not looked at."""
        self.look_at({key: () for key in keys if key not in self._ends})

    def topic_id(self, topic: str, partition: int) -> Uuid | None:
        """Return the id that the copy that counts tells; None where it tells none."""
        key = topic, partition
        if key not in self._topic_ids:
            self._topic_ids[key] = None if self.ends(topic, partition) is None else self._read_topic_id(key)
        return self._topic_ids[key]

    def _read_topic_id(self, key: TopicPartition) -> Uuid | None:
        if key not in self._chosen:
            return self._told.topic_ids.get(key[0])
        copy = self._chosen[key]
        try:
            data = copy.read(PARTITION_METADATA)
            return None if data is None else decode_partition_metadata(data, f"{copy.shown_path}/{PARTITION_METADATA}")
        except OffsetsLogError as error:
            self._damage(error)
            return None

    def partition_count(self, topic: str) -> int:
        """Return how many partitions of a topic have a copy."""
        return sum(name == topic for name, _ in self._copies)

    def partitions(self) -> list[TopicPartition]:
        """Return those that have a copy, or an end that was told, rising."""
        return sorted({*self._copies, *self._told.spans})

    def _damage(self, error: OffsetsLogError) -> None:
        """Note it, once however often the file is asked."""
        self._damages.setdefault(str(error), Damage(error, b""))

    def _choose(
        self, key: TopicPartition, found: Sequence[tuple[CopiedPartition, LogEnds]], dating: Collection[int]
    ) -> LogEnds | None:
        if key not in self._copies:
            return self._told.ends(*key)
        if not found:
            return None
        copy, ends = self._best(key, found)
        if len(self._copies[key]) > 1 and dating:
            ends = self._noting_damage(self._read(copy, dating)) or ends
        if ends.problem:
            self._notes[f"the log of {key[0]}-{key[1]} ends before what cannot be read: {ends.problem}"] = None
        self._chosen[key] = copy
        if ends.is_short:
            self._miss(key, ends)
        if ends.newest_timestamp_ms is not None:
            self.newest_timestamp_ms = max(ends.newest_timestamp_ms, self.newest_timestamp_ms or 0)
        return ends

    def _miss(self, key: TopicPartition, ends: LogEnds) -> None:
        """Note a copy that ends before the high watermark noted beside it.

        A running broker's checkpoints may be copied after its logs; after an orderly stop nothing explains it.
        """
        topic, partition = key
        words = f"ends at offset {ends.log_end_offset} and had reached {ends.high_watermark}, the high watermark noted"
        if ends.is_clean:
            error = MissingLogError(f"the log {words} at an orderly stop: its end is missing", file=ends.directory)
            self._short.setdefault(topic, {})[partition] = Damage(error, b"")
            if topic not in INTERNAL_TOPICS:
                self._damage(error)
        elif topic not in INTERNAL_TOPICS:
            self._notes[f"the copy of the log of {topic}-{partition} {words} by the running broker"] = None

    def short(self, topic: str) -> list[Damage]:
        """Return, for the copies of a topic's logs that were looked at, those that lack their end."""
        return list(self._short.get(topic, {}).values())

    def _noting_damage(self, read: LogEnds | OffsetsLogError | None) -> LogEnds | None:
        if isinstance(read, OffsetsLogError):
            self._damage(read)
            return None
        return read

    def _read(self, copy: CopiedPartition, dating: Collection[int]) -> LogEnds | OffsetsLogError | None:
        noted, key = self._noted_in(copy.above), (copy.topic, copy.partition)
        try:
            return find_log_ends(
                copy,
                log_start_offset=noted.log_starts.get(key),
                high_watermark=noted.high_watermarks.get(key),
                is_clean=noted.is_clean,
                dating=[offset for offset in dating if offset >= copy.dated_from] if copy.dated_from else dating,
            )
        except OffsetsLogError as error:
            return error

    def _best(
        self, key: TopicPartition, found: Sequence[tuple[CopiedPartition, LogEnds]]
    ) -> tuple[CopiedPartition, LogEnds]:
        """Return the copy of the latest leader epoch and, of these, the longest.

        The last leader's own, undamaged, is of the epoch in which it led: what others have beyond it counts only if it
        was written in that epoch, which is later.
        """
        if len(found) == 1:
            return found[0]
        leader = self._leaders.get(key)
        ranks = [self._rank(copy, ends, leader) for copy, ends in found]
        copy, ends = found[ranks.index(max(ranks))]
        is_leaders = leader is not None and copy.shown_path in leader.directories
        (self._of_leaders if is_leaders else self._of_others).add(key)
        end = ends.log_end_offset
        counts = f"{key[0]}-{key[1]}: {copy.shown_path} counts, which ends at {end}"
        if leader is not None and leader.directories and not is_leaders:
            own = max(one.log_end_offset for other, one in found if other.shown_path in leader.directories)
            why = f"ends at {own}" if own < end else "is damaged"
            led = f"that of broker {leader.node_id}, which led it last in leader epoch {leader.epoch}"
            self._notes[f"{counts}; {led}, {why}"] = None
        longest, place = max((one.log_end_offset, other.shown_path) for other, one in found)
        if longest > end:
            beyond = f"what {place} has up to {longest} was written in an earlier leader epoch"
            self._notes[f"{counts}; {beyond}"] = None
        return copy, ends

    def _rank(self, copy: CopiedPartition, ends: LogEnds, leader: LeaderCopies | None) -> tuple[int, int, bool, bool]:
        epoch = max((ends.leader_epoch, *self._noted_epochs(copy)))
        is_leaders = leader is not None and copy.shown_path in leader.directories
        if leader is not None and is_leaders and not ends.problem:
            epoch = max(epoch, leader.epoch)
        return epoch, ends.log_end_offset, not ends.problem, is_leaders

    def _noted_epochs(self, copy: CopiedPartition) -> Iterable[int]:
        try:
            data = copy.read(LEADER_EPOCHS)
            return () if data is None else decode_leader_epoch_checkpoint(data, f"{copy.shown_path}/{LEADER_EPOCHS}")
        except OffsetsLogError as error:
            self._damage(error)
            return ()

    def _noted_in(self, above: Mapping[str, Opener]) -> _Noted:
        if id(above) not in self._noted:
            self._noted[id(above)] = _Noted(
                self._checkpoint(above, HIGH_WATERMARKS), self._checkpoint(above, LOG_STARTS), CLEAN_SHUTDOWN in above
            )
        return self._noted[id(above)]

    def _checkpoint(self, above: Mapping[str, Opener], name: str) -> Mapping[TopicPartition, int]:
        if name not in above:
            return {}
        try:
            return decode_offset_checkpoint(above[name](), name)
        except OffsetsLogError as error:
            self._damage(error)  # it says nothing of any partition, as to a broker
            return {}
