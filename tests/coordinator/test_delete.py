"""Deleting offsets and groups, and what expires by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from offsets_log.coordinator.answers import NO_OFFSET, UNSTABLE
from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.errors import CoordinatorError, Errors
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.partition import LoadState
from offsets_log.coordinator.records import OffsetCommit
from offsets_log.coordinator.validation import NOBODY, MemberIdentity
from offsets_log.messages.registry import CoordinatorRecord
from tests.coordinator.caches import (
    FIRST,
    HOUR_MS,
    JAVA_AND_SCALA,
    NOW,
    SMALL,
    Clock,
    batches,
    classic_group,
    member_row,
    memories,
    newer_group,
    put,
    started,
    with_log,
    written,
)

THREE = {("t", 0): OffsetCommit(1), ("t", 1): OffsetCommit(2), ("u", 0): OffsetCommit(3)}
WEEK_MS = 7 * 24 * HOUR_MS
INTERVAL_MS = SMALL.offsets_retention_check_interval_ms


def loaded(release: str, *records: CoordinatorRecord, group: str = "g") -> tuple[GroupCoordinatorCache, MemoryLog]:
    log = MemoryLog()
    put(log, started().partition_for(group), *records)
    return started(release, log), log


def last_batch(cache: GroupCoordinatorCache, log: MemoryLog, group: str = "g") -> list[tuple[int, object]]:
    """Type and what the key names, of the records of the last batch; all are tombstones."""
    partition = cache.partition_for(group)
    last = batches(log, partition)[-1]
    rows: list[tuple[int, object]] = []
    for event in written(log, partition):
        if event.batch.base_offset == last.base_offset:
            assert event.decoded is not None
            assert event.decoded.is_tombstone
            names = [part for name, part in event.decoded.key.items() if name not in ("group", "group_id")]
            rows.append((event.decoded.record_type, tuple(names)))
    return rows


# ------------------------------------------------------------------------------------------------ offsets


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_offsets_of_an_empty_group_are_deleted_by_tombstones_of_type_1(release: str) -> None:
    """``E-20``, ``E-18``."""
    cache, log = with_log(release)
    cache.commit_offsets("g", THREE)
    answers = cache.delete_offsets("g", [("t", 1), ("u", 0), ("none", 0)])
    assert set(answers.values()) == {Errors.NONE}
    assert last_batch(cache, log) == [(1, ("t", 1)), (1, ("u", 0))]
    assert list(cache.fetch_offsets("g")) == [("t", 0)]


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_a_consumer_group_with_members_keeps_the_offsets_it_is_subscribed_to(release: str) -> None:
    """``E-20``, ``E-12``."""
    cache, log = loaded(release, classic_group("g", [member_row("m", "t")]))
    cache.commit_offsets("g", THREE, who=MemberIdentity("m", None, 3))
    answers = cache.delete_offsets("g", [("t", 0), ("u", 0)])
    assert answers == {("t", 0): Errors.GROUP_SUBSCRIBED_TO_TOPIC, ("u", 0): Errors.NONE}
    assert last_batch(cache, log) == [(1, ("u", 0))]
    assert list(cache.fetch_offsets("g")) == [("t", 0), ("t", 1)]


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_where_a_subscription_cannot_be_read_every_topic_is_subscribed(release: str) -> None:
    """``E-20``, ``E-12``: here a protocol is missing, which says how to read it."""
    group = classic_group("g", [member_row("m", "t")])
    assert group.value is not None
    group.value["protocol"] = None
    cache, _ = loaded(release, group)
    cache.commit_offsets("g", THREE, who=MemberIdentity("m", None, 3))
    assert set(cache.delete_offsets("g", THREE).values()) == {Errors.GROUP_SUBSCRIBED_TO_TOPIC}
    assert list(cache.fetch_offsets("g")) == list(THREE)


def test_a_group_of_a_newer_kind_keeps_the_offsets_that_its_members_read_and_itself() -> None:
    """``E-20``, ``E-19``; without members it is subscribed to nothing."""
    asked = [("read", 0), ("u", 0)]
    cache, _ = loaded("4.3", *newer_group("g", member_id="m"))
    cache.commit_offsets("g", dict.fromkeys(asked, OffsetCommit(1)), who=MemberIdentity("m", None, 5))
    assert [*cache.delete_offsets("g", asked).values()] == [Errors.GROUP_SUBSCRIBED_TO_TOPIC, Errors.NONE]
    assert list(cache.fetch_offsets("g")) == [("read", 0)]
    with pytest.raises(CoordinatorError, match="NON_EMPTY_GROUP: 'g' has 1 member"):
        cache.delete_group("g")
    cache, _ = loaded("4.3", *newer_group("g"))
    assert [*cache.delete_offsets("g", asked).values()] == [Errors.NONE, Errors.NONE]


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_other_groups_with_members_keep_their_offsets(release: str) -> None:
    """``E-20``, ``E-19``."""
    cache, log = loaded(release, classic_group("g", [member_row("m", "t")], kind="connect"))
    before = log.written(cache.partition_for("g"))
    for call in (lambda: cache.delete_offsets("g", [("u", 0)]), lambda: cache.delete_group("g")):
        with pytest.raises(CoordinatorError, match="NON_EMPTY_GROUP"):
            call()
    assert log.written(cache.partition_for("g")) == before


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_of_a_group_that_does_not_exist_nothing_is_deleted(release: str) -> None:
    cache, _ = with_log(release)
    for call in (lambda: cache.delete_offsets("g", [("u", 0)]), lambda: cache.delete_group("g")):
        with pytest.raises(CoordinatorError, match="GROUP_ID_NOT_FOUND"):
            call()


def test_a_pending_offset_is_deleted_by_java_and_left_by_scala() -> None:
    """``J-12``, ``L-19``, ``B-11``."""
    for release, expected in (("4.3", NO_OFFSET), ("3.9", UNSTABLE)):
        cache, log = with_log(release)
        cache.commit_transactional_offsets("g", FIRST, {("t", 0): OffsetCommit(1)})
        before = log.written(cache.partition_for("g"))
        cache.delete_offsets("g", [("t", 0)])
        assert (log.written(cache.partition_for("g")) == before) == (release == "3.9")
        assert cache.fetch_offsets("g", [("t", 0)], require_stable=True) == {("t", 0): expected}
        assert memories(started(release, log)) == memories(cache)


def test_with_its_last_offset_scala_removes_an_empty_group_and_java_does_not() -> None:
    """``E-14``."""
    for release, types, listed in (("4.3", [1], ["g"]), ("3.9", [1, 2], [])):
        cache, log = loaded(release, classic_group("g"))
        cache.commit_offsets("g", {("t", 0): OffsetCommit(1)})
        cache.delete_offsets("g", [("t", 0)])
        assert [record_type for record_type, _ in last_batch(cache, log)] == types
        assert [row.group for row in cache.list_groups()] == listed


@pytest.mark.parametrize("keeps", ["another offset", "a pending offset", "a member"])
def test_scala_keeps_a_group_that_has_more_than_its_last_offset(keeps: str) -> None:
    """``E-14``."""
    members = [member_row("m", "t")] if keeps == "a member" else []
    cache, log = loaded("3.9", classic_group("g", members))
    who = MemberIdentity("m", None, 3) if members else NOBODY
    cache.commit_offsets("g", {("u", 0): OffsetCommit(1)}, who=who)
    if keeps == "another offset":
        cache.commit_offsets("g", {("u", 1): OffsetCommit(1)})
    if keeps == "a pending offset":
        cache.commit_transactional_offsets("g", FIRST, {("u", 1): OffsetCommit(2)})
    cache.delete_offsets("g", [("u", 0)])
    assert last_batch(cache, log) == [(1, ("u", 0))]
    assert [row.group for row in cache.list_groups()] == ["g"]


# ------------------------------------------------------------------------------------------------- groups


def test_a_simple_group_goes_with_its_offsets() -> None:
    """``E-19``, ``E-15``, ``E-14``: Java writes a group tombstone always, Scala for a generation only."""
    for release, types in (("4.3", [1, 1, 1, 2]), ("3.9", [1, 1, 1])):
        cache, log = with_log(release)
        cache.commit_offsets("g", THREE)
        cache.delete_group("g")
        assert [record_type for record_type, _ in last_batch(cache, log)] == types
        assert cache.list_groups() == []
        assert cache.fetch_offsets("g") == {}
        cache.commit_offsets("g", {("t", 1): OffsetCommit(4)})
        assert list(cache.fetch_offsets("g")) == [("t", 1)]
        assert memories(started(release, log)) == memories(cache)


@pytest.mark.parametrize("generation", [1, 3])
@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_a_group_of_a_generation_gets_its_tombstone(release: str, generation: int) -> None:
    """``E-14``, ``E-15``."""
    cache, log = loaded(release, classic_group("g", generation=generation))
    cache.delete_group("g")
    assert last_batch(cache, log) == [(2, ())]
    assert cache.list_groups() == []


def test_deleting_a_group_cancels_its_open_transactions() -> None:
    """``E-19``, ``B-12``."""
    cache, log = with_log()
    cache.commit_offsets("g", {("t", 0): OffsetCommit(1)})
    cache.commit_transactional_offsets("g", FIRST, {("t", 0): OffsetCommit(2), ("t", 1): OffsetCommit(2)})
    cache.delete_group("g")
    assert last_batch(cache, log) == [(1, ("t", 0)), (1, ("t", 1)), (2, ())]
    assert set(cache.write_txn_marker(FIRST, commit=True).values()) == {Errors.NONE}
    assert cache.list_groups() == []
    assert memories(started(log=log)) == memories(cache)


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_what_is_pending_of_one_group_is_not_of_another(release: str) -> None:
    """``E-19``, ``L-36``: not even in the same partition, and in the same transaction."""
    cache, log = with_log(release, config=replace(SMALL, offsets_topic_num_partitions=1))
    for group in ("g", "h"):
        cache.commit_transactional_offsets(group, FIRST, {("t", 0): OffsetCommit(2)})
    assert [row.group for row in cache.list_groups()] == ["g", "h"]
    assert cache.fetch_offsets("i", [("t", 0)], require_stable=True) == {("t", 0): NO_OFFSET}
    with pytest.raises(CoordinatorError, match="GROUP_ID_NOT_FOUND"):
        cache.delete_group("i")
    cache.delete_group("g")
    if release == "4.3":
        assert last_batch(cache, log) == [(1, ("t", 0)), (2, ())]
    cache.write_txn_marker(FIRST, commit=True)
    assert list(cache.fetch_offsets("h")) == [("t", 0)]


@pytest.mark.parametrize(
    ("kind", "types"), [("consumer", [6, 4, 3]), ("streams", [20, 17, 23]), ("share", [12, 15, 11])]
)
def test_tombstones_of_the_newer_kinds_have_an_order_that_loads(kind: str, types: list[int]) -> None:
    """``J-17``."""
    cache, log = loaded("4.3", *newer_group("g", kind=kind))
    assert [(row.type, row.state) for row in cache.list_groups()] == [(kind, "Empty")]
    cache.delete_group("g")
    assert [record_type for record_type, _ in last_batch(cache, log)] == types
    assert cache.list_groups() == []
    again = started(log=log)
    assert again.partition(cache.partition_for("g")).failure is None
    assert again.list_groups() == []


def test_each_regular_expression_of_a_consumer_group_gets_its_tombstone() -> None:
    """``J-17``: behind the epoch of the targets, in the order of the texts."""
    resolved = {"topics": ["t"], "version": 1, "timestamp": 1}
    expressions = [
        CoordinatorRecord(
            record_type=16, key={"group_id": "g", "regular_expression": text}, value_version=0, value=resolved
        )
        for text in ("u.*", "t.*")
    ]
    cache, log = loaded("4.3", *newer_group("g"), *expressions)
    cache.delete_group("g")
    assert last_batch(cache, log) == [(6, ()), (16, ("t.*",)), (16, ("u.*",)), (4, ()), (3, ())]
    assert started(log=log).list_groups() == []


def test_offsets_whose_group_was_removed_without_them_are_not_served_until_it_exists_again() -> None:
    """``J-15``, ``B-17``, ``B-2``."""
    tombstone = CoordinatorRecord(record_type=2, key={"group": "g"})
    cache, log = with_log()
    partition = cache.partition_for("g")
    cache.commit_offsets("g", {("t", 0): OffsetCommit(1)})
    cache.commit_transactional_offsets("g", FIRST, {("t", 1): OffsetCommit(2)})
    put(log, partition, tombstone)
    cache = started(log=log)
    assert cache.list_groups() == []
    keys = [("t", 0), ("t", 1)]
    assert cache.fetch_offsets("g", keys) == {("t", 0): NO_OFFSET, ("t", 1): NO_OFFSET}
    assert cache.fetch_offsets("g", keys, require_stable=True) == {("t", 0): NO_OFFSET, ("t", 1): UNSTABLE}
    assert cache.fetch_offsets("g", require_stable=True) == {}
    cache.commit_offsets("g", {("t", 2): OffsetCommit(3)})
    assert list(cache.fetch_offsets("g")) == [("t", 0), ("t", 2)]


# ------------------------------------------------------------------------------------------------- expiry


def test_java_has_its_first_cycle_an_interval_after_the_load_and_scala_at_startup() -> None:
    """``E-1``."""
    for release, first_ms in (("4.3", INTERVAL_MS), ("3.9", 0)):
        log, clock = MemoryLog(), Clock(NOW - 2 * WEEK_MS)
        started(release, log, clock=clock).commit_offsets("g", THREE)
        clock.now_ms = NOW
        cache = started(release, log, clock=clock)
        if first_ms:
            assert cache.tick(NOW + first_ms - 1).written == {}
        assert list(cache.tick(NOW + first_ms).written) == [cache.partition_for("g")]
        cache.commit_offsets("g", THREE, retention_ms=0)
        assert cache.tick(NOW + first_ms + INTERVAL_MS - 1).written == {}
        assert cache.tick(NOW + first_ms + INTERVAL_MS).written != {}


def test_a_coordinator_that_is_started_again_has_a_first_cycle_again() -> None:
    """``E-1``: the Scala one at once."""
    clock = Clock()
    cache, _ = with_log("3.9", clock=clock)
    assert cache.tick().written == {}
    cache.commit_offsets("g", THREE, retention_ms=0)
    clock.now_ms += 1
    assert cache.tick().written == {}
    cache.shutdown()
    cache.startup()
    assert list(cache.tick().written) == [cache.partition_for("g")]


@pytest.mark.parametrize("release", ["1.1", "2.0", "2.1", "2.8.2", "3.9", "3.9-java", "4.3"])
def test_what_is_older_than_the_retention_goes_with_its_group(release: str) -> None:
    """``E-3``–``E-5``, ``E-14``–``E-18``."""
    clock = Clock()
    cache, log = with_log(release, clock=clock)
    cache.commit_offsets("g", {("t", 0): OffsetCommit(1)})
    clock.now_ms += HOUR_MS
    cache.commit_offsets("g", {("t", 1): OffsetCommit(2)})
    clock.now_ms = NOW + SMALL.retention_ms + 1
    cycle = cache.tick()
    partition = cache.partition_for("g")
    assert [record.key["partition"] for record in cycle.written[partition]] == [0]
    assert list(cache.fetch_offsets("g")) == [("t", 1)]
    clock.now_ms += HOUR_MS
    cycle = cache.tick()
    is_java = release in ("3.9-java", "4.3")
    assert [record.record_type for record in cycle.written[partition]] == ([1, 2] if is_java else [1])
    assert cache.list_groups() == []
    assert memories(started(release, log)) == memories(cache)


@pytest.mark.parametrize("expires", [False, True])
def test_without_metadata_expiration_nothing_expires_nor_after_a_shutdown(expires: bool) -> None:
    cache = GroupCoordinatorCache(MemoryLog(), Clock(), offset_config=SMALL)
    cache.startup(enable_metadata_expiration=expires)
    cache.on_election(cache.partition_for("g"), 0)
    cache.commit_offsets("g", THREE, retention_ms=0)
    cache.shutdown()
    assert cache.tick(NOW + 2 * WEEK_MS).written == {}
    cache.startup(enable_metadata_expiration=expires)
    assert len(cache.fetch_offsets("g")) == 3
    assert bool(cache.tick(NOW + 2 * WEEK_MS).written) == expires


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_a_partition_of_java_has_cycles_of_its_own_and_scala_visits_all_at_once(release: str) -> None:
    """``E-1``."""
    clock = Clock()
    cache, _ = with_log(release, clock=clock)
    cache.tick()
    clock.now_ms += INTERVAL_MS // 2
    late = cache.partition_for("g")
    cache.on_resignation(late, 2)
    cache.on_election(late, 3)
    for group in ("g", "h"):
        cache.commit_offsets(group, THREE, retention_ms=0)
    assert late != cache.partition_for("h")
    early_due, late_due = (list(cache.tick(NOW + due).written) for due in (INTERVAL_MS, INTERVAL_MS // 2 * 3))
    assert (early_due, late_due) == (
        ([cache.partition_for("h")], [late]) if release == "4.3" else (sorted({late, cache.partition_for("h")}), [])
    )


def test_a_group_is_one_batch_and_what_could_not_be_written_comes_with_the_next_cycle() -> None:
    """``E-17``, ``E-3``."""
    clock = Clock()
    cache, log = with_log(clock=clock)
    names = [name for name in map("group-{}".format, range(40)) if cache.partition_for(name) == 0][:3]
    for name in names:
        cache.commit_offsets(name, THREE)
    before = memories(cache)
    clock.now_ms += 2 * WEEK_MS
    log.fail_with = CoordinatorError(Errors.NOT_ENOUGH_REPLICAS, "it is down")
    cycle = cache.tick()
    assert cycle.written == {}
    assert cycle.failed[0].error is Errors.COORDINATOR_NOT_AVAILABLE
    assert memories(cache) == before
    log.fail_with = None
    assert cache.tick().written == {}, "the next cycle is not due"
    clock.now_ms += INTERVAL_MS
    assert len(cache.tick().written[0]) == 12
    assert [batch.records_count for batch in batches(log, 0)][-3:] == [4, 4, 4]
    assert cache.list_groups() == []


def test_a_partition_that_is_not_loaded_is_not_visited() -> None:
    clock = Clock()
    cache, log = with_log(clock=clock)
    cache.commit_offsets("g", THREE)
    partition = cache.partition_for("g")
    cache.on_resignation(partition)
    before = log.written(partition)
    clock.now_ms += 2 * WEEK_MS
    assert cache.tick().written == {}
    assert (cache.partition(partition).load_state, log.written(partition)) == (LoadState.NOT_LOADED, before)
