"""Transactional commits: pending until their marker, fenced producers, and what is said meanwhile."""

from __future__ import annotations

from functools import partial

import pytest

from offsets_log.coordinator.answers import NO_OFFSET, UNSTABLE, FetchedOffset
from offsets_log.coordinator.errors import Errors
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.records import OffsetCommit, Producer
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.control_record import ControlRecord, control_record
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record
from tests.coordinator.caches import FIRST, JAVA_AND_SCALA, SECOND, batches, put, started, with_log, written
from tests.coordinator.test_commit import OFFSET, RECORD, STABLE, commit_error


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
@pytest.mark.parametrize(("commit", "producer"), [(True, FIRST), (False, FIRST), (True, SECOND)])
def test_a_transactional_commit_is_pending_until_its_marker(release: str, commit: bool, producer: Producer) -> None:
    """``W-3``–``W-6``, ``J-8``, ``J-10``, ``J-11``, ``L-12``, ``L-13``."""
    cache, log = with_log(release)
    cache.commit_offsets("g", OFFSET)
    cache.commit_transactional_offsets("g", producer, {("t", 0): OffsetCommit(9), ("t", 1): OffsetCommit(9)})
    keys = [("t", 0), ("t", 1), ("t", 2)]
    assert cache.fetch_offsets("g", keys) == {("t", 0): STABLE, ("t", 1): NO_OFFSET, ("t", 2): NO_OFFSET}
    stable = {("t", 0): UNSTABLE, ("t", 1): UNSTABLE, ("t", 2): NO_OFFSET}
    assert cache.fetch_offsets("g", keys, require_stable=True) == stable
    assert cache.fetch_offsets("g", require_stable=True) == {("t", 0): UNSTABLE}, "all that is committed"
    partition = cache.partition_for("g")
    assert cache.write_txn_marker(producer, commit=commit) == {partition: Errors.NONE}
    _, data, marker = batches(log, partition)
    assert (data.is_transactional, data.base_sequence) == (True, 0)
    assert Producer(data.producer_id, data.producer_epoch) == producer
    assert (marker.is_control, marker.size_bytes) == (True, 78)
    assert written(log, partition)[-1].control == ControlRecord("COMMIT" if commit else "ABORT", 0)
    expected = {("t", 0): FetchedOffset(9), ("t", 1): FetchedOffset(9)} if commit else {("t", 0): STABLE}
    assert cache.fetch_offsets("g", require_stable=True) == expected
    assert cache.write_txn_marker(producer, commit=commit) == {}, "no transaction is open"


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_a_plain_commit_inside_a_transaction_stays_the_latest(release: str) -> None:
    """``W-6``, ``J-11``, ``L-13``."""
    cache, _ = with_log(release)
    cache.commit_transactional_offsets("g", FIRST, {("t", 0): OffsetCommit(9)})
    cache.commit_offsets("g", OFFSET)
    cache.write_txn_marker(FIRST, commit=True)
    assert cache.fetch_offsets("g") == {("t", 0): STABLE}


@pytest.mark.parametrize(("release", "is_said"), [("3.7-java", False), ("3.8-java", True), ("3.7", True)])
def test_an_unstable_offset_is_said_to_be_so(release: str, is_said: bool) -> None:
    """``B-8``."""
    cache, _ = with_log(release)
    cache.commit_transactional_offsets("g", FIRST, OFFSET)
    assert cache.fetch_offsets("g", [("t", 0)], require_stable=True) == {("t", 0): UNSTABLE if is_said else NO_OFFSET}


def test_transactions_of_several_producers_and_partitions_end_one_by_one() -> None:
    cache, _ = with_log()
    groups = ["g", "h", "i", "j"]
    assert len({cache.partition_for(group) for group in groups}) == 4
    for group in groups:
        cache.commit_transactional_offsets(group, FIRST, OFFSET)
    cache.commit_transactional_offsets("g", SECOND, {("t", 0): OffsetCommit(7)})
    chosen = cache.partition_for("h")
    assert cache.write_txn_marker(FIRST, commit=True, partitions=[chosen]) == {chosen: Errors.NONE}
    assert [len(cache.fetch_offsets(group)) for group in groups] == [0, 1, 0, 0]
    assert len(cache.write_txn_marker(FIRST, commit=True)) == 3
    assert cache.fetch_offsets("g", require_stable=True) == {("t", 0): UNSTABLE}
    cache.write_txn_marker(SECOND, commit=True)
    assert cache.fetch_offsets("g", require_stable=True) == {("t", 0): FetchedOffset(7)}


