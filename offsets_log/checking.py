"""Would this partition load on that release, and what else is wrong with it: what `check` finds.

`PartitionCheck.read` takes the events of one partition once, in pieces: every distinct set of rules replays each piece
and joins it to what it has, until it meets the record that ends the load; a `_Watch` beside them collects what no
replay tells (damage, open transactions, unknown types, …). What a release then says is a `Load`; everything else,
the record that ends a load included, is a `Finding`.

Severities: ``fails`` ends the load of some releases; ``skipped`` is passed over by some with a warning; ``damage`` is
what Kafka cannot have written; ``doubt`` loads but is not as it should be; ``note`` is normal and good to know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from offsets_log.errors import Damage, OffsetsLogError, TruncatedBatchError, UnknownRecordTypeError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.log_format.primitives import MalformedString
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.registry import (
    RECORD_TYPES,
    CoordinatorRecord,
    decode_coordinator_record,
    record_type_of,
)
from offsets_log.pipeline import BatchEnd, BatchStart, Event, LogEvent, OnDamage, TailFound, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.partial import GroupTopicPartition, PartialState
from offsets_log.replay.partition_for import DEFAULT_PARTITIONS, partition_for, positive_hash
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.releases import Release
from offsets_log.survey import describe_tail
from offsets_log.tables import Row, problem_row

FAILS, SKIPPED, DAMAGE, DOUBT, NOTE = "fails", "skipped", "damage", "doubt", "note"

CHECK_COLUMNS = (
    "kind", "offsets_partition", "severity", "releases", "ok", "served", "rule", "problem", "file", "position",
    "record_offset", "group", "detail",
)  # fmt: skip
"""Of both kinds of rows, ``load`` and ``finding``; what does not apply is null."""

LOAD_BUFFER_BYTES = 5_242_880
"""``offsets.load.buffer.size``."""

LONGEST_TRANSACTION_MS = 900_000
"""``transaction.max.timeout.ms``: the coordinator has ended every transaction that is open for longer."""

PIECE = 4096
"""Events that are held at a time."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record or a batch lies."""

    file: str | None = None
    position: int | None = None


