"""Compare expiry to real brokers of every era, cycle by cycle.

The tombstones that brokers wrote are the truth: the state before a cycle must predict exactly these records, at a given
time and from the fields alone (``E-22``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product
from pathlib import Path

import pytest

from offsets_log.events import Event, Until
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.expiry import (
    ERAS,
    Era,
    GroupExpiry,
    Retention,
    cycle_of,
    tombstones,
)
from offsets_log.replay.profile import PROFILES
from tests.conftest import RECORDINGS, read_json, read_json_lines, read_partitions
from tests.replay.expiring import Json, expiry_of

Recording = Callable[[str], Path]

EXPIRED = "kafka-4.3-expired"

ERA_OF_VERSION = {
    "0.8.2.2": "0.8.2",
    "0.9.0.1": "0.9",
    "0.10.2.2": "0.10.1",
    "0.11.0.3": "0.10.1",
    "1.1.1": "0.10.1",
    "2.8.2": "classic",
    "3.7.2": "classic",
}
ERA_OF_RECORDING = {"kafka-3.7-preview": "modern-3.7", EXPIRED: "4.0.1"}

CYCLES = {
    "kafka-0.8.2": 2,
    "kafka-0.10.2": 2,
    "kafka-0.11-compacted": 2,
    "kafka-1.1": 2,
    "kafka-2.8": 2,
    "kafka-3.7-preview": 1,
    "kafka-lifetime": 10,
    EXPIRED: 3,
}
"""Recording → steps in which its brokers expired something."""

NO_EXPIRY = {(EXPIRED, 2): "a member left: its tombstones are followed by a new group epoch in the same batch"}
"""(Recording, step) → why its tombstones are not those of a cycle."""


def groups_removed(state: CoordinatorState, now_ms: int, retention: Retention) -> list[GroupExpiry]:
    """Return the groups a cycle removes, by group id."""
    return [group for group in cycle_of(state, now_ms, retention) if group.removed]


def era_at(name: str, facts: Json, step: int) -> Era:
    """Return the rules of the broker that ran at a step."""
    if name in ERA_OF_RECORDING:
        return ERAS[ERA_OF_RECORDING[name]]
    versions = [start["version"] for start in facts["broker_starts"] if start["from_step"] <= step]
    return ERAS[ERA_OF_VERSION[versions[-1]]]


def retention_ms(facts: Json) -> int:
    """Return ``offsets.retention.minutes`` of a recording in milliseconds; a day if it is not known."""
    return int(facts.get("broker_config", {}).get("offsets.retention.minutes", 1440)) * 60_000


def load(log: PartitionLog, era: Era, end_offset: int | None = None) -> CoordinatorState:
    events = iter_events(log, until=Until(end_offset))
    return finish(replay(events, PROFILES[era.profile], on_damage=lambda damage: None))


def records(log: PartitionLog, first: int, end: int) -> list[Event]:
    return [event for event in iter_events(log) if isinstance(event, Event) and first <= event.record.offset < end]


def expiring_steps(name: str, folder: Path) -> Iterator[tuple[Json, Json]]:
    """Yield neighbouring lines of the timeline between which brokers expired something and nobody deleted anything."""
    lines = [line for line in read_json_lines(folder / "timeline.jsonl") if "end_offsets" in line]
    for before, after in pairwise(lines):
        is_told = "expired" in after["what"] or "close to its expiry" in before["what"]
        if (name == EXPIRED or is_told) and (name, after["step"]) not in NO_EXPIRY:
            yield before, after


def by_group(keys: Iterable[bytes | None]) -> dict[str, tuple[set[bytes], list[int]]]:
    """Return group → its offsets' tombstones, and the record types of its own in order; groups follow one another."""
    found: dict[str, tuple[set[bytes], list[int]]] = {}
    last = None
    for key in keys:
        assert key is not None
        record = decode_coordinator_record(key, None)
        assert record.group == last or record.group not in found, "the tombstones of a group stand together"
        offsets, own = found.setdefault(record.group, (set(), []))
        if record.is_offset_commit:
            assert not own, "offsets go before their group"
            offsets.add(key)
        else:
            own.append(record.record_type)
        last = record.group
    return found


@pytest.mark.parametrize("name", CYCLES)
def test_tombstones_between_two_steps_are_those_the_broker_wrote(name: str, recording: Recording) -> None:
    """Predict the keys byte for byte, and the order unless it comes from a hash map (``E-4``–``E-18``, ``E-22``).

    At the time of the step before, nothing but bare groups (``E-16``) was due.
    """
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    steps_with_expiry = set()
    for before, after in expiring_steps(name, folder):
        era = era_at(name, facts, after["step"])
        retention = era.retention(retention_ms(facts))
        for partition, log in read_partitions(folder / "log").items():
            first, end = (line["end_offsets"].get(str(partition), 0) for line in (before, after))
            state = load(log, era, first)
            written = [event.record.key for event in records(log, first, end) if event.record.value is None]
            foretold = [key for key, value in tombstones(state, after["time_ms"], retention)]
            assert sorted(foretold) == sorted(key for key in written if key is not None)
            if era.removes_groups:  # before that offsets were no group's
                assert by_group(foretold) == by_group(written)
            assert not any(offset.expired for offset in expiry_of(state, before["time_ms"], retention))
            if written:
                steps_with_expiry.add(after["step"])
    assert len(steps_with_expiry) == CYCLES[name]


