"""Records whose bytes were changed: a kernel takes what the construct path reads, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, decode_batch_header
from offsets_log.log_format.building import build_batch, encode_legacy_message
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.log_format.record import Record, iter_records
from tests.builders import TIME
from tests.columnar.test_lengths_and_numbers import as_array

BYTES = (0, 1, 2, 3, 4, 5, 0x0E, 0x3F, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


def mutated(seed: int, count: int) -> Iterator[bytes]:
    """Batches of a few records of which some bytes behind the header were changed, taken out, or put in."""
    dice = random.Random(seed)
    values = (None, b"", b"v" * 5, b"v" * 70)
    for _ in range(count):
        records = [
            Record(
                offset=10 + 3 * n,
                timestamp_ms=TIME - 70 * n,
                key=b"key" * dice.randint(1, 30),
                value=dice.choice(values),
            )
            for n in range(dice.randint(1, 3))
        ]
        raw = bytearray(build_batch(records))
        for _ in range(dice.choice((0, 1, 1, 2))):
            at = dice.randrange(BATCH_HEADER_SIZE, len(raw))
            raw[at : at + dice.randint(0, 2)] = bytes(dice.choices(BYTES, k=dice.choice((0, 1, 1, 1, 6))))
        raw[57:61] = dice.choice((len(records), len(records), len(records) - 1, len(records) + 1, -1)).to_bytes(
            4, signed=True
        )
        raw[23:27] = dice.choice((3 * len(records), 3 * len(records) - 3, 0, -1)).to_bytes(4, signed=True)
        yield bytes(raw)


def taken(raw: bytes, inside: bytes | None = None) -> list[tuple[Any, ...]] | None:
    """The records that a kernel takes; None if it takes none of the batch.

    Args:
        inside: what is in it, decompressed.
    """
    data, at = as_array(raw), np.int64(0)
    source, begin = (data, bt.records_begin(data, at)) if inside is None else (as_array(inside), np.int64(0))
    end = np.int64(len(source))
    count = bt.count_of(source, begin, end, data, at)
    staged = Table(a.Staged, 4)
    if count < 0 or bt.records_of(source, begin, end, count, data, at, staged, np.int64(0)) < 0:
        return None
    return [
        (int(one.offset), int(one.timestamp_delta), one.raw_key(source), one.raw_value(source))
        for one in staged.up_to(count)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_a_kernel_takes_the_records_that_the_construct_path_reads_and_no_others(seed: int) -> None:
    """All of a batch or nothing; keys without a type, and headers, are left to the slow path."""
    accepted = 0
    for raw in mutated(seed, 400):
        batch = decode_batch_header(raw)
        items = list(iter_records(batch))
        records = [item for item in items if isinstance(item, Record)]
        is_plain = len(records) == len(items) and batch.records_count >= 0
        is_plain &= all(len(one.key or b"") >= 2 and not one.headers for one in records)
        expected = [(one.offset, one.timestamp_ms - batch.base_timestamp_ms, one.key, one.value) for one in records]
        assert taken(raw) == (expected if is_plain else None), raw
        accepted += is_plain
    assert 20 < accepted < 380


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("magic", [0, 1])
def test_a_kernel_takes_no_messages_that_the_construct_path_does_not_read(magic: int, seed: int) -> None:
    """Alone or inside a compressed one, stamped by whoever; and all that a producer writes."""
    dice = random.Random(seed)
    accepted = 0
    for number in range(300):
        changes = number % 3
        offsets = sorted(dice.sample(range(9), dice.randint(1, 3)))
        inner = bytearray().join(
            encode_legacy_message(
                magic=dice.choice((0, magic)),
                offset=offset,
                timestamp_ms=TIME + offset,
                attributes=dice.choice((0, 0, 8 * magic)),
                key=b"key",
                value=dice.choice((None, b"", b"value")),
            )
            for offset in offsets
        )
        for _ in range(changes):
            at = dice.randrange(len(inner))
            inner[at : at + dice.randint(0, 2)] = bytes(dice.choices(BYTES, k=dice.choice((0, 1, 1, 1, 4))))
        gzip = CODEC_NAMED["gzip"]
        raw = encode_legacy_message(
            magic=magic,
            offset=offsets[-1] + magic * dice.choice((0, 0, 50)),
            timestamp_ms=TIME,
            attributes=gzip.id | 8 * dice.choice((0, magic)),
            key=None,
            value=gzip.compress(bytes(inner), magic),
        )
        items = list(iter_records(decode_batch_header(raw)))
        found = taken(raw, bytes(inner))
        if found is not None:
            assert all(isinstance(one, Record) for one in items)
            expected = [(one.offset, one.timestamp_ms, one.key, one.value) for one in items if isinstance(one, Record)]
            assert found == expected, bytes(inner)
        assert changes or (found is not None and len(found) == len(offsets))
        accepted += found is not None
    assert 100 <= accepted < 300
