"""Whether a log is one of ``__consumer_offsets`` at all, by the keys of its first records."""

from __future__ import annotations

import pytest

from offsets_log.log_format.building import build_batch, build_marker
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.messages import other_topic
from offsets_log.messages.other_topic import is_of_another_topic, may_be_coordinators
from tests.builders import record_bytes

OFFSET, _ = record_bytes(1, {"group": "g", "topic": "t", "partition": 0}, None, 0)
FOREIGN = b"user-1"


def log_of(*batches: bytes) -> PartitionLog:
    return PartitionLog(0, (Segment("0.log", 0, b"".join(batches)),))


def batch_of(*keys: bytes | None, at: int = 0) -> bytes:
    return build_batch([Record(offset=at + i, timestamp_ms=1, key=key, value=b"v") for i, key in enumerate(keys)])


@pytest.mark.parametrize(
    ("key", "may_be"),
    [
        (OFFSET, True),
        (OFFSET[:-1], False),
        (OFFSET + b"\0", False),
        (None, False),
        (b"", False),
        (b"\0", False),
        (b"\0\x18", True),  # 24, the first type that no release has, 127 and 128, -1
        (b"\0\x7f more", True),
        (b"\0\x80", False),
        (b"\xff\xff", False),
        (FOREIGN, False),
    ],
)
def test_a_coordinators_key_is_of_a_type_that_there_is_or_may_come_and_nothing_is_left_over(
    key: bytes | None, may_be: bool
) -> None:
    assert may_be_coordinators(key) is may_be
    assert is_of_another_topic(log_of(batch_of(key))) is not may_be


def test_a_log_without_records_is_of_no_other_topic() -> None:
    """Nor are control records any, whose keys begin with a version."""
    marker = build_marker(0, commit=True, producer_id=7, producer_epoch=0, timestamp_ms=1)
    assert not is_of_another_topic(log_of())
    assert not is_of_another_topic(log_of(marker))
    assert is_of_another_topic(log_of(marker, batch_of(FOREIGN, at=1)))
    assert not is_of_another_topic(log_of(marker, batch_of(FOREIGN, FOREIGN, OFFSET, at=1)))


def test_the_first_hundred_records_are_looked_at() -> None:
    for before, is_other in ((99, False), (100, True)):
        assert is_of_another_topic(log_of(batch_of(*[FOREIGN] * before, OFFSET))) is is_other


def test_so_many_batches_are_looked_at_and_damage_is_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_topic, "BATCHES_LOOKED_AT", 3)
    damaged = batch_of(OFFSET, at=1)[:-1] + b"?"
    foreign = [batch_of(FOREIGN), damaged]
    assert not is_of_another_topic(log_of(*foreign, batch_of(OFFSET, at=2)))
    assert is_of_another_topic(log_of(*foreign, batch_of(FOREIGN, at=2), batch_of(OFFSET, at=3)))
