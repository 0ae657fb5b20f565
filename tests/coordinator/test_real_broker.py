"""A log that only the cache wrote, loaded by a real broker: Kafka's own clients get the cache's answers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from offsets_log.coordinator.answers import TopicPartition
from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.errors import Errors
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.records import OffsetCommit, Producer
from offsets_log.coordinator.validation import NOBODY, MemberIdentity
from offsets_log.log_format.primitives import Uuid
from tests.coordinator import broker
from tests.coordinator.caches import PARTITIONS, SMALL, Clock, classic_group, member_row, newer_group, put
from tests.coordinator.operations import (
    Commit,
    DeleteGroup,
    DeleteOffsets,
    EndTransaction,
    Operation,
    TransactionalCommit,
    Wait,
    perform,
)

SEED = 1
OPERATIONS = 250
GROUPS = ("billing", "audit", "grüppe", "g😀", "tx-a", "tx-b", " lead and trail ", "busy", "joined", "emptied")
TOPICS = ("orders", "payments")
PRODUCERS = (7, 8, 9)


def some_offsets(choice: random.Random) -> dict[TopicPartition, OffsetCommit]:
    keys = [(choice.choice(TOPICS), choice.randrange(3)) for _ in range(choice.randint(1, 3))]
    return {
        key: OffsetCommit(
            choice.choice((-1, 0, choice.randrange(1 << 40), (1 << 63) - 1)),
            choice.choice(("", None, "método", "x" * 4096, "x" * 4097)),
            choice.choice((None, 0, 3)),
            Uuid(bytes([choice.randrange(1, 256)] * 16)),
        )
        for key in keys
    }


def some_operation(choice: random.Random) -> Operation:
    group = choice.choice(GROUPS)
    producer = Producer(choice.choice(PRODUCERS), 0)
    who = {"busy": MemberIdentity("m", None, 3), "joined": MemberIdentity("m", None, 5)}.get(group, NOBODY)
    keys = [(topic, partition) for topic in TOPICS for partition in range(3)]
    kinds: list[Operation] = [
        Commit(group, some_offsets(choice), who, choice.choice((None, None, None, 3_600_000))),
        TransactionalCommit(group, producer, some_offsets(choice)),
        EndTransaction(producer, choice.random() < 0.6),
        DeleteOffsets(group, choice.sample(keys, 2)),
        DeleteGroup(group),
        Wait(choice.choice((1, 24, 24, 7 * 24))),
    ]
    return choice.choices(kinds, (10, 6, 3, 3, 1, 1))[0]


def work(log: MemoryLog) -> GroupCoordinatorCache:
    """A cache after its work, over a log with three groups of an earlier broker."""
    clock = Clock()
    cache = GroupCoordinatorCache(log, clock, release="4.3", offset_config=SMALL)
    put(log, cache.partition_for("busy"), classic_group("busy", [member_row("m", "orders")]))
    put(log, cache.partition_for("joined"), *newer_group("joined", member_id="m"))
    put(log, cache.partition_for("emptied"), classic_group("emptied"))
    cache.startup()
    for partition in range(PARTITIONS):
        cache.on_election(partition, leader_epoch=0)
    choice = random.Random(SEED)
    for _ in range(OPERATIONS):
        perform(cache, clock, some_operation(choice))
    return cache


def answers_of(cache: GroupCoordinatorCache, questions: dict[str, list[TopicPartition]]) -> dict[str, Any]:
    """The cache's answers in the form of Ask.java's; as the client does, without partitions that have no offset."""
    return {
        "groups": [[row.group, row.type, row.protocol_type, row.state] for row in cache.list_groups()],
        "offsets": [
            [group, topic, partition, value.committed_offset, value.metadata, value.leader_epoch]
            for group in questions
            for (topic, partition), value in cache.fetch_offsets(group).items()
            if value.committed_offset >= 0
        ],
        "unstable": [
            [group, *key]
            for group, keys in questions.items()
            for key, value in cache.fetch_offsets(group, keys, require_stable=True).items()
            if value.error is Errors.UNSTABLE_OFFSET_COMMIT
        ],
    }


@pytest.mark.kafka
def test_a_real_broker_answers_as_the_cache_whose_log_it_loads(
    tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    """Offsets, groups, states, unstable offsets: ``W-1``–``W-10``, ``E-15``, ``E-19``, ``E-20``, ``B-2``, ``B-12``."""
    try:
        libs = broker.jars()
    except broker.NotAvailableError as reason:
        pytest.skip(f"no real broker: {reason}")
    log = MemoryLog()
    cache = work(log)
    keys = [(topic, partition) for topic in TOPICS for partition in range(3)]
    questions = dict.fromkeys((*GROUPS, "nobody"), keys)
    ours = answers_of(cache, questions)
    assert min(map(len, ours.values())) > 5, "the work leaves too little to compare"
    real = broker.Broker(libs, tmp_path, PARTITIONS)
    with real.running():
        real.ask({"nobody": []})
    for partition in log.partitions():
        real.place(partition, log.written(partition))
    with real.running():
        theirs = real.ask(questions)
    assert {name: sorted(rows, key=repr) for name, rows in theirs.items()} == {
        name: sorted(rows, key=repr) for name, rows in ours.items()
    }
    for name, rows in ours.items():
        record_property(name, len(rows))
