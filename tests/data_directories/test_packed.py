"""Data directories in archives: as much as unpacked ones tell, and what of a packed one cannot be told."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from offsets_log.disk.tails import TAIL_BYTES, read_tail
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record
from offsets_log_cli.main import main
from tests.data_directories.copies import Recorded, data_directories

NOW = ("--now", "2026-11-23T00:00:00Z")
COMMANDS = (
    ("compact", *NOW),
    ("compact", "--decide", "-o", "jsonl"),
    ("compact", "--table", "share-offsets"),
    ("groups", *NOW),
    ("rebuild", "--table", "pending"),
    ("info", "--card"),
)
FORMS = ("tar", "root.tar", "tar.gz", "zip")


def packed(form: str, data: Path, to: Path) -> Path:
    """An archive of a data directory."""
    path = to / f"copy.{form}"
    if form == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(one for one in data.rglob("*") if one.is_file()):
                archive.write(file, f"data/{file.relative_to(data)}")
        return path
    with tarfile.open(path, "w:gz" if form.endswith("gz") else "w") as tar:
        tar.add(data, "." if form.startswith("root") else "data")
    return path


def answers(command: tuple[str, ...], path: Path) -> list[dict[str, object]]:
    """The rows of a run; the names of files in them are those of the directory."""
    done = CliRunner().invoke(main, [command[0], str(path), *command[1:], "-o", "jsonl"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return [
        json.loads(line)
        for line in re.sub(r'"data_directory":"[^"]*"', '"data_directory":""', done.stdout).splitlines()
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["kafka-4.3-one", "kafka-3.9-one"])
def test_an_archive_tells_what_its_directory_tells(name: str, form: str, recorded: Recorded, tmp_path: Path) -> None:
    """Of small logs all is kept; what a packed archive's card does not say is how many indexes have unused room."""
    (data,) = data_directories(recorded(name), "running")
    path = packed(form, data, tmp_path)
    for command in COMMANDS:
        told, expected = answers(command, path), answers(command, data)
        if command[0] == "info" and not form.endswith("tar"):
            for row in (*told, *expected):
                row["left_shown_by"] = [words for words in row["left_shown_by"] if "indexes" not in words]  # type: ignore
        assert told == expected


@pytest.mark.parametrize("form", FORMS)
def test_folders_alone_are_a_data_directory_too(form: str, recorded: Recorded, tmp_path: Path) -> None:
    """Without the files at the top, and with a segment whose name is no offset."""
    (source,) = data_directories(recorded("kafka-4.3-one"), "running")
    data = tmp_path / "data"
    data.mkdir()
    for folder in (path for path in source.iterdir() if path.is_dir()):
        shutil.copytree(folder, data / folder.name)
    (data / "orders-0" / f"{'9' * 20}.log").write_bytes(b"")
    path = packed(form, data, tmp_path)
    for command in COMMANDS[:4]:
        assert answers(command, path) == answers(command, data)
    assert all(row["lag"] is not None for row in answers(COMMANDS[0], path) if row["topic"] == "orders")


@pytest.mark.parametrize("form", ["tar", "tar.gz"])
def test_of_a_log_that_is_cut_off_nothing_is_told(form: str, recorded: Recorded, tmp_path: Path) -> None:
    """Nor of what stands behind it; the offsets are there, and the damage is counted."""
    (data,) = data_directories(recorded("kafka-3.9-one"), "stopped")
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name in (*sorted(path.name for path in data.glob("__*")), "meta.properties", "orders-0"):
            tar.add(data / name, name)
    log = (data / "orders-0" / "00000000000000000000.log").read_bytes()
    contents = whole.getvalue()[: whole.getvalue().index(log) + len(log) // 2]
    cut = tmp_path / f"cut.{form}"
    cut.write_bytes(gzip.compress(contents) if form.endswith("gz") else contents)
    done = CliRunner().invoke(main, ["compact", str(cut), "--lag", "-o", "jsonl"], catch_exceptions=False)
    assert done.exit_code == 3
    assert "the archive is broken" in done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) > 20
    assert {row["lag"] for row in rows if row["topic"] == "orders"} == {None}


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(0, 3 * TAIL_BYTES // 2), max_size=9),
    behind=st.sampled_from([b"", b"x" * 30, bytes(100), b"\0" * 11 + b"\x7f" + b"y" * 90]),
    chunk=st.integers(500, 1 << 18),
)
def test_the_last_batches_of_a_segment_are_kept(sizes: list[int], behind: bytes, chunk: int) -> None:
    """Two at least, and no more than are needed; what is no batch ends them."""
    records = [Record(offset=i, timestamp_ms=1000, key=None, value=bytes(size)) for i, size in enumerate(sizes)]
    batches = [build_batch([record]) for record in records]
    data = b"".join(batches) + behind
    tail = read_tail(_Slowly(io.BytesIO(data), chunk), len(data))
    assert tail.size_bytes == len(data)
    kept = bytes(tail.data)
    first = 0 if tail.first_offset is None else tail.first_offset
    assert kept.startswith(b"".join(batches[first:]))
    assert (tail.first_offset is None) == kept.startswith(b"".join(batches))
    assert len(batches) - first >= min(2, len(batches))
    assert sum(map(len, batches[first + 1 :])) < TAIL_BYTES or len(batches) - first == 2
    assert data.endswith(kept) or len(kept) - sum(map(len, batches[first:])) <= TAIL_BYTES


class _Slowly:
    def __init__(self, stream: io.BytesIO, most: int) -> None:
        self._stream = stream
        self._most = most

    def read(self, size: int) -> bytes:
        """Less than was asked for."""
        return self._stream.read(min(size, self._most))
