"""Build small segments and directories for these tests."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from offsets_log.disk.reader import open_logs
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, iter_log
from offsets_log.log_format.record import Record

TOPIC_ID = b"SFu3y3lgTBaCY_N_P-zJ-g"


def batch(
    first: int,
    last: int | None = None,
    *,
    value: bytes = b"v",
    leader_epoch: int = 0,
    kept: int | None = None,
    magic: int = 2,
) -> bytes:
    """Return one batch with a record at each offset from first to last.

    Args:
        kept: how many of them a cleaner left, from the first on; None for all.
    """
    end = first if last is None else last
    records = [Record(offset=at, timestamp_ms=1000 + at, key=b"k%d" % at, value=value) for at in range(first, end + 1)]
    last_offset = None if magic < 2 else end
    return build_batch(records[:kept], magic=magic, partition_leader_epoch=leader_epoch, last_offset=last_offset)


def segment(*offsets: int, value: bytes = b"v", magic: int = 2) -> bytes:
    """Return a segment with one batch of one record at each offset."""
    return b"".join(batch(at, value=value, magic=magic) for at in offsets)


def name(base_offset: int, suffix: str = "") -> str:
    return f"{base_offset:020}.log{suffix}"


def partition(data: Path, number: int, files: dict[str, bytes]) -> Path:
    """Make a partition directory with these files."""
    directory = data / f"__consumer_offsets-{number}"
    directory.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (directory / file).write_bytes(content)
    return directory


def offsets(log: PartitionLog) -> list[int]:
    """Return the base offsets of all whole batches."""
    return [item.base_offset for _, item in iter_log(log) if isinstance(item, RecordBatch)]


def names(log: PartitionLog) -> list[str]:
    return [Path(part.file).name for part in log.segments]


def numbers(logs: Sequence[PartitionLog]) -> list[int | None]:
    return [log.offsets_partition for log in logs]


def pipe_in(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Let standard input be a pipe with this in it."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))


OLD, NEW = {"leader_epoch": 4}, {"leader_epoch": 5}
"""Of `batch`."""


def replicas(tmp_path: Path, *contents: bytes) -> tuple[str, list[int], list[str]]:
    """Open brokers a, b, … with one segment each of partition 3; return who was chosen, offsets and notes."""
    for broker, content in zip("abc", contents, strict=False):
        partition(tmp_path / broker, 3, {name(0): content})
    with open_logs([str(tmp_path)]) as disk:
        (log,) = disk.logs
        chosen = log.segments[0].file.removeprefix(f"{tmp_path}/")[0]
        notes = [note.replace(str(tmp_path), "") for note in (*disk.notes, *log.notes)]
        return chosen, offsets(log), notes


def parts_of(notes: Sequence[str]) -> list[str]:
    """The parts of the only sentence, without what begins each of them."""
    (note,) = notes
    return note.replace("/__consumer_offsets-3", "").split("; ")


def damaged(at: int) -> bytes:
    raw = bytearray(batch(at))
    raw[-1] ^= 1
    return bytes(raw)


def b_beside(tmp_path: Path, one: bytes, other: bytes) -> tuple[str, list[str]]:
    """Which is read of two copies, and what is said of the other one behind its extent."""
    chosen, _, notes = replicas(tmp_path, one, other)
    return chosen, [part.partition(" is left out: ")[2] or part for part in parts_of(notes)[1:]]
