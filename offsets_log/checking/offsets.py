"""Find unusual offsets: of open transactions, deleted and about to return, or below zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from offsets_log.checking.findings import DOUBT, NOTE, Finding
from offsets_log.checking.loads import DryRun
from offsets_log.checking.places import FindingPlace
from offsets_log.data_directory.transactions import HANGING, outcome_in_words
from offsets_log.events import Event
from offsets_log.log_format.batch import UNTOLD_PRODUCER_ID
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata
from offsets_log.replay.profile import Profile
from offsets_log.rows.tables import Row
from offsets_log.words import counted

LONGEST_TRANSACTION_MS = 900_000
"""Default of ``transaction.max.timeout.ms``: the coordinator ends every transaction that is open for longer."""


# ------------------------------------------------------------------------------------ open transactions


@dataclass(frozen=True, slots=True)
class Pending:
    """What one transaction would commit, as some releases hold it after the load.

    Attributes:
        groups: the group of each offset; None if no release loads the partition.
        releases: names of the releases; empty for all that load it.
    """

    groups: tuple[str, ...] | None = None
    releases: tuple[str, ...] = ()


class PendingOffsets:
    """What every transaction would commit.

    Each release has its own rule for which offsets a tombstone leaves pending (``J-12``, ``L-18``, ``L-19``).
    """

    def __init__(self, run: DryRun) -> None:
        self._profiles = {load.release.name: load.release.profile for load in run.loads if load.served == "all"}
        self._groups: dict[tuple[Profile, int], Sequence[str]] = {}
        for profile in set(self._profiles.values()):
            for producer_id, groups in run.held[profile].pending.items():
                self._groups[profile, producer_id] = groups

    def of(self, producer_id: int) -> list[Pending]:
        """Return what a producer's transaction would commit, once for all releases that hold the same."""
        releases: dict[tuple[str, ...], list[str]] = {}
        for name, profile in self._profiles.items():
            groups = tuple(sorted(self._groups.get((profile, producer_id), ())))
            releases.setdefault(groups, []).append(name)
        if len(releases) <= 1:
            return [Pending(next(iter(releases), None))]
        return [Pending(groups, tuple(names)) for groups, names in releases.items()]


@dataclass(slots=True)
class OpenTransaction:
    """A transaction without a marker.

    Attributes:
        place: place of its first record.
        first_offset: base offset of its first batch, which the last stable offset cannot pass.
        timestamp_ms: timestamp of its first record, in epoch milliseconds.
    """

    producer_id: int
    producer_epoch: int
    place: FindingPlace
    first_offset: int
    timestamp_ms: int

    def age_ms(self, now_ms: int) -> int | None:
        """Return its age in milliseconds; None if one of the times is unknown."""
        return max(0, now_ms - self.timestamp_ms) if min(now_ms, self.timestamp_ms) >= 0 else None

    def finding(self, now_ms: int, pending: Pending, told: Row | None, *, pins: bool) -> Finding:
        """Return its finding, which is a doubt if it is too old, or known to hang.

        Args:
            now_ms: the time at which its age is taken, in epoch milliseconds.
            pending: what it would commit.
            told: cells of `OUTCOME_COLUMNS`; None if nothing tells what becomes of it.
            pins: whether the last stable offset stays at its beginning.
        """
        age_ms = self.age_ms(now_ms)
        is_old = age_ms is not None and age_ms > LONGEST_TRANSACTION_MS
        hangs = told is not None and told["outcome"] == HANGING
        age = "of unknown age" if age_ms is None else f"{age_ms / 1000:.3f} s old"
        count = None if pending.groups is None else len(pending.groups)
        return Finding(
            severity=DOUBT if is_old or hangs else NOTE,
            rule="C-1",
            problem=f"open transaction of producer id {self.producer_id}, {age}"
            + ("" if count is None else f", {counted(count, 'offset')} pending")
            + (f"; the last stable offset stays at {self.first_offset}" if pins else "")
            + ("; longer than transaction.max.timeout.ms allows" if is_old else "")
            + ("" if told is None else f"; {outcome_in_words(told)}"),
            place=replace(self.place, group=pending.groups[0] if pending.groups else None),
            releases=pending.releases,
            detail={
                "producer_id": self.producer_id,
                "producer_epoch": self.producer_epoch,
                "first_offset": self.first_offset,
                "first_timestamp_ms": self.timestamp_ms,
                "age_ms": age_ms,
                "pending": count,
                "pins_last_stable_offset": pins,
            }
            | (told or {}),
        )


