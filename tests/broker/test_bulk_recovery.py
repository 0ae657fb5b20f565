"""A start that reads with kernels, and each segment once, finds what one finds that reads batch by batch, each time."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import google_crc32c
import pytest

from offsets_log.broker import bulk
from offsets_log.broker.indexes import OffsetIndex
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.producers import ProducerState
from offsets_log.broker.recovery import OpenLog, Start, open_log
from offsets_log.cleaner.result import records_in
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import decode_batch_header
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from tests.cleaner.test_bulk import random_log

FIELDS = range(b.ATTRIBUTES_POSITION, b.BATCH_HEADER_SIZE)


class EachTime(Start):
    """Reads a segment as often as a broker does."""

    def _read_once(self, file: LogFile, producers: ProducerState) -> int:
        return self.read(file, producers)


def mutated(batch: bytes, random: Random) -> bytes:
    """A batch of which a byte of the header or of a record is another, with the right checksum."""
    data = bytearray(batch)
    data[random.choice((*FIELDS, *range(b.BATCH_HEADER_SIZE, len(data))))] = random.choice((0, 1, 16, 255))
    data[b.CRC_POSITION : b.CRC_POSITION + 4] = google_crc32c.value(bytes(data[b.ATTRIBUTES_POSITION :])).to_bytes(4)
    return bytes(data)


def as_older(batch: bytes, random: Random) -> bytes:
    """The records of a batch as messages of magic 0 or 1; a control batch stays."""
    header = decode_batch_header(batch)
    records = [item for item in iter_records(header) if isinstance(item, Record)]
    if header.is_control or not records:
        return batch
    made = [replace(record, headers=()) for record in records]
    compression = random.choice(("none", "none", "gzip", "lz4"))
    return build_batch(made, magic=random.randrange(2), compression=compression)


def some_log(seed: int) -> PartitionLog:
    """Transactions in several segments, which may overlap; some batches are mutated, some are older, some damaged."""
    random = Random(seed)
    batches, begins = random_log(random)
    for at in range(len(batches)):
        if random.random() < (0, 0, 0.3, 0.9)[seed % 4]:
            batches[at] = as_older(batches[at], random)
    for at in range(len(batches)):
        if batches[at][b.MAGIC_POSITION] == b.NEWEST_MAGIC and random.random() < (0, 0.02, 0.2)[seed % 3]:
            batches[at] = mutated(batches[at], random)
    cuts = sorted({0, *(random.randrange(len(batches)) for _ in range(4))})
    segments = []
    for start, end in zip(cuts, [*cuts[1:], len(batches)], strict=True):
        data = bytearray(b"".join(batches[start : min(end + (random.random() < 0.1), len(batches))]))
        if seed % 5 == 4 and random.random() < 0.3:
            data[random.randrange(len(data))] ^= 1
        segments.append(Segment(f"{start}.log", begins[start], bytes(data)))
    return PartitionLog(0, tuple(segments))


def facts(opened: OpenLog) -> Any:
    """All that a start finds."""
    files = [
        (file.base_offset, file.size_bytes, file.index.encode(), file.times.encode(), file.aborted.entries)
        for file in opened.files.values()
    ]
    state = opened.producers
    known = state.entries, state.ongoing, state.completed, state.snapshots.by_offset, state.map_end_offset
    return files, opened.cuts, str(opened.refusal), opened.leader_epochs, opened.end_offset, known


@pytest.mark.parametrize("most", [1, 256])
@pytest.mark.parametrize("seed", range(60))
def test_recovery_by_kernels(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``D-2``, ``CL-43``, ``CL-58``."""
    monkeypatch.setattr(bulk, "MOST_PRODUCERS", most)
    monkeypatch.setattr(bulk, "ENDED_AT_ONCE", 2)
    log = some_log(seed)
    for is_clean in (False, True):
        how: dict[str, Any] = {"finds_by_base_offset": True, "index_interval_bytes": 200}
        plain, in_bulk = (
            facts(open_log(log, stopped_cleanly=is_clean, in_bulk=in_bulk, **how)) for in_bulk in (False, True)
        )
        with monkeypatch.context() as patched:
            patched.setattr("offsets_log.broker.recovery.Start", EachTime)
            assert facts(open_log(log, stopped_cleanly=is_clean, **how)) == plain
        assert in_bulk == plain


@pytest.mark.parametrize("seed", range(60))
def test_records_counted_by_kernels(seed: int) -> None:
    """``CL-40``: no checksum matters, what cannot be read ends the count."""
    for segment in some_log(seed).segments:
        view = memoryview(segment.buffer)
        file = LogFile(
            segment.base_offset or 0, segment.file, view, len(view), OffsetIndex(0), finds_by_base_offset=True
        )
        assert records_in(file, in_bulk=True) == records_in(file, in_bulk=False)
