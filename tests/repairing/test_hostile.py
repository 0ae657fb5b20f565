"""What `repair` and `clean` made of hostile logs, under Kafka's own tools: a few of the logs of `hostile_trials`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordinator import broker
from tests.repairing.hostile_trials import HostileTrials

LOGS, SEED = 20, 105
OPERATIONS = ("repair for a release", "repair", "clean what was repaired")


@pytest.mark.kafka
def test_kafka_reads_and_serves_what_was_made_of_hostile_logs(
    tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    """DumpLogSegments finds nothing wrong, a broker loads what should load, with the answers of `compact` ."""
    try:
        libs = broker.jars()
    except broker.NotAvailableError as reason:
        pytest.skip(f"no real broker: {reason}")
    trials = HostileTrials(libs, broker.VERSION, tmp_path)
    trials.add(SEED, LOGS, OPERATIONS)
    trials.run()
    assert not trials.mismatches
    assert trials.counts["folders dumped"] == trials.counts["folders loaded"] == LOGS * len(OPERATIONS)
    assert trials.counts["offsets"] > 120
    assert trials.counts["groups refused"] > 30
    assert trials.counts["groups listed"] > 100
    for name, number in trials.counts.items():
        record_property(name, number)