@dataclass(slots=True)
class OpenTransactions:
    """Open transactions by producer id."""

    by_producer: dict[int, OpenTransaction] = field(default_factory=dict)

    def saw_marker(self, producer_id: int) -> None:
        """Note a marker: it ends the producer's transaction, whatever its epoch."""
        self.by_producer.pop(producer_id, None)

    def saw_record(self, event: Event, place: FindingPlace) -> None:
        """Note a data record."""
        batch = event.batch
        is_new = batch.is_transactional and batch.producer_id not in self.by_producer
        if is_new and batch.producer_id != UNTOLD_PRODUCER_ID:
            self.by_producer[batch.producer_id] = OpenTransaction(
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                place=place,
                first_offset=event.batch_base_offset,
                timestamp_ms=event.record.timestamp_ms,
            )

    def findings(self, now_ms: int, run: DryRun, told: Mapping[int, Row]) -> Iterator[Finding]:
        """Yield every open transaction, by its offset; one that releases hold differently, once for each way.

        Args:
            told: producer id → cells of `OUTCOME_COLUMNS`.
        """
        held = PendingOffsets(run)
        by_offset = sorted(self.by_producer.values(), key=lambda transaction: transaction.first_offset)
        for transaction in by_offset:
            pins = transaction.first_offset == by_offset[0].first_offset
            for pending in held.of(transaction.producer_id):
                yield transaction.finding(now_ms, pending, told.get(transaction.producer_id), pins=pins)


# -------------------------------------------------------------------------------------- deleted offsets


@dataclass(slots=True)
class BuriedOffsets:
    """Offsets under a type 0 key that only a type 1 tombstone ends (``C-20``).

    Attributes:
        values: the last value of each under a type 0 key.
        buried: those of them that a type 1 tombstone has ended since.
    """

    values: dict[GroupTopicPartition, FindingPlace] = field(default_factory=dict)
    buried: set[GroupTopicPartition] = field(default_factory=set)

    def saw_offset(self, record: CoordinatorRecord, place: FindingPlace) -> None:
        """Note an offset commit or its tombstone."""
        key = record.group_topic_partition
        self.buried.discard(key)
        if record.record_type == 0:
            self.values.pop(key, None)
            if not record.is_tombstone:
                self.values[key] = place
        elif record.is_tombstone and key in self.values:
            self.buried.add(key)

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each group."""
        by_group: dict[str, list[FindingPlace]] = {}
        for key in self.buried:
            by_group.setdefault(key[0], []).append(self.values[key])
        for _, places in sorted(by_group.items()):
            yield Finding(
                severity=DOUBT,
                rule="C-20",
                problem=f"{counted(len(places), 'deleted offset')} may return: the cleaner drops the tombstone of type "
                "1 and keeps the value of type 0",
                place=min(places, key=lambda place: place.record_offset or 0),
                detail={"offsets": len(places)},
            )


# --------------------------------------------------------------------------------- offsets below zero


def below_zero(values: Iterable[OffsetAndMetadata]) -> Iterator[Finding]:
    """Yield a note for each committed offset below zero (``DD-6``), in the log's order."""
    for value in sorted(values, key=lambda value: value.record_offset):
        yield Finding(
            severity=NOTE,
            rule="DD-6",
            problem=f"the committed offset of {value.topic}-{value.partition} is {value.committed_offset}: consumers "
            "take one below zero for none",
            place=FindingPlace(record_offset=value.record_offset, group=value.group),
            detail={"topic": value.topic, "partition": value.partition, "committed_offset": value.committed_offset},
        )
