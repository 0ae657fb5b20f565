"""The generations of every group in a log, in order: who joined, who left, what was assigned.

A classic group's generation is a type 2 value.  For the newer kinds it is a group epoch (types 3, 11, 17) with the
members at that time, and the target assignment that was computed for it (types 6, 12, 20).

Over 400 lines: what is told of generations depends on every record before, in one fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from offsets_log.errors import CorruptRecordError, Damage, ReplayError
from offsets_log.events import BareBatches, BareRecord, BatchEnd, Event, LogEvent, Passed
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from offsets_log.messages.connect_protocol import decode_assignment as decode_connect_assignment
from offsets_log.messages.consumer_protocol import decode_assignment
from offsets_log.messages.registry import OFFSET_COMMIT_TYPES, CoordinatorRecord, record_type_of
from offsets_log.messages.repeated import RepeatedRecords
from offsets_log.rebalance.generation import Generation, GenerationMember, Held, Unit
from offsets_log.replay.fold import OnDamage
from offsets_log.replay.group import CLASSIC, CONSUMER, SHARE, STREAMS, Group
from offsets_log.replay.groups import GROUP_METADATA, GroupFold
from offsets_log.replay.profile import MODERN, Profile
from offsets_log.replay.topic_names import NAMING_TYPES, TopicNames, is_named_in, topic_names_in
from offsets_log.rows.groups import assignor_of

Kept = TypeVar("Kept")
EPOCHS = frozenset({3, 11, 17})
TARGET_EPOCHS = frozenset({6, 12, 20})
BY_TOPIC_ID = frozenset({CONSUMER, SHARE})
"""Kinds of groups whose records call topics by id."""
MAX_SKIPPED = 1000
"""No more skipped numbers are listed: a hostile log may skip two thousand million."""


class Timelines:
    """The generations of the groups in what was read so far.

    Attributes:
        generations: group id → its entries in log order.
        topic_names: topic id → name, as far as records tell names.
    """

    def __init__(self, shows_group: Callable[[str], bool] = lambda group: True, profile: Profile = MODERN) -> None:
        self.generations: dict[str, list[Generation]] = {}
        self.topic_names: dict[bytes, str] = {}
        self._shows_group = shows_group
        self._profile = profile

    def name_topics(self, *sources: Mapping[bytes, str]) -> None:
        """Name topics that records call by id, from the sources, then from the log's records; call it last.

        A topic without a name keeps its id as text.
        """
        names = TopicNames(*sources, self.topic_names)
        known: Named = {}
        for entries in self.generations.values():
            for entry in entries:
                if entry.kind in BY_TOPIC_ID:
                    entry.held = with_names(entry, names, known)

    def __iter__(self) -> Iterator[Generation]:
        """Yield the generations group by group, ordered by name, each in log order."""
        return (entry for _, entries in sorted(self.generations.items()) for entry in entries)

    def wants(self, record: Record | BareRecord) -> bool:
        """Return whether to decode a record; offset commits only if they may name a topic id that has no name yet.

        A commit of an unknown version may, too, and is then reported as unsupported. Given to `iter_events`, this saves
        time; problems of other commits are then not seen.
        """
        if record_type_of(record.key) not in OFFSET_COMMIT_TYPES:
            return True
        return is_named_in(record.key, record.value, self.topic_names)

    def read(self, events: Iterable[LogEvent], on_damage: OnDamage, reader: PartitionReader | None = None) -> None:
        """Read all of one offsets partition, or what follows in it.

        Args:
            reader: the one that has read the partition so far.
        """
        reader = reader or self.reader()
        for event in events:
            match event:
                case BareBatches():
                    self._read_bare(reader, event)
                case Damage():
                    on_damage(event)
                case BatchEnd():
                    reader.end_batch()
                case Passed():
                    reader.passed(event)
                case Event():
                    if event.damage is not None:
                        on_damage(event.damage)
                    self._saw(reader, event.offsets_partition, event.record, event.decoded)
        reader.end_batch()

    def reader(self) -> PartitionReader:
        """Return who reads a partition from its beginning."""
        return PartitionReader(self, self._profile)

    def _read_bare(self, reader: PartitionReader, batches: BareBatches) -> None:
        """Read batches, of which records of classic groups that repeat are not decoded."""
        decoder, batch = batches.decoder, 0
        for seen in batches.seen:
            if isinstance(seen, Passed):
                reader.passed(seen)
                continue
            if batch != seen.batch_begin:
                reader.end_batch()
                batch = seen.batch_begin
            if not reader.read_again(seen, decoder):
                reader.passed(Passed(seen.since, seen.offset, seen.has_holes))
                decoded = decoder.decode(seen.key, seen.value) if self.wants(seen) else None
                self._saw(reader, batches.offsets_partition, seen, decoded)
        reader.end_batch()

    def _saw(
        self,
        reader: PartitionReader,
        offsets_partition: int | None,
        record: Record | BareRecord,
        decoded: CoordinatorRecord | None,
    ) -> None:
        reader.saw(record.offset)
        if decoded is not None:
            if decoded.record_type in NAMING_TYPES:
                self.topic_names.update(topic_names_in(decoded))
            if not decoded.is_offset_commit and self._shows_group(group_id := decoded.group):
                reader.read(RecordPlace(offsets_partition, record), group_id, decoded)


class RecordPlace(NamedTuple):
    """The place of a record in the log."""

    offsets_partition: int | None
    record: Record | BareRecord

    @property
    def timestamp_ms(self) -> int | None:
        """When it was written; None if it has no time."""
        return self.record.timestamp_ms if self.record.timestamp_ms >= 0 else None


class PartitionReader:
    """Reads one offsets partition.

    Attributes:
        changed: groups whose entries may have changed since somebody cleared it.
    """

    def __init__(self, timelines: Timelines, profile: Profile) -> None:
        self._generations = timelines.generations
        self._profile = profile
        self._folds: dict[str, GroupFold] = {}
        self.changed: set[str] = set()
        self._touched: dict[str, RecordPlace] = {}
        self._next_offset = 0
        self._holes = 0
        self._holes_at: dict[str, int] = {}
        self._number: dict[str, int | None] = {}
        self._repeated: dict[bytes | None, tuple[GroupFold, Group]] = {}  # of classic groups by raw keys
        self._units: dict[str, dict[bytes, list[Unit] | None]] = {}  # by protocol type and bytes, which logs repeat
        self._made_of: dict[str, list[dict[str, Any]]] = {}  # rows of a classic group's last entry
        self._targets: dict[str, dict[str, tuple[dict[str, Any], list[Unit]]]] = {}  # by group and member, likewise

    def saw(self, record_offset: int) -> None:
        """Note the offset of a record of any type: offsets that are skipped were removed by the cleaner."""
        self._holes += record_offset > self._next_offset
        self._next_offset = record_offset + 1

    def passed(self, run: Passed) -> None:
        """Note a run of records of other groups, of which only matters whether offsets are skipped."""
        first_offset, next_offset, has_holes = run
        self._holes += (first_offset > self._next_offset) + has_holes
        self._next_offset = next_offset

    def read(self, place: RecordPlace, group_id: str, record: CoordinatorRecord) -> None:
        """Read a group's record."""
        self._repeated.pop(place.record.key, None)
        fold = self._folds.get(group_id)
        if fold is None:
            fold = self._folds[group_id] = GroupFold(group_id, self._profile)
        try:
            fold.replay(record)
        except ReplayError:  # as in a replay: that record is left out
            return
        if fold.group is None and group_id not in self._generations:
            return
        self._touched[group_id] = place
        self.changed.add(group_id)
        group = fold.group
        if record.value is None or group is None:
            return
        if record.record_type == GROUP_METADATA:
            self._read_classic(place, group)
        elif record.record_type in EPOCHS:
            self._read_epoch(place, group)
        elif record.record_type in TARGET_EPOCHS:
            self._read_targets(group)

    def read_again(self, record: BareRecord, decoder: RepeatedRecords) -> bool:
        """Read a record that says of a classic group all but numbers as its last one did; return whether it does."""
        offset, timestamp_ms, key, value, since, has_holes, _, _ = record
        known = self._repeated.get(key)
        if known is None or known[0].group is not known[1]:
            return False
        numbers = decoder.numbers(key, value)
        if numbers is None:
            return False
        self._holes += (since > self._next_offset) + has_holes
        self._next_offset = offset + 1
        group, number = known[1], numbers["generation"]
        group_id = group.group_id
        self.changed.add(group_id)
        entries = self._generations[group_id]
        group.generation, last = number, entries[-1]
        entry = Generation(
            group_id=group_id,
            kind=CLASSIC,
            offsets_partition=last.offsets_partition,
            record_offset=offset,
            number=number,
            timestamp_ms=timestamp_ms if timestamp_ms >= 0 else None,
            state=last.state,
            protocol_type=last.protocol_type,
            protocol=last.protocol,
            leader=last.leader,
            held=last.held,
            previous=last,
            skipped=self._skipped(group_id, CLASSIC, number),
            skipped_certainly=self._holes_at[group_id] == self._holes,
        )
        self._add(entries, entry)
        return True

    def end_batch(self) -> None:
        """Note ends of groups, and the state of the newer kinds, which are known only when a batch was read."""
        if not self._touched:
            return
        for group_id, place in self._touched.items():
            group = self._folds[group_id].group
            if group is None:
                self._end_life(place, group_id)
            elif group.kind != CLASSIC and (entries := self._generations.get(group_id)):
                entries[-1].state = group.state(self._profile)
                entries[-1].protocol = assignor_of(group) if group.members else entries[-1].protocol
        self._touched.clear()

    # ----------------------------------------------------------------------------------------- entries

    def _read_classic(self, place: RecordPlace, group: Group) -> None:
        if not group.members and not group.protocol_type:  # 4.x writes it for a new group (records:W6)
            self._number[group.group_id] = group.generation
            self._holes_at[group.group_id] = self._holes
            return
        before = self._alive(group.group_id)
        members = self._members(group, before)
        is_same = before is not None and before.kind == CLASSIC and before.protocol_type == group.protocol_type
        if before is not None and is_same and before.members is members:
            held = before.held
        else:
            held = Held(members, dict(self._classic_assignment(group)))
        entry = self._open(place, group, group.generation, held)
        entry.protocol_type, entry.protocol, entry.leader = group.protocol_type, group.protocol, group.leader
        self._repeated[place.record.key] = self._folds[group.group_id], group

    def _classic_assignment(self, group: Group) -> Iterator[tuple[str, list[Unit]]]:
        units = self._units.setdefault(group.protocol_type or "", {})
        for member_id, member in group.members.items():
            data = member.metadata["assignment"]
            if data not in units:
                units[data] = _classic_units(group.protocol_type or "", data)
            if (found := units[data]) is not None:
                yield member_id, found

    def _read_epoch(self, place: RecordPlace, group: Group) -> None:
        before = self._alive(group.group_id)
        assignment: dict[str, list[Unit]] = {}
        if before is not None and before.kind == group.kind:  # until a target is computed
            assignment = {each: before.assignment[each] for each in group.members if each in before.assignment}
        held = _held(before, self._members(group, before), assignment)
        entry = self._open(place, group, group.group_epoch, held)
        entry.protocol_type, entry.protocol = group.kind, assignor_of(group)

    def _read_targets(self, group: Group) -> None:
        entries = self._generations.get(group.group_id)
        if entries and entries[-1].number == group.assignment_epoch:
            before = self._targets.get(group.group_id, {})
            targets = {
                each: found
                if (found := before.get(each)) is not None and found[0] is value
                else (value, _target(group.kind, value))
                for each, value in group.targets.items()
            }
            self._targets[group.group_id] = targets
            entry = entries[-1]
            entry.held = _held(entry, entry.members, {each: units for each, (_, units) in targets.items()})

    def _alive(self, group_id: str) -> Generation | None:
        """Return the last entry of a group that was not deleted since."""
        entries = self._generations.get(group_id)
        return entries[-1] if entries and entries[-1].number is not None else None

    def _open(self, place: RecordPlace, group: Group, number: int, held: Held) -> Generation:
        group_id, kind = group.group_id, group.kind
        entry = Generation(
            group_id=group_id,
            kind=kind,
            offsets_partition=place.offsets_partition,
            record_offset=place.record.offset,
            number=number,
            timestamp_ms=place.timestamp_ms,
            state=group.state(self._profile),
            held=held,
            previous=self._alive(group_id),
            skipped=self._skipped(group_id, kind, number),
            skipped_certainly=self._holes_at.get(group_id, 0) == self._holes,
        )
        self._add(self._generations.setdefault(group_id, []), entry)
        return entry

    def _skipped(self, group_id: str, kind: str, number: int) -> tuple[int, ...]:
        before = self._number.get(group_id)
        if before is None and kind == CLASSIC:
            before = 0  # generations begin at 1 (G-5); a log that begins later has a hole there
        return () if before is None or number == before + 1 else _numbers_between(before, number)

    def _members(self, group: Group, last: Generation | None) -> dict[str, GenerationMember]:
        """Return the members as they are now; what is unchanged since the last entry is the same object."""
        before = last.members if last is not None else {}
        made_of, self._made_of[group.group_id] = self._made_of.get(group.group_id), group.rows
        if before and group.kind == CLASSIC and made_of is group.rows:
            return before
        return _same_if_equal(
            before,
            {
                member_id: same
                if (same := before.get(member_id)) is not None and same.row == member.metadata
                else GenerationMember(member_id, member.metadata)
                for member_id, member in group.members.items()
            },
        )

    def _end_life(self, place: RecordPlace, group_id: str) -> None:
        entries = self._generations.get(group_id)
        if entries and entries[-1].number is not None:
            entry = Generation(
                group_id=group_id,
                kind=entries[-1].kind,
                offsets_partition=place.offsets_partition,
                record_offset=place.record.offset,
                number=None,
                timestamp_ms=place.timestamp_ms,
                previous=entries[-1],
            )
            self._add(entries, entry)

    def _add(self, entries: list[Generation], entry: Generation) -> None:
        if entries and entry.timestamp_ms is not None and entries[-1].timestamp_ms is not None:
            entries[-1].duration_ms = entry.timestamp_ms - entries[-1].timestamp_ms
        entries.append(entry)
        self._number[entry.group_id] = entry.number
        self._holes_at[entry.group_id] = self._holes


