"""Leader epochs: what is kept of their file, and what recovery finds."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from offsets_log.broker.failures import BrokerError
from offsets_log.broker.leader_epochs import (
    assign,
    check_leader_epochs,
    decode_leader_epochs,
    encode_leader_epochs,
    leader_epochs_within,
)
from offsets_log.broker.recovery import open_log
from offsets_log.log_format.partition_log import PartitionLog, Segment
from tests.builders import LogBuilder


def test_epochs_are_cut_to_the_log() -> None:
    """``CL-50``."""
    epochs = decode_leader_epochs(b"0\n3\n2 5\n4 9\n7 30\n")
    assert epochs == {2: 5, 4: 9, 7: 30}
    assert leader_epochs_within(epochs, 0, 31) == epochs
    assert leader_epochs_within(epochs, 12, 30) == {4: 12}
    assert encode_leader_epochs(epochs) == b"0\n3\n2 5\n4 9\n7 30\n"
    assert decode_leader_epochs(b"") == {}


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        (0, 31, {2: 5, 4: 9, 7: 30}),
        (0, 30, {2: 5, 4: 9}),
        (4, 31, {2: 5, 4: 9, 7: 30}),
        (5, 31, {2: 5, 4: 9, 7: 30}),
        (6, 31, {2: 6, 4: 9, 7: 30}),
        (8, 31, {2: 8, 4: 9, 7: 30}),
        (9, 31, {4: 9, 7: 30}),
        (29, 30, {4: 29}),
        (30, 30, {}),
        (30, 31, {7: 30}),
        (40, 41, {7: 40}),
        (41, 41, {}),
        (0, 5, {}),
    ],
)
def test_epochs_that_end_before_the_log_or_begin_behind_it_are_dropped(
    start: int, end: int, left: dict[int, int]
) -> None:
    """``CL-50``: of those that begin before the log's start the last begins there."""
    assert leader_epochs_within({2: 5, 4: 9, 7: 30}, start, end) == left


@pytest.mark.parametrize(
    ("epoch", "offset", "left"),
    [
        (2, 99, {1: 0, 2: 10}),
        (1, 99, {1: 0, 2: 10}),
        (3, 11, {1: 0, 2: 10, 3: 11}),
        (3, 10, {1: 0, 3: 10}),
        (3, 1, {1: 0, 3: 1}),
        (3, 0, {3: 0}),
    ],
)
def test_only_an_epoch_later_than_all_is_added_and_takes_the_place_of_those_behind_it(
    epoch: int, offset: int, left: dict[int, int]
) -> None:
    """``CL-50``."""
    epochs = {1: 0, 2: 10}
    assign(epochs, epoch, offset)
    assert epochs == left
    none: dict[int, int] = {}
    assign(none, 0, 5)
    assert none == {0: 5}


@pytest.mark.parametrize(
    ("data", "is_read"),
    [
        (b"", True), (b"0\n", True), (b"0\n0\n", True), (b"0\n1\n1 2\n", True), (b"0\n1\n1 2", True),
        (b"1\n0\n", False), (b"-0\n0\n", True), (b"0\n1\n", False), (b"0\n0\n1 2\n", False),
        (b"0\n1\n-1 2\n", False), (b"0\n1\n1\n", False), (b"0\n1\n1 2 3\n", False), (b"0\nx\n", False),
        (b"\xff", False),
    ],
)  # fmt: skip
def test_a_file_of_another_form_keeps_the_broker_from_starting(data: bytes, is_read: bool) -> None:
    """``D-8``."""
    with nullcontext() if is_read else pytest.raises(BrokerError, match="cannot be read"):
        check_leader_epochs(data)


MANY = b"9" * 5000


@pytest.mark.parametrize(
    "data", [MANY + b"\n0\n", b"0\n" + MANY + b"\n", b"0\n1\n" + MANY + b" 1\n", b"0\n1\n1 " + MANY]
)
def test_more_digits_than_a_long_has_are_no_number(data: bytes) -> None:
    with pytest.raises(BrokerError, match="cannot be read"):
        check_leader_epochs(data)


def test_zeros_before_a_number_do_not_count() -> None:
    data = b"0\n" + b"0" * 5000 + b"1\n" + b"0" * 5000 + b"7 +" + b"0" * 5000 + b"30\n"
    check_leader_epochs(data)
    assert decode_leader_epochs(data) == {7: 30}


def test_a_later_epoch_takes_the_place_of_those_that_begin_behind_it() -> None:
    epochs = {1: 0, 2: 10}
    assign(epochs, 2, 20)
    assign(epochs, -1, 20)
    assert epochs == {1: 0, 2: 10}
    assign(epochs, 3, 10)
    assert epochs == {1: 0, 3: 10}


def test_recovery_finds_the_epochs_of_its_batches() -> None:
    log = LogBuilder()
    for i, epoch in enumerate((0, 0, 3, 2, 5)):
        log.add((b"\0\1k", bytes([i])), partition_leader_epoch=epoch)
    found = PartitionLog(0, (Segment("built.log", 0, b"".join(log.batches)),))
    for in_bulk in (False, True):
        opened = open_log(found, stopped_cleanly=True, finds_by_base_offset=True, in_bulk=in_bulk)
        assert opened.leader_epochs == {0: 0, 3: 2, 5: 4}
