"""Answers of the coordinator, in the terms of Kafka's responses."""

from __future__ import annotations

from dataclasses import dataclass, field

from offsets_log.coordinator.errors import CoordinatorError, Errors
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.partial import OffsetAndMetadata

TopicPartition = tuple[str, int]
Answers = dict[TopicPartition, Errors]


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """The answer for one partition of a topic; −1 without an error means that there is no offset."""

    committed_offset: int = -1
    leader_epoch: int | None = None
    metadata: str = ""
    error: Errors = Errors.NONE


NO_OFFSET = FetchedOffset()
UNSTABLE = FetchedOffset(error=Errors.UNSTABLE_OFFSET_COMMIT)


def fetched(value: OffsetAndMetadata | None) -> FetchedOffset:
    """Return the answer for a committed offset."""
    return NO_OFFSET if value is None else FetchedOffset(value.committed_offset, value.leader_epoch, value.metadata)


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A row of ListGroups; ``protocol_type`` is "" for a simple group."""

    group: str
    type: str
    protocol_type: str
    state: str


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The broker that coordinates a group: the leader of its offsets partition."""

    offsets_partition: int
    broker: int


@dataclass(slots=True)
class Cycle:
    """The result of one round of expiry.

    Attributes:
        written: offsets partition → the tombstones that were written.
        failed: offsets partition → why not all could be written; the next round tries again (``E-3``).
    """

    written: dict[int, list[CoordinatorRecord]] = field(default_factory=dict)
    failed: dict[int, CoordinatorError] = field(default_factory=dict)
