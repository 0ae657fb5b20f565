"""Programs and streams on Spark over a store that fails once in twenty requests; this session tries no task twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from benchmarks.generate import Options, generate
from offsets_log_cli.main import main as offsets_log
from spark_jobs.__main__ import main
from tests.spark.streams import answer, table
from tests.stores.servers import Failing, failing_s3_server, s3_url

Store = tuple[str, int, Failing]


@pytest.fixture
def store() -> Iterator[Store]:
    with failing_s3_server(20) as made:
        yield made


@pytest.fixture
def files(store: Store) -> Any:
    import s3fs

    host, port, _ = store
    made = s3fs.S3FileSystem(key="k", secret="secret", endpoint_url=f"http://{host}:{port}", use_listings_cache=False)
    made.mkdir("backup")
    return made


@pytest.fixture
def data(files: Any, store: Store, tmp_path: Path) -> Path:
    """A log of four offsets partitions in many segments, here and in the store, which fails from then on."""
    folder = tmp_path / "data"
    generate(folder, Options(bytes=1_200_000, groups=30, segment_bytes=40_000, offsets_partitions=4, transactions=0.1))
    for path in folder.rglob("*.log"):
        files.put_file(str(path), f"backup/in/{path.relative_to(folder)}")
    store[2].is_failing = True
    return folder


def run(*words: str) -> Result:
    result = CliRunner().invoke(main, [*words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def fetched(files: Any, store: Store, name: str, to: Path) -> Path:
    """A folder of the store, which had to be asked again for it."""
    failing = store[2]
    assert failing.failed > 3
    failing.is_failing = False
    files.get(f"backup/{name}/", f"{to}/", recursive=True)
    failing.is_failing = True
    return to


def test_compact(data: Path, files: Any, store: Store, spark: Any, tmp_path: Path) -> None:
    """From the store, and into it: all of its rows, each once, and nothing else."""
    source, target = (s3_url(*store[:2], f"backup/{name}") for name in ("in", "offsets"))
    run("compact", "--input", source, "--output", target)
    there = pq.read_table(fetched(files, store, "offsets", tmp_path / "offsets")).to_pylist()
    done = CliRunner().invoke(offsets_log, ["compact", str(data), "-o", "jsonl", "-q", "--no-lag"])
    here = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(map(repr, there)) == sorted(map(repr, here)) != []
    assert {path.split("/")[1] for path in files.find("backup")} == {"in", "offsets"}


def test_clean(data: Path, files: Any, store: Store, spark: Any, tmp_path: Path) -> None:
    """Byte by byte as on this machine."""
    now = ["--now", "2100-01-01T00:00:00Z", "--segment-bytes", "40000", "-q"]
    source, target = (s3_url(*store[:2], f"backup/{name}") for name in ("in", "cleaned"))
    run("clean", source, "--to", target, *now)
    fetched(files, store, "cleaned", tmp_path / "there")
    done = CliRunner().invoke(offsets_log, ["clean", str(data), "--to", str(tmp_path / "here"), *now])
    assert done.exit_code == 0, done.output
    here, there = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.log")}
        for folder in (tmp_path / "here", tmp_path / "there")
    )
    assert here == there != {}


def test_follow(data: Path, files: Any, store: Store, spark: Any, tmp_path: Path) -> None:
    """From the store, and into it, in two runs."""
    source, target = (s3_url(*store[:2], f"backup/{name}") for name in ("in", "to"))
    words = ["follow", source, "--to", target, "--checkpoint", str(tmp_path / "checkpoint"), "--available-now"]
    newest = max((data / "__consumer_offsets-1").glob("*.log"))
    key, later = f"backup/in/{newest.relative_to(data)}", newest.read_bytes()
    store[2].is_failing = False
    files.rm_file(key)
    store[2].is_failing = True
    run(*words)
    store[2].is_failing = False
    files.pipe_file(key, later)
    store[2].is_failing = True
    run(*words)
    fetched(files, store, "to", tmp_path / "to")
    for kind, command in (("offsets", "compact"), ("groups", "groups")):
        assert table(tmp_path / "to", kind) == answer(command, data, "modern") != {}
