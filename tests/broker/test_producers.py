"""What a broker remembers of producers, and the files in which it does."""

from __future__ import annotations

from typing import Any

import google_crc32c
import pytest

from offsets_log.broker.failures import BrokerError
from offsets_log.broker.producers import (
    Completed,
    ProducerEntry,
    ProducerState,
    Snapshots,
    decode_snapshot,
    encode_snapshot,
    files_between,
    floor_file,
)
from offsets_log.broker.recovery import open_log
from tests.builders import TIME, LogBuilder
from tests.cleaner.cases import all_cases


def test_entries_follow_batches() -> None:
    """``CL-58``: a marker of a new epoch makes the last batch forgotten, one of the same epoch does not."""
    log = LogBuilder().commit(1, producer=7).commit(2, producer=8).end(7, epoch=0).end(8, epoch=1).commit(3, producer=8)
    producers = open_log(log.log, stopped_cleanly=False, finds_by_base_offset=True).producers
    assert producers.entries == {
        7: ProducerEntry(epoch=0, last_sequence=0, last_offset=0, timestamp_ms=TIME + 2, coordinator_epoch=0),
        8: ProducerEntry(0, last_sequence=0, last_offset=4, timestamp_ms=TIME + 4, coordinator_epoch=0, first_offset=4),
    }  # fmt: skip
    until_markers = LogBuilder().commit(2, producer=8).end(8, epoch=1)
    assert open_log(until_markers.log, stopped_cleanly=False, finds_by_base_offset=True).producers.entries == {
        8: ProducerEntry(epoch=1, timestamp_ms=TIME + 1, coordinator_epoch=0)
    }


def test_snapshots_are_written_as_brokers_write_them() -> None:
    """``CL-57``: the same bytes, but for the order of producers."""
    for case in all_cases().values():
        for name, data in case.folders["before"].items():
            if name.endswith(".snapshot"):
                producers = decode_snapshot(data)
                assert producers is not None
                made = encode_snapshot(producers)
                assert decode_snapshot(made) == producers
                assert len(made) == len(data)
                assert len(producers) > 1 or made == data


def test_producers_expire_unless_their_transaction_is_open() -> None:
    """``CL-27``."""
    state = ProducerState(Snapshots({}))
    state.entries = {
        1: ProducerEntry(timestamp_ms=10),
        2: ProducerEntry(timestamp_ms=11),
        3: ProducerEntry(first_offset=0),
    }
    assert state.active(110, 100).keys() == {2, 3}


# ------------------------------------------------------------------------------------------------------- the snapshots

KNOWN = {7: ProducerEntry(1, 2, 3, 4, 5, 6, 7), -5: ProducerEntry()}


def test_a_snapshot_that_is_no_whole_one_is_none() -> None:
    """``CL-57``: another version, a wrong checksum, a count that does not fit; what follows is covered but not read."""
    data = encode_snapshot(KNOWN)
    assert decode_snapshot(data) == KNOWN
    assert decode_snapshot(encode_snapshot({})) == {}
    for end in range(len(data)):
        assert decode_snapshot(data[:end]) is None
    for at in range(len(data)):
        assert decode_snapshot(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) is None

    def with_count(count: int, entries: bytes) -> bytes:
        body = count.to_bytes(4, signed=True) + entries
        return data[:2] + google_crc32c.value(body).to_bytes(4) + body

    assert decode_snapshot(with_count(1, data[10:])) == {-5: ProducerEntry()}
    assert decode_snapshot(with_count(3, data[10:])) is None
    assert decode_snapshot(with_count(-1, data[10:])) is None


@pytest.mark.parametrize(
    ("bases", "left"),
    [
        ([0, 5], [0, 5, 9]),
        ([0], [0, 9]),
        ([0, 9], [0, 9]),
        ([20], []),
        ([9], [9]),
        ([8], [9]),
        ([], [9]),
        ([0, 5, 7, 9], [0, 5, 7, 9]),
    ],
)
def test_snapshots_of_no_segment_go_but_for_the_newest_behind_all(bases: list[int], left: list[int]) -> None:
    snapshots = Snapshots({offset: {} for offset in (0, 5, 7, 9)})
    snapshots.remove_stray(bases)
    assert list(snapshots.by_offset) == left


