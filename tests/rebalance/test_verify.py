"""Recorded assignments run again: what is the same, what is not, and why (``A-18``, ``A-21``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.rebalance.consumer_bytes import by_topic
from offsets_log.rebalance.rounds import Consumer
from offsets_log.rebalance.verify import Verdict, verify_all
from tests.conftest import RECORDINGS, log_directories, read_json
from tests.rebalance.cases import generation_of
from tests.rebalance.test_timeline import read_timelines

Recording = Callable[[str], Path]
MADE_BY_SLOW_PATH = {"random-java", "random-scala", "load-fails"}
"""Their assignments are random: nobody computed them."""


@pytest.mark.parametrize("name", RECORDINGS)
def test_no_generation_differs_without_a_stated_reason(
    name: str, recording: Recording, record_property: Callable[[str, object], None]
) -> None:
    """Kafka's own clients: never. Others in the recordings are raw clients that hand out in their own way."""
    counts: Counter[str] = Counter()
    folder = recording(name)
    topics = read_json(folder / "recording.json").get("topics", {})
    for log_directory in log_directories(folder):
        for entry, found in verify_all(read_timelines(log_directory, topics), {}):
            counts[str(found.verdict)] += 1
            if found.verdict is Verdict.SAME:
                continue
            assert found.reason
            if found.verdict is Verdict.DIFFERS and name not in MADE_BY_SLOW_PATH:
                assert "the leader" in found.reason or any("to nobody" in each for each in found.broken), entry
    for verdict, count in counts.items():
        record_property(verdict, count)
    if name in ("kafka-4.3-mixed", "kafka-3.9-classic", "kafka-4.3-compressed", "kafka-4.3-cleaned"):
        assert set(counts) <= {"same", "not reproducible"}
        assert counts["same"]


def test_every_classic_consumer_group_of_real_clients_is_the_same(recording: Recording) -> None:
    """All four assignors, votes, static members, racks that no replica has: 40 generations and not one exception."""
    timelines = read_timelines(recording("kafka-4.3-mixed") / "log", {})
    found = {
        (entry.group_id, entry.number): verification.verdict
        for entry, verification in verify_all(timelines, {})
        if entry.protocol_type == "consumer" and entry.kind == "classic"
    }
    assert set(found.values()) == {Verdict.SAME}
    assert len(found) >= 35


def test_topics_of_an_assignment_stand_in_the_order_of_their_first_partition() -> None:
    """``records:D3``."""
    assert by_topic([("u", 1), ("t", 0), ("u", 0), ("t", 2)]) == [("u", 1), ("u", 0), ("t", 0), ("t", 2)]


def test_partition_counts_that_are_given_outrank_what_the_log_shows(recording: Recording) -> None:
    """``A-21``: with another number of partitions another assignment would have been right."""
    timelines = read_timelines(recording("kafka-4.3-mixed") / "log", {})
    entries = [entry for entry in timelines.generations["metrics-range-31"] if entry.number == 2]
    ((_, same),) = verify_all(entries, {"metrics-events": 10, "metrics_state-2": 9})
    ((_, other),) = verify_all(entries, {"metrics-events": 12})
    assert same.verdict is Verdict.SAME
    assert other.verdict is Verdict.NOT_REPRODUCIBLE
    assert "racks" in str(other.reason)
    assert "metrics-events-10 is assigned to nobody" in other.broken


def test_a_hostile_number_of_partitions_is_not_computed() -> None:
    """An assignment may name partition 2,147,483,646."""
    subscription = dict(Consumer("m", ("t",), ("range",)).request().protocols)["range"]
    rows = {"m": {"subscription": subscription}}
    entry = generation_of({"m": [("t", 2**31 - 2), ("t", -5)]}, protocol="range", rows=rows)
    ((_, found),) = verify_all([entry], {})
    assert found.verdict is Verdict.NOT_REPRODUCIBLE
    assert "200000" in str(found.reason)
