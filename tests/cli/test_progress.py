"""How far a long run is, on standard error of a pipe and of a terminal."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsets_log_cli import progress
from offsets_log_cli.main import main
from tests.conftest import NEVER, BulkFrom

SAMPLE = Path(__file__).parents[2] / "samples" / "kafka-4.3-mixed" / "log"


EVERY_S = progress.LINE_EVERY_S


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def as_it_is(no_word_of_how_far: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", EVERY_S)


def test_a_line_every_ten_seconds_says_how_far_of_how_much() -> None:
    assert EVERY_S == 10
    clock, said = Clock(), list[str]()
    lines = progress.Lines(80_000_000, said.append, clock)
    for _ in range(60):
        clock.now_s += 1
        lines.advance(1_000_000)
    assert said == [f"read {megabytes}.0 of 80.0 MB, {megabytes * 100 // 80} %" for megabytes in range(10, 61, 10)]
    clock.now_s += 60
    lines.advance(10**12)
    assert said[6:] == ["read 80.0 of 80.0 MB, 100 %"]


def test_threads_count_together() -> None:
    clock, said = Clock(), list[str]()
    lines = progress.Lines(8_000_000, said.append, clock)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lines.advance, [1000] * 7999))
    clock.now_s += 10
    lines.advance(1000)
    assert said == ["read 8.0 of 8.0 MB, 100 %"]


@pytest.mark.parametrize("least_bytes", [0, NEVER], ids=["bulk", "one by one"])
@pytest.mark.parametrize(
    ("options", "is_told"), [((), True), (("--progress",), True), (("-q",), False), (("--no-progress",), False)]
)
def test_in_a_pipe(
    options: tuple[str, ...], is_told: bool, least_bytes: int, monkeypatch: pytest.MonkeyPatch, bulk_from: BulkFrom
) -> None:
    """As if each piece that is read took ten seconds."""
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    bulk_from(least_bytes)
    result = CliRunner().invoke(main, ["compact", str(SAMPLE), *options], catch_exceptions=False)
    lines = [line for line in result.stderr.split("\n") if line.startswith("read ")]
    assert bool(lines) == is_told
    assert not is_told or lines[-1].endswith(" MB, 100 %")
    assert "MB" not in result.stdout


@pytest.mark.parametrize("least_bytes", [0, NEVER], ids=["bulk", "one by one"])
def test_the_comparing_of_copies_is_work_too(
    least_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bulk_from: BulkFrom
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    bulk_from(least_bytes)
    for broker in ("one", "two"):
        shutil.copytree(SAMPLE, tmp_path / broker)
    result = CliRunner().invoke(main, ["compact", str(tmp_path)], catch_exceptions=False)
    lines = [line for line in result.stderr.split("\n") if line.startswith("compared ")]
    assert len(lines) > 1
    assert lines[-1].endswith(" MB, 100 %")


@pytest.mark.parametrize("options", [("--progress",), ()], ids=["bar", "small"])
def test_on_a_terminal_there_is_no_line(options: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    script = (
        "from offsets_log_cli import progress; progress.LINE_EVERY_S = 0.0; "
        "from offsets_log_cli.main import main; main()"
    )
    command = [sys.executable, "-c", script, "compact", str(SAMPLE), *options]
    with os.fdopen(ours, "rb", buffering=0) as screen:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, check=True)
        os.close(theirs)
        seen = b""
        while chunk := _read(screen.fileno()):
            seen += chunk
    assert done.returncode == 0
    assert b", 4 partitions" in seen
    assert b"read 0." not in seen


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how Linux tells the end of a terminal
        return b""
