"""Text of all records by commands, in bulk and one by one: the same bytes, words and exit status."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsets_log_cli.main import main
from tests.builders import LogBuilder, record_bytes
from tests.columnar.test_lines import ALL_FORMATS, BROKERS, DAMAGED, EXPANDED, FORMATS
from tests.conftest import DISTINCT, NEVER, BulkFrom, log_directories, unpack_once

BothWays = Callable[..., tuple[int, bytes]]


def asked(form: str) -> tuple[str, ...]:
    return ("--as" if form == "dump-log" else "-o", *form.split())


@pytest.fixture
def both_ways(monkeypatch: pytest.MonkeyPatch, bulk_from: BulkFrom) -> BothWays:
    """What the command says; the same in bulk."""

    def answer(*arguments: str | Path) -> tuple[int, bytes]:
        answers = []
        monkeypatch.setattr("offsets_log.questions.decoded.PART_BYTES", 5000)
        for least_bytes in (NEVER, 0):
            bulk_from(least_bytes)
            done = CliRunner().invoke(main, ["decode", *map(str, arguments), "--threads", "2"], catch_exceptions=False)
            words = [line for line in done.stderr.split("\n") if not line.startswith("compiling for this machine")]
            answers.append((done.exit_code, done.stdout_bytes, words))
        assert answers[0] == answers[1]
        return answers[0][:2]

    return answer


@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Callable[[str], Path], both_ways: BothWays) -> None:
    """As JSON lines, which have all columns, and in another format: these in turn."""
    others = [form for form in ALL_FORMATS if form != "jsonl"]
    for directory in log_directories(recording(name)):
        for form in ("jsonl", others[DISTINCT.index(name) % len(others)]):
            assert both_ways(directory, *asked(form))[1]


FILTERS: Sequence[tuple[str, ...]] = (
    ("-g", "*a*"),
    ("-g", "nobody"),
    ("-t", "*"),
    ("-t", "*metrics*", "-p", "0", "-p", "1"),
    ("--until-offset", "20"),
    ("--until-offset", "1:33", "-g", "*"),
    ("--strict",),
    ("--verbose",),
)


FILTERED = ("kafka-4.3-mixed", "kafka-lifetime", "random-scala")


@pytest.mark.parametrize("filters", FILTERS, ids=" ".join)
@pytest.mark.parametrize("name", FILTERED)
def test_filters_and_bounds(
    name: str, filters: tuple[str, ...], recording: Callable[[str], Path], both_ways: BothWays
) -> None:
    """The formats in turn: what is left out does not depend on them, but lines of batches stay in one of them.

    That one meets every filter, too, on one of the recordings.
    """
    directory = log_directories(recording(name))[0]
    turn = FILTERS.index(filters)
    forms = FORMATS + EXPANDED
    form = "dump-log" if (turn + FILTERED.index(name)) % len(FILTERED) == 0 else forms[turn % len(forms)]
    both_ways(directory, *asked(form), *filters)


def test_time_bounds(recording: Callable[[str], Path], both_ways: BothWays) -> None:
    directory = log_directories(recording("kafka-4.3-mixed"))[0]
    _, everything = both_ways(directory, "-o", "csv")
    times = [int(row.split(b",")[5]) for row in everything.split(b"\n")[1:-1]]
    for time in random.Random(5).sample(times, 3):
        status, shorter = both_ways(directory, "-o", "csv", "--until-time", str(time))
        assert status == 0
        assert len(shorter) <= len(everything)


@pytest.mark.parametrize("turn", [0, 1, 2, 7, 8, 9])
def test_damaged_logs(
    turn: int, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, both_ways: BothWays
) -> None:
    """In three ways in turn: each meets a broker that stopped in order and another."""
    directory = unpack_once(DAMAGED, tmp_path_factory, request) / BROKERS[turn]
    words, expected = (
        (("-o", "jsonl", "--verbose"), 3),
        (("-o", "csv", "--strict"), 1),
        (("--as", "dump-log"), 3),
    )[turn % 3]
    status, _ = both_ways(directory, *words)
    assert status == expected


def test_all_brokers_logs_are_read(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> None:
    assert [*BROKERS] == sorted(
        path.name for path in unpack_once(DAMAGED, tmp_path_factory, request).iterdir() if path.is_dir()
    )


def test_into_a_file(recording: Callable[[str], Path], tmp_path: Path, both_ways: BothWays) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    _, expected = both_ways(log, "-o", "csv")
    both_ways(log, "-o", "csv", "--to", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("dump", ["jsonl", "parquet"])
def test_sources_without_positions(
    dump: str, recording: Callable[[str], Path], tmp_path: Path, both_ways: BothWays
) -> None:
    """What a source does not tell is null."""
    out = tmp_path / f"dump.{dump}"
    written = CliRunner().invoke(
        main, ["decode", str(recording("kafka-4.3-mixed") / "log"), "-o", dump, "--to", str(out)]
    )
    assert written.exit_code == 0
    both_ways(out, "--as", "dump-log")
    status, told = both_ways(out, "-o", "jsonl")
    assert status == 0
    assert b'"position":null' in told


def test_reader_that_goes(tmp_path: Path) -> None:
    """A closed pipe ends a long output in silence."""
    partition = tmp_path / "__consumer_offsets-0"
    partition.mkdir()
    log = LogBuilder()
    record = record_bytes(1, {"group": "g" * 99, "topic": "t" * 99, "partition": 0}, None, 3)
    for _ in range(300):
        log.add(*[record] * 99)
    (partition / f"{0:020}.log").write_bytes(b"".join(log.batches))
    command = [
        sys.executable,
        "-c",
        "from offsets_log_cli.main import run; run()",
        "decode",
        str(partition),
        "-o",
        "jsonl",
        "-q",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"file":')
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_nothing_to_show(tmp_path: Path, both_ways: BothWays) -> None:
    partition = tmp_path / "__consumer_offsets-4"
    partition.mkdir()
    (partition / f"{0:020}.log").touch()
    assert both_ways(partition, "-o", "jsonl") == (0, b"")
    assert both_ways(partition, "-o", "json") == (0, b"[]\n")
    assert both_ways(partition, "-o", "csv")[1].startswith(b"file,offsets_partition,")