@pytest.mark.parametrize("producer_id", [0, 7])
def test_a_fenced_producer_and_a_fenced_transaction_coordinator_are_refused(producer_id: int) -> None:
    """``W-3``, ``W-4``, ``B-10``; also after another load."""
    cache, log = with_log()
    producer = partial(Producer, producer_id)
    partition = cache.partition_for("g")
    cache.commit_transactional_offsets("g", producer(2), OFFSET)
    assert commit_error(cache, producer=producer(1)) is Errors.INVALID_PRODUCER_EPOCH
    assert cache.write_txn_marker(producer(1), commit=True) == {partition: Errors.INVALID_PRODUCER_EPOCH}
    assert cache.write_txn_marker(producer(3), commit=True, coordinator_epoch=4) == {partition: Errors.NONE}
    for again in (cache, started(log=log)):
        assert commit_error(again, producer=producer(2)) is Errors.INVALID_PRODUCER_EPOCH
        late = again.write_txn_marker(producer(3), commit=True, coordinator_epoch=3, partitions=[partition])
        assert late == {partition: Errors.TRANSACTION_COORDINATOR_FENCED}
        equal = again.write_txn_marker(producer(3), commit=True, coordinator_epoch=4, partitions=[partition])
        assert equal == {partition: Errors.NONE}, "two equal markers in a row are legal"
    assert cache.write_txn_marker(producer(3), commit=True, partitions=[99]) == {99: Errors.NOT_COORDINATOR}


def test_a_producers_epoch_is_the_highest_in_the_log() -> None:
    """``W-3``: whatever stands behind it."""
    log = MemoryLog()
    for epoch in (3, 2):
        producer = {"producer_id": 7, "producer_epoch": epoch, "is_transactional": True}
        put(log, started().partition_for("g"), RECORD, **producer)
    cache = started(log=log)
    assert commit_error(cache, producer=Producer(7, 2)) is Errors.INVALID_PRODUCER_EPOCH
    assert commit_error(cache, producer=Producer(7, 3)) is Errors.NONE


def test_of_control_records_only_markers_tell_the_epoch_of_a_transaction_coordinator() -> None:
    log = MemoryLog()
    snapshot = control_record(
        Record(offset=0, timestamp_ms=0, key=None, value=None), ControlRecord("SNAPSHOT_HEADER", None)
    )
    partition = started().partition_for("g")
    log.append(partition, build_batch([snapshot], producer_id=7, producer_epoch=0, is_control=True))
    cache = started(log=log)
    cache.commit_transactional_offsets("g", FIRST, OFFSET)
    assert cache.write_txn_marker(FIRST, commit=True, coordinator_epoch=0) == {partition: Errors.NONE}
    assert cache.fetch_offsets("g") == {("t", 0): STABLE}


@pytest.mark.parametrize(("release", "has_one"), [("4.0", False), ("4.1", True), ("4.2", True), ("4.3", True)])
def test_a_topic_id_is_kept_from_4_1_on_but_for_transactional_commits(release: str, has_one: bool) -> None:
    """``records:W5``, ``B-13``."""
    cache, log = with_log(release)
    commit = OffsetCommit(1, topic_id=Uuid(bytes(range(16))))
    cache.commit_offsets("g", {("t", 0): commit, ("t", 1): OffsetCommit(1)})
    cache.commit_transactional_offsets("g", FIRST, {("t", 0): commit})
    values = [event.decoded.value or {} for event in written(log, cache.partition_for("g")) if event.decoded]
    assert [any(value.get("topic_id", b"")) for value in values] == [has_one, False, False]
