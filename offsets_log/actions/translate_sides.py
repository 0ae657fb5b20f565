"""The two sides of a translation, and the questions that are asked of their logs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from offsets_log.data_directory.checkpoints import decode_leader_epoch_checkpoint
from offsets_log.data_directory.copied_logs import CopiedLogs, CopiedPartition
from offsets_log.data_directory.metadata_copies import ClusterMetadata
from offsets_log.disk.translating import Made, Question, run_each
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.errors import Damage, InputError, OffsetsLogError
from offsets_log.log_format.file_names import LEADER_EPOCHS
from offsets_log.translation.answers import Untold

Committed = Mapping[int, Sequence[int]]
"""Partition → committed offsets."""
"""Answers questions, in their order."""
T = TypeVar("T")


class Side:
    """The copied logs of one cluster's topics, and what its metadata says of them; or nothing of both.

    Attributes:
        logs: None if no copy is given.
    """

    def __init__(self, logs: CopiedLogs | None = None, metadata: ClusterMetadata | None = None) -> None:
        self.logs = logs
        self._metadata = metadata
        self._chosen: dict[str, dict[int, CopiedPartition]] = {}

    @property
    def topics(self) -> Collection[str]:
        """The topics of which there is a log."""
        return () if self.logs is None else self.logs.topics

    def copies(self, topic: str) -> dict[int, CopiedPartition]:
        """Return the partitions of a topic, each in the copy that counts."""
        if self.logs is None:
            return {}
        if topic not in self._chosen:
            self._chosen[topic] = {copy.partition: copy for copy in self.logs.chosen(topic)}
        return self._chosen[topic]

    def policies(self, topic: str) -> frozenset[str]:
        """Return what happens to old records of a topic; nothing where that is not known."""
        return frozenset() if self._metadata is None else self._metadata.cleanup_policies(topic)

    def log_end(self, topic: str, partition: int) -> int | None:
        """Return where the log of a partition ends, if the copy tells."""
        ends = None
        if self.logs is not None and partition in self.copies(topic):
            ends = self.logs.ends(topic, partition)
        return None if ends is None or ends.is_short or ends.problem else ends.log_end_offset

    def leader_epoch(self, topic: str, partition: int, offset: int) -> int | None:
        """Return the leader epoch of an offset, by the checkpoint beside the log."""
        copy = self.copies(topic).get(partition)
        try:
            data = None if copy is None else copy.read(LEADER_EPOCHS)
            epochs = {} if data is None else decode_leader_epoch_checkpoint(data, LEADER_EPOCHS)
        except OffsetsLogError:
            return None
        return max((epoch for epoch, start in epochs.items() if start <= offset), default=None)


class Asking:
    """Asks questions, and notes what could not be read or is doubtful, once however often it is met.

    Attributes:
        damages: what could not be read.
        doubts: what is to be said of answers, a sentence each.
    """

    def __init__(self) -> None:
        self.damages: list[Damage] = []
        self.doubts: list[str] = []

    def each(
        self, asked: Mapping[int, Question[dict[int, T | Untold]]], committed: Committed
    ) -> dict[int, dict[int, T | Untold]]:
        """Return what is told of each partition; where a problem ends it, the reason for each offset."""
        found: dict[int, dict[int, T | Untold]] = {}
        for number, made in zip(asked, run_each(asked.values()), strict=True):
            try:
                found[number] = self.take(made)
            except InputError as error:
                found[number] = dict.fromkeys(committed[number], Untold(str(error)))
        return found

    def take(self, made: Made[T]) -> T:
        """Note what could not be read; return the answer. Raises OffsetsLogError where a problem ended it."""
        for damage in made.damages:
            self.note(damage)
        if made.problem is not None:
            raise made.problem
        assert made.value is not None
        return made.value

    def note(self, damage: Damage) -> None:
        """Note a piece that cannot be read."""
        if str(damage.error) not in {str(one.error) for one in self.damages}:
            self.damages.append(damage)

    def doubt(self, sentence: str) -> None:
        """Note what is doubtful."""
        if sentence not in self.doubts:
            self.doubts.append(sentence)


def is_here(copy: CopiedPartition) -> bool:
    """Return whether the whole log is here, and not only its end."""
    return isinstance(copy, UserPartition)
