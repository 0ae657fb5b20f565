"""How a partition is opened for its cleaner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from offsets_log.cleaner.opening import was_stopped_cleanly
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from tests.builders import LogBuilder


def log_with_index(index: bytes | None, told: bool | None = None) -> PartitionLog:
    """A log of one segment."""
    segment = Segment("built.log", 0, LogBuilder().commit(1).log.segments[0].buffer)
    beside = {} if index is None else {"00000000000000000000.index": lambda: index}
    return PartitionLog(0, (segment,), checkpoints=Checkpoints(stopped_cleanly=told), beside=beside)


@pytest.mark.parametrize(
    ("index", "is_clean"),
    [(None, True), (b"", True), (bytes(7) + b"\x01" + bytes(64), False), (bytes(3) + b"\x09" + bytes(4), True)],
)
def test_an_index_that_ends_in_zeros_is_of_a_running_broker(index: bytes | None, is_clean: bool) -> None:
    """``CL-44``."""
    assert was_stopped_cleanly(log_with_index(index)) is is_clean


def test_a_data_directory_tells_how_the_broker_was_stopped() -> None:
    log = log_with_index(bytes(64), told=True)
    assert was_stopped_cleanly(log)
    assert not was_stopped_cleanly(replace(log, checkpoints=Checkpoints(stopped_cleanly=False)))
