"""Transactions and share groups by the logs of their coordinators, beside what brokers said of them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offsets_log.data_directory import transactions as t
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.metadata_copies import leader_copies
from offsets_log.data_directory.share_groups import (
    ShareState,
    StateBatch,
    combine,
    merge_update,
    replay_share_group_log,
)
from offsets_log.disk.reader import open_logs, open_partitions
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import build
from offsets_log.log_format.record import Record
from offsets_log.messages.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE
from offsets_log.messages.state_topics import STATE_RECORD_TYPES
from offsets_log.replay.partition_for import partition_for
from tests.data_directories.copies import COPIES, WORDS, Recorded, data_directories, partition_folders, partition_log

_TRANSACTION = re.compile(r"^(\S+)\s+\d+\s+(\d+)\s+(\w+)\s*$", re.MULTILINE)
_SHARE = re.compile(r"^(\S+)\s+(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*$", re.MULTILINE)


def logs_of(folder: Path, copy: str, topic: str) -> list[PartitionLog]:
    """All partitions of a topic that a broker has."""
    logs = []
    for path in partition_folders(folder, copy, topic):
        log = partition_log(path)
        logs.append(PartitionLog(int(path.name.rpartition("-")[2]), log.segments))
    return logs


@pytest.mark.parametrize("name", ["kafka-3.9-one", "kafka-4.3-one", "kafka-3.9-blocked", "kafka-4.3-blocked"])
def test_states_of_transactional_ids_are_those_that_the_broker_lists(name: str, recorded: Recorded) -> None:
    """``kafka-transactions list``."""
    folder = recorded(name)
    listed = (folder / "words" / "running" / "transactions-list.txt").read_text()
    expected = {match[1]: (int(match[2]), match[3]) for match in _TRANSACTION.finditer(listed)}
    states = t.replay_transaction_log(logs_of(folder, "running", "__transaction_state"))
    assert len(expected) == 9
    assert {one.transactional_id: (one.producer_id, one.status) for one in states.by_id.values()} == expected
    assert states.is_whole
    assert states.damages == []


DESCRIBED = [
    *((name, (copy,)) for name, copy in COPIES if name != "kafka-4.3-three"),
    ("kafka-4.3-three", ("broker-1", "broker-2")),
]


@pytest.mark.parametrize(("name", "copies"), DESCRIBED, ids=lambda value: value if isinstance(value, str) else value[0])
def test_transactions_are_those_that_the_broker_describes(
    name: str, copies: tuple[str, ...], recorded: Recorded
) -> None:
    """``kafka-transactions describe``: all but how long they last; the coordinator is who leads their partition.

    While markers are written, a broker leaves out the partitions that have theirs, and writes no record of that.
    """
    folder = recorded(name)
    words = folder / "words" / WORDS.get(copies[0], copies[0])
    with open_logs([str(path) for copy in copies for path in data_directories(folder, copy)]) as disk_logs:
        metadata = disk_logs.clusters.metadata
        assert metadata is not None
        copied = CopiedLogs(
            disk_logs.user_partitions, leader_copies(disk_logs.user_partitions, lambda: disk_logs.clusters.metadata)
        )
        with open_partitions(copied.chosen("__transaction_state")) as logs:
            states = t.replay_transaction_log(logs)
        count = metadata.partition_count("__transaction_state")
        assert count is not None
        described = sorted(words.glob("transaction-*.txt"))
        assert len(described) >= 6
        for path in described:
            names, cells = (line.removesuffix("\t").split("\t") for line in path.read_text().strip("\n").splitlines())
            told = dict(zip(map(str.strip, names), map(str.strip, cells), strict=True))
            partitions = set(filter(None, told.pop("TopicPartitions").split(",")))
            del told["TransactionDurationMs"]
            found = states.by_id[told["TransactionalId"]]
            led = metadata.partition("__transaction_state", partition_for(found.transactional_id, count))
            assert led is not None
            assert {
                "CoordinatorId": str(led.last_leader),
                "TransactionalId": found.transactional_id,
                "ProducerId": str(found.producer_id),
                "ProducerEpoch": str(found.producer_epoch),
                "TransactionState": found.status,
                "TransactionTimeoutMs": str(found.timeout_ms),
                "CurrentTransactionStartTimeMs": "None" if found.started_ms < 0 else str(found.started_ms),
            } == told
            taking_part = {f"{topic}-{number}" for topic, numbers in found.partitions.items() for number in numbers}
            if found.status.startswith("Prepare"):
                assert partitions <= taking_part
            else:
                assert partitions == taking_part


def state(status: str, **changes: Any) -> t.TransactionState:
    """A transaction over partition 3 of the offsets topic."""
    told: dict[str, Any] = {
        "transactional_id": "id",
        "producer_id": 7,
        "producer_epoch": 1,
        "other_producer_ids": frozenset({6}),
        "status": status,
        "timeout_ms": 1000,
        "started_ms": 5000,
        "updated_ms": 5500,
        "partitions": {OFFSETS_TOPIC: frozenset({3})},
    }
    return t.TransactionState(**{**told, **changes})


@pytest.mark.parametrize(
    ("status", "partition", "pending_ms", "now_ms", "outcome"),
    [
        ("PrepareCommit", 3, 5100, None, t.COMMITTED),
        ("PrepareCommit", 4, 5100, None, t.HANGING),
        ("PrepareAbort", 3, 5100, None, t.ABORTED),
        ("PrepareEpochFence", 3, 5100, None, t.ABORTED),
        ("CompleteCommit", 3, 5100, None, t.COMMITTED),
        ("CompleteAbort", 3, 5500, None, t.ABORTED),
        ("CompleteCommit", 3, 5501, None, t.HANGING),
        ("Ongoing", 3, 5100, None, t.UNDECIDED),
        ("Ongoing", 3, 5100, 6000, t.UNDECIDED),
        ("Ongoing", 3, 5100, 6001, t.TIMED_OUT),
        ("Ongoing", 4, 5100, 6001, t.HANGING),
        ("Empty", 3, 5100, None, t.HANGING),
        ("Dead", 3, 5100, None, t.HANGING),
    ],
)
def test_what_becomes_of_pending_offsets(
    status: str, partition: int, pending_ms: int, now_ms: int | None, outcome: str
) -> None:
    """By the state, whether the partition takes part, and whether the record is older than the end.

    All is of one moment.
    """
    known = {"id": state(status)}
    states = t.TransactionStates(by_id=known, is_whole=True, newest={0: ("", 5500)}, still_homes=frozenset({""}))
    for producer_id in (7, 6):
        assert states.outcome(producer_id, partition, pending_ms, now_ms).outcome == outcome


@pytest.mark.parametrize(
    ("version", "previous", "following", "others"),
    [(0, 0, 0, set()), (1, -1, -1, set()), (1, 5, -1, {5}), (1, -1, 6, {6}), (1, 0, 6, {0, 6})],
)
def test_ids_that_a_transaction_had_or_will_have_are_its_producers_too(
    version: int, previous: int, following: int, others: set[int]
) -> None:
    """−1 is none, and version 0 has none; a tombstone takes back all that was said of an id."""
    (row,) = STATE_RECORD_TYPES[TRANSACTION_STATE].values()
    (table,) = row.values
    fields = table.zeros(version) | {"producer_id": 9, "transaction_status": 0, "transaction_start_timestamp_ms": 3}
    if version:
        fields |= {"previous_producer_id": previous, "next_producer_id": following}
    key, value = b"".join((b"\0\0", b"\0\1x")), version.to_bytes(2) + build(table.struct(version), fields, "value")

    def log(*values: bytes | None) -> PartitionLog:
        records = [Record(offset=i, timestamp_ms=7 + i, key=key, value=one) for i, one in enumerate(values)]
        return PartitionLog(0, (Segment("0.log", 0, build_batch(records)),))

    states = t.replay_transaction_log([log(value)])
    found = states.by_id["x"]
    assert (found.producer_id, found.other_producer_ids, found.started_ms) == (9, others, 3)
    assert (states.newest[0][1], states.damages) == (7, [])
    assert not t.replay_transaction_log([log(value)], all_partitions=range(2)).is_whole
    removed = t.replay_transaction_log([log(value, None)], all_partitions=range(1))
    assert (removed.by_id, removed.newest[0][1], removed.is_whole) == ({}, 8, True)


def test_a_producer_that_nobody_knows_hangs_only_where_all_of_the_log_was_read() -> None:
    known = {"id": state("Ongoing")}
    assert t.TransactionStates(by_id=known, is_whole=True).outcome(99, 3, 0, None).outcome == t.HANGING
    assert t.TransactionStates(by_id=known, is_whole=False).outcome(99, 3, 0, None).outcome == t.UNDECIDED
    assert t.TransactionStates().outcome(99, 3, 0, None).outcome == t.UNDECIDED


@pytest.mark.parametrize("copy", ["running", "stopped"])
def test_share_groups_start_and_lag_are_those_that_the_broker_describes(copy: str, recorded: Recorded) -> None:
    """``kafka-share-groups --describe --offsets``."""
    folder = recorded("kafka-4.3-one")
    words = (folder / "words" / WORDS.get(copy, copy) / "share-groups-offsets.txt").read_text()
    expected = {(m[1], m[2], int(m[3])): (int(m[4]), int(m[5]), int(m[6])) for m in _SHARE.finditer(words)}
    states = replay_share_group_log(logs_of(folder, copy, "__share_group_state"))
    found = {}
    with open_logs([str(path) for path in data_directories(folder, copy)]) as disk_logs:
        logs = CopiedLogs(disk_logs.user_partitions)
        for key, one in states.by_key.items():
            topic = disk_logs.topic_ids[bytes(key.topic_id)]
            ends = logs.ends(topic, key.partition)
            assert ends is not None
            found[key.group, topic, key.partition] = one.leader_epoch, one.start_offset, one.lag(ends.end_offset)
    assert len(expected) == 5
    assert found == expected


BATCHES = st.builds(
    lambda first, size, state, count: StateBatch(first, first + size, state, count),
    st.integers(0, 30),
    st.integers(0, 10),
    st.sampled_from([0, 2, 4]),
    st.integers(1, 3),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(batches=st.lists(BATCHES, max_size=8), start=st.integers(-1, 30))
def test_batches_combine_offset_by_offset(batches: list[StateBatch], start: int) -> None:
    """The larger count of deliveries wins, then the larger state; nothing below the start, neighbours joined."""
    expected: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for offset in range(max(batch.first_offset, start), batch.last_offset + 1):
            told = batch.delivery_count, batch.delivery_state
            expected[offset] = max(expected.get(offset, told), told)
    combined = combine(batches, start)
    found = {
        offset: (batch.delivery_count, batch.delivery_state)
        for batch in combined
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    assert found == expected
    for before, after in pairwise(combined):
        assert before.last_offset < after.first_offset
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:]


def share_state(**changes: Any) -> ShareState:
    """A snapshot's state."""
    told: dict[str, Any] = {
        "snapshot_epoch": 4,
        "state_epoch": 2,
        "leader_epoch": 3,
        "start_offset": 10,
        "delivery_complete_count": 5,
        "batches": (StateBatch(10, 14, 2, 1),),
        "create_timestamp_ms": 100,
        "write_timestamp_ms": 200,
        "record_offset": 1,
        "state_partition": 0,
    }
    return ShareState(**{**told, **changes})


def test_an_update_keeps_what_it_does_not_say_but_for_the_count_of_what_is_done() -> None:
    update = share_state(
        start_offset=-1, leader_epoch=-1, delivery_complete_count=-1, batches=(StateBatch(15, 15, 0, 2),),
        state_epoch=0, snapshot_epoch=9, create_timestamp_ms=-1, write_timestamp_ms=-1, record_offset=7,
    )  # fmt: skip
    merged = merge_update(share_state(), update)
    assert merged == share_state(
        delivery_complete_count=-1, batches=(StateBatch(10, 14, 2, 1), StateBatch(15, 15, 0, 2)), record_offset=7
    )
    assert merged.lag(20) is None
    assert share_state().lag(20) == 5
    assert merged.redelivered() == [StateBatch(10, 14, 2, 1)]
