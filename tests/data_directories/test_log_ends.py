"""Where logs begin and end, beside what their brokers answered, and in files that are damaged."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.data_directory.lag import CopiedLogs, group_lags, with_lag
from offsets_log.data_directory.log_ends import find_log_ends, first_timestamp
from offsets_log.disk.reader import open_logs
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Buffer
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

    @contextmanager
    def open(self, base_offset: int, suffix: str) -> Iterator[Buffer]:
        yield (self.logs if suffix == ".log" else self.indexes).get(base_offset, b"")


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
    for offset in range(3 * count):
        assert first_timestamp(files, offset) == 1000 * offset
    assert first_timestamp(files, 3 * count) is None


def test_an_empty_last_segment_tells_the_end_by_its_name() -> None:
    files = Files({0: b"".join(batches(0, 2)), 6: b""})
    ends = find_log_ends(files)
    assert ends is not None
    assert (ends.log_end_offset, ends.newest_timestamp_ms) == (6, 5000)


def test_a_torn_or_broken_last_batch_is_not_counted() -> None:
    made = batches(0, 3)
    torn = find_log_ends(Files({0: b"".join(made)[:-5]}))
    assert torn is not None
    assert (torn.log_end_offset, torn.problem) == (6, None)
    broken = bytearray(b"".join(made))
    broken[-3] ^= 1
    ends = find_log_ends(Files({0: bytes(broken)}))
    assert ends is not None
    assert ends.log_end_offset == 6
    assert "checksum" in (ends.problem or "")


def test_what_the_checkpoints_say_counts_where_it_can() -> None:
    """A log starts no earlier than its files; a high watermark is the end after an orderly stop only."""
    files = Files({10: b"".join(batches(10, 3))})
    ends = find_log_ends(files, log_start_offset=12, high_watermark=15, is_clean=True)
    assert ends is not None
    assert (ends.log_start_offset, ends.log_end_offset, ends.end_offset) == (12, 19, 15)
    running = find_log_ends(files, log_start_offset=3, high_watermark=15)
    assert running is not None
    assert (running.log_start_offset, running.end_offset) == (10, 19)
    beyond = find_log_ends(files, high_watermark=99, is_clean=True)
    assert beyond is not None
    assert beyond.end_offset == 19


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
    first_timestamp(files, data.draw(st.integers(0, 40)))


def committed(row: dict[str, Any]) -> OffsetAndMetadata:
    """The value of a row."""
    rest = {"leader_epoch": None, "metadata": "", "commit_timestamp_ms": 0, "expire_timestamp_ms": None}
    places = {"topic_id": None, "record_offset": 0, "applied_offset": 0, "producer_id": -1, "producer_epoch": -1}
    return OffsetAndMetadata(**row, **rest, **places)


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
