"""Deltas of a batch's records, read without the records: the same numbers, and the same bytes refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.errors import CorruptBatchError, CorruptRecordError
from offsets_log.log_format.batch import BATCH_HEADER_SIZE
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import RECORD_HEAD_BYTES, Record, iter_deltas

STEPS = st.tuples(st.integers(1, 1 << 20), st.integers(-(1 << 40), 1 << 40), st.binary(max_size=200))


def body_of(records: Sequence[Record]) -> bytes:
    return build_batch(records)[BATCH_HEADER_SIZE:]


def deltas(body: bytes, count: int, *, begin: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    end = len(body) if end is None else end
    asked: list[int] = []

    def read_at(at: int, size: int) -> bytes:
        asked.append(size)
        assert begin <= at <= at + size <= end
        return body[at : at + size]

    found = list(iter_deltas(read_at, begin, end, count))
    assert all(size <= RECORD_HEAD_BYTES for size in asked)
    return found


@given(st.lists(STEPS, min_size=1, max_size=8))
def test_deltas_are_those_of_the_records(steps: list[tuple[int, int, bytes]]) -> None:
    records: list[Record] = []
    offset = 5
    for step, time, value in steps:
        records.append(Record(offset=offset, timestamp_ms=(1 << 41) + time, key=b"k", value=value))
        offset += step
    body = body_of(records)
    expected = [(one.offset - 5, one.timestamp_ms - records[0].timestamp_ms) for one in records]
    assert deltas(body, len(records)) == expected
    assert deltas(b"before" + body + b"after", len(records), begin=6, end=6 + len(body)) == expected


def test_numbers_as_long_as_they_can_be_are_read() -> None:
    """Also those that fewer bytes would tell."""
    numbers = b"\0" + b"\xfe" + 8 * b"\xff" + b"\1" + b"\x82" + 3 * b"\x80" + b"\0"
    rest = b"\1\1\0"
    size = 2 * len(numbers + rest)
    head = bytes((size | 0x80, *3 * b"\x80", 0)) + numbers
    assert deltas(head + rest, 1) == [(1, (1 << 63) - 1)]
    assert len(head) == RECORD_HEAD_BYTES


def test_a_record_may_end_behind_its_numbers() -> None:
    """What follows them is not looked at."""
    assert deltas(b"\6\0\4\2", 1) == [(1, 2)]


def test_bytes_and_counts_that_do_not_fit_are_refused() -> None:
    body = body_of([Record(offset=at, timestamp_ms=at, key=b"k", value=b"v" * 40) for at in range(3)])
    assert deltas(b"", 0) == []
    for count in (-1, 2):
        with pytest.raises(CorruptBatchError):
            deltas(body, count)
    with pytest.raises(CorruptBatchError):
        deltas(body + b"\0", 3)
    with pytest.raises(CorruptRecordError):
        deltas(body, 4)
    for end in range(1, len(body)):
        with pytest.raises(CorruptRecordError):
            deltas(body, 3, end=end)
    for size in (b"\1", b"\2", b"\6"):  # less than nothing, and less than the numbers take
        with pytest.raises(CorruptRecordError):
            deltas(size + body[1:], 3)
