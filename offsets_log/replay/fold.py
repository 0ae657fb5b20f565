"""Events folded into a state: which record changes it, and which one would end a coordinator's load."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from offsets_log.errors import Damage
from offsets_log.events import BatchEnd, BatchStart, Event, LogEnd, LogEvent
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.control_record import UNTOLD
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.partial import (
    EndTransactionMarker,
    GroupTopicPartition,
    OffsetAndMetadata,
    offset_and_metadata,
)
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.refusal import Verdict, refusal_of_batch, verdict_on
from offsets_log.replay.topic_names import topic_names_in

OnDamage = Callable[[Damage], None]
"""What to do with a piece that could not be read: count it, keep it, or raise its error."""


class State(Protocol):
    """What records are replayed into: `PartialState`, or its like for bulk."""

    profile: Profile
    problems: list[Problem]
    end_offset: int

    def add_offset(self, value: OffsetAndMetadata, transactional: bool, number: int | None = None) -> None:
        """Take a type 0 or 1 record with a value."""

    def add_tombstone(
        self, key: GroupTopicPartition, record_offset: int, producer_id: int, transactional: bool
    ) -> None:
        """Take a type 0 or 1 record without a value."""

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Take the end of a transaction."""

    def add_group_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """Take a record of any other type."""

    def add_topic_name(self, topic_id: bytes, name: str, record_offset: int) -> None:
        """Take what a record tells of a topic id."""


class TakesNothing:
    """The records' part of what they are replayed into, where something else is asked of them."""

    def add_offset(self, value: OffsetAndMetadata, transactional: bool, number: int | None = None) -> None:
        """Do nothing."""

    def add_tombstone(
        self, key: GroupTopicPartition, record_offset: int, producer_id: int, transactional: bool
    ) -> None:
        """Do nothing."""

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Do nothing."""

    def add_group_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """Do nothing."""

    def add_topic_name(self, topic_id: bytes, name: str, record_offset: int) -> None:
        """Do nothing."""


@dataclass(slots=True)
class FoundProblems(TakesNothing):
    """The problems that end a load; other effects of the events are recorded elsewhere."""

    profile: Profile
    problems: list[Problem] = field(default_factory=list)
    end_offset: int = 0


def replay_into(state: State, events: Iterable[LogEvent], *, on_damage: OnDamage) -> None:
    """Fold the events that follow into a state."""
    profile = state.profile
    control_batch: RecordBatch | None = None
    for event in events:
        match event:
            case Damage():
                on_damage(event)
            case BatchStart(batch=batch):
                if (refused := refusal_of_batch(batch, profile)) is not None:
                    state.problems.append(refused)
            case BatchEnd(read_until=end_offset) | LogEnd(end_offset):
                state.end_offset = max(state.end_offset, end_offset)
            case Event() if event.batch.is_control:
                is_first = event.batch is not control_batch
                control_batch = event.batch
                if is_first or not profile.reads_first_control_record_only:
                    _replay_control(state, event, on_damage)
            case Event():
                _replay_data(state, event, on_damage)


def _replay_control(state: State, event: Event, on_damage: OnDamage) -> None:
    if event.damage is not None:
        on_damage(event.damage)
        state.problems.append(Problem(event.record.offset, "records:C2", event.damage.error.problem))
        return
    assert event.control is not None
    if event.control.type == UNTOLD or event.control.ends_transaction or state.profile.unknown_marker_aborts:
        commit = None if event.control.type == UNTOLD else event.control.type == "COMMIT"
        state.add_marker(event.batch.producer_id, EndTransactionMarker(commit, event.record.offset))


def _replay_data(state: State, event: Event, on_damage: OnDamage) -> None:
    """Replay what can be read, also where a load would end; note where it would."""
    error = None
    if event.damage is not None:
        on_damage(event.damage)
        error = event.damage.error
    verdict = verdict_on(event.record, event.decoded, error, state.profile)
    if isinstance(verdict, Problem):
        state.problems.append(verdict)
    if event.decoded is not None:
        for topic_id, name in topic_names_in(event.decoded):
            state.add_topic_name(topic_id, name, event.record.offset)
        if verdict is not Verdict.SKIP:
            replay_record(state, event, event.decoded)


def replay_record(state: State, event: Event, record: CoordinatorRecord) -> None:
    """Replay a record of data that was decoded."""
    batch, record_offset = event.batch, event.record.offset
    if not record.is_offset_commit:
        state.add_group_record(record, record_offset)
        return
    transactional, place = state.profile.is_transactional(batch), place_of(state, event)
    if record.is_tombstone:
        state.add_tombstone(record.group_topic_partition, place, batch.producer_id, transactional)
        return
    value, number = offset_and_metadata(record, record_offset, batch.producer_id, batch.producer_epoch), None
    if place != record_offset and not transactional:
        value = value._replace(applied_offset=place)
        number = event.batch_base_offset if state.profile.latest_by == "batch" else None
    state.add_offset(value, transactional, number)


def place_of(state: State, event: Event) -> int:
    """Return where a record stands among batches: at its offset, or at its batch's if it leaves it (``records:M5``)."""
    return max(state.end_offset, min(event.record.offset, event.batch.last_offset))
