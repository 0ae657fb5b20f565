"""Outputs in bulk appear whole or not at all: on a full disk, and when the process is killed at any moment."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.generate import Options, generate
from tests.cli.runs import run
from tests.waiting import PATIENCE_S

COMMANDS = {
    "compact": ("compact", "offsets.parquet"),
    "decode": ("decode", "events"),
}
LIMIT_BYTES = 20_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a size that is read in bulk; the kernels for it are kept."""
    directory = tmp_path_factory.mktemp("generated")
    generate(directory, Options(bytes=8_000_000, seed=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("offsets_log.columnar.large.PLAIN_BYTES_PER_S", 0)
        for name, output in COMMANDS.values():
            run(name, directory, "-o", "parquet", "--to", tmp_path_factory.mktemp("kept") / output)
    return directory


def start(command: str, log: Path, to: Path, **more: object) -> subprocess.Popen[str]:
    name, output = COMMANDS[command]
    arguments = [
        sys.executable,
        "-c",
        "from offsets_log_cli.main import run; run()",
        name,
        log,
        "-o",
        "parquet",
        "--to",
        to / output,
    ]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload,no-any-return]


def rows_of(path: Path) -> int:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return sum(pq.read_table(file).num_rows for file in files)


@pytest.mark.parametrize("command", COMMANDS)
def test_full_disk(command: str, log: Path, tmp_path: Path) -> None:
    def no_large_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))

    elsewhere = tmp_path / "full"
    elsewhere.mkdir()
    process = start(command, log, elsewhere, preexec_fn=no_large_files)
    _, words = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    (told,) = [line for line in words.splitlines() if "error" in line]
    assert str(elsewhere / COMMANDS[command][1]) in told
    assert "File too large" in told
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_killed(command: str, log: Path, tmp_path: Path) -> None:
    begin = time.monotonic()
    start(command, log, tmp_path).communicate()
    duration = time.monotonic() - begin
    whole = rows_of(tmp_path / COMMANDS[command][1])
    dice = random.Random(command)
    for i in range(5):
        to = tmp_path / str(i)
        to.mkdir()
        process = start(command, log, to)
        time.sleep(duration * dice.uniform(0.3, 1.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        output = to / COMMANDS[command][1]
        assert not output.exists() or rows_of(output) == whole


def test_a_file_cut_off_while_it_is_read_is_one_error(tmp_path: Path) -> None:
    """Its pages are gone then, and reading them is no crash without words."""
    generate(tmp_path / "log", Options(bytes=60_000_000, seed=4))
    segment = next((tmp_path / "log").glob("*/*.log"))
    size = segment.stat().st_size
    program = (
        "import os, sys\n"
        "from offsets_log.session import engine\n"
        "begin = engine.Engine.replay_in_bulk\n"
        "def cut(self, *arguments):\n"
        f"    os.truncate({str(segment)!r}, {size // 10})\n"
        "    return begin(self, *arguments)\n"
        "engine.Engine.replay_in_bulk = cut\n"
        "from offsets_log_cli.main import run\n"
        "run()\n"
    )
    arguments = [sys.executable, "-c", program, "compact", tmp_path / "log", "-o", "jsonl", "--to", tmp_path / "out"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cut off while it was read" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()
