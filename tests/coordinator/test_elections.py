"""Leading and not leading a partition, and what is answered meanwhile."""

from __future__ import annotations

import pytest

from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.errors import CoordinatorError, Errors
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.partition import LoadState
from offsets_log.coordinator.records import OffsetCommit
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import iter_batches
from offsets_log.messages.registry import CoordinatorRecord
from tests.coordinator.caches import (
    FIRST,
    JAVA_AND_SCALA,
    SMALL,
    Clock,
    classic_group,
    member_row,
    newer_group,
    put,
    started,
    with_log,
)

OFFSET = {("t", 0): OffsetCommit(5)}


def error_of(cache: GroupCoordinatorCache, group: str = "g") -> Errors:
    with pytest.raises(CoordinatorError) as caught:
        cache.fetch_offsets(group)
    return caught.value.error


def test_nothing_is_answered_before_startup_and_after_shutdown() -> None:
    cache = GroupCoordinatorCache(MemoryLog(), Clock(), offset_config=SMALL)
    for partition in range(4):
        assert cache.partition(partition).leader_epoch == -1
        cache.on_election(partition, 0)
        assert cache.partition(partition).leader_epoch == 0
    assert error_of(cache) is Errors.COORDINATOR_NOT_AVAILABLE
    cache.startup()
    cache.commit_offsets("g", OFFSET)
    cache.shutdown()
    assert error_of(cache) is Errors.COORDINATOR_NOT_AVAILABLE


def test_a_group_is_looked_for_in_its_own_partition_only() -> None:
    """``B-5``: its records in another are loaded, and found by nobody."""
    cache, log = with_log()
    own = cache.partition_for("g")
    key = {"group": "g", "topic": "t", "partition": 0}
    value = {"offset": 5, "metadata": "", "commit_timestamp": 0}
    other = (own + 1) % SMALL.offsets_topic_num_partitions
    put(log, other, CoordinatorRecord(record_type=1, key=key, value_version=2, value=value))
    later = started("4.3", log)
    assert [len(later.state(partition).committed) for partition in (other, own)] == [1, 0]
    assert later.fetch_offsets("g") == {}


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_resigning_forgets_and_writes_nothing_and_an_election_brings_it_back(release: str) -> None:
    """``L-43``."""
    cache, log = with_log(release)
    cache.commit_offsets("g", OFFSET)
    partition = cache.partition_for("g")
    before = log.written(partition)
    assert cache.on_resignation(partition, 2)
    assert error_of(cache) is Errors.NOT_COORDINATOR
    assert [group.group for group in cache.list_groups()] == []
    assert log.written(partition) == before
    assert cache.on_election(partition, 3)
    assert cache.fetch_offsets("g")["t", 0].committed_offset == 5


def test_an_older_epoch_is_ignored() -> None:
    """``L-44``."""
    cache, _ = with_log()
    partition = cache.partition_for("g")
    assert cache.on_resignation(partition, 5)
    assert not cache.on_election(partition, 4)
    assert error_of(cache) is Errors.NOT_COORDINATOR
    assert cache.on_election(partition, 6)
    assert not cache.on_resignation(partition, 5)
    cache.commit_offsets("g", OFFSET)
    assert not cache.on_election(partition, 6), "it is loaded already"
    assert not cache.on_election(partition, 7), "it is loaded already, at a newer epoch"
    assert not cache.on_resignation(partition, 6)
    assert cache.fetch_offsets("g")["t", 0].committed_offset == 5
    assert cache.on_resignation(partition), "the topic is gone"
    assert error_of(cache) is Errors.NOT_COORDINATOR


def test_the_epoch_heard_of_last_is_no_older_one() -> None:
    """``L-44``: a resignation and an election may come with the epoch of the election before."""
    cache, _ = with_log()
    partition = cache.partition_for("g")
    assert cache.on_resignation(partition, 1)
    assert error_of(cache) is Errors.NOT_COORDINATOR
    assert cache.on_election(partition, 1)
    assert cache.fetch_offsets("g") == {}


def test_batches_carry_the_epoch_of_the_election() -> None:
    cache, log = with_log()
    partition = cache.partition_for("g")
    cache.commit_offsets("g", OFFSET)
    cache.on_resignation(partition, 4)
    cache.on_election(partition, 5)
    cache.commit_transactional_offsets("g", FIRST, OFFSET)
    cache.write_txn_marker(FIRST, commit=True)
    found = [part for part in iter_batches(log.written(partition)) if isinstance(part, RecordBatch)]
    assert [(batch.partition_leader_epoch, batch.is_control) for batch in found] == [(1, False), (5, False), (5, True)]
    assert [batch.base_offset for batch in found] == [0, 1, 2], "one behind the other"


