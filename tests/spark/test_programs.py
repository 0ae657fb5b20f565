"""The jobs as programs, damage, filters, inputs of other kinds, a store in the network, the sample."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from benchmarks.generate import Options, generate
from offsets_log_cli.main import main as offsets_log
from spark_jobs.__main__ import main as spark_jobs_main
from spark_jobs.options import parse
from spark_jobs.session import DAEMON
from tests.conftest import BulkFrom
from tests.spark.conftest import submit_args
from tests.spark.tasks import in_process
from tests.stores.servers import s3_server
from tools.sessions import blocks

__all__ = ["in_process"]

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "samples" / "kafka-4.3-mixed" / "log"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(spark_jobs_main, list(arguments), catch_exceptions=False)


def local_compact(folder: Path, to: Path) -> pa.Table:
    result = CliRunner().invoke(offsets_log, ["compact", str(folder), "-o", "parquet", "--to", str(to), "-q"])
    assert result.exit_code in (0, 3)
    return pq.read_table(to)


def in_order(table: pa.Table) -> pa.Table:
    """A file for each partition is in the order of its keys; all of them together are in no order."""
    return table.sort_by([(name, "ascending") for name in ("group", "topic", "partition", "offsets_partition")])


def test_compact_writes_its_rows_and_nothing_else(spark: Any, tmp_path: Path) -> None:
    result = run("compact", "--input", str(SAMPLE), "--output", str(tmp_path / "offsets"))
    assert result.exit_code == 0, result.output
    assert "129 offsets, 4 partitions; by the rules of Kafka 4" in result.output
    assert all(path.suffix == ".parquet" for path in (tmp_path / "offsets").glob("[!.]*"))
    assert in_order(pq.read_table(tmp_path / "offsets")).equals(local_compact(SAMPLE, tmp_path / "local.parquet"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["local.parquet", "offsets"]
    again = run("compact", "--input", str(SAMPLE), "--output", str(tmp_path / "offsets"))
    assert again.exit_code == 1
    assert "exists and is not an empty directory" in again.output


def test_rebuild_and_replay_write_tables(in_process: None, tmp_path: Path) -> None:
    assert run("rebuild", "--input", str(SAMPLE), "--output", str(tmp_path / "memory")).exit_code == 0
    names = {path.name for path in (tmp_path / "memory").iterdir()}
    assert names == {"groups", "members", "offsets", "pending", "orphans", "loads"}
    assert pq.read_table(tmp_path / "memory" / "groups").num_rows == 34
    assert run("replay", "--input", str(SAMPLE), "--output", str(tmp_path / "events")).exit_code == 0
    assert pq.read_table(tmp_path / "events").num_rows == 599


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many segments, one of them with a byte of a batch in its middle changed."""
    folder = tmp_path_factory.mktemp("damaged") / "log"
    generate(folder, Options(bytes=2_000_000, groups=20, segment_bytes=200_000))
    path = sorted(folder.glob("*/*.log"))[4]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    return folder


def test_a_corrupt_segment_among_many(damaged: Path, in_process: None, tmp_path: Path) -> None:
    to = tmp_path / "offsets"
    result = run("compact", "--input", str(damaged), "--output", str(to))
    assert result.exit_code == 3, result.output
    assert "not everything could be read: 1 corrupt, 0 unsupported; the level problems names" in result.output
    assert in_order(pq.read_table(to)).equals(local_compact(damaged, tmp_path / "local.parquet"))
    strict = run("compact", "--input", str(damaged), "--output", str(tmp_path / "none"), "--strict")
    assert strict.exit_code == 1
    assert "checksum" in strict.output
    assert not (tmp_path / "none").exists()


def test_commands_are_no_programs() -> None:
    help_text = run("--help").output
    assert all(f"\n  {name} " in help_text for name in ("compact", "rebuild", "replay", "clean", "follow"))
    assert run("history", str(SAMPLE), "-g", "*").exit_code == 2


def test_errors_are_one_line(spark: Any, tmp_path: Path) -> None:
    missing = run("compact", "--input", str(tmp_path / "none"), "--output", str(tmp_path / "offsets"))
    assert missing.exit_code == 1
    assert missing.output.strip().endswith("no such file or directory")
    option = run("compact", "--input", str(SAMPLE), "--output", str(tmp_path / "o"), "--option", "colour=red")
    assert option.exit_code == 1
    assert "there is no option 'colour'" in option.output
    assert run("compact", "--input", str(SAMPLE)).exit_code == 2


def test_a_dump_is_no_segment(in_process: None, tmp_path: Path) -> None:
    """Its bytes would be read as damage."""
    dump = tmp_path / "events.jsonl"
    CliRunner().invoke(offsets_log, ["decode", str(SAMPLE), "-o", "jsonl", "--to", str(dump), "-q"])
    assert dump.stat().st_size
    result = run("compact", "--input", str(dump), "--output", str(tmp_path / "offsets"))
    assert (result.exit_code, "this is a dump, not segments" in result.output) == (1, True)


def test_a_log_that_is_cut_on_spark(spark: Any, damaged: Path, tmp_path: Path) -> None:
    words = ["--input", str(damaged), "--option", "cut_bytes=500k", "--output", str(tmp_path / "offsets")]
    assert run("compact", *words).exit_code == 3
    assert in_order(pq.read_table(tmp_path / "offsets")).equals(local_compact(damaged, tmp_path / "local.parquet"))