def expiry_batches(log: PartitionLog) -> Iterator[list[Event]]:
    """Yield batches that hold only tombstones."""
    batches: dict[int, list[Event]] = {}
    for event in records(log, 0, 1 << 62):
        batches.setdefault(event.batch.base_offset, []).append(event)
    return (batch for batch in batches.values() if all(event.record.value is None for event in batch))


def test_every_cycle_writes_what_its_own_moment_says(recording: Recording) -> None:
    """At the batch's timestamp all are due; at the cycle before, no offset was (``E-1``)."""
    folder = recording(EXPIRED)
    facts = read_json(folder / "recording.json")
    retention = ERAS["modern"].retention(retention_ms(facts))
    interval_ms = int(facts["broker_config"]["offsets.retention.check.interval.ms"])
    offsets, groups = set(), set()
    for log in read_partitions(folder / "log").values():
        for batch in expiry_batches(log):
            first, now_ms = batch[0].record, batch[0].record.timestamp_ms
            state = load(log, retention.era, first.offset)
            foretold = [key for key, value in tombstones(state, now_ms, retention)]
            assert by_group(foretold) == by_group(event.record.key for event in batch)
            due = [offset for offset in expiry_of(state, now_ms, retention) if offset.expired]
            assert all(now_ms - 1.2 * interval_ms < (offset.expires_at_ms or 0) <= now_ms for offset in due)
            offsets |= {offset.value.key for offset in due}
            groups |= {group.group.group_id for group in groups_removed(state, now_ms, retention)}
    assert len(offsets) == 18
    assert groups == {
        "emptied-amber", "emptied-new-amber", "no-offsets-amber", "own-short-amber", "refreshed-amber", "simple-amber",
    }  # fmt: skip


FREED_BY_COMMIT = {9: {("pending-amber", "amber-b", 0), ("pending-amber", "amber-b", 1)}}
"""Step → offsets that were due long before and became eligible when a transaction ended."""


def test_what_stayed_at_every_step_was_not_overdue(recording: Recording) -> None:
    """No recorded answer has an offset that should have gone two cycles earlier."""
    folder = recording(EXPIRED)
    facts = read_json(folder / "recording.json")
    retention = ERAS["modern"].retention(retention_ms(facts))
    interval_ms = int(facts["broker_config"]["offsets.retention.check.interval.ms"])
    bases = set()
    for line in read_json_lines(folder / "timeline.jsonl"):
        overdue = set()
        for partition, log in read_partitions(folder / "log").items():
            state = load(log, retention.era, line["end_offsets"][str(partition)])
            found = expiry_of(state, line["time_ms"] - 2 * interval_ms, retention)
            overdue |= {offset.value.key for offset in found if offset.expired}
            bases |= {offset.base for offset in found}
        assert overdue == FREED_BY_COMMIT.get(line["step"], set())
    assert bases == {"commit_timestamp", "current_state_timestamp", "expire_timestamp", "subscribed", "pending"}


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name not in ("load-fails", "random-scala")])
def test_replayed_tombstones_remove_what_was_said_and_nothing_else(name: str, recording: Recording) -> None:
    """A cycle of any era removes what its tombstones remove on the next load (``E-3``)."""
    decoded = [[*iter_events(log)] for log in read_partitions(recording(name) / "log").values()]
    for era, events in product(ERAS.values(), decoded):
        partial = replay(events, PROFILES[era.profile], on_damage=lambda damage: None)
        state = finish(partial)
        now_ms = max((value.commit_timestamp_ms for value in state.committed), default=0)
        retention = era.retention(60_000)
        cycle = cycle_of(state, now_ms, retention)
        appended = tombstones(state, now_ms, retention)
        for offset, (key, _) in enumerate(appended, partial.end_offset):
            record = decode_coordinator_record(key, None)
            if record.is_offset_commit:
                where = (record.key["group"], record.key["topic"], record.key["partition"])
                partial.add_tombstone(where, offset, -1, transactional=False)
            else:
                partial.add_group_record(record, offset)
        after = finish(partial)
        gone = {offset.value.key for group in cycle for offset in group.offsets if offset.expired}
        assert {value.key for value in after.iter_served()} == {value.key for value in state.iter_served()} - gone
        assert set(after.groups) == {group.group.group_id for group in cycle if stays_or_comes_back(group, state, era)}
        # A group that only its pending offsets keep, with a tombstone somewhere: 0.10.1 and later say so on loading.
        assert {problem.rule for problem in after.problems} - {problem.rule for problem in state.problems} <= {"L-39"}


def stays_or_comes_back(expiry: GroupExpiry, state: CoordinatorState, era: Era) -> bool:
    """Whether a load after the cycle has the group.

    A group that has only offsets goes with them, even if no cycle removes groups (``L-37``). In Scala a group that was
    never rebalanced but has a record comes back, because no tombstone was written for it (``E-14``).
    """
    group = expiry.group
    if expiry.removed:
        return era.tombstone_needs_generation and group.generation <= 0 and group.has_record
    has_offsets = any(not offset.expired for offset in expiry.offsets)
    return group.has_record or has_offsets or any(value.group == group.group_id for value in state.pending)