NOWHERE = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to know about a partition.

    Attributes:
        releases: names of those it concerns, as they were asked for; empty for all.
        detail: numbers, by name.
    """

    severity: str
    rule: str | None
    problem: str
    place: Place = NOWHERE
    record_offset: int | None = None
    group: str | None = None
    releases: tuple[str, ...] = ()
    detail: dict[str, Any] | None = None

    def row(self, offsets_partition: int | None) -> Row:
        """One row of `CHECK_COLUMNS`."""
        return {
            "kind": "finding",
            "offsets_partition": offsets_partition,
            "severity": self.severity,
            "releases": list(self.releases) or None,
            "ok": None,
            "served": None,
            "rule": self.rule,
            "problem": self.problem,
            "file": self.place.file,
            "position": self.place.position,
            "record_offset": self.record_offset,
            "group": self.group,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class Load:
    """What a release makes of a partition.

    Attributes:
        failure: what ends the load, its group filled in where the record tells it.
    """

    release: Release
    failure: Problem | None
    place: Place = NOWHERE

    @property
    def served(self) -> str:
        """``all``; ``nothing`` (``L-42``, ``J-3``); or, up to 0.10.0, the ``part`` before the record (``L-10``)."""
        if self.failure is None or self.failure.is_served:
            return "all"
        return "part" if self.release.serves_what_it_read else "nothing"

    def row(self, offsets_partition: int | None) -> Row:
        """One row of `CHECK_COLUMNS`."""
        return {
            "kind": "load",
            "offsets_partition": offsets_partition,
            "severity": FAILS if self.failure else None,
            "releases": [self.release.name],
        } | self.verdict()

    def verdict(self) -> Row:
        """Whether it loads, and where not."""
        failure = self.failure
        return {
            "ok": failure is None,
            "served": self.served,
            "rule": failure.rule if failure else None,
            "problem": failure.problem if failure else None,
            "file": self.place.file,
            "position": self.place.position,
            "record_offset": failure.record_offset if failure else None,
            "group": failure.group if failure else None,
            "detail": {"answers": self._answers()} if self.served == "nothing" else None,
        }

    def _answers(self) -> str:
        """To whoever asks for a group of the partition: an error, or that there is nothing (``L-42``, ``J-3``)."""
        return "not_coordinator" if self.release.profile.is_unavailable_after_failure else "empty"


# --------------------------------------------------------------------------------------- one partition


class PartitionCheck:
    """The dry run of one partition on several releases. `read` it, then ask for `loads` and `findings`."""

    def __init__(self, log: PartitionLog, releases: Sequence[Release]) -> None:
        self.log = log
        self.releases = tuple(releases)
        self.loads: list[Load] = []
        self._watch = _Watch()
        self._states: dict[Profile, CoordinatorState] = {}
        self._places: dict[int, tuple[Place, Record | None]] = {}

    def read(self, events: Iterable[LogEvent], on_damage: OnDamage) -> None:
        """Replay all events by the rules of every release.

        Args:
            on_damage: called once for every piece that could not be read.
        """
        running = {release.profile: PartialState(release.profile) for release in self.releases}
        for piece in _pieces(events):
            self._watch.see(piece, on_damage)
            for profile, state in running.items():
                if not state.problems:  # what follows the record that ends a load changes nothing
                    state.merge(replay(piece, profile, on_damage=lambda damage: None))
        self._states = {profile: finish(state) for profile, state in running.items()}
        failures = {release: self._failure(release) for release in self.releases}
        wanted = {failure.record_offset for failure in failures.values() if failure is not None}
        wanted |= {value.record_offset for state in self._states.values() for value in state.iter_orphans()}
        self._places = _find(self.log, wanted)
        self.loads = [self._load(release, failure) for release, failure in failures.items()]

    def _failure(self, release: Release) -> Problem | None:
        failure, large = self._states[release.profile].failure, self._watch.first_large_batch
        if large is None or release.reads_large_batches:
            return failure
        if failure is not None and failure.record_offset < large.record_offset:
            return failure
        return large

    def _load(self, release: Release, failure: Problem | None) -> Load:
        if failure is None:
            return Load(release, None)
        place, record = self._places.get(failure.record_offset, (NOWHERE, None))
        group = failure.group if failure.group is not None or record is None else _group_of(record)
        return Load(
            release, Problem(failure.record_offset, failure.rule, failure.problem, group, failure.is_served), place
        )

    # -------------------------------------------------------------------------------- what it shows

    @property
    def groups(self) -> Collection[str]:
        """All groups that a record names."""
        return self._watch.groups.keys()

    @property
    def newest_ms(self) -> int:
        """The latest timestamp of a record; -1 without one."""
        return self._watch.newest_ms

    def findings(self, partitions: int, now_ms: int, *, is_sure: bool = True) -> list[Finding]:
        """Everything but the verdicts, by record offset within each severity.

        Args:
            partitions: how many `__consumer_offsets` has.
            now_ms: up to when open transactions are old.
            is_sure: whether that number is known, or only what a broker has by default.
        """
        watch = self._watch
        found = [
            *self._failures(),
            *self._skipped(),
            *watch.damages,
            *_unknown_types(watch),
            *self._gaps(),
            *self._wrong_partition(partitions, DOUBT if is_sure else NOTE),
            *self._orphans(),
            *_zombies(watch),
            *_colliding_names(watch),
            *watch.large_batches,
            *_open_transactions(watch, now_ms),
            *watch.tails,
            self._size(),
        ]
        order = (FAILS, SKIPPED, DAMAGE, DOUBT, NOTE)
        found.sort(key=lambda finding: order.index(finding.severity))  # stable: by kind of finding within
        return found

    def _failures(self) -> Iterator[Finding]:
        releases: dict[tuple[Problem, Place], list[str]] = {}
        for load in self.loads:
            if load.failure is not None:
                releases.setdefault((load.failure, load.place), []).append(load.release.name)
        for (problem, place), names in sorted(releases.items(), key=lambda item: item[0][0].record_offset):
            yield Finding(
                severity=FAILS,
                rule=problem.rule,
                problem=problem.problem,
                place=place,
                record_offset=problem.record_offset,
                group=problem.group,
                releases=tuple(names),
                detail={"served": "all"} if problem.is_served else None,
            )

    def _skipped(self) -> Iterator[Finding]:
        for number, count in sorted(self._watch.types.items()):
            place, record_offset, group = self._watch.first_of_type[number]
            names = [load.release.name for load in self.loads if _skips(load, number, record_offset)]
            if names:
                yield Finding(
                    severity=SKIPPED,
                    rule="records:Y3",
                    problem=f"{_count(count, 'record')} of type {_type_name(number)} skipped with a warning",
                    place=place,
                    record_offset=record_offset,
                    group=group,
                    releases=tuple(names),
                    detail={"record_type": number, "records": count},
                )

    def _gaps(self) -> Iterator[Finding]:
        """Between segments; those inside a segment are the log cleaner's."""
        watch, segments = self._watch, self.log.segments
        first = segments[0] if segments else None
        if first is not None and first.base_offset:
            yield Finding(
                severity=NOTE,
                rule=None,
                problem=f"the log begins at offset {first.base_offset}: older segments may be missing",
                place=Place(first.file, 0),
                record_offset=first.base_offset,
            )
        for segment, following in pairwise(segments):
            end = watch.ends.get(segment.file, segment.base_offset)
            begin = following.base_offset
            if end is None or begin is None or end == begin or segment.file in watch.damaged_files:
                continue
            yield self._gap(segment, following, end, begin)

    def _gap(self, segment: Segment, following: Segment, end: int, begin: int) -> Finding:
        if end > begin:
            severity, what = DOUBT, "they overlap"
        elif self.log.cleaned_until is not None and begin > self.log.cleaned_until:
            severity, what = DOUBT, "a gap that the cleaner has not come to, a file is missing"
        else:
            severity, what = NOTE, "a gap, normal after compaction, but a file may be missing"
        return Finding(
            severity=severity,
            rule="C-24" if end > begin else None,
            problem=f"{segment.file} ends before offset {end}, {following.file} begins at {begin}: {what}",
            place=Place(following.file, 0),
            record_offset=begin,
            detail={"end_offset": end, "next_base_offset": begin},
        )

    def _wrong_partition(self, partitions: int, severity: str) -> Iterator[Finding]:
        if self.log.offsets_partition is None:
            return
        for group, (place, record_offset) in self._watch.groups.items():
            expected = partition_for(group, partitions)
            if expected != self.log.offsets_partition and not isinstance(group, MalformedString):
                yield Finding(
                    severity=severity,
                    rule="records:H1",
                    problem=f"the group belongs to partition {expected} of {partitions}",
                    place=place,
                    record_offset=record_offset,
                    group=group,
                    detail={"expected_partition": expected, "partitions": partitions},
                )

    def _orphans(self) -> Iterator[Finding]:
        releases: dict[tuple[str, int, int], list[str]] = {}
        for load in self.loads:
            if load.served == "all":
                state = self._states[load.release.profile]
                firsts: dict[str, int] = {}
                counts: Counter[str] = Counter()
                for value in state.iter_orphans():
                    counts[value.group] += 1
                    firsts[value.group] = min(value.record_offset, firsts.get(value.group, value.record_offset))
                for group, count in counts.items():
                    releases.setdefault((group, count, firsts[group]), []).append(load.release.name)
        for (group, count, record_offset), names in releases.items():
            yield Finding(
                severity=DOUBT,
                rule="J-15",
                problem=f"{_count(count, 'offset')} of a group that does not exist: not served",
                place=self._places.get(record_offset, (NOWHERE, None))[0],
                record_offset=record_offset,
                group=group,
                releases=tuple(names),
                detail={"offsets": count},
            )

    def _size(self) -> Finding:
        watch = self._watch
        return Finding(
            severity=NOTE,
            rule="J-1",
            problem=f"a load reads {watch.size_bytes} bytes: {watch.batches} batches, {watch.records} records",
            detail={"size_bytes": watch.size_bytes, "batches": watch.batches, "records": watch.records},
        )


