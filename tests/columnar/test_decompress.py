"""Decompression in kernels against `compression.py`: what is accepted has the same bytes, and nothing else is."""

from __future__ import annotations

import itertools
import random
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import cramjam
import numpy as np
import pytest

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.modes import IS_PYTHON
from offsets_log.columnar.wire import decompress as d
from offsets_log.columnar.wire import libraries as lib
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, LEGACY_HEADER_SIZE, RecordBatch
from offsets_log.log_format.compression import CODECS, XERIAL_HEADER
from offsets_log.log_format.segment import iter_batches
from tests.columnar.codec_bytes import (
    GZIP,
    IDS,
    LZ4,
    NAMES,
    SHAPES,
    SNAPPY,
    ZSTD,
    attempt,
    commits,
    decide,
    decompress,
    deflate_gzip,
    lz4_frame,
    needs_libraries,
    snappy_raw,
)
from tests.conftest import DISTINCT


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("codec_id", IDS, ids=NAMES.get)
def test_what_is_compressed_here_is_read_back(codec_id: int, shape: str, addresses: np.ndarray) -> None:
    plain = SHAPES[shape]
    data = CODECS[codec_id].compress(plain, 2)
    assert attempt(addresses, codec_id, data, len(plain) + d.SLACK) == plain
    assert attempt(addresses, codec_id, data, len(plain) + d.SLACK, around=b"") == plain
    assert attempt(addresses, codec_id, data, 2 * len(plain) + 900) == plain


@pytest.mark.parametrize("codec_id", IDS, ids=NAMES.get)
def test_every_target_that_is_too_small_is_told(codec_id: int, addresses: np.ndarray) -> None:
    plain = commits(9) + bytes(40) + random.Random(4).randbytes(50)
    data = CODECS[codec_id].compress(plain, 2)
    for room in range(len(plain)):
        assert attempt(addresses, codec_id, data, room) == oc.NEEDS_ROOM
    for room in range(len(plain), len(plain) + d.SLACK):
        assert attempt(addresses, codec_id, data, room) in (oc.NEEDS_ROOM, plain)


@pytest.mark.parametrize("codec_id", IDS, ids=NAMES.get)
def test_a_writable_source_is_read_as_well(codec_id: int, addresses: np.ndarray) -> None:
    plain = commits(3)
    source = np.frombuffer(CODECS[codec_id].compress(plain, 2), np.uint8).copy()
    target = np.zeros(len(plain) + d.SLACK, np.uint8)
    made = decompress(codec_id, source, 0, len(source), 2, target, 0, addresses)
    assert bytes(target[:made]) == plain


@pytest.mark.parametrize("codec_id", [SNAPPY, LZ4], ids=NAMES.get)
def test_repetitions_of_every_period(codec_id: int, addresses: np.ndarray) -> None:
    rng = random.Random(6)
    lengths = (5, 17, 40) if IS_PYTHON else range(1, 90)
    for period, length in itertools.product(range(1, 36), lengths):
        plain = rng.randbytes(7) + (rng.randbytes(period) * 90)[: period + length] + rng.randbytes(13)
        data = CODECS[codec_id].compress(plain, 2)
        assert attempt(addresses, codec_id, data, len(plain) + d.SLACK) == plain


def test_snappy_raw_blocks_and_joined_streams(addresses: np.ndarray) -> None:
    for plain in SHAPES.values():
        assert attempt(addresses, SNAPPY, snappy_raw(plain), len(plain) + d.SLACK) == plain
    stream = CODECS[SNAPPY].compress(commits(9), 2)
    joined = stream + stream + XERIAL_HEADER
    assert attempt(addresses, SNAPPY, joined, 4000) == 2 * commits(9) == decide(SNAPPY, joined)


def test_snappy_elements_that_the_compressor_does_not_write(addresses: np.ndarray) -> None:
    literal = b"\x0cabcd"
    far = b"\x23" + (4).to_bytes(4, "little")  # a copy of 9 bytes with a distance of four bytes
    assert attempt(addresses, SNAPPY, b"\x0d" + literal + far, 100) == b"abcdabcdabcda"
    long = bytes(range(61))
    for width in range(1, 5):  # literals whose length takes so many bytes
        data = b"\x3d" + bytes((59 + width << 2,)) + (60).to_bytes(width, "little") + long
        assert attempt(addresses, SNAPPY, data, 100) == long == decide(SNAPPY, data)
        short = b"\x01" + bytes((59 + width << 2,)) + (0).to_bytes(width, "little") + b"a"
        assert attempt(addresses, SNAPPY, short, 100) == oc.NOT_PLAIN


@pytest.mark.parametrize("flags", [0x60, 0x64, 0x70, 0x74, 0x68, 0x7C, 0x62])
@pytest.mark.parametrize("size_code", [4, 5, 6, 7])
def test_lz4_frames_of_every_kind(flags: int, size_code: int, addresses: np.ndarray) -> None:
    large = b"large" if IS_PYTHON else SHAPES["a block of lz4 and a byte"]
    for plain in (b"", commits(9), large):
        tail = len(plain).to_bytes(8, "little") if flags & 0x08 else b""
        data = lz4_frame(plain, flags=flags, size_code=size_code, descriptor_tail=tail)
        assert attempt(addresses, LZ4, data, len(plain) + d.SLACK) == plain == decide(LZ4, data)


@needs_libraries
def test_lz4_blocks_of_four_mebibytes(addresses: np.ndarray) -> None:
    plain = random.Random(8).randbytes(100_000) * 43 + commits(2000)
    for size_code in (4, 7):
        data = lz4_frame(plain, size_code=size_code)
        assert attempt(addresses, LZ4, data, len(plain) + d.SLACK) == plain


