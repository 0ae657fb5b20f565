"""Logs of other topics in archives, of which only the end is kept; members that nothing reads; zips that are cut."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from contextlib import suppress

import pytest

from offsets_log.disk.archives import unpack
from offsets_log.disk.folder import Folder
from offsets_log.disk.members import MAX_OFFSET
from offsets_log.disk.tails import CHUNK_BYTES, TAIL_BYTES, read_tail
from offsets_log.errors import Damage, InputError
from tests.disk.logs import batch, name, segment
from tests.disk.test_archives import FILES, FILES_BEFORE, MAKERS, make_tar, make_zip

OF_TOPIC = {f"data/orders-0/{name(base)}": segment(base, base + 1) for base in (0, 2, 4, 6)}
OFFSETS = {f"data/__consumer_offsets-3/{name(0)}": segment(0)}
INDEXES = {f"data/{folder}/{0:020}.index": bytes(8) for folder in ("orders-0", "__consumer_offsets-3")}


def folder_in(folders: object, topic: str) -> Folder:
    assert isinstance(folders, list)
    (found,) = (folder for folder in folders if folder.name.startswith(topic))
    assert isinstance(found, Folder)
    return found


@pytest.mark.parametrize("maker", ["a.tar", "a.tar.gz", "a.tar.zst", "a.zip", "stored.zip"])
def test_of_all_but_the_last_two_segments_only_the_names_count(maker: str) -> None:
    """And their indexes are of no use, unless a segment lies unpacked in memory with all of its bytes."""
    folders = unpack("a", MAKERS[maker](OF_TOPIC | OFFSETS | INDEXES))
    orders = folder_in(folders, "orders")
    assert {file: bytes(read()) for file, read in orders.files.items()} == {
        name(base): segment(base, base + 1) if base in (4, 6) else b"" for base in (0, 2, 4, 6)
    }
    assert orders.kept_from == {name(0): MAX_OFFSET, name(2): MAX_OFFSET}
    assert bool(orders.beside) is (maker in ("a.tar", "a.tar.zst"))
    offsets = folder_in(folders, "__consumer_offsets")
    assert (list(offsets.files), list(offsets.beside)) == ([name(0)], [f"{0:020}.index"])
    assert offsets.kept_from == {}


@pytest.mark.parametrize("maker", ["a.tar", "a.tar.gz", "stored.zip"])
def test_the_end_of_a_large_segment_is_kept_from_a_batch_on(maker: str) -> None:
    """Where it lies unpacked in memory it is there as it is."""
    large = b"".join(batch(at, value=bytes(30_000)) for at in range(9))
    orders = folder_in(unpack("a", MAKERS[maker](OFFSETS | {f"data/orders-0/{name(0)}": large})), "orders")
    kept = bytes(orders.files[name(0)]())
    assert large.endswith(kept)
    if maker == "a.tar":
        assert (kept, orders.kept_from) == (large, {})
    else:
        assert 60_000 < len(kept) < 130_000
        assert orders.kept_from == {name(0): int.from_bytes(kept[:8])}


def test_under_the_name_of_a_tar_nothing_is_a_segment_that_breaks_before_its_first_member() -> None:
    """Under another name what is there of a packed file is taken as far as it goes."""
    data = gzip.compress(make_tar(OFFSETS))
    for file in ("0.log.gz", "a.tgz", "a.tar.gz", "a.tar.zst", "a.tzst", "a.tar"):
        found, told = [], list[Damage]()
        for cut in range(20, len(data), 10):
            with suppress(InputError):
                found.append(isinstance(unpack(file, data[:cut], on_damage=told.append), list))
        assert len(told) == len(found) > 1
        assert set(found) == ({True} if file.startswith("a.") else {True, False})


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_before_two_batches_nothing_is_kept_that_the_end_does_not_need(more: int) -> None:
    """The end is of `TAIL_BYTES`: batches that are as long together stand for it."""
    envelope = len(batch(0, value=bytes(100))) - 100
    last = batch(3, value=bytes(100))
    data = batch(0) + batch(1) + batch(2, value=bytes(TAIL_BYTES + more - len(last) - envelope - 2)) + last
    assert len(data) - len(batch(0) + batch(1)) == TAIL_BYTES + more
    tail = read_tail(io.BytesIO(data), len(data))
    assert tail.first_offset == (2 if more >= 0 else 1)


@pytest.mark.parametrize("more", [-1, 0, 1, 1 << 20])
def test_behind_a_batch_that_is_longer_than_its_segment_no_more_than_an_end_is_kept(more: int) -> None:
    """However much follows; a batch that ends with the segment, or before, is kept whole."""
    last = batch(2, value=bytes(2 * CHUNK_BYTES))
    size = len(last) - 12 + more
    data = batch(0) + batch(1) + last[:8] + size.to_bytes(4) + last[12:]
    tail = read_tail(io.BytesIO(data), len(data))
    assert tail.size_bytes == len(data)
    assert data.startswith(tail.data) is (more > 0)
    assert len(tail.data) == (len(data) - len(batch(0)) if more <= 0 else CHUNK_BYTES)


def test_the_end_that_is_kept_begins_where_the_last_batch_ended_that_could_be_read() -> None:
    """Wherever in what is read at a time that is."""
    first = batch(0, value=bytes(CHUNK_BYTES - TAIL_BYTES // 2))
    assert CHUNK_BYTES - TAIL_BYTES < len(first) < CHUNK_BYTES
    data = first + b"\xff" * (2 * CHUNK_BYTES)
    tail = read_tail(io.BytesIO(data), len(data))
    assert tail.size_bytes == len(data)
    assert tail.data == data[: len(first) + TAIL_BYTES]


@pytest.mark.parametrize(
    ("flags", "method", "is_read"), [(0, 0, True), (1, 0, False), (0, 12, False), (0, 9, False), (8, 0, False)]
)
def test_in_a_zip_without_a_directory_what_no_size_tells_ends_the_reading(
    flags: int, method: int, is_read: bool
) -> None:
    """Encrypted, packed in another way, or stored with its size behind it."""
    content = make_zip(OFFSETS, 0)
    first = content[: content.index(b"PK\1\2")]
    second = bytearray(first.replace(b"offsets-3", b"offsets-4"))
    struct.pack_into("<HH", second, 6, flags, method)
    told: list[object] = []
    folders = unpack("a.zip", first + bytes(second), on_damage=told.append)
    assert isinstance(folders, list)
    assert sorted(folder.name[-1] for folder in folders) == (["3", "4"] if is_read else ["3"])
    assert len(told) == 1


def test_of_a_zip_that_is_cut_behind_a_member_the_member_is_whole_and_a_folder_is_no_member() -> None:
    checkpoint = "cleaner-offset-checkpoint"
    for cut in (0, 1):
        content = make_zip(FILES_BEFORE | {checkpoint: FILES[f"data/{checkpoint}"]}, zipfile.ZIP_STORED)
        folder, *_ = unpack("a.zip", content[: content.index(b"PK\1\2") - cut], on_damage=lambda damage: None)
        assert list(folder.above) == [checkpoint] * (not cut)
    content = make_zip(FILES_BEFORE | {f"__consumer_offsets-3/{name(1)}/": b""}, zipfile.ZIP_STORED)
    (folder,) = unpack("a.zip", content[: content.index(b"PK\1\2")], on_damage=lambda damage: None)
    assert list(folder.files) == [name(0)]