def _numbers_between(before: int, number: int) -> tuple[int, ...]:
    return tuple(range(before + 1, min(number, before + MAX_SKIPPED)))


def _same_if_equal(before: dict[str, Kept], after: dict[str, Kept]) -> dict[str, Kept]:
    """Return the object from before if the other has the very same values in the same order."""
    is_same = len(before) == len(after) and all(
        name == other and value is before[other] for (name, value), other in zip(after.items(), before, strict=True)
    )
    return before if is_same else after


def _held(last: Generation | None, members: dict[str, GenerationMember], assignment: dict[str, list[Unit]]) -> Held:
    """Return what is held; the object of the last entry if nothing of it has changed."""
    if last is None:
        return Held(members, assignment)
    assignment = _same_if_equal(last.assignment, assignment)
    is_same = members is last.members and assignment is last.assignment
    return last.held if is_same else Held(members, assignment)


def _target(kind: str, value: dict[str, Any]) -> list[Unit]:
    if kind == STREAMS:
        return [
            (row["subtopology_id"], number) for row in value.get("active_tasks", ()) for number in row["partitions"]
        ]
    return [
        (bytes(row["topic_id"]), number) for row in value.get("topic_partitions", ()) for number in row["partitions"]
    ]


Named = dict[int, tuple[Held, Held]]
"""What is held, by its identity, and the same with names."""


