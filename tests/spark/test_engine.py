"""``--engine spark``: commands say what this machine's engine says, in any number of pieces."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks.generate import Options, generate
from cli.main import COMMANDS, READS_LOGS
from cli.main import main as offsets_log
from offsets_log.columnar.folds.writers import PER
from spark_jobs import jobs
from spark_jobs.options import SourceOptions
from spark_jobs.pieces import iter_tables
from spark_jobs.source import plan_reading
from tests.builders import TIME, LogBuilder
from tests.spark.conftest import words_of

Recording = Callable[[str], Path]
NOW = ("--now", "2026-12-24")
QUESTIONS: dict[str, tuple[str, ...]] = {
    "compact": ("compact", "--unstable", "--orphans"),
    "rebuild": ("rebuild", "--expand"),
    "rebuild-members": ("rebuild", "--table", "members", "-g", "*a*"),
    "groups": ("groups", *NOW),
    "groups-stale": ("groups", *NOW, "--stale", "1d", "-o", "table"),
    "expire": ("expire", *NOW, "-t", "*e*"),
    "diff": ("diff", "--from-offset", "60", "--why"),
    "diff-members": ("diff", "--from-offset", "60", "--table", "members"),
    "info": ("info",),
    "info-page": ("info", "-o", "table", "-g", "*e*", "-t", "*s*"),
    "info-until": ("info", "--until-offset", "100", "-p", "0", "-p", "1"),
    "top": ("top", "--by", "garbage"),
    "top-topic": ("top", "--per", "topic", "--by", "noop"),
    "top-partition": ("top", "--per", "partition", "--limit", "30", "-t", "*s*"),
    "top-hour": ("top", "--per", "hour", "--by", "rate", "-g", "*a*"),
    "top-offsets-partition": ("top", "--per", "offsets_partition", "--by", "records"),
    "top-client": ("top", "--per", "client"),
    "check": ("check",),
    "decode": ("decode", "-g", "*a*", "-o", "csv"),
    "dump-log": ("decode", "--as", "dump-log"),
    "history": ("history", "-g", "*"),
    "rebalances": ("rebalances", "--verify"),
}


def run(question: tuple[str, ...], log: Path, *more: str) -> Result:
    command, *rest = question
    return CliRunner().invoke(offsets_log, [command, str(log), *rest, *more], catch_exceptions=False)


@pytest.fixture(autouse=True)
def many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PIECES_PER_CORE", 6)


def damaged(log: Path) -> None:
    """Bytes changed in the middle of files, one cut, one with zeros behind."""
    files = sorted(path for path in log.glob("*/*.log") if path.stat().st_size > 1000)
    for number, path in enumerate(files):
        data = bytearray(path.read_bytes())
        if number % 3 == 0:
            data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    files[-1].write_bytes(files[-1].read_bytes()[:-30])
    files[0].write_bytes(files[0].read_bytes() + bytes(4096))


def of_recording(name: str, *, harm: bool = False) -> Callable[[Recording, Path], Path]:
    def made(recording: Recording, folder: Path) -> Path:
        shutil.copytree(recording(name) / "log", folder / "log")
        if harm:
            damaged(folder / "log")
        return folder / "log"

    return made


def of_generator(
    *, harm: bool, size_bytes: int = 1 << 19, segment_bytes: int = 30_000
) -> Callable[[Recording, Path], Path]:  # fmt: skip
    def made(recording: Recording, folder: Path) -> Path:
        options = Options(
            bytes=size_bytes, groups=30, partitions=6, transactions=0.2, tombstones=0.05, offsets_partitions=2,
            segment_bytes=segment_bytes, codec="lz4",
        )  # fmt: skip
        generate(folder / "log", options)
        if harm:
            damaged(folder / "log")
        return folder / "log"

    return made


LOGS: dict[str, Callable[[Recording, Path], Path]] = {
    "damaged": of_recording("kafka-4.3-mixed", harm=True),
    "generated": of_generator(harm=True),
    "modern-groups": of_recording("kafka-4.3-modern-groups"),
    "lifetime": of_recording("kafka-lifetime"),
}
SOME = ("rebuild", "groups", "diff", "info", "top")
ASKED_LITTLE = ("damaged", "modern-groups", "lifetime")
"""Logs of which only that is asked."""


@pytest.fixture(scope="module", params=LOGS)
def log(request: pytest.FixtureRequest, recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return LOGS[request.param](recording, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_of_this_machine(name: str, log: Path, spark: Any) -> None:
    if log.parent.name.startswith(ASKED_LITTLE) and name not in SOME:
        pytest.skip("asked of the other logs")
    here, there = run(QUESTIONS[name], log), run(QUESTIONS[name], log, "--engine", "spark")
    assert there.stdout == here.stdout
    assert words_of(there.stderr) == words_of(here.stderr)
    assert there.exit_code == here.exit_code


def test_rescued_files(log: Path, spark: Any, tmp_path: Path) -> None:
    found = []
    for engine in ("local", "spark"):
        to = tmp_path / engine / "rescued"
        to.parent.mkdir()
        result = run(("rescue",), log, "--to", str(to), "--engine", engine)
        files = {str(path.relative_to(to)): path.read_bytes() for path in to.rglob("*") if path.is_file()}
        found.append((result.exit_code, words_of(result.stderr.replace(str(to), "")), files))
    assert found[0] == found[1]


def where(log: Path, *more: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(offsets_log, ["where", "--of", str(log), *more], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def test_groups_of_a_lost_directory(log: Path, spark: Any) -> None:
    assert where(log, "--engine", "spark") == where(log)


def reported(log: Path, to: Path, *more: str) -> tuple[int, list[str], Any]:
    """The page's document, and what was said."""
    result = run(("report",), log, "--to", str(to), *more)
    document = json.loads(re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", to.read_text(), re.S)[1])
    del document["about"]["made_ms"]
    return result.exit_code, words_of(result.stderr), document


def test_the_same_page(log: Path, spark: Any, tmp_path: Path) -> None:
    if log.parent.name.startswith(("damaged", "lifetime")):
        pytest.skip("asked of the other logs")
    assert reported(log, tmp_path / "page", "--engine", "spark") == reported(log, tmp_path / "page")


def test_every_command_is_asked() -> None:
    asked = {question[0] for question in QUESTIONS.values()}
    assert asked | {"rescue", "where", "report", "clean", "translate"} == set(
        READS_LOGS
    )  # see `test_clean`, `test_translate`
    commands = {name: importlib.import_module(module).command for name, module in COMMANDS.items()}
    engines = {name for name, command in commands.items() if any(it.name == "engine" for it in command.params)}
    assert engines == set(READS_LOGS)


def test_what_else_is_refused(spark: Any, tmp_path: Path) -> None:
    for more, words in (
        (("--engine", "spark", "--as-broker"), "--as-broker reads files beside the segments"),
        (("--engine", "spark", "--input-format", "kcat"), "not --input-format kcat"),
        (("--master", "local[2]"), "--master is Spark's"),
    ):
        result = run(("rebuild",), tmp_path, *more)
        assert (result.exit_code, words in result.output) == (2, True)


def shuffled(log: Path, **how: Any) -> int:
    """Bytes of all partial rows of a log in four pieces."""
    reading = SourceOptions(paths=(str(log),), level="partials", pieces=4, **how)
    return sum(table.nbytes for piece in plan_reading(reading) for table in iter_tables(piece, reading))


def test_what_is_shuffled_grows_with_keys_and_not_with_records(tmp_path: Path) -> None:
    for name, size in (("small", 1 << 20), ("large", 4 << 20)):
        generate(tmp_path / name, Options(bytes=size, groups=20, partitions=4, transactions=0.1))
    for how in ({"survey": True}, {"per": PER["group"]}, {"per": PER["topic"]}):
        small, large = (shuffled(tmp_path / name, **how) for name in ("small", "large"))
        assert large < 1.5 * small


def test_what_a_bound_by_time_leaves_out(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The header of one batch in the middle is of a clock that jumped; pieces tell together what one machine tells."""
    monkeypatch.setattr(jobs, "PIECES_PER_CORE", 3)
    builder = LogBuilder()
    for number in range(400):
        builder.add((b"\x00\x00", b""), times=(TIME + (10**7 if number in (150, 300) else number),))
    folder = tmp_path / "__consumer_offsets-3"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"".join(builder.batches))
    for bounds in (["--until-time", str(TIME + 350)], ["--until-time", str(TIME + 350), "--until-offset", "200"]):
        here, there = (run(("info", *bounds), tmp_path, *engine).stderr for engine in ([], ["--engine", "spark"]))
        assert words_of(there) == words_of(here)
        assert "is read only below record offset 150, " in there
        assert ("; 199 later batches, " if len(bounds) == 2 else "; 49 later batches, ") in there
