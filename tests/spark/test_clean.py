"""``python -m spark_jobs clean`` writes what one machine writes: files, rows and words, in any number of tasks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click import Command
from click.testing import CliRunner

from benchmarks.generate import Options, generate
from offsets_log.actions.partition_folders import PartitionFolders
from offsets_log.errors import OutputError
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record
from offsets_log_cli.main import main
from spark_jobs.__main__ import main as spark_jobs_main
from tests.builders import TIME
from tests.cleaner.cases import all_cases
from tests.cli.test_clean import options, written
from tests.conftest import BulkFrom
from tests.spark.tasks import in_process
from tests.stores.servers import s3_server

__all__ = ["in_process"]

Answer = tuple[int, str, str, dict[str, tuple[bytes, int]]]
CASES = sorted(all_cases())
SHARES = 4


def cleaned(paths: Sequence[str | Path], to: str | Path, *words: str, program: Command = main) -> Answer:
    """All that is said, and all files with the times of segments; nothing of it is left."""
    result = CliRunner().invoke(
        program, ["clean", *map(str, paths), "--to", str(to), "-o", "jsonl", *words], catch_exceptions=False
    )
    files = {}
    for path in sorted(Path(to).rglob("*")):
        if path.is_file():
            at = path.stat().st_mtime_ns // 1_000_000 if path.suffix == ".log" else 0
            files[str(path.relative_to(to))] = path.read_bytes(), at
    shutil.rmtree(to, ignore_errors=True)
    said = [line for line in result.stderr.splitlines() if not line.startswith("compiling ")]
    return result.exit_code, result.stdout, "\n".join(said).replace(str(to), ""), files


def same(paths: Sequence[str | Path], folder: Path, *words: str) -> Answer:
    """What both say and write."""
    here, there = (cleaned(paths, folder / "to", *words, program=program) for program in (main, spark_jobs_main))
    for ours, expected in zip(there, here, strict=True):
        assert ours == expected
    return here


def case_words(name: str, *, is_limited: bool) -> list[str]:
    words = options(all_cases()[name])
    return [word for word in words if is_limited or not word.startswith("--dedupe")] + ["--shutdown", "clean"]


ONE_OF = 3
"""One of so many recorded rounds is cleaned in tasks each time; local `clean` does all of them."""


@pytest.mark.parametrize("share", range(SHARES))
def test_recorded_rounds_in_tasks(in_process: None, share: int, tmp_path: Path) -> None:
    """A task has the files and their names, and writes the same bytes."""
    for name in CASES[share :: ONE_OF * SHARES]:
        partition = written(all_cases()[name], tmp_path / name)
        same([partition.parent], tmp_path, *case_words(name, is_limited=False))
        if name.startswith("map-full"):
            same([partition.parent], tmp_path, *case_words(name, is_limited=True))


@pytest.mark.parametrize("broker", ["3.7", "3.9"])
def test_recorded_rounds_of_other_releases(in_process: None, broker: str, tmp_path: Path) -> None:
    for name in CASES[::24]:
        partition = written(all_cases()[name], tmp_path / name)
        same([partition.parent], tmp_path, "--broker", broker, *case_words(name, is_limited=False))


def test_recorded_rounds_by_kernels(in_process: None, tmp_path: Path, bulk_from: BulkFrom) -> None:
    bulk_from(0)
    for name in CASES[::16]:
        partition = written(all_cases()[name], tmp_path / name)
        same([partition.parent], tmp_path, *case_words(name, is_limited=False))


@pytest.mark.parametrize("size_from", [0, None])
def test_what_a_broker_recovers_first(
    in_process: None, tmp_path: Path, bulk_from: BulkFrom, size_from: int | None
) -> None:
    """D-2, D-3: without indexes, snapshots and a clean stop; CRCs that are wrong cut the log."""
    if size_from is not None:
        bulk_from(size_from)
    for name in CASES[::20]:
        partition = written(all_cases()[name], tmp_path / name)
        for path in partition.iterdir():
            if path.suffix in (".index", ".snapshot", ".txnindex"):
                path.unlink()
        words = [word for word in case_words(name, is_limited=False) if word not in ("--shutdown", "clean")]
        same([partition.parent], tmp_path, *words, "--shutdown", "unclean")


@pytest.mark.parametrize("size_from", [0, None])
def test_segments_that_overlap(in_process: None, tmp_path: Path, bulk_from: BulkFrom, size_from: int | None) -> None:
    """CL-10: of a key that stands at 8 in one segment and at 5 in the next, Kafka's map has 5."""

    def batch(offset: int, *keys: bytes) -> bytes:
        facts: dict[str, Any] = {"timestamp_ms": TIME, "value": b"value", "headers": ()}
        return build_batch([Record(offset=at, key=key, **facts) for at, key in enumerate(keys, offset)])

    if size_from is not None:
        bulk_from(size_from)
    partition = tmp_path / "log" / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(batch(0, b"k1", b"k2", b"k3") + batch(8, b"k1", b"k4"))
    (partition / f"{5:020}.log").write_bytes(batch(5, b"k1", b"k3") + batch(7, b"k2"))
    (partition / f"{20:020}.log").write_bytes(batch(20, b"k9"))
    _, row, _, _ = same([partition.parent], tmp_path, "--shutdown", "clean")
    assert json.loads(row)["records_after"] == 6


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In groups of a few segments each, with transactions across them."""
    folder = tmp_path_factory.mktemp("log") / "data"
    generate(
        folder,
        Options(bytes=4_500_000, groups=60, partitions=6, transactions=0.2, tombstones=0.05, segment_bytes=300_000),
    )
    return folder


NOW = ("--now", "1800000000000", "--segment-bytes", "1000000")


def test_a_generated_log_in_tasks(in_process: None, log: Path, tmp_path: Path) -> None:
    same([log], tmp_path, *NOW)
    same([log], tmp_path, *NOW, "--first-dirty-offset", "15000", "--broker", "3.9")


def test_on_spark(spark: Any, log: Path, tmp_path: Path) -> None:
    same([log], tmp_path, *NOW)


def test_what_is_refused(tmp_path: Path) -> None:
    for word in ("--deep", "--drop-expired", "--drop-group=a", "--until-offset=7"):
        result = CliRunner().invoke(spark_jobs_main, ["clean", str(tmp_path), "--dry-run", word])
        assert (result.exit_code, "a cluster does a round and no more" in result.stderr) == (2, True)


def test_a_folder_that_is_there_and_one_inside_of_the_input(in_process: None, log: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    for to in (tmp_path / "there", log / "inside"):
        result = CliRunner().invoke(spark_jobs_main, ["clean", str(log), "--to", str(to)])
        assert result.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert not (log / "inside").exists()


@pytest.fixture(scope="module")
def store(log: Path) -> Iterator[tuple[Any, str]]:
    """An S3 server with the log in it, and how its URLs end."""
    import s3fs

    with s3_server() as (host, port):
        files = s3fs.S3FileSystem(key="k", secret="s", endpoint_url=f"http://{host}:{port}")
        files.mkdir("backup")
        for path in log.rglob("*"):
            if path.is_file():
                files.put_file(str(path), f"backup/in/{path.relative_to(log)}")
        yield files, f"?scheme=http&endpoint_override={host}%3A{port}&region=us-east-1"


def test_from_store_to_store(in_process: None, store: tuple[Any, str], log: Path, tmp_path: Path) -> None:
    files, query = store
    source, target = f"s3://k:s@backup/in{query}", f"s3://k:s@backup/out{query}"
    expected = cleaned([log], tmp_path / "local", *NOW)
    told = cleaned([source], target, *NOW, program=spark_jobs_main)
    files.invalidate_cache()
    made = {path.removeprefix("backup/out/"): files.cat_file(path) for path in files.find("backup/out")}
    assert made == {name: data for name, (data, _) in expected[3].items()}
    assert (told[0], told[1]) == (expected[0], expected[1])


def test_a_store_that_is_not_empty_and_a_round_that_ends_badly(
    in_process: None, store: tuple[Any, str], log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, query = store
    before = set(files.find("backup"))
    for to, words in (("in", "not an empty directory"), ("in/sub", "is inside of")):
        result = CliRunner().invoke(spark_jobs_main, [
            "clean", f"s3://k:s@backup/in{query}", "--to", f"s3://k:s@backup/{to}{query}",
        ])  # fmt: skip
        assert (result.exit_code, words in result.stderr or to == "in") == (1, True), result.stderr

    def fails(folders: Any) -> None:
        raise OutputError("full")

    monkeypatch.setattr(PartitionFolders, "write_beside", fails)
    result = CliRunner().invoke(spark_jobs_main, ["clean", str(log), "--to", f"s3://k:s@backup/bad{query}"])
    files.invalidate_cache()
    assert (result.exit_code, set(files.find("backup"))) == (1, before)
