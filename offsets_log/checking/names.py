"""Check what the records name: their types and their groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from offsets_log.checking.findings import DOUBT, NOTE, SKIPPED, Finding
from offsets_log.checking.loads import Load
from offsets_log.checking.places import FindingPlace
from offsets_log.events import Event
from offsets_log.kafka_releases import NEWEST
from offsets_log.log_format.java_text import MalformedString
from offsets_log.messages.registry import RECORD_TYPES, record_type_of
from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.partition_for import partition_for
from offsets_log.words import counted


def _find_none(groups: Collection[str]) -> dict[str, FindingPlace]:
    return {}


@dataclass(slots=True)
class Names:
    """The names in all data records.

    Attributes:
        types: record type → its first record's place, and the number of its records.
        groups: group → its first record's place; None if it has to be looked up with `find`.
        find: returns the places of the first records of groups.
        raw_names: names with U+FFFD → the bytes they were read from → their first record's place (``records:P5``).
    """

    types: dict[int, tuple[FindingPlace, int]] = field(default_factory=dict)
    groups: dict[str, FindingPlace | None] = field(default_factory=dict)
    raw_names: dict[str, dict[bytes, FindingPlace]] = field(default_factory=dict)
    find: Callable[[Collection[str]], dict[str, FindingPlace]] = _find_none

    def saw_record(self, event: Event, place: FindingPlace) -> None:
        """Note a data record, whether it could be decoded or not."""
        number = record_type_of(event.record.key)
        if number is not None:
            first, count = self.types.get(number, (place, 0))
            self.types[number] = first, count + 1
        if event.decoded is not None:
            self._saw_group(event.decoded.group, place)

    def _saw_group(self, group: str, place: FindingPlace) -> None:
        self.groups.setdefault(group, place)
        if "\ufffd" in group:
            raw = group.raw if isinstance(group, MalformedString) else group.encode()
            self.raw_names.setdefault(group, {}).setdefault(raw, place)

    def skipped_types(self, loads: Iterable[Load]) -> Iterator[Finding]:
        """Yield types of records that some releases skip."""
        for number, (place, count) in sorted(self.types.items()):
            assert place.record_offset is not None
            names = tuple(load.release.name for load in loads if load.skips(number, place.record_offset))
            if names:
                yield Finding(
                    severity=SKIPPED,
                    rule="records:Y3",
                    problem=f"{counted(count, 'record')} of type {_type_name(number)} skipped with a warning",
                    place=place,
                    releases=names,
                    detail={"record_type": number, "records": count},
                )

    def unknown_types(self) -> Iterator[Finding]:
        """Yield types of records that no release writes."""
        for number, (place, count) in sorted(self.types.items()):
            if number not in RECORD_TYPES:
                yield Finding(
                    severity=DOUBT,
                    rule="records:Y3",
                    problem=f"{counted(count, 'record')} of type {number}, which no release up to {NEWEST.name} writes",
                    place=place,
                    detail={"record_type": number, "records": count},
                )

    def misplaced_groups(self, offsets_partition: int | None, partitions: PartitionCount) -> Iterator[Finding]:
        """Yield groups that belong to another partition; only notes if the number of partitions is a guess.

        None where the groups contradict every number.
        """
        if offsets_partition is None or partitions.source == "contradicted":
            return
        expected = {group: partition_for(group, partitions.number) for group in self.groups}
        misplaced = [group for group, number in expected.items() if number != offsets_partition]
        found = self.find([group for group in misplaced if self.groups[group] is None])
        for group in misplaced:
            yield Finding(
                severity=NOTE if partitions.source == "guess" else DOUBT,
                rule="records:H1",
                problem=f"the group belongs to partition {expected[group]} of {partitions.number}",
                place=self.groups[group] or found[group],
                detail={"expected_partition": expected[group], "partitions": partitions.number},
            )

    def colliding_names(self) -> Iterator[Finding]:
        """Yield groups whose names differ only in bytes that are not UTF-8."""
        for raws in self.raw_names.values():
            if len(raws) > 1:
                yield Finding(
                    severity=DOUBT,
                    rule="records:P5",
                    problem=f"{len(raws)} groups with names that are not UTF-8 are read as one",
                    place=list(raws.values())[1],
                    detail={"names_hex": [raw.hex() for raw in raws]},
                )


def _type_name(number: int) -> str:
    known = RECORD_TYPES.get(number)
    return f"{number} ({known.name})" if known else str(number)
