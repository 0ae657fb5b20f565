"""What a broker remembers of producers, and the files in which it does."""

from __future__ import annotations

from offsets_log.broker.producers import ProducerEntry, ProducerState, Snapshots, decode_snapshot, encode_snapshot
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
