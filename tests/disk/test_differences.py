"""Differences of copies, as loops over their batches find them, whoever reads the logs and how many at a time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from offsets_log.columnar.scan import batch_rows as br
from offsets_log.disk.differences import Differences, Some, differences
from offsets_log.disk.extents import extent_of
from offsets_log.errors import Damage
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment, iter_log
from offsets_log.log_format.record import Record
from tests.disk.logs import batch, segment
from tests.sizes import so_many


def log_of(content: bytes) -> PartitionLog:
    return PartitionLog(0, (Segment("x.log", 0, content),))


def found_by(one: PartitionLog, other: PartitionLog, until: int | None = None) -> Differences:
    """Find the differences both ways, and say that they are the same."""
    both = []
    for in_bulk in (False, True):
        extents = tuple(extent_of(log, lambda size: None, in_bulk=in_bulk) for log in (one, other))
        bound = {} if until is None else {"until": until}
        both.append(differences((one, other), extents, in_bulk=in_bulk, **bound))  # type: ignore[arg-type]
    assert both[0] == both[1]
    return both[0]


Batches = list[RecordBatch]


def read(log: PartitionLog) -> tuple[Batches, list[tuple[int, int]]]:
    """Batches, and the offsets that may have been in damaged pieces."""
    batches, holes, reached, is_open = Batches(), list[tuple[int, int]](), 0, False
    for _, item in iter_log(log):
        if isinstance(item, Damage):
            is_open = True
        elif isinstance(item, RecordBatch):
            if is_open:
                holes.append((reached, item.base_offset))
            batches.append(item)
            reached, is_open = item.last_offset + 1, False
    return batches, [*holes, (reached, 1 << 60)] if is_open else holes


def expected(one: PartitionLog, other: PartitionLog, until: int) -> Differences:
    """By loops."""
    whole = read(one), read(other)
    end = min(until, *(batches[-1].last_offset + 1 if batches else 0 for batches, _ in whole))
    sides = [[item for item in batches if item.base_offset < end] for batches, _ in whole]
    found = Differences()
    for item in sides[0]:
        for twin in (twin for twin in sides[1] if twin.base_offset == item.base_offset):
            compare_twins(found, item, twin)
    for side in (0, 1):
        own, there, holes = sides[side], sides[1 - side], whole[1 - side][1]
        begins = {item.base_offset for item in there}
        for item in (item for item in own if item.base_offset not in begins):
            here = range(item.base_offset, item.last_offset + 1)
            number = [i for i, (begin, behind) in enumerate(holes) if begin <= item.base_offset < behind]
            if any(twin.base_offset in here or item.base_offset in _offsets(twin) for twin in there):
                add(found.records, item)
            elif number:
                add(found.sides[side].helps.setdefault(number[0], Some()), item)
            else:
                add(found.sides[side].alone, item)
    return found


def compare_twins(found: Differences, item: RecordBatch, twin: RecordBatch) -> None:
    if (item.crc, item.size_bytes) == (twin.crc, twin.size_bytes):
        found.last_same = item.base_offset
        if item.partition_leader_epoch != twin.partition_leader_epoch:
            if not found.epochs.count:
                found.first_epochs = item.partition_leader_epoch, twin.partition_leader_epoch
            add(found.epochs, item)
    elif item.last_offset == twin.last_offset and item.records_count != twin.records_count:
        side = int(twin.records_count < item.records_count)
        add(found.sides[side].fewer, (item, twin)[side])
    else:
        add(found.records, item)


def _offsets(item: RecordBatch) -> range:
    return range(item.base_offset, item.last_offset + 1)


def add(some: Some, item: RecordBatch) -> None:
    some.first = min(some.first, item.base_offset) if some.count else item.base_offset
    some.last = max(some.last, item.last_offset)
    some.count += 1
    some.records += item.records_count


def changed(chance: random.Random, spans: list[tuple[int, int]], faults: float) -> bytes:
    """A copy of a log, some batches of which are changed, damaged, or not there."""
    content = b""
    for first, last in spans:
        value, epoch, kept = b"v", 0, None
        fault = chance.choice(("none", "gone", "kept", "value", "epoch", "damage", "ends", "begins")) if (
            chance.random() < faults
        ) else "none"  # fmt: skip
        match fault:
            case "gone":
                continue
            case "kept" if last > first:
                kept = chance.randint(1, last - first)
            case "value":
                value = b"w"
            case "epoch":
                epoch = 7
            case "ends" if last > first:
                content += batch(first, first)
                continue
            case "begins" if last > first:
                content += batch(last, last)
                continue
        raw = bytearray(batch(first, last, value=value, leader_epoch=epoch, kept=kept))
        raw[-1] ^= fault == "damage"
        content += bytes(raw)
    return content


@pytest.mark.parametrize("rows", [1, 2, 3, 1 << 16])
def test_differences_are_those_that_loops_find(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(br, "ROWS", rows)
    for seed in range(so_many(300)):
        chance = random.Random(seed)
        spans, at = [], 0
        for _ in range(chance.randint(0, 12)):
            spans.append((at, at + chance.randint(0, 3)))
            at = spans[-1][1] + 1
        faults = chance.choice((0.05, 0.3, 0.8))
        one, other = (log_of(changed(chance, spans, faults)) for _ in range(2))
        until = chance.randint(0, at + 1)
        assert numbered(found_by(one, other, until)) == numbered(expected(one, other, until)), seed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (batch(0, 2) + batch(3), batch(2) + batch(3)),
        (batch(0, 2) + batch(3), batch(0) + batch(3)),
        (segment(0, 1, 2, 3, 4), segment(0) + bytes(batch(1)[:-1]) + b"x" + segment(2, 4)),
        (segment(0, 1, 2, 3, 4), segment(0) + bytes(batch(1)[:-1]) + b"x"),
        (segment(0, 1, 2, 3, 4), b"x" * 90 + segment(4)),
        (batch(0, leader_epoch=3) + segment(1), segment(0, 1, value=b"w")),
    ],
)
def test_differences_one_by_one(one: bytes, other: bytes) -> None:
    """Some of those above."""
    for logs in ((log_of(one), log_of(other)), (log_of(other), log_of(one))):
        assert numbered(found_by(*logs)) == numbered(expected(*logs, 1 << 60))


def numbered(found: Differences) -> Any:
    """Without the numbers of damaged pieces, of which several may stand between the same batches."""
    return found.records, found.epochs, found.last_same, [
        (side.alone, side.fewer, [*side.helps.values()]) for side in found.sides
    ]  # fmt: skip


def test_a_batch_that_a_cleaner_marked_is_no_other_record() -> None:
    """The round that meets a tombstone first writes when it may go, and so another batch of the same records."""
    marked = bytearray(batch(1))
    marked[22] |= 0x40
    import google_crc32c

    marked[17:21] = google_crc32c.value(bytes(marked[21:])).to_bytes(4)
    found = found_by(log_of(segment(0, 1, 2)), log_of(segment(0) + bytes(marked) + segment(2)))
    assert (found.records.count, found.sides[1].fewer.count, found.are_of_cleaning) == (0, 1, True)


def test_a_compressed_message_of_magic_0_or_1_may_have_lost_records() -> None:
    """No header says how many it has, and its offset is that of the last one."""

    def wrapper(*offsets: int) -> bytes:
        records = [Record(offset=at, timestamp_ms=1000, key=b"k", value=b"v%d" % at) for at in offsets]
        return build_batch(records, magic=1, compression="gzip")

    whole = log_of(wrapper(0, 1, 2, 3) + wrapper(4, 5) + wrapper(6))
    for one, other, side in ((whole, log_of(wrapper(0, 3) + wrapper(4) + wrapper(6)), 1),):
        found = found_by(one, other)
        assert found.records.count == 0
        assert found.sides[side].fewer.count == 1
    plain = [build_batch([Record(offset=at, timestamp_ms=9, key=b"k", value=b"%d" % at)], magic=1) for at in (0, 1, 2)]
    other_value = build_batch([Record(offset=1, timestamp_ms=9, key=b"k", value=b"7")], magic=1)
    assert found_by(log_of(b"".join(plain)), log_of(plain[0] + other_value + plain[2])).records.count == 1
