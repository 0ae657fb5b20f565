"""What `repair` and `clean` made of hostile logs, under a real broker: all loads, with the answers of `compact`."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from offsets_log.broker.outcome import on_brokers
from offsets_log.events import Event
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.pipeline import iter_events
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.releases import release_named
from tests.coordinator import broker
from tests.fuzz.cleaned import cut_at_batches, hostile_logs
from tests.fuzz.mutation import RECORDINGS, recorded_segments, seeds_of
from tests.repairing.test_real_broker import command
from tests.repairing.trial_cases import states_of
from tests.repairing.under_broker import Answer, answers, put_under, topic_id

PARTITIONS = 50
NAMES = ("kafka-lifetime", "kafka-4.3-mixed", "kafka-4.3-modern-groups", "random-java")
SEED = 100


def groups_in(log: PartitionLog) -> set[str]:
    events = (event for event in iter_events(log) if isinstance(event, Event))
    return {event.decoded.group for event in events if event.decoded is not None and event.decoded.group is not None}


def seeds_by_partition() -> dict[int, list[RecordBatch]]:
    """Recorded batches by the partitions in which a client finds one of their groups."""
    found: dict[int, list[RecordBatch]] = defaultdict(list)
    for batch in seeds_of(recorded_segments([RECORDINGS / f"{name}.tar.xz" for name in NAMES])):
        groups = groups_in(PartitionLog(0, (Segment("", 0, batch.raw),)))
        for partition in {partition_for(group, PARTITIONS) for group in groups}:
            found[partition].append(batch)
    return found


def write_hostile(folder: Path) -> Iterator[int]:
    """Write a log for each partition that has seeds."""
    for partition, seeds in sorted(seeds_by_partition().items()):
        place = folder / f"{OFFSETS_TOPIC}-{partition}"
        place.mkdir(parents=True)
        data = next(hostile_logs(seeds, SEED + partition, generated=0))
        for segment in cut_at_batches(data, random.Random(data))[0].segments:
            (place / segment.file).write_bytes(segment.buffer)
        yield partition


def loading(folder: Path) -> tuple[set[int], dict[str, int]]:
    """Partitions that a broker loads and holds as they are read here; groups that a client finds there, and where."""
    profile, partitions, groups = release_named(broker.VERSION).profile, set(), dict[str, int]()
    with states_of(folder, broker.VERSION) as (logs, states):
        for partition, log in logs.items():
            outcome = on_brokers(log, [profile], [False])[False][profile]
            if outcome.ok and outcome.holds(states[partition]):
                partitions.add(partition)
                found = {group for group in groups_in(log) if partition_for(group, PARTITIONS) == partition}
                groups |= dict.fromkeys(found, partition)
    return partitions, groups


@pytest.mark.kafka
def test_a_real_broker_serves_what_was_made_of_hostile_logs(
    tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    """By `repair`, which leaves out what would not load, and of every third partition by `clean`, if that loads."""
    try:
        libs = broker.jars()
    except broker.NotAvailableError as reason:
        pytest.skip(f"no real broker: {reason}")
    real = broker.Broker(libs, tmp_path, PARTITIONS)
    with real.running():
        real.ask({"nobody": []})
    given = [*write_hostile(tmp_path / "given")]
    words = ("--topic-id", topic_id(real.data), "--to")
    expected, questions, served = set[Answer](), dict[str, list[tuple[str, int]]](), set[int]()
    for name, rules, partitions in (
        ("repair", "--drop-unloadable", given[::3] + given[1::3]),
        ("clean", "--broker", given[2::3]),
    ):
        made = tmp_path / name
        chosen = [f"-p{partition}" for partition in partitions]
        command(name, tmp_path / "given", *chosen, rules, broker.VERSION, *words, made)
        loads, groups = loading(made)
        assert name == "clean" or loads == set(partitions)
        put_under(real.data, made, sorted(loads), tmp_path / f"old-{name}")
        told = command("compact", made, "-o", "jsonl")
        for partition in loads:
            expected |= {each for each in answers(told, [partition]) if groups.get(each[0]) == partition}
        questions |= {group: [] for group in groups}
        served |= loads
    with real.running():
        answered = real.ask(questions)
    assert {tuple(row) for row in answered["offsets"]} == expected
    assert not [*real.data.glob("*-stray")]
    assert len(served) > 30
    assert len(expected) > 60
    record_property("partitions", len(served))
    record_property("offsets", len(expected))
