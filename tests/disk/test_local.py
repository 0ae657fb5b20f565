"""Test mapped files, whose holes are not read."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsets_log.disk import local
from offsets_log.disk.local import map_data, map_file
from offsets_log.disk.reader import open_logs
from offsets_log.log_format.partition_log import iter_log
from offsets_log.log_format.segment import Tail
from offsets_log.replay.profile import MODERN
from offsets_log_cli.main import main
from tests.columnar.engines import columnar_answer, construct_answer
from tests.conftest import NEVER, BulkFrom
from tests.disk.logs import name, partition, segment

SAMPLE = Path(__file__).parents[2] / "samples" / "kafka-4.3-mixed" / "log"
SIZE = 200 << 30
SECONDS = 20
"""Of this process: too few to read it."""


def sparse(tmp_path: Path, data: bytes, size: int = SIZE) -> Path:
    directory = partition(tmp_path, 0, {name(0): data})
    os.truncate(directory / name(0), size)
    assert (directory / name(0)).stat().st_blocks * 512 < 1 << 20, "this file system has no sparse files"
    return directory


def test_a_hole_of_200_gib_is_told_with_its_size(tmp_path: Path) -> None:
    data = segment(*range(50))
    with open_logs([str(sparse(tmp_path, data))]) as opened:
        (log,) = opened.logs
        assert log.size_bytes == SIZE
        assert log.bytes_to_read < 2 << 20
        *batches, (_, tail) = iter_log(log)
        assert len(batches) == 50
        assert tail == Tail("zeros", len(data), SIZE - len(data))
        for pieces in (1, 3):
            assert columnar_answer(log, MODERN, pieces=pieces) == construct_answer(log, MODERN)


@pytest.mark.parametrize("least_bytes", [0, NEVER], ids=["bulk", "one by one"])
@pytest.mark.parametrize("command", ["compact", "info", "check", "top", "rebuild"])
def test_commands_end_in_seconds(command: str, least_bytes: int, tmp_path: Path, bulk_from: BulkFrom) -> None:
    bulk_from(least_bytes)
    file = SAMPLE / "__consumer_offsets-3" / name(0)
    directory = sparse(tmp_path, file.read_bytes())
    begin = time.process_time()
    result = CliRunner().invoke(main, [command, str(directory), "-o", "jsonl"], catch_exceptions=False)
    assert time.process_time() - begin < SECONDS
    assert result.exit_code == 0
    assert f"{SIZE - file.stat().st_size} bytes from position" in result.stderr
    assert f"{directory / name(0)}: " in result.stderr


def test_a_file_without_a_segments_name_has_a_hole_too(tmp_path: Path) -> None:
    directory = sparse(tmp_path, segment(1, 2))
    copy = tmp_path / "copy-of-it"
    (directory / name(0)).rename(copy)
    with open_logs([str(copy)], as_partition=0) as opened:
        (log,) = opened.logs
        assert log.size_bytes == SIZE
        assert [type(item) for _, item in iter_log(log)][2:] == [Tail]


def test_data_behind_a_hole_is_read(tmp_path: Path) -> None:
    path = sparse(tmp_path, b"begin") / name(0)
    with path.open("r+b") as file:
        file.seek(1 << 30)
        file.write(b"end")
    with ExitStack() as stack:
        buffer, zeros = map_data(path, stack)
        assert len(buffer) + zeros == SIZE
        assert bytes(buffer[1 << 30 : (1 << 30) + 3]) == b"end"
        assert len(buffer) < (1 << 30) + (2 << 20)


@pytest.mark.parametrize("size", [0, 1, 4096, 3_000_000])
def test_a_file_without_a_hole_is_mapped_whole(size: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    with ExitStack() as stack:
        buffer, zeros = map_data(path, stack)
        assert (bytes(buffer), zeros) == (b"x" * size, 0)


def test_where_the_system_tells_of_no_holes_a_file_is_mapped_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sparse(tmp_path, b"data", 5 << 20) / name(0)

    def refuse(descriptor: int, at: int, how: int) -> int:
        raise OSError(22, "Invalid argument")

    with ExitStack() as stack:
        monkeypatch.setattr(local.os, "lseek", refuse)
        assert len(map_data(path, stack)[0]) == 5 << 20
        monkeypatch.undo()
        monkeypatch.delattr(local.os, "SEEK_DATA")
        assert len(map_data(path, stack)[0]) == 5 << 20
        monkeypatch.undo()
        assert len(map_file(path, stack)) == 5 << 20
        assert len(map_data(path, stack)[0]) < 2 << 20