def test_lz4_checksum_of_the_header(addresses: np.ndarray) -> None:
    """Magic 0 has a wrong one, which is not looked at (``records:K1``)."""
    plain = commits(3)
    for magic in (0, 1, 2):
        data = CODECS[LZ4].compress(plain, magic)
        assert attempt(addresses, LZ4, data, 1000, magic) == plain
    wrong = CODECS[LZ4].compress(plain, 0)
    assert attempt(addresses, LZ4, wrong, 1000, 0) == plain == decide(LZ4, wrong, 0)
    assert attempt(addresses, LZ4, wrong, 1000, 1) == oc.NOT_PLAIN
    assert decide(LZ4, wrong, 1) is None


@needs_libraries
@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("strategy", [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE])
def test_gzip_of_every_kind(level: int, strategy: int, addresses: np.ndarray) -> None:
    for plain in SHAPES.values():
        data = deflate_gzip(plain, level=level, strategy=strategy)
        assert attempt(addresses, GZIP, data, len(plain)) == plain


@needs_libraries
@pytest.mark.parametrize("level", [-5, 1, 3, 9, 22])
def test_zstd_of_every_level(level: int, addresses: np.ndarray) -> None:
    """As streams, which do not know the size when they begin, and at once."""
    for plain in SHAPES.values() if level < 20 else (commits(9),):  # 22 has the largest window, and is slow
        stream = cramjam.zstd.Compressor(level=level)
        stream.compress(plain)
        streamed = bytes(stream.finish())
        at_once = bytes(cramjam.zstd.compress(plain, level=level))
        for data in (streamed, at_once):
            assert attempt(addresses, ZSTD, data, len(plain)) == plain


def test_every_compressed_batch_of_the_recordings(
    recording: Callable[[str], Path], addresses: np.ndarray, record_property: Callable[[str, object], None]
) -> None:
    counts: Counter[str] = Counter()
    for name in DISTINCT:
        for path in sorted(recording(name).rglob("*.log")):
            for batch in iter_batches(path.read_bytes()):
                if not isinstance(batch, RecordBatch) or batch.codec.id not in IDS:
                    continue
                data = compressed_bytes(batch)
                expected = batch.codec.decompress(data, batch.magic)
                made = attempt(addresses, batch.codec.id, data, len(expected) + d.SLACK, batch.magic)
                assert made == expected, f"{path}, {batch.position}"
                counts[f"{batch.compression} of magic {batch.magic}"] += 1
    for kind, count in sorted(counts.items()):
        record_property(kind, count)
    assert {kind.split()[0] for kind in counts} == {NAMES[codec_id] for codec_id in IDS}


def compressed_bytes(batch: RecordBatch) -> bytes:
    """Of magic 2 what follows the header; before that the value of a message, whose key is null."""
    if batch.magic == 2:
        return batch.raw[BATCH_HEADER_SIZE:]
    value = LEGACY_HEADER_SIZE[batch.magic] + 4
    assert batch.raw[value - 4 : value + 4] == b"\xff\xff\xff\xff" + (len(batch.raw) - value - 4).to_bytes(4)
    return batch.raw[value + 4 :]


# --------------------------------------------------------------------------------------------- libraries


@needs_libraries
def test_what_is_not_there_is_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {codec_id: CODECS[codec_id].compress(commits(3), 2) for codec_id in IDS}
    library = lib.Library()
    for codec_id in IDS:
        assert attempt(library.addresses, codec_id, data[codec_id], 1000) == commits(3)
    library.close()
    library.close()
    monkeypatch.setattr(lib, "library_of", lambda codec: None)
    with lib.Library() as missing:
        for addresses in (library.addresses, missing.addresses):
            assert not addresses.any()
            assert attempt(addresses, GZIP, data[GZIP], 1000) == oc.NOT_PLAIN
            assert attempt(addresses, ZSTD, data[ZSTD], 1000) == oc.NOT_PLAIN
            assert attempt(addresses, LZ4, data[LZ4], 1000) == commits(3)


def test_the_doors_to_other_libraries_are_open() -> None:
    """A version that closes one makes its batches slow, not wrong: raise no bound without a look."""
    assert lib.closed_doors() == []


@pytest.mark.parametrize("codec", lib.DOORS)
def test_a_closed_door_is_told(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    door = lib.DOORS[codec]
    monkeypatch.setitem(lib.DOORS, codec, replace(door, functions=(*door.functions, "not_lent")))
    lib.library_of.cache_clear()
    (told,) = lib.closed_doors()
    lib.library_of.cache_clear()
    assert told.startswith(f"{codec}: {door.whose}")
    assert "not_lent" in told


def test_threads_with_libraries_of_their_own() -> None:
    shapes = list(SHAPES.values())[:6]
    data = [(codec_id, plain, CODECS[codec_id].compress(plain, 2)) for codec_id in IDS for plain in shapes]

    def work(_: int) -> bool:
        with lib.Library() as library:
            return all(
                attempt(library.addresses, codec_id, compressed, len(plain) + d.SLACK) == plain
                for codec_id, plain, compressed in data * (1 if IS_PYTHON else 50)
            )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.skipif(not IS_PYTHON, reason="for plain Python only")
def test_in_plain_python_two_codecs_are_doubtful(addresses: np.ndarray) -> None:
    for codec_id in (GZIP, ZSTD):
        assert attempt(addresses, codec_id, CODECS[codec_id].compress(b"abc", 2), 1000) == oc.NOT_PLAIN
