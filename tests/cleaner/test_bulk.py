"""Kernels clean as the reading of each record on the slow path does: the same files, rows and problems."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from offsets_log.broker.failures import BrokerError
from offsets_log.cleaner.result import kept_after, result_row
from offsets_log.cleaner.settings import Rules, Settings
from offsets_log.log_format.building import build_batch, build_marker
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import iter_batches
from tests.builders import TIME
from tests.cleaner.cases import all_cases, differences, run

RECORDED = [
    (name, release)
    for name, case in all_cases().items()
    for release in ("4.4.0", "4.3.0", "3.9.1")
    if release in case.results and case.is_map_large and (release != "4.3.0" or "after-4.4.0" in case.folders)
]
"""By 4.3.0 those that came to something else there: kernels are told all else alike (``K44-30``)."""


@pytest.mark.parametrize(("name", "release"), RECORDED)
def test_a_recorded_round_in_bulk(name: str, release: str) -> None:
    assert differences(all_cases()[name], release, in_bulk=True) == []
    assert differences(all_cases()[name], release, in_bulk=True, threads=3) == []


def random_log(random: Random) -> tuple[list[bytes], list[int]]:
    """Batches of few keys, tombstones among them, of transactions and of none; and where each begins."""
    codecs = random.choice((("none",) * 12 + ("lz4", "gzip"), ("lz4", "lz4", "gzip", "snappy", "zstd", "none")))
    batches: list[bytes] = []
    begins: list[int] = []
    open_: dict[int, int] = {}
    offset = 0
    for _ in range(random.randrange(5, 60)):
        offset += random.choice((0, 0, 0, 1, 7))
        begins.append(offset)
        producer = random.choice((-1, -1, -1, 4, 5, 6))
        if producer in open_ and random.random() < 0.5:
            epoch = open_.pop(producer)
            batches.append(
                build_marker(
                    offset,
                    commit=random.random() < 0.7,
                    producer_id=producer,
                    producer_epoch=epoch + random.randrange(2),
                    timestamp_ms=TIME + offset,
                )
            )
            offset += 1
            continue
        records = []
        for _ in range(random.randrange(1, 6)):
            key = bytes([0, 1, random.randrange(8)]) * random.choice((1, 1, 30)) if random.random() < 0.97 else None
            value = None if random.random() < 0.2 else random.randbytes(random.choice((0, 3, 80)))
            headers = (("h", b"x"),) if random.random() < 0.03 else ()
            timestamp_ms = TIME + offset * 1000 - random.randrange(3000)
            records.append(Record(offset=offset, timestamp_ms=timestamp_ms, key=key, value=value, headers=headers))
            offset += random.choice((1, 1, 2))
        facts: dict[str, Any] = {}
        if producer >= 0:
            open_.setdefault(producer, random.randrange(3))
            facts = {"producer_id": producer, "producer_epoch": open_[producer], "base_sequence": 0}
            facts["is_transactional"] = True
        facts["compression"] = random.choice(codecs)
        facts["timestamp_type"] = random.choice(("create",) * 12 + ("log_append",))
        batches.append(build_batch(records, **facts))
    return batches, begins


def cut(
    batches: list[bytes], begins: list[int], random: Random, *, is_damaged: bool, is_believed: bool
) -> PartitionLog:
    """The batches in segments; with a few bytes that are others, and with indexes that make them be believed."""
    cuts = sorted({0, len(batches), *(random.randrange(len(batches)) for _ in range(4))})
    segments = []
    for start, end in pairwise(cuts):
        data = bytearray(b"".join(batches[start:end]))
        if is_damaged and random.random() < 0.5:
            for _ in range(random.randrange(1, 4)):
                data[random.randrange(len(data))] = random.randrange(256)
        segments.append(Segment(f"{start}.log", begins[start], bytes(data), modified_ms=TIME))
    indexes = {f"{segment.base_offset:020}.index": bytes for segment in segments}
    return PartitionLog(0, tuple(segments), beside=indexes if is_believed else {})


def outcome(log: PartitionLog, settings: Settings, *, in_bulk: bool, threads: int = 1) -> Any:
    """All that a round tells and writes."""
    try:
        done, files, _ = run(log, settings, in_bulk=in_bulk, threads=threads)
    except (AssertionError, BrokerError) as error:
        return str(error)
    return result_row(log, done, kept_after(done, in_bulk=in_bulk)), files


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_generated_logs_round_after_round(seed: int, is_damaged: bool) -> None:
    random = Random(seed + 1000 * is_damaged)
    is_believed = is_damaged or random.random() < 0.5
    log = cut(*random_log(random), random, is_damaged=is_damaged, is_believed=is_believed)
    for release in ((4, 4), (4, 3), (3, 9)) if seed % 4 == 0 else ((4, 4), (3, 9)):
        now_ms = TIME + random.choice((0, 10_000, 200_000_000))
        settings = Settings(
            now_ms=now_ms,
            rules=Rules.of(release),
            index_interval_bytes=random.choice((1, 200, 4096)),
            segment_bytes=random.choice((500, 1 << 20)),
        )
        watermark = random.choice((None, log.segments[-1].base_offset))
        checkpoints = Checkpoints(cleaned_until=random.choice((None, 10)), high_watermark=watermark)
        some = replace(log, checkpoints=checkpoints)
        expected = outcome(some, settings, in_bulk=False)
        assert outcome(some, settings, in_bulk=True) == expected
        assert outcome(some, settings, in_bulk=True, threads=3) == expected


@pytest.mark.parametrize("producers", [3, 100])
@pytest.mark.parametrize("seed", range(4))
def test_many_transactions_abort(seed: int, producers: int) -> None:
    """More than kernels are told at once, and more at a time than they follow."""
    random, open_ = Random(seed), set[int]()
    batches: list[bytes] = []
    for offset in range(600):
        producer = random.randrange(producers)
        facts: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0}
        if producer in open_ and random.random() < 0.6:
            open_.remove(producer)
            batches.append(build_marker(offset, commit=random.random() < 0.3, timestamp_ms=TIME + offset, **facts))
        elif random.random() < 0.2:
            batches.append(build_batch([record_of(random, offset)]))
        else:
            open_.add(producer)
            facts |= {"base_sequence": 0, "is_transactional": True}
            batches.append(build_batch([record_of(random, offset)], **facts))
    log = cut(batches, [*range(600)], random, is_damaged=False, is_believed=False)
    settings = Settings(now_ms=TIME, rules=Rules.of((4, 4)), segment_bytes=random.choice((4000, 1 << 20)))
    high = replace(log, checkpoints=Checkpoints(cleaned_until=random.choice((None, 50, 300))))
    expected = outcome(high, settings, in_bulk=False)
    assert outcome(high, settings, in_bulk=True) == expected
    assert outcome(high, settings, in_bulk=True, threads=3) == expected


def record_of(random: Random, offset: int) -> Record:
    """One of few keys."""
    key = bytes([0, 1, random.randrange(40)])
    value = random.choice((None, b"value", b"other"))
    return Record(offset=offset, timestamp_ms=TIME + offset, key=key, value=value, headers=())


def test_a_batch_that_begins_before_its_segment_stays_where_its_last_offset_fits() -> None:
    """Whichever of its records stay (``C-24``)."""

    def batch(*offsets: int, last_offset: int | None = None) -> bytes:
        records = [Record(offset=at, timestamp_ms=TIME, key=b"\0\1" + bytes([at % 7]), value=b"v") for at in offsets]
        return build_batch(records, last_offset=last_offset)

    pieces = {7: batch(7, 8) + batch(2, 4, last_offset=8), 11: batch(11, 14), 20: batch(20)}
    segments = [Segment(f"{at:020}.log", at, data, modified_ms=TIME) for at, data in pieces.items()]
    log, settings = PartitionLog(0, tuple(segments)), Settings(now_ms=TIME, rules=Rules.of((4, 4)))
    row, files = by_hand = outcome(log, settings, in_bulk=False)
    assert (row["outcome"], row["records_after"]) == ("cleaned", 5)
    assert [record.offset for each in iter_batches(files[f"{7:020}.log"]) for record in iter_records(each)] == [
        8,
        2,
        11,
        14,
    ]
    assert outcome(log, settings, in_bulk=True) == by_hand
