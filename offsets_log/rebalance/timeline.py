"""The generations of every group in a log, in order: who joined, who left, what was assigned.

A classic group's generation is a type 2 value.  For the newer kinds it is a group epoch (types 3, 11, 17) with the
members at that time, and the target assignment that was computed for it (types 6, 12, 20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from offsets_log.errors import CorruptRecordError, Damage, ReplayError
from offsets_log.events import BareBatch, BatchEnd, Event, LogEvent, Passed
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from offsets_log.messages.connect_protocol import decode_assignment as decode_connect_assignment
from offsets_log.messages.consumer_protocol import decode_assignment
from offsets_log.messages.registry import OFFSET_COMMIT_TYPES, CoordinatorRecord, record_type_of
from offsets_log.rebalance.generation import Generation, GenerationMember, Unit
from offsets_log.replay.fold import OnDamage
from offsets_log.replay.group import CLASSIC, CONSUMER, SHARE, STREAMS, Group
from offsets_log.replay.groups import GROUP_METADATA, GroupFold
from offsets_log.replay.profile import MODERN, Profile
from offsets_log.replay.topic_names import NAMING_TYPES, TopicNames, is_named_in, topic_names_in
from offsets_log.rows.groups import assignor_of

EPOCHS = frozenset({3, 11, 17})
TARGET_EPOCHS = frozenset({6, 12, 20})
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
        known: _Named = {}
        for entry in self:
            entry.assignment = named_assignment(entry, names, known)

    def __iter__(self) -> Iterator[Generation]:
        """Yield the generations group by group, ordered by name, each in log order."""
        return (entry for _, entries in sorted(self.generations.items()) for entry in entries)

    def wants(self, record: Record) -> bool:
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
                case Damage():
                    on_damage(event)
                case BatchEnd():
                    reader.end_batch()
                case Passed():
                    reader.passed(event)
                case BareBatch(offsets_partition, records=records):
                    for seen in records:
                        if isinstance(seen, Passed):
                            reader.passed(seen)
                        else:
                            self._saw(reader, offsets_partition, *seen)
                    reader.end_batch()
                case Event():
                    if event.damage is not None:
                        on_damage(event.damage)
                    self._saw(reader, event.offsets_partition, event.record, event.decoded)
        reader.end_batch()

    def reader(self) -> PartitionReader:
        """Return who reads a partition from its beginning."""
        return PartitionReader(self, self._profile)

    def _saw(
        self,
        reader: PartitionReader,
        offsets_partition: int | None,
        record: Record,
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
    record: Record


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
        self._units: dict[str, dict[bytes, list[Unit] | None]] = {}  # by protocol type and bytes, which logs repeat
        self._made_of: dict[str, list[dict[str, Any]]] = {}  # rows of a classic group's last entry
        self._targets: dict[str, dict[str, tuple[dict[str, Any], list[Unit]]]] = {}  # by group and member, likewise

    def saw(self, record_offset: int) -> None:
        """Note the offset of a record of any type: offsets that are skipped were removed by the cleaner."""
        self._holes += record_offset > self._next_offset
        self._next_offset = record_offset + 1

    def passed(self, run: Passed) -> None:
        """Note a run of records of other groups, of which only matters whether offsets are skipped."""
        self.saw(run.first_offset)
        self._holes += run.has_holes
        self._next_offset = run.next_offset

    def read(self, place: RecordPlace, group_id: str, record: CoordinatorRecord) -> None:
        """Read a group's record."""
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

    def end_batch(self) -> None:
        """Note ends of groups, and the state of the newer kinds, which are known only when a batch was read."""
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
        entry = self._open(place, group, group.generation)
        entry.protocol_type, entry.protocol, entry.leader = group.protocol_type, group.protocol, group.leader
        before = entry.previous
        if before is not None and before.members is entry.members and before.protocol_type == entry.protocol_type:
            entry.assignment = before.assignment
            return
        units = self._units.setdefault(group.protocol_type or "", {})
        for member_id, member in group.members.items():
            data = member.metadata["assignment"]
            if data not in units:
                units[data] = _classic_units(group.protocol_type or "", data)
            if (found := units[data]) is not None:
                entry.assignment[member_id] = found

    def _read_epoch(self, place: RecordPlace, group: Group) -> None:
        entry = self._open(place, group, group.group_epoch)
        entry.protocol_type, entry.protocol = group.kind, assignor_of(group)
        if entry.previous is not None and entry.previous.kind == group.kind:  # until a target is computed
            before = entry.previous.assignment
            entry.assignment = {member_id: before[member_id] for member_id in group.members if member_id in before}

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
            entries[-1].assignment = {each: units for each, (_, units) in targets.items()}

    def _open(self, place: RecordPlace, group: Group, number: int) -> Generation:
        group_id, kind = group.group_id, group.kind
        entries = self._generations.setdefault(group_id, [])
        is_alive = bool(entries) and entries[-1].number is not None
        before = self._number.get(group_id)
        holes = self._holes_at.get(group_id, 0)
        if before is None and kind == CLASSIC:
            before = 0  # generations begin at 1 (G-5); a log that begins later has a hole there
        entry = Generation(
            group_id=group_id,
            kind=kind,
            offsets_partition=place.offsets_partition,
            record_offset=place.record.offset,
            number=number,
            timestamp_ms=place.record.timestamp_ms if place.record.timestamp_ms >= 0 else None,
            state=group.state(self._profile),
            members=self._members(group, entries[-1].members if is_alive else {}),
            previous=entries[-1] if is_alive else None,
            skipped=() if before is None or number == before + 1 else _numbers_between(before, number),
            skipped_certainly=holes == self._holes,
        )
        self._add(entries, entry)
        return entry

    def _members(self, group: Group, before: dict[str, GenerationMember]) -> dict[str, GenerationMember]:
        """Return the members as they are now; what is unchanged is the same object."""
        made_of, self._made_of[group.group_id] = self._made_of.get(group.group_id), group.rows
        if before and group.kind == CLASSIC and made_of is group.rows:
            return before
        return {
            member_id: same
            if (same := before.get(member_id)) is not None and same.row == member.metadata
            else GenerationMember(member_id, member.metadata)
            for member_id, member in group.members.items()
        }

    def _end_life(self, place: RecordPlace, group_id: str) -> None:
        entries = self._generations.get(group_id)
        if entries and entries[-1].number is not None:
            entry = Generation(
                group_id=group_id,
                kind=entries[-1].kind,
                offsets_partition=place.offsets_partition,
                record_offset=place.record.offset,
                number=None,
                timestamp_ms=place.record.timestamp_ms if place.record.timestamp_ms >= 0 else None,
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


def _target(kind: str, value: dict[str, Any]) -> list[Unit]:
    if kind == STREAMS:
        return [
            (row["subtopology_id"], number) for row in value.get("active_tasks", ()) for number in row["partitions"]
        ]
    return [
        (bytes(row["topic_id"]), number) for row in value.get("topic_partitions", ()) for number in row["partitions"]
    ]


_Named = dict[tuple[int, int], tuple[list[Unit], GenerationMember | None, list[Unit]]]
"""What members are assigned, and the members, by their identities; and the same with names."""


def named_assignment(entry: Generation, names: TopicNames, known: _Named) -> dict[str, list[Unit]]:
    """Return an entry's assignment with names for the topics that its records call by id.

    Args:
        known: what was named before with these names.
    """
    if entry.kind not in (CONSUMER, SHARE):
        return entry.assignment
    named = {}
    for member_id, units in entry.assignment.items():
        member = entry.members.get(member_id)
        what = id(units), id(member)
        if what not in known:
            known[what] = units, member, _named(units, member, names)
        named[member_id] = known[what][2]
    return named


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
