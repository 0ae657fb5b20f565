"""Where logs begin and end, beside what their brokers answered, and in files that are damaged."""

from __future__ import annotations

import os
import re
import struct
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.lag import group_lags, with_lag
from offsets_log.data_directory.log_ends import find_log_ends
from offsets_log.data_directory.offset_index import OffsetIndex
from offsets_log.data_directory.segment_batches import SegmentBatches
from offsets_log.disk.reader import open_logs
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.errors import InputError
from offsets_log.log_format.batch import decode_batch_header
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import Pieces, pieces_of
from offsets_log.replay.partial import OffsetAndMetadata
from tests.data_directories.copies import COPIES, WORDS, Recorded, data_directories

_ANSWER = re.compile(r"^(.+):(\d+):(\d+)$", re.MULTILINE)


def answers(folder: Path, copy: str, which: str) -> dict[tuple[str, int], int]:
    """What ``kafka-get-offsets`` printed: topic and partition → offset."""
    text = (folder / "words" / WORDS.get(copy, copy) / f"get-offsets-{which}.txt").read_text()
    return {(match[1], int(match[2])): int(match[3]) for match in _ANSWER.finditer(text)}


@pytest.mark.parametrize(("name", "copy"), [item for item in COPIES if item[0] != "kafka-4.3-three"])
def test_the_ends_of_all_logs_are_those_that_a_lone_broker_answered(name: str, copy: str, recorded: Recorded) -> None:
    """``kafka-get-offsets`` of every partition, whether the copy is of a running, a killed or a stopped broker.

    In the recordings with a broker that was blocked, the offsets topic was written to between copy and question.
    """
    folder = recorded(name)
    earliest, latest = (answers(folder, copy, which) for which in ("earliest", "latest"))
    if name.endswith("blocked"):
        latest = {key: offset for key, offset in latest.items() if key[0] != "__consumer_offsets"}
    with open_logs([str(path) for path in data_directories(folder, copy)]) as disk_logs:
        logs = CopiedLogs(disk_logs.user_partitions)
        found = {key: logs.ends(*key) for key in latest}
        assert len(found) > 10
        assert {key: (ends.log_start_offset, ends.end_offset) for key, ends in found.items() if ends is not None} == {
            key: (earliest[key], latest[key]) for key in latest
        }
        assert logs.notes == []


def test_of_several_copies_that_of_the_latest_leader_epoch_and_the_longest_counts(recorded: Recorded) -> None:
    """Three brokers, one of which was killed before the others went on."""
    folder = recorded("kafka-4.3-three")
    paths = [str(path) for copy in ("broker-3", "broker-1", "broker-2") for path in data_directories(folder, copy)]
    earliest, latest = (answers(folder, "broker-1", which) for which in ("earliest", "latest"))
    with open_logs(paths) as disk_logs:
        logs = CopiedLogs(disk_logs.user_partitions)
        for key, offset in latest.items():
            ends = logs.ends(*key)
            assert ends is not None
            assert (ends.log_start_offset, ends.end_offset) == (earliest[key], offset)


@dataclass
class Files:
    """A partition in memory."""

    logs: dict[int, bytes]
    indexes: dict[int, bytes] = field(default_factory=dict)
    topic: str = "t"
    partition: int = 0
    shown_path: str = "t-0"

    def base_offsets(self) -> list[int]:
        return sorted(self.logs)

    def open_segment(self, base_offset: int) -> AbstractContextManager[Pieces]:
        return nullcontext(pieces_of(self.logs[base_offset]))

    def open_index(self, base_offset: int) -> AbstractContextManager[Pieces]:
        return nullcontext(pieces_of(self.indexes.get(base_offset, b"")))


def record(offset: int) -> Record:
    """A second behind the one before."""
    return Record(offset=offset, timestamp_ms=1000 * offset, key=None, value=b"v" * 10)


def batches(first: int, count: int, size: int = 3) -> list[bytes]:
    """Batches of so many records each, a second apart."""
    return [build_batch([record(first + i * size + j) for j in range(size)]) for i in range(count)]


