"""``translate --engine spark`` tells and writes what this machine does, each partition in a task of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import cli.spark
from cli.main import main
from offsets_log.disk.translating import Question
from offsets_log.messages.mirror_maker import OFFSET_SYNCS
from spark_jobs.__main__ import main as spark_jobs_main
from tests.cli.test_translate import RECORDS, SHIFT, write_log, write_source
from tests.spark.test_clean import InProcess
from tests.translation.logs import Said, with_header
from tests.translation.test_offset_syncs import build

Answer = tuple[int, list[str], dict[str, str]]


class TasksInProcess(InProcess):
    """Questions and answers go through pickles, and are answered in another directory in any order."""

    def run_each(self, works: Sequence[Question[Any]]) -> list[Any]:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir("/")
            return self.run(works)


def translated(words: Sequence[str | Path], to: Path, program: Any = main) -> Answer:
    kept = to.with_suffix(".damaged")
    arguments = ["translate", *map(str, words), "--to", str(to), "--quarantine", str(kept)]
    result = CliRunner().invoke(program, arguments, catch_exceptions=False)
    files = {str(path.relative_to(to)): path.read_text() for path in to.rglob("*") if path.is_file()}
    files["damaged"] = kept.read_text()
    return (
        result.exit_code,
        result.stderr.replace(str(to), "TO").splitlines(),
        {name: text.replace(str(to), "TO") for name, text in files.items()},
    )


def damaged(folder: Path, part: float) -> None:
    (file,) = folder.glob("*.log")
    data = bytearray(file.read_bytes())
    data[int(len(data) * part)] ^= 1
    file.write_bytes(data)


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A pair of clusters in which offsets are told in every way or not at all, as arguments; tasks run elsewhere."""
    monkeypatch.chdir(tmp_path)
    places = {"orders": 42, "broken": 50, "headed": 17, "synced": 30, "other": 5, "gone": 1, "mapped": 60, "unread": 4}
    committed = {(f"{topic}-{at}", topic, n): at + n for topic, at in places.items() for n in (0, 1)}
    source, target = write_source(Path("source"), committed), Path("target")
    headed = [with_header(one, "x-original-offset", b"%d" % at) for at, one in enumerate(RECORDS)]
    for n in (0, 1):
        write_log(source / f"orders-{n}", RECORDS)
        write_log(target / f"orders-{n}", RECORDS, SHIFT + n, batch=7, codec="lz4")
        damaged(write_log(source / f"broken-{n}", RECORDS), 0.4)
        damaged(write_log(target / f"broken-{n}", RECORDS, SHIFT), 0.55)
        damaged(write_log(target / f"headed-{n}", headed, SHIFT), 0.5)
        write_log(target / f"synced-{n}", RECORDS, SHIFT)
        write_log(source / f"other-{n}", RECORDS)
        write_log(target / f"other-{n}", [Said(5, b"x", b"other")] * 9)
        write_log(target / f"mapped-{n}", RECORDS)
        write_log(source / f"unread-{n}", RECORDS)
        unread = write_log(target / f"unread-{n}", RECORDS)
        write_log(unread, RECORDS, 1000)
        (unread / f"{500:020}.log").mkdir()
    syncs = [
        (number, {"topic": "synced", "partition": 0}, {"upstream_offset": at, "downstream_offset": SHIFT + at})
        for number, at in enumerate((0, 90))
    ]
    folder = source / "mm2-offset-syncs.b.internal-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(bytes(build(OFFSET_SYNCS, *syncs).segments[0].buffer))
    Path("map.csv").write_text("topic,partition,source_offset,target_offset\nmapped,0,0,7\nmapped,0,90,97\n")
    return [str(tmp_path / "source"), "--target", "target", "--map", "map.csv", "--partitions", "1", "-v"]


def test_every_way(sides: list[str], tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = translated(sides, tmp_path / "local")
    status, said, files = here
    rows = [json.loads(line) for line in files["translation.jsonl"].splitlines()]
    left_out = [json.loads(line) for line in files["left-out.jsonl"].splitlines()]
    ways = {(row["target_topic"], row["how"]) for row in rows}
    assert ways >= {("orders", "exact"), ("headed", "exact"), ("synced", "by count"), ("mapped", "by count")}
    assert {row["topic"] for row in left_out} == {"synced", "other", "gone", "mapped", "unread"}
    unread = {row["reason"] for row in left_out if row["topic"] == "unread"}
    assert unread == {f"target/unread-0/{500:020}.log: cannot be read: Is a directory"}
    assert status == 3
    assert said[-1].startswith("not everything could be read: 6 corrupt, 0 unsupported")
    assert len(files["damaged"].splitlines()) == 6
    assert translated(sides, tmp_path / "spark", spark_jobs_main) == here
    monkeypatch.setattr(cli.spark, "SparkCluster", lambda spark: TasksInProcess(5))
    assert translated([*sides, "--engine", "spark"], tmp_path / "tasks") == here
