"""Logs of trials under real brokers: what is expected of one, what a command made of it, what lies under a broker."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from offsets_log.broker.recovery import open_log
from offsets_log.disk.reader import open_logs
from offsets_log.errors import Damage
from offsets_log.events import Event
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, iter_log
from offsets_log.log_format.segment import Tail
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.releases import release_named
from tests.repairing.under_broker import Answer


@dataclass(slots=True)
class Given:
    """A log, and what is expected of its partitions.

    Attributes:
        sound: partitions without anything that cannot be read, or that a broker's recovery does not take.
        mended: states of sound partitions that do not load, without the records that end the load.
        named: groups of each partition's records, gone or not.
        covered: record offsets of each partition whose keys come again: a broker's cleaner drops them.
    """

    folder: Path
    states: dict[int, CoordinatorState]
    sound: set[int]
    mended: dict[int, CoordinatorState]
    covered: dict[int, set[int]]
    named: dict[int, set[str]]

    @classmethod
    def of(cls, folder: Path, release: str) -> Given:
        """Read it once."""
        with states_of(folder, release) as (logs, states):
            sound = {partition for partition, log in logs.items() if _is_sound(log)}
            mended = {
                partition: _state(logs[partition], release, without=ends_of_load(states[partition]))
                for partition in sound
                if ends_of_load(states[partition])
            }
            covered = {partition: _covered(log) for partition, log in logs.items()}
            return cls(folder, states, sound, mended, covered, {number: _named(log) for number, log in logs.items()})

    @property
    def loading(self) -> set[int]:
        """Sound partitions that load on the release."""
        return self.sound - set(self.mended)

    @property
    def partitions(self) -> int:
        """So many the topic had."""
        return next(number for number in (4, 40, 50) if max(self.states) < number)

    def answers(self, partition: int, operation: str) -> set[Answer]:
        """Of the groups that a client finds there."""
        state = self.states[partition]
        return answers_of(
            self.mended.get(partition, state) if operation == "surgery" else state, partition, self.partitions
        )

    def covered_answers(self, partition: int) -> set[Answer]:
        """Those that a broker's cleaner takes away, though the load lets them stand."""
        state, covered = self.states[partition], self.covered[partition]
        committed = tuple(value for value in state.committed if value.record_offset in covered)
        return answers_of(replace(state, committed=committed), partition, self.partitions)

    def groups(self, partition: int) -> set[str]:
        """All that a client looks for there."""
        return {group for group in self.named[partition] if partition_for(group, self.partitions) == partition}


@contextmanager
def states_of(folder: Path, release: str) -> Iterator[tuple[dict[int, PartitionLog], dict[int, CoordinatorState]]]:
    with open_logs([str(folder)]) as opened:
        logs = {log.offsets_partition: log for log in opened.logs if log.offsets_partition is not None}
        yield logs, {partition: _state(log, release) for partition, log in logs.items()}


def _state(log: PartitionLog, release: str, without: Collection[int] = ()) -> CoordinatorState:
    events = (event for event in iter_events(log) if not (isinstance(event, Event) and event.record.offset in without))
    return finish(replay(events, release_named(release).profile, on_damage=lambda damage: None))


def _covered(log: PartitionLog) -> set[int]:
    newest: dict[bytes, int] = {}
    found = set()
    for event in iter_events(log):
        if isinstance(event, Event) and event.control is None and event.record.key is not None:
            found.add(newest.get(event.record.key, -1))
            newest[event.record.key] = event.record.offset
    return found


def _named(log: PartitionLog) -> set[str]:
    events = (event for event in iter_events(log) if isinstance(event, Event))
    return {event.decoded.group for event in events if event.decoded is not None}


def ends_of_load(state: CoordinatorState) -> list[int]:
    """Offsets of records that end the load."""
    return sorted({problem.record_offset for problem in state.problems if not problem.is_served})


def answers_of(state: CoordinatorState, offsets_partition: int, partitions: int) -> set[Answer]:
    return {
        (
            value.group, value.topic, value.partition, value.committed_offset, value.metadata,
            None if (value.leader_epoch or 0) < 0 else value.leader_epoch,
        )
        for value in state.iter_served()
        if value.committed_offset >= 0 and partition_for(value.group, partitions) == offsets_partition
    }  # fmt: skip


def _is_sound(log: PartitionLog) -> bool:
    if any(isinstance(item, Damage) or (isinstance(item, Tail) and item.kind == "torn") for _, item in iter_log(log)):
        return False
    bare = replace(log, beside={}, checkpoints=Checkpoints())
    recovered = open_log(bare, stopped_cleanly=False, finds_by_base_offset=True)
    if recovered.refusal is not None or recovered.cuts:
        return False
    return not any(isinstance(event, Damage) for event in iter_events(log))


@dataclass(slots=True)
class Made:
    """What a command made of a log.

    Attributes:
        dropped: groups that are to be answered no more.
        changed: partitions that answer otherwise by what `repair` says.
    """

    folder: Path
    partitions: set[int]
    dropped: set[str] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)


Difference = tuple[str, Answer]
"""``lacks`` or ``has``, and what."""


@dataclass(slots=True)
class Case:
    """What lies under one broker.

    Attributes:
        operations: operation that made each partition.
        expected: answers to its first question; to its second also ``committed``.
        covered: answers that a round of the broker's cleaner may take away.
    """

    folder: Path
    partitions: int
    operations: dict[int, str]
    data: Path
    expected: set[Answer]
    committed: set[Answer]
    covered: set[Answer] = field(default_factory=set)

    def named(self, difference: Difference) -> str:
        """A line that says where it is."""
        kind, answer = difference
        partition = partition_for(answer[0], self.partitions)
        return f"{self.folder} partition {partition} ({self.operation_of(difference)}): {kind} {answer}"

    def operation_of(self, difference: Difference) -> str | None:
        """That made its partition."""
        return self.operations.get(partition_for(difference[1][0], self.partitions))
