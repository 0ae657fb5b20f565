"""Kernels clean messages of magic 0 and 1, plain and compressed, as the reading of each record does."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from offsets_log.cleaner.drops import Drops
from offsets_log.cleaner.group_cleaning import _Copying
from offsets_log.cleaner.settings import Rules, Settings
from offsets_log.columnar.jit.modes import IS_PYTHON
from offsets_log.events import Event
from offsets_log.log_format.building import build_batch, build_marker, encode_legacy_message
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.pipeline import iter_events
from tests.builders import TIME, LogBuilder, member
from tests.cleaner.deep import SETTINGS, deep, without
from tests.cleaner.test_bulk import cut, outcome
from tests.sizes import so_many

CODECS = ("none", "none", "none", "gzip", "snappy", "lz4")
RELEASES = ((4, 3), (3, 9, 2), (3, 9))


def some_records(random: Random, offset: int, count: int) -> list[Record]:
    """Of few keys, with tombstones among them and gaps between them; a few have no key."""
    records = []
    for _ in range(count):
        key = bytes([0, 1, random.randrange(8)]) * random.choice((1, 1, 30)) if random.random() < 0.99 else None
        value = None if random.random() < 0.2 else random.randbytes(random.choice((0, 3, 80)))
        timestamp_ms = TIME + offset * 1000 - random.randrange(3000)
        records.append(Record(offset=offset, timestamp_ms=timestamp_ms, key=key, value=value))
        offset += random.choice((1, 1, 2))
    return records


def wrapper(records: list[Record], random: Random, *, is_odd: bool) -> bytes:
    """A compressed message as writers made them, or in one thing otherwise."""
    magic, codec = random.randrange(2), CODEC_NAMED[random.choice(CODECS[3:])]
    odd = random.choice(("magic", "absolute", "key", "nested", "time", "rest", "order", "bits")) if is_odd else ""
    base = 0 if magic == 0 or odd == "absolute" else records[0].offset
    bits = random.choice((0, 0x08)) if magic else 0
    inside = [
        encode_legacy_message(
            magic=1 - magic if odd == "magic" and random.random() < 0.5 else magic,
            offset=record.offset - base,
            timestamp_ms=-5 if odd == "time" and random.random() < 0.3 else record.timestamp_ms,
            attributes=1 if odd == "nested" and random.random() < 0.2 else bits,
            key=record.key,
            value=record.value,
        )
        for record in records
    ]
    if odd == "order":
        random.shuffle(inside)
    return encode_legacy_message(
        magic=magic,
        offset=records[-1].offset,
        timestamp_ms=max(record.timestamp_ms for record in records),
        attributes=codec.id | bits | (0x50 if odd == "bits" else 0),
        key=b"k" if odd == "key" else None,
        value=codec.compress(b"".join(inside) + (b"\0" * 9 if odd == "rest" else b""), magic),
    )


def old_log(random: Random, *, is_odd: bool = False) -> tuple[list[bytes], list[int]]:
    """Batches of all magics in any order, and where each begins."""
    batches: list[bytes] = []
    begins: list[int] = []
    offset, producers = 0, set[int]()
    for _ in range(random.randrange(5, 60)):
        offset += random.choice((0, 0, 0, 1, 7))
        begins.append(offset)
        records = some_records(random, offset, random.randrange(1, 6))
        kind, facts = random.random(), dict[str, Any]()
        if kind < 0.4:
            batches.append(wrapper(records, random, is_odd=is_odd and random.random() < 0.1))
        elif kind < 0.85:
            facts["timestamp_type"] = random.choice(("create", "create", "log_append"))
            batches.append(build_batch(records[:1], magic=random.randrange(2), **facts))
            records = records[:1]
        elif kind < 0.9 and producers:
            facts = {"producer_id": producers.pop(), "producer_epoch": 0, "timestamp_ms": TIME}
            batches.append(build_marker(offset, commit=random.random() < 0.7, **facts))
            records = records[:1]
        else:
            if random.random() < 0.4:
                producers.add(random.randrange(3, 5))
                facts = {"producer_id": max(producers), "producer_epoch": 0, "base_sequence": 0}
                facts["is_transactional"] = True
            batches.append(build_batch(records, compression=random.choice((*CODECS, "zstd")), **facts))
        offset = records[-1].offset + 1
    return batches, begins


@pytest.mark.parametrize("kind", ["plain", "odd", "damaged"])
@pytest.mark.parametrize("seed", range(so_many(60)))
def test_generated_old_logs_round_after_round(seed: int, kind: str) -> None:
    """``CL-23``, ``CL-24``, ``CL-33``."""
    random = Random(f"{seed} {kind}")
    is_believed = kind == "damaged" or random.random() < 0.5
    log = cut(*old_log(random, is_odd=kind == "odd"), random, is_damaged=kind == "damaged", is_believed=is_believed)
    at = random.randrange(len(log.segments))  # whose tombstones are too old, if it is below what is dirty
    segments = [replace(one, modified_ms=TIME - (i <= at) * 200_000_000) for i, one in enumerate(log.segments)]
    log = replace(log, segments=tuple(segments))
    for release in RELEASES:
        settings = Settings(
            now_ms=TIME + random.choice((0, 10_000, 200_000_000)),
            rules=Rules.of(release),
            index_interval_bytes=random.choice((1, 200, 4096)),
            segment_bytes=random.choice((500, 1 << 20)),
        )
        cleaned_until = random.choice((None, 10, *(one.base_offset for one in segments)))
        some = replace(log, checkpoints=Checkpoints(cleaned_until=cleaned_until))
        expected = outcome(some, settings, in_bulk=False)
        assert outcome(some, settings, in_bulk=True) == expected
        assert outcome(some, settings, in_bulk=True, threads=3) == expected


@pytest.mark.skipif(IS_PYTHON, reason="libraries decompress for machine code only")
def test_only_what_is_odd_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper that keeps some, all or none of its messages is not; one of other magics inside is."""
    random, taken = Random(1), list[int]()
    batches, offset = list[bytes](), 0
    for number in range(40):
        records = [
            Record(
                offset=offset + i, timestamp_ms=TIME, key=b"\0\1" + bytes([max(number, i * 10)]), value=b"v" * i or None
            )
            for i in range(4)
        ]
        batches.append(wrapper(records, random, is_odd=False))
        batches.append(build_batch([replace(records[0], offset=offset + 4)], magic=number % 2))
        offset += 5
    inside = encode_legacy_message(magic=0, offset=0, timestamp_ms=-1, attributes=0, key=b"\0\1k", value=b"v")
    value = CODEC_NAMED["gzip"].compress(inside, 1)
    mixed = encode_legacy_message(magic=1, offset=offset, timestamp_ms=TIME, attributes=1, key=None, value=value)
    data = b"".join(batches)
    segments = (
        Segment("0.log", 0, data + mixed, modified_ms=TIME),
        Segment(
            "1.log", offset + 1, build_batch([Record(offset=offset + 1, timestamp_ms=TIME, key=b"\0\1", value=b"")])
        ),
    )
    take = _Copying._take
    monkeypatch.setattr(_Copying, "_take", lambda self, batch: (taken.append(batch.position), take(self, batch)))
    for release in RELEASES:
        log, settings = PartitionLog(0, segments), Settings(now_ms=TIME, rules=Rules.of(release))
        taken.clear()
        row, _ = outcome(log, settings, in_bulk=True)
        assert row["outcome"] == "cleaned"
        assert taken == [len(data)]


