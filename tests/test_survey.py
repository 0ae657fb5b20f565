"""What `info` counts."""

from __future__ import annotations

import pytest

from offsets_log.investigate.survey_counts import Surveying
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.pipeline import iter_events
from offsets_log.rows.survey import Survey
from tests.builders import record_bytes
from tests.cli.checked import Recording
from tests.cli.runs import run
from tests.conftest import NEVER, BulkFrom, json_lines


def test_time_0_is_a_time() -> None:
    key, value = record_bytes(
        1, {"group": "g", "topic": "t", "partition": 0}, {"offset": 1, "metadata": "", "commit_timestamp": 0}, 3
    )
    batches = [
        build_batch([Record(offset=i, timestamp_ms=at, key=key, value=value)]) for i, at in enumerate((0, -7, 5))
    ]
    for some, span in ((batches[:1], (0, 0)), (batches[::2], (0, 5)), (batches, (-7, 5))):
        log = PartitionLog(0, (Segment("built.log", 0, b"".join(some)),))
        found = Survey.of(log)
        for _ in Surveying(found).watch(iter_events(log)):
            pass
        assert (found.kinds.first_timestamp_ms, found.kinds.last_timestamp_ms) == span


@pytest.mark.parametrize("least_bytes", [0, NEVER])
def test_what_only_4_4_writes_is_counted_as_that(least_bytes: int, recording: Recording, bulk_from: BulkFrom) -> None:
    """K44-1: the value version of a streams group's record is still 0; its three groups have a description's epoch."""
    bulk_from(least_bytes)
    for name, groups in (("kafka-4.4-modern-groups", 3), ("kafka-4.3-modern-groups", 0)):
        rows = json_lines(run("info", recording(name) / "log", "-o", "jsonl").stdout)
        assert sum(row["written_by"].get("4.4 or later", 0) for row in rows) == groups