class AskingLog(MemoryLog):
    """While it is read, something happens to its cache."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: GroupCoordinatorCache | None = None
        self.errors: list[Errors] = []
        self.resigns = False

    def read(self, partition: int) -> PartitionLog:
        if self.cache is not None:
            assert self.cache.partition(partition).load_state is LoadState.LOADING
            assert not self.cache.on_election(partition, 8), "it is being loaded already"
            self.errors.append(error_of(self.cache))
            with pytest.raises(CoordinatorError, match="COORDINATOR_LOAD_IN_PROGRESS"):
                self.cache.list_groups()
            if self.resigns:
                self.cache.on_resignation(partition, 9)
        return super().read(partition)


@pytest.mark.parametrize("resigns", [False, True])
def test_while_it_is_loaded_the_load_is_in_progress(resigns: bool) -> None:
    log = AskingLog()
    cache = started(log=log)
    cache.commit_offsets("g", OFFSET)
    partition = cache.partition_for("g")
    cache.on_resignation(partition, 2)
    log.cache, log.resigns = cache, resigns
    cache.on_election(partition, 3)
    assert log.errors == [Errors.COORDINATOR_LOAD_IN_PROGRESS]
    if resigns:
        assert error_of(cache) is Errors.NOT_COORDINATOR
    else:
        assert cache.fetch_offsets("g")["t", 0].committed_offset == 5


class UnreadableLog(MemoryLog):
    def read(self, partition: int) -> PartitionLog:
        raise OSError("no such disk")


def test_a_log_that_cannot_be_read_leaves_the_partition_failed() -> None:
    cache = GroupCoordinatorCache(UnreadableLog(), Clock(), offset_config=SMALL)
    cache.startup()
    with pytest.raises(OSError, match="no such disk"):
        cache.on_election(0, 1)
    assert cache.partition(0).load_state is LoadState.FAILED
    assert not cache.on_election(0, 1), "the same epoch is no news"


def log_with_a_null_key(partition: int) -> MemoryLog:
    log = MemoryLog()
    put(log, partition, classic_group("g"))
    log.append(partition, build_batch([Record(offset=0, timestamp_ms=0, key=None, value=b"")]))
    return log


def test_a_failed_load_of_the_java_coordinator_answers_nobody() -> None:
    """``J-3``."""
    partition = started().partition_for("g")
    cache = started(log=log_with_a_null_key(partition))
    found = cache.partition(partition)
    assert found.load_state is LoadState.FAILED
    assert found.failure is not None
    assert (found.failure.rule, found.failure.record_offset, len(found.damages)) == ("L-16", 1, 1)
    assert error_of(cache) is Errors.NOT_COORDINATOR
    assert cache.list_groups() == []
    assert cache.on_election(partition, 2), "a newer epoch tries again"
    assert found.load_state is LoadState.FAILED


def test_a_failed_load_of_the_scala_coordinator_is_served_empty() -> None:
    """``L-42``."""
    partition = started().partition_for("g")
    cache = started("3.9", log_with_a_null_key(partition))
    assert cache.partition(partition).failure is not None
    assert cache.list_groups() == []
    cache.commit_offsets("g", OFFSET)
    assert cache.fetch_offsets("g")["t", 0].committed_offset == 5


def test_a_removed_group_that_offsets_keep_is_served_by_scala_all_the_same() -> None:
    """``B-4``, ``L-39``: only its pending offset keeps it."""
    cache = started("3.9")
    log = MemoryLog()
    partition = cache.partition_for("g")
    put(log, partition, CoordinatorRecord(record_type=2, key={"group": "g"}))
    value = {"offset": 1, "leader_epoch": -1, "metadata": "", "commit_timestamp": 0}
    key = {"group": "g", "topic": "t", "partition": 0}
    put(
        log,
        partition,
        CoordinatorRecord(record_type=1, key=key, value_version=3, value=value),
        producer_id=7,
        producer_epoch=0,
        is_transactional=True,
    )
    cache = started("3.9", log)
    failure = cache.partition(partition).failure
    assert failure is not None
    assert failure.rule == "L-39"
    assert [row.group for row in cache.list_groups()] == ["g"]


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_groups_of_a_newer_kind_are_listed_by_their_kind(kind: str) -> None:
    """It is their protocol type, too; states and types are asked for in any case, and both must fit."""
    log = MemoryLog()
    put(log, started().partition_for("g"), *newer_group("g", kind=kind))
    cache = started(log=log)
    cache.commit_offsets("simple", OFFSET)
    asked = ({"types": [kind.upper()]}, {"types": [kind], "states": ["EMPTY"]}, {"types": [kind], "states": ["Stable"]})
    assert [[(row.group, row.type, row.protocol_type) for row in cache.list_groups(**facts)] for facts in asked] == [
        [("g", kind, kind)],
        [("g", kind, kind)],
        [],
    ]
    assert cache.describe_group("g")["offsets_partition"] == cache.partition_for("g")


def test_find_coordinator_goes_through_the_partition_of_the_group() -> None:
    """``records:H1``."""
    leaders = {12: 3}
    cache = GroupCoordinatorCache(MemoryLog(), Clock(), leaders=leaders)
    found = cache.find_coordinator("my-group")
    assert (found.offsets_partition, found.broker) == (12, 3)
    with pytest.raises(CoordinatorError, match="COORDINATOR_NOT_AVAILABLE"):
        cache.find_coordinator("a")
    leaders[47] = 1
    assert cache.find_coordinator("a").broker == 1


def test_groups_are_listed_and_described_as_they_were_loaded() -> None:
    log = MemoryLog()
    cache = started(log=log)
    for group, record in (("busy", classic_group("busy", [member_row("m", "t")])), ("idle", classic_group("idle"))):
        put(log, cache.partition_for(group), record)
    cache = started(log=log)
    cache.commit_offsets("simple", OFFSET)
    assert [(row.group, row.type, row.protocol_type, row.state) for row in cache.list_groups()] == [
        ("busy", "classic", "consumer", "Stable"),
        ("idle", "classic", "consumer", "Empty"),
        ("simple", "classic", "", "Empty"),
    ]
    assert [row.group for row in cache.list_groups(states=["stable"])] == ["busy"]
    assert cache.list_groups(types=["Share"]) == []
    row = cache.describe_group("busy")
    assert (row["state"], row["generation"], row["leader"], row["protocol"]) == ("Stable", 3, "m", "range")
    assert [(member["member_id"], member["subscribed_topics"]) for member in row["members"]] == [("m", ["t"])]
    with pytest.raises(CoordinatorError, match="GROUP_ID_NOT_FOUND"):
        cache.describe_group("nobody")