def _pieces(events: Iterable[LogEvent]) -> Iterator[list[LogEvent]]:
    """Runs of events that end between two batches."""
    piece: list[LogEvent] = []
    for event in events:
        piece.append(event)
        if len(piece) >= PIECE and isinstance(event, BatchEnd):
            yield piece
            piece = []
    if piece:
        yield piece


def _find(log: PartitionLog, wanted: Collection[int]) -> dict[int, tuple[Place, Record | None]]:
    """Where these record offsets are; the batch where its records do not have it."""
    left = sorted(wanted)
    found: dict[int, tuple[Place, Record | None]] = {}
    for segment, batch in iter_log(log) if left else ():
        if not isinstance(batch, RecordBatch) or batch.last_offset < left[0]:
            continue
        here = {offset for offset in left if offset <= batch.last_offset}
        found |= dict.fromkeys(here, (Place(segment.file, batch.position), None))
        for record in iter_records(batch):
            if isinstance(record, Record) and record.offset in here:
                found[record.offset] = Place(segment.file, record.position), record
        left = [offset for offset in left if offset not in here]
        if not left:
            break
    return found


def _group_of(record: Record) -> str | None:
    """From the key alone."""
    try:
        return decode_coordinator_record(record.key, None).group
    except OffsetsLogError:
        return None


