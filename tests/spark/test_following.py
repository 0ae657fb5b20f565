"""Streams and `follow` on Spark itself: tables that are what commands say of the same bytes, whoever was killed."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.errors import StreamingQueryException

from spark_jobs.__main__ import main
from spark_jobs.following import ATTEMPTS, TOO_SLOW, FollowOrder, start
from tests.builders import LogBuilder
from tests.spark.streams import answer, grow, replayed, table
from tests.waiting import wait_for
from tools.sessions import blocks

ROOT = Path(__file__).parent.parent.parent
SAMPLE = "samples/kafka-4.3-mixed/log"
TABLES = (("offsets", "compact", "offset_changes"), ("groups", "groups", "group_changes"))


@pytest.fixture
def mixed(recording: Callable[[str], Path]) -> Path:
    return recording("kafka-4.3-mixed") / "log"


def follow(data: Path, folder: Path, *more: str) -> Result:
    """What is there now."""
    command = ["follow", str(data), "--to", f"{folder}/to", "--checkpoint", f"{folder}/checkpoint", "--available-now"]
    return CliRunner().invoke(main, [*command, "--changes", *more])


def check(data: Path, folder: Path) -> None:
    """The tables are those of the same bytes; so are those that all changes lead to."""
    for kind, command, changes in TABLES:
        expected = answer(command, data, "modern")
        assert table(folder / "to", kind) == expected
        assert replayed(folder / "to", changes) == expected


def test_the_documented_stream_has_the_rows_of_a_read(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    _, program = blocks(ROOT / "docs" / "spark.md", "py")
    for _ in range(ATTEMPTS):
        try:
            exec(program.replace('"stream/', f'"{tmp_path}/'), {"spark": spark})
            break
        except StreamingQueryException as error:
            if TOO_SLOW not in str(error):
                raise
    found = spark.read.parquet(f"{tmp_path}/events")
    expected = spark.read.format("offsets_log").option("level", "records").load(SAMPLE)
    assert found.columns == expected.columns
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))


def test_tables_of_a_log_that_grows_is_damaged_and_cut_off(spark: Any, mixed: Path, tmp_path: Path) -> None:
    rng = random.Random(11)
    data = tmp_path / "data"
    growing = grow(mixed, data, rng, steps=1, rolls=1)
    next(growing)
    result = follow(data, tmp_path)
    assert result.exit_code == 0, result.stderr
    for _ in growing:
        pass
    log = max((data / "__consumer_offsets-3").glob("*.log"))
    content = log.read_bytes()
    bad, after = LogBuilder().skip(200).commit(2).commit(3).batches
    log.write_bytes(content + bad[:-1] + b"?" + after)
    result = follow(data, tmp_path)
    assert result.exit_code == 3, result.stderr
    assert f"corrupt: {log}" in result.stderr
    assert "not everything could be read: 1 problem" in result.stderr
    assert "130 offsets, 35 groups; by the rules of Kafka 4\n" in result.stderr
    check(data, tmp_path)
    log.write_bytes(content[:100])
    result = follow(data, tmp_path)
    assert result.exit_code == 1
    assert "another log than the one that was read up to record offset 202" in result.stderr


def workers() -> list[int]:
    """Processes of Python below the daemons of this session: those that plan, and those that run tasks."""
    parents, daemons = {}, set()
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdecimal():
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                if re.search(rb"\0(pyspark|spark_jobs)\.daemon\0", (path / "cmdline").read_bytes()):
                    daemons.add(int(path.name))
        except OSError:
            continue
    java = {pid for pid, parent in parents.items() if parent == os.getpid()}
    return [pid for pid in daemons if parents[pid] in daemons and parents.get(parents[pid]) in java]


def test_workers_that_are_killed(spark: Any, mixed: Path, tmp_path: Path) -> None:
    """Each ends the stream, for this session tries nothing twice; another goes on from its checkpoint."""
    rng = random.Random(12)
    data = tmp_path / "data"
    order = FollowOrder(
        options={"path": str(data), "maxBytesPerTrigger": "20k"},
        to=f"{tmp_path}/to", checkpoint=f"{tmp_path}/checkpoint", every_s=0, with_changes=True,
    )  # fmt: skip
    for _ in grow(mixed, data, rng, steps=1, rolls=1):
        query = start(spark, order)

        def killed_or_done(query: Any = query) -> bool:
            for pid in rng.sample(found := workers(), len(found) and 1):
                os.kill(pid, signal.SIGKILL)
            time.sleep(rng.uniform(0, 1))
            return not query.isActive or bool(query.lastProgress and not query.status["isDataAvailable"])

        wait_for("a killed worker ends the stream, or it has read all", killed_or_done)
        query.stop()
    assert follow(data, tmp_path).exit_code == 0
    check(data, tmp_path)


def test_a_driver_that_is_killed(mixed: Path, spark: Any, tmp_path: Path) -> None:
    """With everything that it has started; this session goes on."""
    command = [
        sys.executable, "-m", "spark_jobs", "follow", str(mixed), "--to", f"{tmp_path}/to", "--checkpoint",
        f"{tmp_path}/checkpoint", "--changes",
        "--trigger", "0", "--option", "maxBytesPerTrigger=20k", "--master", "local[2]",
    ]  # fmt: skip
    words = tmp_path / "words"
    with words.open("wb") as stream:
        driver = subprocess.Popen(command, stderr=stream, start_new_session=True)
    try:
        commits = tmp_path / "checkpoint" / "commits"
        wait_for("a first batch is done", lambda: any(commits.glob("[0-9]*")), of=driver, said=words.read_text)
        time.sleep(random.Random(13).uniform(0, 1))
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert follow(mixed, tmp_path).exit_code == 0
    check(mixed, tmp_path)


def test_what_does_not_belong_together(spark: Any, mixed: Path, tmp_path: Path) -> None:
    """None of this begins a stream."""
    to, checkpoint = tmp_path / "to", tmp_path / "checkpoint"
    to.mkdir()
    (to / "other").touch()
    assert "exists and is not an empty directory" in follow(mixed, tmp_path).stderr
    (to / "other").unlink()
    checkpoint.mkdir()
    (checkpoint / "other").touch()
    assert "is not of these tables" in follow(mixed, tmp_path).stderr
    about = {"checkpoint": str(checkpoint), "profile": "classic", "kafka": None}
    (to / "_follow.json").write_text(json.dumps(about))
    assert "begun with profile classic, not modern" in follow(mixed, tmp_path).stderr
    (to / "_follow.json").write_text(json.dumps(about | {"profile": "modern", "checkpoint": "b"}))
    assert f"begun with checkpoint b, not {checkpoint}" in follow(mixed, tmp_path).stderr
    (to / "_follow.json").write_text("{}")
    assert "not written by follow" in follow(mixed, tmp_path).stderr
    (to / "_follow.json").write_text(json.dumps(about | {"profile": "modern"}))
    (checkpoint / "other").unlink()
    (to / "offsets").mkdir()
    (to / "offsets/00000.parquet").touch()
    assert "the checkpoint of these tables is gone" in follow(mixed, tmp_path).stderr
    for one, other in (("in/to", "checkpoint"), ("to", "in"), ("to", "to"), ("to", "to/checkpoint")):
        told = ["follow", f"{tmp_path}/in", "--to", f"{tmp_path}/{one}", "--checkpoint", f"{tmp_path}/{other}"]
        assert "is inside of" in CliRunner().invoke(main, told).stderr
    assert "option group does not go with follow" in follow(mixed, tmp_path, "--option", "group=a").stderr
    assert CliRunner().invoke(main, ["follow", "--to", "a", "--checkpoint", "b"]).exit_code == 2
