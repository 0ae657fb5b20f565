"""Whole data directories on Spark, here and in stores: the columns, rows and words of this machine's engine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cli.main import main as offsets_log
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.log_ends import find_log_ends
from offsets_log.data_directory.metadata_copies import leader_copies
from offsets_log.disk.dumps import Dumps
from offsets_log.disk.finder import Finder
from offsets_log.disk.folder import Folder
from offsets_log.disk.reader import DiskLogs, open_logs
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.errors import InputError
from spark_jobs.__main__ import main as spark_jobs_main
from spark_jobs.files import FoundFile
from spark_jobs.stored_partitions import BLOCK_BYTES, StoredPartition
from spark_jobs.stores import find_logs
from tests.data_directories.copies import Recorded, data_directories, recorded
from tests.data_directories.test_log_ends import batches, index_of
from tests.disk.logs import batch, name, partition

__all__ = ["recorded"]

PROGRAM_NOW = 1_800_000_000_000
OPEN, WHOLE = "kafka-3.9-blocked", "kafka-4.3-one"
Data = Callable[[str], Path]


@pytest.fixture(scope="module")
def data(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Data:
    """A copy whose broker had stopped, without the room that is made in indexes beforehand."""

    @cache
    def made(name: str) -> Path:
        (source,) = data_directories(recorded(name), "running")
        folder = tmp_path_factory.mktemp(name) / "data"
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.timeindex", "*.index"))
        (folder / ".kafka_cleanshutdown").touch()
        return folder

    return made


def answer(question: tuple[str, ...], place: str) -> tuple[int, str, list[str]]:
    """Exit status, output and words of a run."""
    command, *rest = question
    done = CliRunner().invoke(offsets_log, [command, place, *rest], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr.splitlines()


def program(job: str, place: str, to: Path, *more: str) -> tuple[int, list[str]]:
    """Exit status and words of a job that writes Parquet."""
    arguments = [job, "--input", place, "--output", str(to), "--now", str(PROGRAM_NOW), *more]
    done = CliRunner().invoke(spark_jobs_main, arguments, catch_exceptions=False)
    return done.exit_code, done.stderr.splitlines()


def test_the_program_compact_writes_the_same_columns(data: Data, spark: Any, tmp_path: Path) -> None:
    """And says the same of transactions."""
    here = tmp_path / "here.parquet"
    question = ("compact", "--decide", "-o", "parquet", "--to", str(here), "--now", str(PROGRAM_NOW))
    status, _, words = answer(question, str(data(OPEN)))
    assert program("compact", f"local://{data(OPEN)}", tmp_path / "there", "--decide")[0] == status == 0
    assert pq.read_table(tmp_path / "there").equals(pq.read_table(here))
    done = program("compact", str(data(OPEN)), tmp_path / "filtered", "--decide", "--option", "group=*prepared*")
    rows = [row for row in pq.read_table(here).to_pylist() if "prepared" in row["group"]]
    assert pq.read_table(tmp_path / "filtered").to_pylist() == rows != []
    assert [line for line in words if line.startswith("--decide")] == done[1][:1]


def test_the_program_rebuild_writes_the_same_columns(data: Data, spark: Any, tmp_path: Path) -> None:
    """Lag of offsets, outcomes of pending ones, share groups' offsets, names of topic ids."""
    status, output, _ = answer(("rebuild", "-o", "json", "--now", str(PROGRAM_NOW)), str(data(WHOLE)))
    assert program("rebuild", str(data(WHOLE)), tmp_path / "there")[0] == status == 0
    document = json.loads(output)
    for table in ("offsets", "pending", "share_offsets"):
        rows = pq.read_table(tmp_path / "there" / table).to_pylist()
        assert sorted(map(in_order, rows)) == sorted(map(in_order, document[table])) != [], table
    groups = {row["group"]: json.loads(row["document"]) for row in pq.read_table(tmp_path / "there/groups").to_pylist()}
    assert groups == {row["group"]: row for row in document["groups"]}
    bounded = program("rebuild", str(data(WHOLE)), tmp_path / "none", "--decide", "--option", "until_offset=5")
    assert (bounded[0], "--until-offset" in bounded[1][-1]) == (1, True)


def in_order(row: dict[str, Any]) -> str:
    """A row as text; what is null, and text within text, as elsewhere."""
    known = {name: json.loads(value) if str(value).startswith("[") else value for name, value in row.items()}
    return json.dumps({name: value for name, value in known.items() if value is not None}, sort_keys=True)


def stored(folder: Path) -> StoredPartition:
    """A directory as if it was in a store."""
    files = {
        path.name: FoundFile(f"file://{path}", None, path.stat().st_size, url="file:///") for path in folder.iterdir()
    }
    return StoredPartition("t", 0, Folder(f"{folder}/", folder.name, dict.fromkeys(files, bytes)), files)