def index_of(made: list[bytes], size: int, every: int) -> bytes:
    """An index with an entry each so many batches, and the zeros that a broker makes beforehand."""
    position, entries = 0, b""
    for i, raw in enumerate(made):
        if i and i % every == 0:
            entries += struct.pack(">ii", (i + 1) * size - 1, position)
        position += len(raw)
    return entries + bytes(8 * 100)


@pytest.mark.parametrize("count", [1, 2, 9, 40])
@pytest.mark.parametrize("every", [1, 3, 100])
def test_the_end_is_found_behind_the_last_entry_of_the_index(count: int, every: int) -> None:
    made = batches(0, count)
    files = Files({0: b"".join(made)}, {0: index_of(made, 3, every)})
    ends = find_log_ends(files)
    assert ends is not None
    assert (ends.log_start_offset, ends.log_end_offset, ends.problem) == (0, 3 * count, None)
    assert ends.newest_timestamp_ms == 1000 * (3 * count - 1)
    for asked in [*([offset] for offset in range(3 * count + 1)), range(3 * count + 2)]:
        dated = find_log_ends(files, dating=asked)
        assert dated is not None
        assert dated.first_timestamps == {offset: 1000 * offset for offset in asked if offset < 3 * count}


def test_an_empty_last_segment_tells_the_end_by_its_name() -> None:
    files = Files({0: b"".join(batches(0, 2)), 6: b""})
    ends = find_log_ends(files)
    assert ends is not None
    assert (ends.log_end_offset, ends.newest_timestamp_ms) == (6, 5000)


def test_a_torn_last_batch_is_not_counted_and_no_checksum_is_asked_for() -> None:
    """A checksum is of all records of a batch, and a broker that had stopped in order does not look at it either."""
    made = batches(0, 3)
    torn = find_log_ends(Files({0: b"".join(made)[:-5]}))
    assert torn is not None
    assert (torn.log_end_offset, torn.problem) == (6, None)
    broken = bytearray(b"".join(made))
    broken[-3] ^= 1
    ends = find_log_ends(Files({0: bytes(broken)}))
    assert ends is not None
    assert (ends.log_end_offset, ends.problem) == (9, None)
    broken[-3] ^= 1
    broken[len(made[0]) + len(made[1]) + 11] += 1  # the length of the last batch, which then ends behind the file
    cut = find_log_ends(Files({0: bytes(broken)}))
    assert cut is not None
    assert cut.log_end_offset == 6


def test_what_the_checkpoints_say_counts_where_it_can() -> None:
    """A log starts no earlier than its files; a high watermark is the end after an orderly stop, or beyond the copy."""
    files = Files({10: b"".join(batches(10, 3))})
    ends = find_log_ends(files, log_start_offset=12, high_watermark=15, is_clean=True)
    assert ends is not None
    assert (ends.log_start_offset, ends.log_end_offset, ends.end_offset) == (12, 19, 15)
    running = find_log_ends(files, log_start_offset=3, high_watermark=15)
    assert running is not None
    assert (running.log_start_offset, running.end_offset) == (10, 19)
    for is_clean in (True, False):  # what was there at the mark and is not in the copy has been there all the same
        short = find_log_ends(files, high_watermark=99, is_clean=is_clean)
        assert short is not None
        assert short.is_short
        assert (short.log_end_offset, short.end_offset) == (19, 99)


def test_a_directory_without_segments_says_nothing() -> None:
    assert find_log_ends(Files({})) is None


@given(data=st.data(), flips=st.integers(1, 6))
def test_damaged_files_never_do_more_than_say_less(data: st.DataObject, flips: int) -> None:
    """Any bytes of log and index: an end within what the log could have, or the name of the segment."""
    made = batches(0, 12)
    log, index = bytearray(b"".join(made)), bytearray(index_of(made, 3, 2))
    for _ in range(flips):
        target = data.draw(st.sampled_from([log, index]))
        target[data.draw(st.integers(0, len(target) - 1))] = data.draw(st.integers(0, 255))
    files = Files({0: bytes(log[: data.draw(st.integers(0, len(log)))])}, {0: bytes(index)})
    ends = find_log_ends(files)
    assert ends is not None
    assert ends.log_end_offset >= 0
    find_log_ends(files, dating=[data.draw(st.integers(-5, 40)), 7, 30])


