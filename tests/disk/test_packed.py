"""How much is unpacked into memory, and files over packed bytes that are read forwards."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest

from offsets_log.disk import packed
from offsets_log.disk.packed import Budget, Inflated, Problems, Reader
from offsets_log.errors import InputError


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "CHUNK_BYTES", 4)
    monkeypatch.setattr(packed, "INPUT_BYTES", 5)


def contents(budget: Budget, data: bytes, limit: int = -1, *, is_preallocated: bool = False) -> bytes | None:
    """What is read; None if that is too much."""
    try:
        return bytes(budget.read(io.BytesIO(data), limit, is_preallocated=is_preallocated))
    except InputError:
        return None


@pytest.mark.parametrize(
    ("packed_bytes", "left"), [(0, 100), (9, 100), (10, 100), (11, 110), (19, 190), (20, 200), (21, 200)]
)
def test_so_much_may_be_unpacked_as_a_packer_can_have_packed_and_no_more_than_memory_holds(
    packed_bytes: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"MAX_UNPACKED_BYTES": 200, "FREE_BYTES": 100, "MAX_RATIO": 10}.items():
        monkeypatch.setattr(packed, name, value)
    assert Budget("a.tar", packed_bytes).left == left


@pytest.mark.parametrize("most", [9, 10, 11, 12])
def test_one_member_has_no_more_bytes_than_a_member_may_have(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros that take no memory count as well."""
    monkeypatch.setattr(packed, "MAX_MEMBER_BYTES", most)
    for data in (b"0123456789a", bytes(11)):
        for is_preallocated in (False, True):
            expected = data if most >= 11 else None
            assert contents(Budget("a.tar", 0), data, is_preallocated=is_preallocated) == expected


@pytest.mark.parametrize("free", [9, 10, 11])
def test_all_members_together_have_no_more_bytes_than_are_left(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "FREE_BYTES", free)
    budget = Budget("a.tar", 0)
    assert contents(budget, b"01234") == b"01234"
    assert contents(budget, b"56789") == (b"56789" if free >= 10 else None)


def test_zeros_of_a_preallocated_file_take_nothing_of_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those between entries do, as they are in memory then."""
    monkeypatch.setattr(packed, "FREE_BYTES", 12)
    data = bytes(8) + b"some" + bytes(9)
    budget = Budget("a.tar", 0)
    assert contents(budget, data, is_preallocated=True) == data
    assert budget.left == 8
    with pytest.raises(InputError, match=r"a\.tar: it unpacks to too many bytes for memory"):
        Budget("a.tar", 0).read(io.BytesIO(data))


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 5, 8, 9, 10, 11])
def test_no_more_is_read_than_is_asked_for(limit: int) -> None:
    stream = io.BytesIO(b"0123456789")
    assert bytes(Budget("a.tar", 0).read(stream, limit)) == b"0123456789"[:limit]
    assert stream.tell() == min(limit, 10)


SIZES = [None, -1, 0, 1, 3, 4, 5, 40, 100]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("at", [0, 1, 9, 10, 12])
def test_a_reader_is_a_file_over_its_bytes(at: int, size: int | None) -> None:
    data = b"0123456789"
    file, reader = io.BytesIO(data), Reader(memoryview(data))
    for offset, whence in ((at, io.SEEK_SET), (at - 10, io.SEEK_END), (1, io.SEEK_CUR)):
        assert reader.seek(offset, whence) == file.seek(offset, whence)
        assert reader.read(size) == file.read(size)
        assert reader.tell() == file.tell()
        assert reader.packed_position == min(file.tell(), 10)
    assert Reader(memoryview(data), is_packed=True).packed_position is None
    with pytest.raises(ValueError, match="before the file's beginning"):
        reader.seek(-11, io.SEEK_END)


PLAIN = bytes(range(40)) * 2
MEMBERS = gzip.compress(PLAIN[:7], mtime=0) + gzip.compress(PLAIN[7:], mtime=0)


@pytest.mark.parametrize("size", [1, 3, 7, 8, 79, 80, 81])
@pytest.mark.parametrize("padding", [0, 1, 30])
def test_members_of_gzip_are_read_as_one_file_and_zeros_behind_them_are_none(size: int, padding: int) -> None:
    problems = Problems()
    file = Inflated(memoryview(MEMBERS + bytes(padding)), problems)
    parts = []
    while part := file.read(size):
        parts.append(part)
        assert file.tell() == sum(map(len, parts))
    assert parts == [PLAIN[at : at + size] for at in range(0, len(PLAIN), size)]
    assert not problems


@pytest.mark.parametrize("size", [0, 1, 6, 7, 8, 200])
def test_a_look_at_the_head_takes_nothing_from_what_is_read(size: int) -> None:
    file = Inflated(memoryview(MEMBERS), Problems())
    assert file.head(size) == PLAIN[:size]
    assert (file.tell(), file.read(3), file.tell()) == (0, PLAIN[:3], 3)
    assert file.head(size) == PLAIN[3 : 3 + size]
    assert file.read(200) == PLAIN[3:]


@pytest.mark.parametrize("size", [None, -1, -2])
def test_without_a_size_as_much_is_read_as_a_chunk_has(size: int | None) -> None:
    file = Inflated(memoryview(MEMBERS), Problems())
    assert [file.read(size), file.read(size)] == [PLAIN[:4], PLAIN[4:8]]


def test_a_packed_file_is_read_forwards_only() -> None:
    file = Inflated(memoryview(MEMBERS), Problems())
    assert (file.seek(0), file.seek(10), file.seek(10)) == (0, 10, 10)
    assert file.read(2) == PLAIN[10:12]
    for offset, whence in ((11, io.SEEK_SET), (0, io.SEEK_CUR), (0, io.SEEK_END)):
        with pytest.raises(ValueError, match="forwards only"):
            file.seek(offset, whence)
    assert file.seek(1000) == len(PLAIN)


def test_where_packed_bytes_end_early_or_make_no_sense_what_comes_before_is_read() -> None:
    for end in range(len(MEMBERS)):
        problems = Problems()
        found = Inflated(memoryview(MEMBERS[:end]), problems).read(200)
        assert PLAIN.startswith(found)
        first = len(gzip.compress(PLAIN[:7], mtime=0))
        assert problems.found == ([] if end == first else [("it is cut off", end)])
    problems = Problems()
    broken = Inflated(memoryview(MEMBERS + b"more"), problems)
    assert broken.read(200) == PLAIN
    ((problem, position),) = problems.found
    assert "incorrect header check" in problem
    assert position == len(MEMBERS) + 4


def test_deflated_bytes_in_a_larger_file_end_where_they_do() -> None:
    """Nothing behind them is taken for another member."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    data = packer.compress(PLAIN) + packer.flush()
    problems = Problems()
    file = Inflated(memoryview(b"head" + data + MEMBERS), problems, bits=-zlib.MAX_WBITS, start=4)
    assert file.read(200) == PLAIN
    assert file.read(1) == b""
    assert file.packed_position == 4 + len(data)
    assert not problems
