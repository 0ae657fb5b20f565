"""What `info` counts."""

from __future__ import annotations

from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.pipeline import iter_events
from offsets_log.rows.survey import Survey
from tests.builders import record_bytes


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
        for _ in found.watch(iter_events(log)):
            pass
        assert (found.kinds.first_timestamp_ms, found.kinds.last_timestamp_ms) == span
