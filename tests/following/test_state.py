"""What is followed is what a replay of the same bytes says, at every moment, however they come."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offsets_log.errors import Damage
from offsets_log.events import Event
from offsets_log.following import commits
from offsets_log.following.commits import CommitsAsked, FollowedCommits
from offsets_log.following.generations import FollowedGenerations, GenerationsAsked
from offsets_log.following.groups import AGE, FollowedGroups, GroupsAsked
from offsets_log.following.offsets import FollowedOffsets, OffsetsAsked
from offsets_log.investigate import growing_history
from offsets_log.investigate.groups import groups_rows
from offsets_log.investigate.history import Entry, History
from offsets_log.investigate.history_rows import history_row
from offsets_log.investigate.holders import TopicIds
from offsets_log.log_format.completeness import Missing
from offsets_log.pipeline import iter_events, replay
from offsets_log.rebalance.rows import rebalance_row
from offsets_log.rebalance.storms import Limits, mark_storms
from offsets_log.rebalance.timeline import Timelines
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.profile import PROFILES
from offsets_log.rows.activity import Activity
from offsets_log.rows.tables import Row, committed_rows
from tests.conftest import json_lines, read_partition
from tests.following.grown import Follower, growing, rolled

Recording = Callable[[str], Path]
EVERY = {"shows_group": lambda name: True}
NOW = 1_800_000_000_000
NO_BULK, ALL_BULK = 1 << 40, 1
CASES = [
    ("kafka-4.3-mixed", "modern", NO_BULK),
    ("kafka-4.3-mixed", "modern", 2000),
    ("kafka-4.3-modern-groups", "modern", NO_BULK),
    ("kafka-4.3-compressed", "modern", ALL_BULK),
    ("kafka-3.9-classic", "classic", 2000),
    ("random-java", "modern", ALL_BULK),
]
"""Recording, profile, from how many bytes on kernels read a piece."""
Tables = tuple[dict[Any, Row], dict[Any, Row]]
"""Of `compact` and `groups`."""


def partitions(folder: Path) -> list[Path]:
    return sorted((folder / "log").glob("__consumer_offsets-*"))[:4]


def key_of(row: Row) -> tuple[Any, ...]:
    return row["group"], row.get("topic"), row.get("partition")


def upsert(table: dict[tuple[Any, ...], Row], rows: list[Row]) -> None:
    """Take rows as a reader of the lines would."""
    for row in rows:
        if row.get("committed_offset", row.get("state")) is None:
            del table[key_of(row)]
        else:
            table[key_of(row)] = row


def by_replay(directory: Path, profile: str) -> Tables:
    """The rows of `compact` and `groups` from scratch."""
    log, activity = read_partition(directory), Activity()
    found = replay(activity.watch(iter_events(log)), PROFILES[profile], on_damage=lambda damage: None)
    state = finish(found)
    offsets = committed_rows(state, log.offsets_partition, orphans=False, unstable=True)
    groups = groups_rows(state, log.offsets_partition, activity.last_ms, NOW)
    return {key_of(row): row for row in offsets}, {key_of(row): row for row in groups}


@pytest.mark.parametrize(("name", "profile", "bulk_from"), CASES)
def test_offsets_and_groups_are_those_of_a_replay_at_random_moments(
    recording: Recording, tmp_path: Path, name: str, profile: str, bulk_from: int
) -> None:
    rng = random.Random(name)
    checked = 0
    for source in partitions(recording(name)):
        to = tmp_path / "grown" / source.name
        files = rolled(source, tmp_path / "source" / source.name, rng, rolls=4)
        asked = OffsetsAsked(profile=PROFILES[profile], shows_topic=lambda name: True, unstable=True, rules={}, **EVERY)
        offsets = Follower(to, FollowedOffsets(asked, int(source.name.rpartition("-")[2])), bulk_from=bulk_from)
        of_groups = GroupsAsked(profile=PROFILES[profile], shows_topic=lambda name: True, rules={}, **EVERY)
        groups = Follower(to, FollowedGroups(of_groups, offsets.followed.kept.offsets_partition), bulk_from=bulk_from)
        tables: Tables = ({}, {})
        steps = 60
        for step, _ in enumerate(growing(files, to, rng, steps)):
            if rng.random() < 0.7:
                for follower, table in zip((offsets, groups), tables, strict=True):
                    follower.look()
                    upsert(table, follower.followed.changes(NOW))
                if rng.random() < 0.3 or step >= steps:
                    checked += 1
                    compare(tables, by_replay(to, profile))
        offsets.look()
        assert not offsets.seen.replaced
        assert [*map(place_of, offsets.seen.damages), *offsets.seen.others] == told_by_replay(to)
    assert checked > 10


def compare(found: Tables, expected: Tables) -> None:
    """Both tables, but for ages."""
    assert found[0] == expected[0]
    groups, expected_groups = ({key: row | {AGE: None} for key, row in each[1].items()} for each in (found, expected))
    assert groups == expected_groups


def place_of(damage: Damage) -> tuple[Any, ...]:
    error = damage.error
    return Path(error.file or "").name, error.position, error.record_offset, error.problem


def told_by_replay(directory: Path) -> list[Any]:
    """Damage and missing log, as `iter_events` tells them of files with these names."""
    log = read_partition(directory)
    segments = tuple(replace(segment, file=f"{directory.parent}/{segment.file}") for segment in log.segments)
    found: list[Damage] = []
    missing = []
    for event in iter_events(replace(log, segments=segments)):
        damage = event.damage if isinstance(event, Event) else event
        if isinstance(damage, Damage):
            found.append(damage)
        elif isinstance(event, Missing):
            missing.append(event)
    return [*map(place_of, found), *missing]


@pytest.fixture(params=["rows", "lines"])
def _made_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as they are, or lines of whatever few entries, and members that are forgotten at once."""
    if request.param == "lines":
        monkeypatch.setattr(commits, "FEW_ENTRIES", 0)
        monkeypatch.setattr(growing_history, "MANY_MEMBERS", 0)