def _skips(load: Load, number: int, record_offset: int) -> bool:
    profile, failure = load.release.profile, load.failure
    if number in profile.known_types or not profile.skips_unknown_types:
        return False
    return failure is None or failure.record_offset > record_offset


def _type_name(number: int) -> str:
    known = RECORD_TYPES.get(number)
    return f"{number} ({known.name})" if known else str(number)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# ------------------------------------------------------------------------------- what no replay tells


@dataclass(slots=True)
class _Transaction:
    """An open transaction.

    Attributes:
        first_offset: of its first batch: what the last stable offset cannot pass.
        pending: offsets it would commit (``J-12``).
    """

    first_offset: int
    record_offset: int
    timestamp_ms: int
    producer_epoch: int
    place: Place
    pending: set[GroupTopicPartition] = field(default_factory=set)


@dataclass(slots=True)
class _Watch:
    """What stands in the log of a partition, whatever a release makes of it.

    Attributes:
        types: record type → records of it.
        groups: group → its first record.
        raw_names: names with U+FFFD → the bytes they were read from (``records:P5``).
        ends: file → where the log goes on behind its last batch.
        type_0: offsets under a type 0 key, the last of each (``C-20``).
        buried: those of them that a type 1 tombstone has ended since.
    """

    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    newest_ms: int = -1
    types: Counter[int] = field(default_factory=Counter)
    first_of_type: dict[int, tuple[Place, int, str | None]] = field(default_factory=dict)
    groups: dict[str, tuple[Place, int]] = field(default_factory=dict)
    raw_names: dict[str, dict[bytes, tuple[Place, int]]] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    damaged_files: set[str | None] = field(default_factory=set)
    transactions: dict[int, _Transaction] = field(default_factory=dict)
    type_0: dict[GroupTopicPartition, tuple[Place, int]] = field(default_factory=dict)
    buried: set[GroupTopicPartition] = field(default_factory=set)
    first_large_batch: Problem | None = None
    large_batches: list[Finding] = field(default_factory=list)
    damages: list[Finding] = field(default_factory=list)
    tails: list[Finding] = field(default_factory=list)

    def see(self, events: Iterable[LogEvent], on_damage: OnDamage) -> None:
        """Take in some events."""
        for event in events:
            match event:
                case Damage():
                    on_damage(event)
                    self._saw_damage(event)
                case BatchStart():
                    self._saw_batch(event)
                case BatchEnd():
                    self.ends[event.segment.file] = event.batch.next_offset
                case TailFound():
                    self._saw_tail(event)
                case Event():
                    if event.damage is not None:
                        on_damage(event.damage)
                    self._saw_record(event)

    def _saw_damage(self, damage: Damage, rule: str | None = None, group: str | None = None) -> None:
        error = damage.error
        detail: dict[str, Any] = {"size_bytes": len(damage.raw)}
        if rule is None:
            self.damaged_files.add(error.file)
            rule, detail["broker"] = _damaged_batch(error)
        self.damages.append(
            Finding(
                severity=DOUBT if damage.is_unsupported else DAMAGE,
                rule=rule,
                problem=problem_row(damage)["problem"],
                place=Place(error.file, error.position),
                record_offset=error.record_offset,
                group=group,
                detail=detail,
            )
        )

    def _saw_batch(self, event: BatchStart) -> None:
        batch = event.batch
        self.batches += 1
        self.size_bytes += batch.size_bytes
        if batch.size_bytes > LOAD_BUFFER_BYTES:
            what = f"the batch of {batch.size_bytes} bytes is larger than offsets.load.buffer.size {LOAD_BUFFER_BYTES}"
            self.first_large_batch = self.first_large_batch or Problem(
                event.base_offset, "L-6", f"{what}: the load never gets past it"
            )
            self.large_batches.append(
                Finding(
                    severity=NOTE,
                    rule="L-6",
                    problem=f"{what}: from 2.0 on the buffer grows, before it was never loaded",
                    place=Place(event.segment.file, batch.position),
                    record_offset=event.base_offset,
                    detail={"size_bytes": batch.size_bytes},
                )
            )

    def _saw_tail(self, event: TailFound) -> None:
        tail = event.tail
        self.tails.append(
            Finding(
                severity=NOTE,
                rule="records:T6",
                problem=describe_tail(tail.kind, tail.position, tail.size_bytes),
                place=Place(event.segment.file, tail.position),
                detail={"tail": tail.kind, "size_bytes": tail.size_bytes},
            )
        )

    def _saw_record(self, event: Event) -> None:
        self.records += 1
        self.newest_ms = max(self.newest_ms, event.record.timestamp_ms)
        place = Place(event.segment.file, event.record.position)
        if event.batch.is_control:
            if event.damage is not None:
                self._saw_damage(event.damage, "records:C2")
            elif event.control is not None and event.control.ends_transaction:
                self.transactions.pop(event.batch.producer_id, None)
            return
        if event.damage is not None and not isinstance(event.damage.error, UnknownRecordTypeError):
            self._saw_damage(event.damage, "J-3", _group_of(event.record))
        self._saw_type(event, place)
        if event.batch.is_transactional:
            self._saw_transactional(event, place)
        if event.decoded is not None:
            self._saw_group(event.decoded.group, place, event.record.offset)
            if event.decoded.is_offset_commit:
                self._saw_offset(event, event.decoded, place)

    def _saw_type(self, event: Event, place: Place) -> None:
        number = record_type_of(event.record.key)
        if number is not None:
            self.types[number] += 1
            if number not in self.first_of_type:
                group = event.decoded.group if event.decoded is not None else _group_of(event.record)
                self.first_of_type[number] = place, event.record.offset, group

    def _saw_group(self, group: str, place: Place, record_offset: int) -> None:
        if group not in self.groups:
            self.groups[group] = place, record_offset
        if "\ufffd" in group:
            raw = group.raw if isinstance(group, MalformedString) else group.encode()
            self.raw_names.setdefault(group, {}).setdefault(raw, (place, record_offset))

    def _saw_transactional(self, event: Event, place: Place) -> None:
        if event.batch.producer_id not in self.transactions:
            self.transactions[event.batch.producer_id] = _Transaction(
                first_offset=event.batch_base_offset,
                record_offset=event.record.offset,
                timestamp_ms=event.record.timestamp_ms,
                producer_epoch=event.batch.producer_epoch,
                place=place,
            )

    def _saw_offset(self, event: Event, record: CoordinatorRecord, place: Place) -> None:
        key = record.key["group"], record.key["topic"], record.key["partition"]
        if record.is_tombstone:
            for transaction in self.transactions.values():
                transaction.pending.discard(key)
        elif event.batch.is_transactional:
            self.transactions[event.batch.producer_id].pending.add(key)
        if record.record_type == 0:
            self.buried.discard(key)
            if record.is_tombstone:
                self.type_0.pop(key, None)
            else:
                self.type_0[key] = place, event.record.offset
        elif key in self.type_0:
            if record.is_tombstone:
                self.buried.add(key)
            else:
                self.buried.discard(key)