def test_of_several_brokers_in_a_store_the_same_copies_count(recorded: Recorded) -> None:
    """Those of the last leaders, by the cluster's metadata, of the offsets topic and of others; and all is said."""
    folder = recorded("kafka-4.3-three")
    paths = [str(path) for copy in ("broker-3", "broker-1", "broker-2") for path in data_directories(folder, copy)]
    with ExitStack() as stack:
        finder = Finder((), stack)
        found = find_logs([f"local://{path}" for path in paths], stack, finder=finder)
        here, opened = stack.enter_context(open_logs(paths)), DiskLogs([], Dumps(None), finder, stack, found.absent)
        assert [file.path.removeprefix("local://") for log in found.logs for file in log.files] == [
            segment.file for log in here.logs for segment in log.segments
        ]
        for log, expected in zip(found.logs, here.logs, strict=True):
            assert [note.replace("local://", "") for note in log.notes] == list(expected.notes)
            assert log.checkpoints == expected.checkpoints
        assert opened.topic_ids == here.topic_ids
        told = []
        for disk_logs in (opened, here):
            partitions, clusters = disk_logs.user_partitions, disk_logs.clusters
            logs = CopiedLogs(partitions, leader_copies(partitions, lambda: clusters.metadata))  # noqa: B023
            places = sorted((one.topic, one.partition) for one in partitions)
            ends = [str(logs.ends(*place)).replace("local://", "") for place in places]
            told.append((places, ends, [note.replace("local://", "") for note in logs.notes], logs.of_leaders))
        assert told[0] == told[1]


def test_in_a_store_leader_epochs_decide_and_other_topics_are_refused(recorded: Recorded, tmp_path: Path) -> None:
    old = {"leader_epoch": 4}
    partition(tmp_path / "a", 3, {name(0): batch(0, **old) + batch(1, **old) + batch(2, **old)})
    noted = {"leader-epoch-checkpoint": b"0\n1\n5 2\n"}
    partition(tmp_path / "b", 3, {name(0): batch(0, **old) + batch(1, **old), **noted})
    one, other = data_directories(recorded(WHOLE), "running")[0], data_directories(recorded(OPEN), "running")[0]
    with ExitStack() as stack:
        (log,) = find_logs([f"local://{tmp_path}"], stack).logs
        assert [file.path for file in log.files] == [f"local://{tmp_path}/b/__consumer_offsets-3/{name(0)}"]
        with pytest.raises(InputError, match="folders of 2 topics, and no replicas of one"):
            find_logs([f"local://{one}", f"local://{other}"], stack)


def harmed(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :]


@pytest.mark.parametrize("harm", [None, 70, -20, -100, 5])
def test_little_is_read_of_a_log_in_a_store(harm: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two segments the last batch, and what dates the offsets that are asked about."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    for base in (0, 9000):
        made = batches(base, 3000)
        raw = b"".join(made)
        raw = raw if harm is None else harmed(raw, harm % len(raw))
        (folder / f"{base:020}.log").write_bytes(raw)
        (folder / f"{base:020}.index").write_bytes(index_of(made, 3, 40))
    read = []
    read_at = FoundFile.read_at

    def counted(file: FoundFile, position: int, size: int) -> bytes:
        read.append(size)
        return read_at(file, position, size)

    monkeypatch.setattr(FoundFile, "read_at", counted)
    for asked in ([], [4, 8000], [17_999], [9001, 18_000], list(range(0, 18_000, 7))):
        read.clear()
        found = find_log_ends(stored(folder), dating=asked)
        assert found is not None
        assert found == find_log_ends(UserPartition("t", 0, folder, {}), dating=asked)
        if harm is None and len(asked) < 3:
            assert sum(read) <= (2 + 3 * len(asked)) * 2 * BLOCK_BYTES
    assert found.log_end_offset == 18_000 or harm is not None


def test_partitions_in_a_store_wait_for_the_network_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No index is read before all are asked for."""
    folders = [tmp_path / f"t-{number}" for number in range(4)]
    for folder in folders:
        folder.mkdir()
        made = batches(0, 300)
        (folder / f"{0:020}.log").write_bytes(b"".join(made))
        (folder / f"{0:020}.index").write_bytes(index_of(made, 3, 40))
    together = Barrier(len(folders), timeout=20)
    read_at = FoundFile.read_at

    def waiting(file: FoundFile, position: int, size: int) -> bytes:
        if file.path.endswith(".index"):
            together.wait()
        return read_at(file, position, size)

    monkeypatch.setattr(FoundFile, "read_at", waiting)
    with ThreadPoolExecutor(len(folders)) as pool:
        found = list(pool.map(find_log_ends, map(stored, folders)))
    assert [ends.log_end_offset for ends in found if ends is not None] == [900] * 4