def with_names(entry: Generation, names: TopicNames, known: Named) -> Held:
    """Return what an entry holds, with names for the topics that its records call by id.

    Args:
        known: what was named before with these names.
    """
    held = entry.held
    if entry.kind not in BY_TOPIC_ID:
        return held
    if id(held) not in known:
        named = {
            member_id: _named(units, held.members.get(member_id), names) for member_id, units in held.assignment.items()
        }
        known[id(held)] = held, Held(held.members, named)
    return known[id(held)][1]


def _named(units: list[Unit], member: GenerationMember | None, names: TopicNames) -> list[Unit]:
    subscribed = member.row.get("subscribed_topic_names", []) if member else []
    found = names.resolve(
        [{"topic_id": Uuid(topic_id), "partitions": [number]} for topic_id, number in units], subscribed
    )
    return [*found.partitions, *found.unresolved]


def _classic_units(protocol_type: str, data: bytes) -> list[Unit] | None:
    """Return what a member was assigned; None if the bytes do not tell."""
    try:
        return CLASSIC_ASSIGNMENTS.get(protocol_type, _opaque_units)(data)
    except CorruptRecordError:  # no bytes, or a client's own (records:E1, E2)
        return None


def _opaque_units(data: bytes) -> list[Unit]:
    return []


def _consumer_units(data: bytes) -> list[Unit]:
    rows = decode_assignment(data).fields["assigned_partitions"]
    return [(row["topic"], number) for row in rows for number in row["partitions"]]


def _connect_units(data: bytes) -> list[Unit]:
    fields = decode_connect_assignment(data).fields
    rows = fields.get("assigned", fields.get("assignment")) or ()
    return [(row["connector"], task) for row in rows for task in row["tasks"]]


CLASSIC_ASSIGNMENTS: dict[str, Callable[[bytes], list[Unit]]] = {
    "consumer": _consumer_units,
    "connect": _connect_units,
}
"""Protocol type → reads a member's assignment; those of other protocol types are opaque."""
