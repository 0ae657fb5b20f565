"""The whole logs of topics that users write to."""

from __future__ import annotations

import gzip
import io
import mmap
import re
import tarfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

from offsets_log.disk.ahead import ahead
from offsets_log.disk.folder import Folder
from offsets_log.disk.packed import Inflated, Problems
from offsets_log.disk.packed_partitions import PackedPartition
from offsets_log.disk.user_logs import find_user_topics, release, whole
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.errors import InputError


@pytest.mark.parametrize(("count", "shown"), [(1, "p0"), (3, "p0, p1, p2"), (4, "p0, p1, p2")])
def test_where_nothing_is_found_at_most_three_paths_are_named(
    count: int, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [f"p{number}" for number in range(count)]
    for path in paths:
        Path(path).mkdir()
    with ExitStack() as stack, pytest.raises(InputError, match=f"was found in {re.escape(shown)}$"):
        find_user_topics(paths, stack)


def test_bytes_are_there_again_after_a_release_and_at_the_end_there_is_none(tmp_path: Path) -> None:
    data = bytes(range(256)) * (2 * mmap.PAGESIZE // 256)
    (tmp_path / "log").write_bytes(data)
    with ExitStack() as stack:
        file = stack.enter_context((tmp_path / "log").open("rb"))
        mapping = stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        buffer = stack.enter_context(memoryview(mapping))
        for held in (data, bytearray(data), memoryview(data)):
            release(held, 0, len(data))  # of bytes that are in no file nothing is given back
        for begin, end in ((0, len(data)), (5, mmap.PAGESIZE), (7, 9), (len(data), len(data))):
            release(buffer, begin, end)
        assert bytes(buffer) == data


class Broken(BaseException):
    """What items may end with."""


@pytest.mark.parametrize("count", [0, 1, 50])
@pytest.mark.parametrize("error", [None, Broken()])
def test_items_made_ahead_are_the_same_with_what_ends_them(count: int, error: BaseException | None) -> None:
    def items() -> Iterator[int]:
        yield from range(count)
        if error is not None:
            raise error

    taken = []
    with pytest.raises(Broken) if error else nullcontext():
        for item in ahead(items()):
            taken.append(item)  # noqa: PERF402 - an error leaves those before it
    assert taken == list(range(count))


def test_where_nobody_takes_items_any_more_none_are_made() -> None:
    made = []
    taken = ahead(made.append(number) or number for number in range(1000))  # type: ignore[func-returns-value]
    assert [next(taken), next(taken)] == [0, 1]
    before = threading.active_count()
    taken.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before - 1
    assert len(made) < 20


def test_partitions_are_folders_with_segments_of_topics_that_are_not_being_deleted(tmp_path: Path) -> None:
    for name, files in {
        "orders-0": ["00000000000000000000.log", "00000000000000000009.log", "00000000000000000009.index"],
        "orders-1": ["leader-epoch-checkpoint"],
        "orders-2.0a1b-delete": ["00000000000000000000.log"],
        "orders-3": ["00000000000000000005.log", "99999999999999999999.log", "00000000000000000007.log.cleaned"],
        "notes": ["00000000000000000000.log"],
    }.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    with ExitStack() as stack:
        logs, _ = find_user_topics([str(tmp_path)], stack)
        assert sorted(logs.partitions()) == [("orders", 0), ("orders", 3)]
    for number, base_offsets in ((0, [0, 9]), (1, []), (3, [5])):
        assert UserPartition("orders", number, tmp_path / f"orders-{number}", {}).base_offsets() == base_offsets


def test_a_small_file_beside_segments_is_read_if_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"contents")
    (tmp_path / "folder").mkdir()
    found = UserPartition("t", 0, tmp_path, {})
    assert [found.read(name) for name in ("here", "folder", "nowhere")] == [b"contents", None, None]


def test_the_greatest_base_offset_is_that_of_a_64_bit_number_here_and_in_archives(tmp_path: Path) -> None:
    """What is being cleaned, deleted or packed is no segment of a log that users write to."""
    greatest = (1 << 63) - 1
    names = [f"{base:020}.log" for base in (greatest + 1, greatest, 10**20 - 1, 3, 0)]
    names += [f"{5:020}.log{suffix}" for suffix in (".cleaned", ".swap", ".deleted", ".gz", ".zst", ".old")]
    for name in names:
        (tmp_path / name).touch()
    packed = Folder("a.tar!t-0/", "t-0", dict.fromkeys(names, bytes))
    for found in (UserPartition("t", 0, tmp_path, {}), PackedPartition("t", 0, packed)):
        assert found.base_offsets() == [0, 3, greatest]


def test_an_index_that_is_not_there_has_no_bytes_and_a_segment_must_be(tmp_path: Path) -> None:
    partition = UserPartition("t", 0, tmp_path, {})
    (tmp_path / f"{5:020}.index").write_bytes(b"12345678")
    for base_offset, size_bytes in ((0, 0), (5, 8)):
        with partition.open_index(base_offset) as pieces:
            assert pieces.size_bytes == size_bytes
    with pytest.raises(InputError, match="cannot be read"), partition.open_segment(5):
        pass


def test_partitions_in_a_data_directory_are_of_its_broker(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=4\ncluster.id=c\n")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "00000000000000000000.log").touch()
    with ExitStack() as stack:
        logs, clusters = find_user_topics([str(tmp_path)], stack)
        (copy,) = logs.chosen("orders")
        assert set(copy.above) == {"meta.properties"}
        assert [identity.node_id for identity in clusters.identities] == [4]


def test_partitions_in_an_archive_are_found_beside_those_of_directories(tmp_path: Path) -> None:
    for place, topic in (("packed", "orders"), ("data", "payments")):
        (tmp_path / place / f"{topic}-0").mkdir(parents=True)
        (tmp_path / place / f"{topic}-0" / "00000000000000000000.log").touch()
        (tmp_path / place / "meta.properties").write_text("version=1\nnode.id=4\ncluster.id=c\n")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(tmp_path / "packed", "packed")
    with ExitStack() as stack:
        logs, _ = find_user_topics([str(tmp_path / "a.tar"), str(tmp_path / "data")], stack)
        assert logs.topics == {"orders", "payments"}
        assert [len(logs.chosen(topic)) for topic in ("orders", "payments")] == [1, 1]


def test_of_a_packed_log_only_the_end_is_here(tmp_path: Path) -> None:
    here = UserPartition("orders", 0, tmp_path, {})
    assert whole(here) is here
    with pytest.raises(InputError, match=r"^a.tar!orders-0: .*the ends only"):
        whole(PackedPartition("orders", 0, Folder("a.tar!orders-0/", "orders-0")))


@pytest.mark.parametrize(("moves", "expected"), [([0, 3], b"def"), ([3, 3], b"def"), ([2, 6], b""), ([5, 9], b"")])
def test_packed_data_are_read_forwards(moves: list[int], expected: bytes) -> None:
    file = Inflated(memoryview(gzip.compress(b"abcdef")), Problems())
    assert file.head(2) == b"ab"
    for offset in moves:
        file.seek(offset)
    assert file.read(9) == expected
    assert file.tell() == 6
    for offset, whence in ((0, io.SEEK_SET), (6, io.SEEK_CUR), (0, io.SEEK_END)):
        with pytest.raises(ValueError, match="read forwards only"):
            file.seek(offset, whence)