@pytest.mark.parametrize(
    ("start", "end", "left", "known_at"),
    [(0, 9, [5, 9], 9), (0, 8, [5], 5), (5, 9, [9], 9), (4, 5, [5], 5), (9, 20, [], None), (0, 4, [], None)],
)
def test_a_state_begins_again_with_the_newest_snapshot_between(
    start: int, end: int, left: list[int], known_at: int | None
) -> None:
    """Those at the log's start or before it, and those behind its end, go."""
    snapshots = Snapshots({5: {1: ProducerEntry(first_offset=3)}, 9: {2: ProducerEntry(first_offset=-1)}})
    state = ProducerState(snapshots, {8: ProducerEntry()}, {4: 8}, {1: 2}, map_end_offset=30)
    state.truncate_and_reload(start, end)
    assert list(snapshots.by_offset) == left
    assert state.entries == ({} if known_at is None else snapshots.by_offset[known_at])
    assert state.ongoing == ({3: 1} if known_at == 5 else {})
    assert state.completed == {}
    assert state.map_end_offset == state.snapshot_offset == (start if known_at is None else known_at)


@pytest.mark.parametrize(("start", "map_end", "snapshot"), [(0, 9, 9), (12, 12, 12)])
def test_a_state_that_ends_where_the_log_does_stays(start: int, map_end: int, snapshot: int) -> None:
    state = ProducerState(Snapshots({9: {}}), {8: ProducerEntry()}, {4: 8}, {1: 2}, map_end_offset=9)
    state.truncate_and_reload(start, 9)
    assert (state.entries, state.ongoing, state.completed) == ({8: ProducerEntry()}, {4: 8}, {1: 2})
    assert (state.map_end_offset, state.snapshot_offset) == (map_end, snapshot)


def test_a_snapshot_is_taken_where_there_is_none() -> None:
    state = ProducerState(Snapshots({}), {8: ProducerEntry()}, map_end_offset=5, snapshot_offset=5)
    state.take_snapshot()
    assert state.snapshots.by_offset == {}
    state.map_end_offset = 6
    state.take_snapshot()
    state.entries.clear()
    assert (state.snapshots.by_offset, state.snapshot_offset) == ({6: {8: ProducerEntry()}}, 6)


# ---------------------------------------------------------------------------------------------------- the transactions


def test_the_first_unstable_offset_is_that_of_the_oldest_transaction_that_is_open_or_kept() -> None:
    """``CL-43``: a transaction that ended is kept until the high watermark is beyond its marker."""
    state = ProducerState(Snapshots({}), ongoing={4: 7, 9: 8})
    assert (state.first_unstable_offset, state.open_since()) == (4, {7: 4, 8: 9})
    ended = Completed(7, 4, 12, is_aborted=True)
    entry = state.aborted_entry(ended)
    assert (entry.first_offset, entry.last_offset, entry.last_stable_offset) == (4, 12, 9)
    state.complete(ended)
    assert (state.first_unstable_offset, state.open_since()) == (4, {8: 9})
    for high_watermark, first in ((12, 4), (13, 9)):
        state.reach(high_watermark)
        assert state.first_unstable_offset == first
    last = Completed(8, 9, 20, is_aborted=False)
    assert state.aborted_entry(last).last_stable_offset == 21
    state.complete(last)
    state.reach(21)
    assert state.first_unstable_offset is None
    with pytest.raises(BrokerError, match="from 9 on that was not started"):
        state.complete(last)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [(0, 9, [0, 5]), (4, 5, [0]), (5, 6, [5]), (4, 6, [0, 5]), (9, 9, []), (9, 99, [9]), (-3, 1, [0]), (-3, -1, [])],
)
def test_files_between_two_offsets(start: int, end: int, found: list[int]) -> None:
    files: dict[int, Any] = {base: f"file {base}" for base in (0, 5, 9)}
    assert files_between(files, start, end) == [files[base] for base in found]
    at = [base for base in files if base <= start]
    assert floor_file(files, start) == (files[at[-1]] if at else None)


def test_files_to_an_offset_before_the_first_one_are_none_a_broker_has() -> None:
    with pytest.raises(BrokerError, match="segments from offset 6 to 5"):
        files_between({}, 6, 5)
