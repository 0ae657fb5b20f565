"""Parts that are kept in memory or in files come out as they were written, and leave no file open."""

from __future__ import annotations

import errno
import gc
import os
import re
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from offsets_log.disk import spool as spools
from offsets_log.disk.journal import growing_file
from offsets_log.disk.scratch import Pieces, Scratch, mapped
from offsets_log.disk.spool import Growing, Shelf, Spool
from offsets_log.errors import OutputError


def open_files() -> int:
    gc.collect()  # of what other tests have left
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("in_memory", [0, 5, 12, 13, 1000])
def test_a_part_comes_out_once_and_a_later_one_replaces_it(in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in a file once it is larger than may be in memory, and that file is closed with it."""
    monkeypatch.setattr(spools, "BYTES_IN_MEMORY", in_memory)
    monkeypatch.setattr(spools, "PIECE", 4)
    before = open_files()
    with Spool() as spool:
        spool.write(0, [b"of an earlier", b" try"])
        spool.write(1, [b"other"])
        spool.write(0, [b"one ", b"two ", b"three"])
        assert open_files() - before == (in_memory < 5) + (in_memory < 13)
        out = [bytes(piece) for piece in spool.take(0)]
        assert open_files() - before == (in_memory < 5)
    assert b"".join(out) == b"one two three"


def test_parts_that_were_not_taken_leave_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "BYTES_IN_MEMORY", 0)
    before = open_files()
    spool = Spool()
    with spool:
        spool.write(0, [b"one"])
        spool.write(1, [b"two"])
        assert open_files() == before + 2
    assert open_files() == before


# ---------------------------------------------------------------------------------------- bytes and values that grow


@pytest.mark.parametrize("in_memory", [0, 3, 6, 1000])
def test_bytes_that_grow_are_all_there_in_memory_or_in_a_file(in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file takes over when they are more than may be in memory."""
    monkeypatch.setattr(spools, "GROWING_BYTES_IN_MEMORY", in_memory)
    growing = Growing()
    before = open_files()
    for piece in (b"abc", b"", b"def", b"g"):
        growing.append(piece)
    assert open_files() - before == (in_memory < 7)
    buffer = growing.buffer()
    assert bytes(buffer) == b"abcdefg"
    assert memoryview(buffer).readonly
    assert bytes(Growing().buffer()) == b""
    del growing, buffer
    assert open_files() == before


def test_values_on_a_shelf_come_back_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [1, -(1 << 70), "text", b"bytes", None, (1, [2, ("x",)]), [], ""]
    monkeypatch.setattr(spools, "BYTES_IN_MEMORY", 1)
    before = open_files()
    with Shelf() as shelf:
        assert list(shelf) == []
        for value in values:
            shelf.add(value)
        assert list(shelf) == list(shelf) == values
    assert open_files() == before


@pytest.mark.parametrize("pieces", [[], [b""], [b"abc"], [b"abc", b"", memoryview(b"de")]])
def test_pieces_that_are_mapped_are_joined(pieces: list[bytes]) -> None:
    with ExitStack() as stack:
        assert bytes(mapped(stack, pieces)) == b"".join(pieces)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_folder_for_temporary_files_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the file is closed, which tries once more to write."""
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: Path("/dev/full").open("w+b"))  # noqa: SIM115
    with pytest.raises(OutputError, match=re.escape(tempfile.gettempdir())), ExitStack() as stack:
        mapped(stack, [b"x" * 100])


@pytest.mark.parametrize("reserves", [True, False])
@pytest.mark.parametrize("shape", [(1,), (3, 2)])
def test_an_array_keeps_its_values_when_it_grows(
    shape: tuple[int, ...], reserves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the system, as macOS, reserves no room."""
    if not reserves:
        monkeypatch.delattr(os, "posix_fallocate")
    with ExitStack() as stack:
        scratch = Scratch(stack, np.int64, shape)
        assert not scratch.array.any()
        scratch.array[:] = 7
        scratch.grow()
        assert scratch.array.shape == (2 * shape[0], *shape[1:])
        assert (scratch.array[: shape[0]] == 7).all()
        assert not scratch.array[shape[0] :].any()


def test_an_array_has_its_room_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapping of a file with holes ends the process where the disk is full."""

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with ExitStack() as stack, pytest.raises(OutputError, match="No space left on device"):
        Scratch(stack, np.int64, (1,))


def test_arrays_are_read_again_and_replaced() -> None:
    arrays = [np.arange(6).reshape(3, 2), np.zeros((0, 4), np.int64), np.full((1, 5), -1), np.arange(4)]
    with ExitStack() as stack:
        pieces = Pieces(stack)
        for array in arrays:
            pieces.append(array)
        assert len(pieces) == len(arrays)
        pieces.write(0, 10 * arrays[0])
        for number, expected in enumerate([10 * arrays[0], *arrays[1:]]):
            assert pieces.read(number).tolist() == expected.tolist()
            assert pieces.read(number).shape == expected.shape


# --------------------------------------------------------------------------------------------------- lines on the disk


def test_lines_are_appended_behind_the_last_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("one\ncut o")
    with growing_file(path) as file:
        assert file.read() == "one\ncut o"
        file.append("two\n", is_durable=False)
        file.append("caf\u00e9\n", is_durable=True)
        assert file.read() == path.read_text() == "one\ntwo\ncaf\u00e9\n"
    with growing_file(tmp_path / "new") as file:
        assert file.read() == ""
        file.append("x\n", is_durable=False)
    assert (tmp_path / "new").read_text() == "x\n"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o644 & ~umask()


def test_lines_that_the_system_writes_in_pieces_are_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:3])))
    with growing_file(tmp_path / "journal") as file:
        file.append("caf\u00e9 one\n", is_durable=True)
    monkeypatch.undo()
    assert (tmp_path / "journal").read_text() == "caf\u00e9 one\n"


def umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_durable_lines_and_the_name_of_their_file_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder when the file is opened, the file with each durable append and with no other."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    with growing_file(tmp_path / "journal") as file:
        assert synced == [tmp_path.stat().st_ino]
        file.append("a\n", is_durable=False)
        assert len(synced) == 1
        file.append("b\n", is_durable=True)
        assert synced[1:] == [(tmp_path / "journal").stat().st_ino]


def test_a_file_that_another_run_writes_is_left_alone(tmp_path: Path) -> None:
    with growing_file(tmp_path / "journal") as file:
        file.append("a\n", is_durable=False)
        before = open_files()
        with pytest.raises(OutputError, match="another run writes it"), growing_file(tmp_path / "journal"):
            raise AssertionError
        assert open_files() == before
    with growing_file(tmp_path / "journal") as file:
        assert file.read() == "a\n"