@pytest.mark.parametrize("is_vectorized", ["true", "false"])
def test_both_of_sparks_readers_read_what_decode_writes_in_bulk(
    spark: Any, is_vectorized: str, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    bulk_from(0)
    events = tmp_path / "events"
    result = CliRunner().invoke(offsets_log, ["decode", str(SAMPLE), "-o", "parquet", "--to", str(events), "-q"])
    assert result.exit_code == 0
    order = ["offsets_partition", "record_offset"]
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", is_vectorized)
    try:
        rows = [row.asDict() for row in spark.read.parquet(str(events)).orderBy(*order).collect()]
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    expected = pq.read_table(events).sort_by([(name, "ascending") for name in order]).to_pylist()
    assert len(rows) > 500
    assert [{**row, **_as_bytes(row)} for row in rows] == expected
    groups = {row["group"] for row in expected} - {None}
    for group in sorted(groups)[:3]:
        found = spark.read.parquet(str(events)).where(f"`group` = '{group}' and record_offset >= 0").count()
        assert found == sum(row["group"] == group for row in expected)


def _as_bytes(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if row[name] is None else bytes(row[name]) for name in ("key", "value")}


def test_a_log_that_is_cut_is_joined_from_its_pieces(in_process: None, damaged: Path, tmp_path: Path) -> None:
    """Damage, tails and all are told as of one that is not."""
    words = ["--input", str(damaged), "--option", "cut_bytes=300k"]
    result = run("compact", *words, "--output", str(tmp_path / "offsets"))
    assert result.exit_code == 3, result.output
    assert "not everything could be read: 1 corrupt, 0 unsupported" in result.output
    assert in_order(pq.read_table(tmp_path / "offsets")).equals(local_compact(damaged, tmp_path / "local.parquet"))
    for more, to in ((words, "cut"), (words[:2], "whole")):
        assert run("rebuild", *more, "--output", str(tmp_path / to)).exit_code == 3
    tables = ("groups", "members", "offsets", "pending", "orphans", "loads")
    cut, whole = ({name: pq.read_table(tmp_path / to / name).to_pylist() for name in tables} for to in ("cut", "whole"))
    assert cut == whole
    assert whole["groups"]


def test_large_and_small_logs_of_one_run(in_process: None, damaged: Path, tmp_path: Path) -> None:
    """Each log's rows are in the file of its number, whichever way they came."""
    data = tmp_path / "data"
    shutil.copytree(damaged, data)
    for path in SAMPLE.glob("__consumer_offsets-*"):
        if path.name != "__consumer_offsets-0":
            shutil.copytree(path, data / path.name)
    for to, more in (("cut", ["--option", "cut_bytes=300k"]), ("whole", [])):
        assert run("rebuild", "--input", str(data), "--output", str(tmp_path / to), *more).exit_code == 3
    found = {
        to: {
            path.relative_to(tmp_path / to): pq.read_table(path).to_pylist()
            for path in (tmp_path / to).rglob("*.parquet")
        }
        for to in ("cut", "whole")
    }
    assert found["cut"] == found["whole"]
    assert len({row["offsets_partition"] for row in pq.read_table(tmp_path / "cut" / "loads").to_pylist()}) > 2


def test_times_of_options() -> None:
    expected = 1_795_239_380_000
    for text in (str(expected), "2026-11-21T05:36:20Z", "2026-11-21 05:36:20", "2026-11-21T06:36:20+01:00"):
        assert parse({"path": "a", "until_time": text}).until_time == expected, text


def test_the_documentation_on_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    program, _ = blocks(ROOT / "docs" / "spark.md", "py")
    exec(program, {})
    queries = blocks(ROOT / "docs" / "spark.md", "sql")
    furthest, _, history = (spark.sql(query).collect() for query in queries)
    assert {row["topic"] for row in furthest} >= {"metrics-events"}
    assert {row["group"] for row in history} == {row["group"] for row in history if row["group"].startswith("tx-")}
    assert any(row["change"] == "new" for row in history)
    spark.catalog.dropTempView("history")


def test_the_sample_runs(spark: Any) -> None:
    settings = submit_args({"spark.sql.shuffle.partitions": "2", DAEMON: "spark_jobs.daemon"})
    done = subprocess.run(
        [sys.executable, "samples/top_committers.py", "samples/kafka-4.3-mixed/log"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_SUBMIT_ARGS": settings},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Stable" in done.stdout


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """An S3 server with the sample in it."""
    import s3fs

    with s3_server() as (_, port):
        options = {"key": "k", "secret": "s", "endpoint_url": f"http://127.0.0.1:{port}"}
        store = s3fs.S3FileSystem(**options)
        store.mkdir("backup")
        for path in SAMPLE.rglob("*"):
            if path.is_file():
                store.put_file(str(path), f"backup/{path.relative_to(SAMPLE)}")
        yield options


def test_a_store_in_the_network(bucket: dict[str, str], in_process: None, tmp_path: Path) -> None:
    expected = local_compact(SAMPLE, tmp_path / "local.parquet")
    by_fsspec = ["s3://backup", "--option", f"storage_options={json.dumps(bucket)}"]
    endpoint = bucket["endpoint_url"].removeprefix("http://")
    by_pyarrow = [f"s3://k:s@backup?scheme=http&endpoint_override={endpoint.replace(':', '%3A')}&region=us-east-1"]
    for number, given in enumerate((by_fsspec, by_pyarrow)):
        result = run("compact", "--output", str(tmp_path / str(number)), "--input", *given)
        assert result.exit_code == 0, result.output
        assert in_order(pq.read_table(tmp_path / str(number))).equals(expected)
