"""What is read of users' logs: headers of batches, and of records no more than tells when one was written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.log_ends import find_log_ends
from offsets_log.disk import local
from offsets_log.disk.reader import open_logs
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, RecordBatch
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import RECORD_HEAD_BYTES, Record
from offsets_log.log_format.segment import iter_batches
from offsets_log.messages.internal_topics import INTERNAL_TOPICS
from tests.data_directories.copies import COPIES, Recorded, data_directories
from tests.data_directories.test_log_ends import index_of

Reads = list[tuple[Path, int, int]]
"""File, position and size of each piece that was asked for."""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """All that is read in pieces; the files of users' logs are read in no other way."""
    asked: Reads = []
    pread, map_open = os.pread, local._map_open

    def counted(descriptor: int, size_bytes: int, position: int) -> bytes:
        asked.append((Path(f"/proc/self/fd/{descriptor}").readlink(), position, size_bytes))
        return pread(descriptor, size_bytes, position)

    def refused(file: object, *args: object) -> object:
        assert not is_users(Path(str(getattr(file, "name", "")))), f"{file} is mapped"
        return map_open(file, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "pread", counted)
    monkeypatch.setattr(local, "_map_open", refused)
    return asked


def is_users(path: Path) -> bool:
    """Whether it is a log of a topic that users write to."""
    return path.suffix == ".log" and path.parent.name.rpartition("-")[0] not in INTERNAL_TOPICS


def batches_in(path: Path) -> list[RecordBatch]:
    """Those of a segment."""
    return [batch for batch in iter_batches(path.read_bytes()) if isinstance(batch, RecordBatch)]


def records_of(batch: RecordBatch) -> range:
    """Where they lie."""
    return range(batch.position + BATCH_HEADER_SIZE, batch.position + batch.size_bytes)


def is_allowed(batches: list[RecordBatch], position: int, size: int) -> bool:
    """A header, a head of a record that is not compressed, or the records of a compressed batch."""
    if size <= BATCH_HEADER_SIZE and any(batch.position == position for batch in batches):
        return True
    inside = [batch for batch in batches if position in records_of(batch)]
    if not inside:
        return position == batches[-1].position + batches[-1].size_bytes  # what follows the last one
    (batch,) = inside
    if batch.codec.id:
        return (position, size) == (records_of(batch).start, len(records_of(batch)))
    return size <= RECORD_HEAD_BYTES


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_of_recorded_logs_only_headers_and_what_dates_are_read(
    name: str, copy: str, recorded: Recorded, reads: Reads
) -> None:
    """Offsets at the start, in the middle and at the end of each log are dated."""
    with open_logs([str(path) for path in data_directories(recorded(name), copy)]) as disk_logs:
        users = [one for one in disk_logs.user_partitions if one.topic not in INTERNAL_TOPICS]
        logs = CopiedLogs(users)
        logs.find((one.topic, one.partition) for one in users)
        ends = {(one.topic, one.partition): logs.ends(one.topic, one.partition) for one in users}
        CopiedLogs(users).look_at(
            {
                key: {end.log_start_offset, (end.log_start_offset + end.log_end_offset) // 2, end.log_end_offset}
                for key, end in ends.items()
                if end is not None
            }
        )
    files = {path for path, _, _ in reads if is_users(path)}
    assert files
    batches = {path: batches_in(path) for path in files}
    found = [(path.parent.name, *piece) for path, *piece in reads if is_users(path)]
    assert [one for one in found if not is_allowed(batches[paths(files)[one[0]]], *one[1:])] == []


def paths(files: set[Path]) -> dict[str, Path]:
    """By the names of their folders; each has one segment that is read."""
    return {path.parent.name: path for path in files}


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_bytes_that_are_read_of_a_long_log(codec: str, tmp_path: Path, reads: Reads) -> None:
    """From the last entry of the index to the end, and from the entry before what is asked to the record that dates."""
    size = 10
    folder = tmp_path / "t-0"
    folder.mkdir()
    made = [
        build_batch(
            [
                Record(offset=n, timestamp_ms=1000 * n, key=None, value=os.urandom(3000))
                for n in range(first, first + size)
            ],
            compression=codec,
        )
        for first in range(0, 1000, size)
    ]
    (folder / f"{0:020}.log").write_bytes(b"".join(made))
    (folder / f"{0:020}.index").write_bytes(index_of(made, size, 3))
    ends = find_log_ends(UserPartition("t", 0, folder, {}), dating=[515])
    assert ends is not None
    assert (ends.log_end_offset, ends.first_timestamps) == (1000, {515: 515_000})
    sizes = [read for path, _, read in reads if path.suffix == ".log"]
    headers = [read for read in sizes if read == BATCH_HEADER_SIZE]
    assert len(headers) <= 6
    rest = [read for read in sizes if read != BATCH_HEADER_SIZE]
    assert rest == (6 * [RECORD_HEAD_BYTES] if codec == "none" else [len(made[51]) - BATCH_HEADER_SIZE])
    assert sum(read for path, _, read in reads if path.suffix == ".index") <= 2048
