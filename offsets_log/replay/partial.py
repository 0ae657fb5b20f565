"""Replay the offsets of a piece of a log, and join the results of two pieces: the only replay of offsets there is.

A `PartialState` is the effect of a run of records of one offsets partition. Joining the states of two neighbouring runs
(`PartialState.merge`) gives the state of both together, wherever the log was cut, even inside a transaction or between
a value and its tombstone. A sequential reader adds records to one state; threads and Spark merge many.

These are the rules; m(x) is the offset of the commit marker of a transactional value x, r(x) its record offset:

* A value is *applied* at r(x) if it is plain (``J-7``, ``L-17``), at m(x) if its transaction committed (``J-11``,
  ``L-13``), and never if it aborted (``J-10``, ``L-12``); it is *pending* until its marker is read (``J-8``).
* A plain value becomes the committed offset, whatever the numbers are: records are taken in the order of the file.
* modern: a tombstone at t ends every value with r(x) < t, including pending ones of all producers (``J-12``); at m(x)
  a value replaces a committed one with a lower r (``J-11``, ``J-9``).
* classic: a plain tombstone at t ends every value applied before t and no pending one (``L-18``, ``L-19``); a
  transactional one cancels the pending value of its own producer only; at m(x) a value replaces one of an earlier batch
  (``L-13``, ``L-9``).
* modern-3.7: a tombstone ends every value applied before t; at m(x) a value replaces any other.
* In the log r(x) rises, but for messages that leave the place of the old wrapper around them (``records:M5``): those
  are ended and applied as records of the wrapper's place, where the log goes on behind it (``L-8``).
* A marker of a producer with nothing open does nothing (``L-14``), nor does a control batch without a record
  (``records:C5``). Any int64 is an offset (``B-13``). The answer is that of the cleaned log (``C-12``), except where
  ``C-21`` applies.
* Markers match data by producer id alone (``J-13``, ``B-10``). Type 0 and type 1 keys name the same thing (``L-22``).

So a run has to remember, per GroupTopicPartition, the winner and the *last tombstone*, which ends values of earlier
runs even if a later value beat it. Per producer it has to remember the *head* (the first marker, which decides values
of earlier runs), the values cancelled before it, and the *open* values after the last marker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from offsets_log.log_format.batch import UNTOLD_PRODUCER_ID
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.timeline import Timeline

NO_OFFSET = -1

GroupTopicPartition = tuple[str, str, int]


class OffsetAndMetadata(NamedTuple):
    """A committed or pending offset, with the fields of the broker's class of that name.

    Attributes:
        leader_epoch, expire_timestamp_ms, topic_id: None where the record has −1 or nothing (``L-23``).
        record_offset: offset of the record in the log.
        applied_offset: where it took effect: its own place in the log, or that of its commit marker.
        producer_id, producer_epoch: those of its transaction; −1 for a plain commit.
    """

    group: str
    topic: str
    partition: int
    committed_offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    topic_id: str | None
    record_offset: int
    applied_offset: int
    producer_id: int
    producer_epoch: int

    @property
    def key(self) -> GroupTopicPartition:
        """The group, topic and partition that it is the offset of."""
        return self.group, self.topic, self.partition


def offset_and_metadata(
    record: CoordinatorRecord, record_offset: int, producer_id: int, producer_epoch: int
) -> OffsetAndMetadata:
    """Return the offset that a type 0 or 1 record with a value commits."""
    key, value = record.key, record.value
    assert value is not None
    leader_epoch = value.get("leader_epoch", -1)
    expire = value.get("expire_timestamp", -1)
    topic_id = value.get("topic_id")
    return OffsetAndMetadata(
        group=key["group"],
        topic=key["topic"],
        partition=key["partition"],
        committed_offset=value["offset"],
        leader_epoch=None if leader_epoch == -1 else leader_epoch,
        metadata=value["metadata"],
        commit_timestamp_ms=value["commit_timestamp"],
        expire_timestamp_ms=None if expire == -1 else expire,
        topic_id=str(topic_id) if topic_id and any(topic_id) else None,
        record_offset=record_offset,
        applied_offset=record_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


@dataclass(slots=True)
class KeyState:
    """A GroupTopicPartition in a run: the winner, and the last tombstone that ends committed values.

    Attributes:
        number: by which another value is later than the winner (`Profile.latest_by`), if not by its record offset.
    """

    committed: OffsetAndMetadata | None = None
    tombstone_offset: int = NO_OFFSET
    number: int | None = None

    @property
    def last_change(self) -> int:
        """Where the winner was applied, or else where the last tombstone is."""
        return self.tombstone_offset if self.committed is None else self.committed.applied_offset


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """The end of a transaction; ``commit`` is None where a text does not tell whether it was committed."""

    commit: bool | None
    record_offset: int


@dataclass(slots=True)
class ProducerState:
    """One producer id in a run.

    Attributes:
        head: the first marker, which decides what earlier runs left open.
        cancelled: what the producer's own tombstones cancelled before the head, or in the whole run without one.
        open: pending values after the last marker: the last value of each GroupTopicPartition.
    """

    head: EndTransactionMarker | None = None
    cancelled: set[GroupTopicPartition] = field(default_factory=set)
    open: dict[GroupTopicPartition, OffsetAndMetadata] = field(default_factory=dict)

    @property
    def head_offset(self) -> int:
        """Where the head is; `NO_OFFSET` without one."""
        return NO_OFFSET if self.head is None else self.head.record_offset


class PartialState:
    """The effect of a run of records. Add records in log order, or merge with the run that follows."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.keys: dict[GroupTopicPartition, KeyState] = {}
        self.producers: dict[int, ProducerState] = {}
        self.timelines: dict[str, Timeline] = {}
        self.problems: list[Problem] = []
        self.topic_names: dict[bytes, str] = {}
        self.end_offset = 0

    # ------------------------------------------------------------------------------------- adding records

    def add_offset(self, value: OffsetAndMetadata, transactional: bool, number: int | None = None) -> None:
        """Replay a type 0 or 1 record with a value.

        Args:
            number: of a plain value what it is in `KeyState`.
        """
        self._timeline(value.group).add_offset(value.record_offset)
        if transactional:
            self._producer(value.producer_id).open[value.key] = value
        else:
            self._commit(value, number)

    def add_tombstone(
        self, key: GroupTopicPartition, record_offset: int, producer_id: int, transactional: bool
    ) -> None:
        """Replay a type 0 or 1 record without a value (``J-12``, ``L-18``)."""
        if not (transactional and self.profile.tombstone_spares_committed):
            self._end(key, record_offset)
        match self.profile.cancels_pending:
            case "all":
                for producer in self.producers.values():
                    producer.open.pop(key, None)
            case "own" if transactional:
                producer = self._producer(producer_id)
                producer.open.pop(key, None)
                if producer.head is None:
                    producer.cancelled.add(key)

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Replay the end of a transaction; the next one of this producer starts with nothing (``L-15``)."""
        producer = self._producer(producer_id)
        if marker.commit is None:
            self._producer(UNTOLD_PRODUCER_ID).open |= producer.open
        elif marker.commit:
            for value in producer.open.values():
                self._apply(value, marker)
        producer.open = {}
        producer.head = producer.head or marker

    def add_group_record(self, record: CoordinatorRecord, record_offset: int) -> None:
        """Replay a record of any other type."""
        self._timeline(record.group).add_record(record, record_offset)

    def add_topic_name(self, topic_id: bytes, name: str, record_offset: int) -> None:
        """Note the name of a topic id in a record; the last name read wins."""
        self.topic_names[topic_id] = name

    # --------------------------------------------------------------------------------------------- merging

    def merge(self, right: PartialState) -> PartialState:
        """Join with the run that follows; this state becomes that of both. ``right`` must not be used afterwards."""
        self._merge_keys(right)
        for producer_id, later in sorted(right.producers.items(), key=lambda item: item[1].head_offset):
            self._merge_producer(self._producer(producer_id), later, right.keys)
        for group, timeline in right.timelines.items():
            self._timeline(group).extend(timeline)
        self.problems += right.problems
        self.topic_names |= right.topic_names
        self.end_offset = max(self.end_offset, right.end_offset)
        return self

    def _merge_keys(self, right: PartialState) -> None:
        for key, later in right.keys.items():
            if later.tombstone_offset > NO_OFFSET:
                self._end(key, later.tombstone_offset)
                if self.profile.cancels_pending == "all":
                    for producer in self.producers.values():
                        producer.open.pop(key, None)
            if later.committed is not None:
                self._commit(later.committed, later.number)

    def _merge_producer(
        self, earlier: ProducerState, later: ProducerState, keys: dict[GroupTopicPartition, KeyState]
    ) -> None:
        for key in later.cancelled:
            earlier.open.pop(key, None)
        if earlier.head is None:
            earlier.cancelled |= later.cancelled
        if later.head is not None:
            if later.head.commit:
                for value in earlier.open.values():
                    if value.key not in keys or later.head.record_offset > keys[value.key].last_change:
                        self._apply(value, later.head)
            earlier.open = {}
            earlier.head = earlier.head or later.head
        earlier.open.update(later.open)

    # ------------------------------------------------------------------------------------------- the rules

    def _commit(self, value: OffsetAndMetadata, number: int | None = None) -> None:
        state = self._key(value.key)
        state.committed, state.number = value, number

    def _apply(self, value: OffsetAndMetadata, marker: EndTransactionMarker) -> None:
        if self._would_take(value):
            self._commit(value._replace(applied_offset=marker.record_offset))

    def _would_take(self, value: OffsetAndMetadata) -> bool:
        held = self._key(value.key)
        return held.committed is None or self._is_later(value, held, held.committed)

    def _is_later(self, value: OffsetAndMetadata, held: KeyState, committed: OffsetAndMetadata) -> bool:
        if self.profile.latest_by == "marker":
            return True
        return value.record_offset > (committed.record_offset if held.number is None else held.number)

    def _end(self, key: GroupTopicPartition, tombstone_offset: int) -> None:
        state = self._key(key)
        state.tombstone_offset, state.committed, state.number = tombstone_offset, None, None

    # ------------------------------------------------------------------------------------------- the parts

    def _key(self, key: GroupTopicPartition) -> KeyState:
        return self.keys.setdefault(key, KeyState())

    def _producer(self, producer_id: int) -> ProducerState:
        return self.producers.setdefault(producer_id, ProducerState())

    def _timeline(self, group: str) -> Timeline:
        return self.timelines.setdefault(group, Timeline())

    def iter_committed(self) -> Iterator[OffsetAndMetadata]:
        """Yield the committed offset of every GroupTopicPartition that has one."""
        return (state.committed for state in self.keys.values() if state.committed is not None)

    def iter_untold(self) -> Iterator[GroupTopicPartition]:
        """Yield keys whose answer would be another if the commits of `UNTOLD_PRODUCER_ID` had taken effect."""
        untold = self.producers.get(UNTOLD_PRODUCER_ID, ProducerState())
        return (key for key, value in untold.open.items() if self._would_take(value))

    def iter_pending(self) -> Iterator[OffsetAndMetadata]:
        """Yield values of transactions that were open at the end of the run."""
        return (
            value
            for producer_id, producer in self.producers.items()
            if producer_id != UNTOLD_PRODUCER_ID
            for value in producer.open.values()
        )