def _damaged_batch(error: OffsetsLogError) -> tuple[str, str]:
    """The rule, and what a broker does about it; no verdict, for that depends on how it was stopped."""
    recovery = "after an unclean one the log ends here (records:T4)"
    if error.field == "crc":
        return "L-7", f"after a clean stop a load reads it as it is; {recovery}"
    if error.field == "base_offset":
        return "C-24", "a load reads it as it stands, in file order"
    if isinstance(error, TruncatedBatchError):
        return "records:T1", f"after a clean stop a load reads nothing from here to the end of the file; {recovery}"
    return "records:T5", f"after a clean stop a load that comes here fails; {recovery}"


def _unknown_types(watch: _Watch) -> Iterator[Finding]:
    for number, count in sorted(watch.types.items()):
        if number not in RECORD_TYPES:
            place, record_offset, group = watch.first_of_type[number]
            yield Finding(
                severity=DOUBT,
                rule="records:Y3",
                problem=f"{_count(count, 'record')} of type {number}, which no release up to 4.3 writes",
                place=place,
                record_offset=record_offset,
                group=group,
                detail={"record_type": number, "records": count},
            )


def _zombies(watch: _Watch) -> Iterator[Finding]:
    by_group: dict[str, list[GroupTopicPartition]] = {}
    for key in watch.buried:
        by_group.setdefault(key[0], []).append(key)
    for group, keys in sorted(by_group.items()):
        place, record_offset = min((watch.type_0[key] for key in keys), key=lambda item: item[1])
        yield Finding(
            severity=DOUBT,
            rule="C-20",
            problem=f"{_count(len(keys), 'deleted offset')} may return: the cleaner drops the tombstone of type 1 "
            "and keeps the value of type 0",
            place=place,
            record_offset=record_offset,
            group=group,
            detail={"offsets": len(keys)},
        )