@pytest.mark.parametrize("seed", range(so_many(40)))
def test_old_logs_cleaned_deeply(seed: int) -> None:
    """Messages keep their magic, those inside others too; segments begin with the first message inside."""
    random, log = Random(seed), LogBuilder()
    for _ in range(random.randrange(5, 50)):
        some = LogBuilder()
        for _ in range(random.randrange(1, 5)):
            offset = random.choice((None, random.randrange(9)))
            some.commit(offset, group=random.choice("abc"), partition=random.randrange(3), type_=random.randrange(2))
        some.group(*[member("m")][: random.randrange(2)], group=random.choice("ab"), gone=random.random() < 0.3)
        records = [(event.record.key, event.record.value) for event in events_of(some.log)]
        magic, compression = random.choice((0, 1, 1, 2)), random.choice(CODECS)
        log.skip(random.choice((0, 0, 3)))
        log.add(*records, magic=magic, compression=compression, timestamp_type=random.choice(("create", "log_append")))
    settings = replace(SETTINGS, segment_bytes=random.choice((300, 1000, 1 << 20)))
    deep(log.log, settings)
    offsets = [event.record.offset for event in events_of(log.log)]
    without(log.log, Drops(records=frozenset(random.sample(offsets, 2))))


def events_of(log: PartitionLog) -> list[Event]:
    return [event for event in iter_events(log) if isinstance(event, Event)]