@pytest.mark.parametrize("entries", [0, 1, 127, 128, 129, 255, 256, 257, 1000])
@pytest.mark.parametrize("room", [0, 5, 8 * 300])
def test_entries_of_an_index_are_counted_and_found_before_its_room(entries: int, room: int) -> None:
    """Pieces that end with, before and behind the last entry, and an index that is cut off inside of one."""
    data = b"".join(struct.pack(">ii", 256 * (n + 1), 4096 * n) for n in range(entries)) + bytes(room)
    index = OffsetIndex(lambda position, size: data[position : position + size])
    assert index.count == entries
    assert [index.slot(offset) for offset in (255, 256 * entries, 1 << 40)] == [-1, entries - 1, entries - 1]
    assert all(index.entry(index.slot(256 * n + 300)) == (256 * (n + 1), 4096 * n) for n in range(entries))


def whole_dates(made: list[bytes], asked: int) -> int | None:
    """The time of the first record at or behind an offset, found by decoding all of all batches."""
    for raw in made:
        for found in iter_records(decode_batch_header(raw)):
            if isinstance(found, Record) and found.offset >= asked:
                return found.timestamp_ms
    return None


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("timestamp_type", ["create", "log_append"])
def test_times_are_those_of_records_that_are_decoded_whole(codec: str, timestamp_type: str) -> None:
    """Records with gaps between them, long and short, with keys, null values and headers, of either kind of time."""
    made = []
    for first in (0, 40, 300):
        records = [
            Record(
                offset=first + 3 * n,
                timestamp_ms=1_700_000_000_000 + (-1) ** n * 977 * n,
                key=None if n % 3 else b"k" * (70 * n),
                value=None if n % 4 == 0 else b"v" * n,
                headers=(("h", b"x"), ("i", None)) if n % 2 else (),
            )
            for n in range(9)
        ]
        made.append(build_batch(records, compression=codec, timestamp_type=timestamp_type))
    ends = find_log_ends(Files({0: b"".join(made)}), dating=range(400))
    assert ends is not None
    assert ends.log_end_offset == 325
    assert {offset: ends.first_timestamps.get(offset) for offset in range(400)} == {
        offset: whole_dates(made, offset) for offset in range(400)
    }


def test_records_whose_numbers_do_not_fit_their_batch_have_no_time() -> None:
    """A count too small or below 0, records longer than the batch or shorter than nothing."""
    raw = build_batch([record(n) for n in range(3)])
    for at, byte in ((60, 2), (57, 0x80), (61, 0x7F), (61, 1), (64, 0x80)):
        hostile = raw[:at] + bytes([byte]) + raw[at + 1 :]
        ends = find_log_ends(Files({0: hostile + build_batch([record(n) for n in range(3, 5)])}), dating=[2, 3])
        assert ends is not None
        assert ends.first_timestamps == {2: None, 3: 3000}, (at, byte)


def test_without_an_index_all_is_found_by_walking() -> None:
    made = batches(0, 3000, size=1)
    ends = find_log_ends(Files({0: b"".join(made)}), dating=[5, 2000, 2999, 3000])
    assert ends is not None
    assert ends.first_timestamps == {5: 5000, 2000: 2_000_000, 2999: 2_999_000}


def test_an_index_that_points_behind_what_is_asked_is_not_believed() -> None:
    made = batches(0, 100)
    wrong = struct.pack(">ii", 2, sum(map(len, made[:50])))
    ends = find_log_ends(Files({0: b"".join(made)}, {0: wrong}), dating=[4])
    assert ends is not None
    assert (ends.log_end_offset, ends.first_timestamps) == (300, {4: 4000})