@pytest.mark.usefixtures("_made_at_once")
@pytest.mark.parametrize(("name", "profile", "bulk_from"), [*CASES, ("kafka-4.3-modern-groups", "modern", ALL_BULK)])
def test_commits_as_they_come_are_the_history_at_the_end(
    recording: Recording, tmp_path: Path, name: str, profile: str, bulk_from: int
) -> None:
    rng = random.Random(name)
    for source in partitions(recording(name)):
        to, number = tmp_path / source.name, int(source.name.rpartition("-")[2])
        asked = CommitsAsked(
            profile=PROFILES[profile], shows_key=rng.choice([None, lambda key: True]), rules={}, **EVERY
        )
        follower = Follower(to, FollowedCommits(asked, number), bulk_from=bulk_from)
        found: list[Row] = []
        for _ in growing(sorted(source.glob("*.log")), to, rng, 40):
            if rng.random() < 0.7:
                follower.look()
                found += rows_of(follower.followed.changes(NOW))
        follower.look()
        found += rows_of(follower.followed.changes(NOW))
        history = History(PROFILES[profile], lambda name: True, lambda key: True)
        history.read(iter_events(read_partition(to)), on_damage=lambda damage: None)
        names = TopicIds({}, history.state.topic_names)
        expected = [history_row(entry, number, names) for entry in sorted(history.entries, key=log_order)]
        assert [told_at_the_end(found, i) for i in range(len(found))] == expected


def log_order(entry: Entry) -> tuple[object, ...]:
    return entry.record_offset, *entry.key


def rows_of(changes: list[Row] | Iterator[memoryview]) -> list[Row]:
    return changes if isinstance(changes, list) else [*json_lines(b"".join(map(bytes, changes)).decode())]


def told_at_the_end(rows: list[Row], number: int) -> Row:
    """A row with what became of its transaction, which a later row says; who held it may be known by name later."""
    row = rows[number]
    if row["transaction"] == "open":
        for later in rows[number + 1 :]:
            is_end = later["event"].startswith("transaction_") and later["producer_id"] == row["producer_id"]
            if is_end and key_of(later) == key_of(row):
                return row | {"transaction": later["transaction"]}
    return row


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-3.9-classic"])
def test_generations_as_they_come_are_the_timeline_at_the_end(recording: Recording, tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    for source in partitions(recording(name)):
        to, number = tmp_path / source.name, int(source.name.rpartition("-")[2])
        follower = Follower(
            to, FollowedGenerations(GenerationsAsked(limits=Limits(), rules={}, **EVERY), number), bulk_from=NO_BULK
        )
        found: dict[tuple[str, int], Row] = {}
        for _ in growing(sorted(source.glob("*.log")), to, rng, 40):
            if rng.random() < 0.7:
                follower.look()
                found |= {(row["group"], row["record_offset"]): row for row in follower.followed.changes(NOW)}
        follower.look()
        found |= {(row["group"], row["record_offset"]): row for row in follower.followed.changes(NOW)}
        timelines = Timelines()
        timelines.read(iter_events(read_partition(to)), lambda damage: None)
        timelines.name_topics()
        for entries in timelines.generations.values():
            mark_storms(entries, Limits())
        expected = {(entry.group_id, entry.record_offset): rebalance_row(entry) for entry in timelines}
        assert sorted(map(json.dumps, found.values())) == sorted(map(json.dumps, expected.values()))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bulk_from", [NO_BULK, ALL_BULK])
def test_of_damaged_logs_the_same_is_read_and_told_as_by_a_replay(
    recording: Recording, tmp_path: Path, seed: int, bulk_from: int
) -> None:
    rng = random.Random(seed)
    (source,) = [path for path in partitions(recording("kafka-4.3-mixed")) if path.name.endswith("-1")]
    files = rolled(source, tmp_path / "source", rng, rolls=2)
    for file in files:
        data = bytearray(file.read_bytes())
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
    to = tmp_path / "__consumer_offsets-1"
    asked = OffsetsAsked(profile=PROFILES["modern"], shows_topic=lambda name: True, unstable=True, rules={}, **EVERY)
    follower = Follower(
        to, FollowedOffsets(asked, 1), bulk_from=bulk_from, piece_bytes=rng.choice([100, 5000, 1 << 24])
    )
    table: dict[Any, Row] = {}
    for _ in growing(files, to, rng, 20):
        follower.look()
        upsert(table, follower.followed.changes(NOW))
    for seen in follower.growing.rest():
        follower.seen.note(seen)
    assert table == by_replay(to, "modern")[0]
    expected = [damage for damage in told_by_replay(to) if isinstance(damage, tuple)]
    assert [*map(place_of, follower.seen.damages)] == expected