def _colliding_names(watch: _Watch) -> Iterator[Finding]:
    for group, raws in watch.raw_names.items():
        if len(raws) > 1:
            place, record_offset = list(raws.values())[1]
            yield Finding(
                severity=DOUBT,
                rule="records:P5",
                problem=f"{len(raws)} groups with names that are not UTF-8 are read as one",
                place=place,
                record_offset=record_offset,
                group=group,
                detail={"names_hex": [raw.hex() for raw in raws]},
            )


def _open_transactions(watch: _Watch, now_ms: int) -> Iterator[Finding]:
    last_stable = min((open_.first_offset for open_ in watch.transactions.values()), default=None)
    for producer_id, open_ in sorted(watch.transactions.items(), key=lambda item: item[1].first_offset):
        age_ms = max(0, now_ms - open_.timestamp_ms) if min(now_ms, open_.timestamp_ms) >= 0 else None
        is_old = age_ms is not None and age_ms > LONGEST_TRANSACTION_MS
        age = "of unknown age" if age_ms is None else f"{age_ms / 1000:.3f} s old"
        pending = _count(len(open_.pending), "offset")
        pins = open_.first_offset == last_stable
        yield Finding(
            severity=DOUBT if is_old else NOTE,
            rule="C-1",
            problem=f"open transaction of producer id {producer_id}, {age}, {pending} pending"
            + (f"; the last stable offset stays at {open_.first_offset}" if pins else "")
            + ("; longer than transaction.max.timeout.ms allows" if is_old else ""),
            place=open_.place,
            record_offset=open_.record_offset,
            group=min((key[0] for key in open_.pending), default=None),
            detail={
                "producer_id": producer_id,
                "producer_epoch": open_.producer_epoch,
                "first_offset": open_.first_offset,
                "first_timestamp_ms": open_.timestamp_ms,
                "age_ms": age_ms,
                "pending": len(open_.pending),
                "pins_last_stable_offset": pins,
            },
        )


# ---------------------------------------------------------------------------- how many partitions there are

SAMPLE = 2000
"""Groups that are looked at to tell."""
MAX_PARTITIONS = 1000
FEW = 5
"""With fewer groups any number can fit by chance."""


def partition_count(groups: Mapping[int, Collection[str]]) -> tuple[int, str]:
    """How many partitions `__consumer_offsets` has, by where its groups are (``records:H1``–``H3``).

    It has 50, unless groups say otherwise: the highest number found plus one, if all groups of several partitions
    fit that; else the one that the most of them fit, the largest of several.

    Args:
        groups: offsets partition → its groups.

    Returns:
        The number, and ``default`` or ``data``; ``guess`` where too few groups tell.
    """
    found = max(groups, default=-1) + 1
    named = ((partition, group) for partition, names in groups.items() for group in names)
    sample = [(partition, positive_hash(group)) for partition, group in islice(named, SAMPLE)]

    def fitting(partitions: int) -> int:
        return sum(number % partitions == partition for partition, number in sample)

    if found <= DEFAULT_PARTITIONS and (not sample or fitting(DEFAULT_PARTITIONS) * 2 > len(sample)):
        return DEFAULT_PARTITIONS, "default"
    if sum(map(bool, groups.values())) > 1 and fitting(found) == len(sample):
        return found, "data"
    if len(sample) >= FEW:
        best = max(
            range(found, max(found, MAX_PARTITIONS) + 1), key=lambda partitions: (fitting(partitions), partitions)
        )
        if fitting(best) * 2 > len(sample):
            return best, "data"
    return max(found, DEFAULT_PARTITIONS), "guess"