@pytest.mark.parametrize("every", [1, 4, 1000])
def test_batches_since_an_offset_are_the_same_whatever_place_is_hinted_at(every: int) -> None:
    """A hint only spares what is before it: one that is no batch's beginning, or behind what is asked, is none."""
    made = batches(10, 12)
    starts = [sum(map(len, made[:number])) for number in range(13)]
    read: list[int] = []

    def read_at(position: int, size: int) -> bytes:
        read.append(position)
        return b"".join(made)[position : position + size]

    entries = b"".join(struct.pack(">ii", 3 * n + 2, starts[n]) for n in range(12) if n and n % every == 0)
    for asked in range(8, 48):
        first = max(0, (asked - 10) // 3)
        for hint in (0, 1, *starts[1:], starts[-1] + 5):
            batch_file = SegmentBatches("t", 10, Pieces(starts[-1], read_at), OffsetIndex(pieces_of(entries).read_at))
            read.clear()
            found = list(batch_file.since(asked, hint))
            assert [placed.position for placed in found] == starts[first:-1]
            assert batch_file.problem is None
            if every == 1000 and hint in starts[:first]:
                assert min(read) >= hint


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("torn", [0, 1, 40])
def test_the_last_batch_is_the_last_that_is_whole(count: int, torn: int) -> None:
    """Also where the index leads to none, and where zeros follow; other bytes are told."""
    made = batches(10, count)
    data, rest = b"".join(made), batches(10 + 3 * count, 1)[0][:torn]
    for behind, is_told in ((rest, False), (bytes(100), False), (b"\xff" * 100, True)):
        for position in (0, -1, 7, len(data), 1 << 30):
            index = OffsetIndex(pieces_of(struct.pack(">ii", 1, position)).read_at)
            found = SegmentBatches("t", 10, pieces_of(data + behind), index)
            last = found.last()
            assert (last and last.offset) == (7 + 3 * count if count else None)
            assert (found.problem is not None) is is_told


def test_files_on_disk_are_read_in_pieces(tmp_path: Path) -> None:
    """Short ones and long ones; a pipe in the place of a log is told and not waited for."""
    for partition, count in ((0, 3), (1, 3000)):
        folder = tmp_path / f"t-{partition}"
        folder.mkdir()
        made = batches(0, count)
        (folder / f"{0:020}.log").write_bytes(b"".join(made))
        (folder / f"{0:020}.index").write_bytes(index_of(made, 3, 40))
        ends = find_log_ends(UserPartition("t", partition, folder, {}), dating=[4, 3 * count - 1])
        assert ends is not None
        assert ends.log_end_offset == 3 * count
        assert ends.first_timestamps == {4: 4000, 3 * count - 1: 1000 * (3 * count - 1)}
    pipe = tmp_path / "t-2"
    pipe.mkdir()
    os.mkfifo(pipe / f"{0:020}.log")
    with pytest.raises(InputError, match="no regular file"):
        find_log_ends(UserPartition("t", 2, pipe, {}))


def committed(row: dict[str, Any]) -> OffsetAndMetadata:
    """The value of a row."""
    rest = {"leader_epoch": None, "metadata": "", "commit_timestamp_ms": 0, "expire_timestamp_ms": None}
    places = {"topic_id": None, "record_offset": 0, "applied_offset": 0, "producer_id": -1, "producer_epoch": -1}
    return OffsetAndMetadata(**(rest | places | row))


def test_rows_get_lag_and_groups_get_sums(recorded: Recorded) -> None:
    """A partition without a copy is told as such; ages count from the newest record of what was looked at."""
    folder = recorded("kafka-4.3-one")
    with open_logs([str(path) for path in data_directories(folder, "stopped")]) as disk_logs:
        logs = CopiedLogs(disk_logs.user_partitions)
        end = answers(folder, "stopped", "latest")["orders", 0]
        rows: list[dict[str, Any]] = [
            {"group": "a", "topic": "orders", "partition": 0, "committed_offset": end - 1},
            {"group": "a", "topic": "orders", "partition": 0, "committed_offset": end},
            {"group": "a", "topic": "nowhere", "partition": 7, "committed_offset": 3},
            {"group": "b", "topic": "orders", "partition": 0, "committed_offset": end + 5},
        ]
        shown = list(with_lag(logs, rows, None))
        assert [row["lag"] for row in shown] == [1, 0, None, -5]
        assert shown[0]["behind_ms"] >= 0
        assert [row["behind_ms"] for row in shown[1:]] == [0, None, 0]
        assert [row["lag_from"] for row in shown] == ["high watermark", "high watermark", None, "high watermark"]
        assert group_lags(logs, [committed(row) for row in rows]) == {
            "a": {"lag": 1, "max_lag": 1, "partitions_without_lag": 1},
            "b": {"lag": 0, "max_lag": 0, "partitions_without_lag": 0},
        }
