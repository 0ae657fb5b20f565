"""Folders of `clean` and `repair` appear whole or not at all, whenever a run is killed, whatever the disk refuses."""

from __future__ import annotations

import hashlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.generate import Options, generate
from tests.cli.runs import run
from tests.waiting import PATIENCE_S

NOW = ("--now", "2026-12-22T00:00:00Z")
COMMANDS: dict[str, tuple[str, ...]] = {
    "clean": ("clean", *NOW),
    "clean --deep": ("clean", "--deep", *NOW),
    "repair": ("repair",),
}
RUN = "from offsets_log_cli.main import run; run()"
MOMENTS = (
    (None, 0.3),
    (None, 0.6),
    (None, 0.9),
    ("offsets_log.disk.folders.write_file", 1),
    ("offsets_log.disk.folders.write_file", 5),
    ("offsets_log.disk.writer._sync", 3),
    ("pathlib.Path.replace", 1),
)
"""When a run is killed: after a part of the time that a whole one takes, or before the nth call of a function."""
LIMIT_BYTES = 200_000

pytestmark = pytest.mark.parametrize("command", COMMANDS, scope="module")


@pytest.fixture(scope="module", autouse=True)
def kept(command: str, log: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The kernels of the command, before processes are killed that would have to compile them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("offsets_log.columnar.large.PLAIN_BYTES_PER_S", 0)
        run(*COMMANDS[command], log, "--to", tmp_path_factory.mktemp("kept") / "out")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broken batch in it makes `repair` write a quarantine."""
    directory = tmp_path_factory.mktemp("generated")
    generate(directory, Options(bytes=5_000_000, seed=3, segment_bytes=1_500_000))
    segment = min(directory.glob("*/*.log"))
    data = bytearray(segment.read_bytes())
    data[1_000_000] ^= 1
    segment.write_bytes(data)
    return directory


def tree(directory: Path) -> dict[str, str]:
    """File → its hash."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def start(command: str, log: Path, to: Path, program: str = RUN, **more: Any) -> subprocess.Popen[str]:
    """A run that writes to ``out`` in a directory; `repair` also writes what it leaves out."""
    words = [*COMMANDS[command], log, "--to", to / "out", "-o", "jsonl"]
    words += ["--quarantine", to / "kept.jsonl"] if command == "repair" else []
    arguments = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)


def killing(function: str, calls: int) -> str:
    """A program that kills itself before a function is called for the nth time."""
    owner, _, name = function.rpartition(".")
    module = owner.removesuffix(".Path")
    return (
        f"import itertools, os, signal, {module}\n"
        f"count, before = itertools.count(1), {owner}.{name}\n"
        "def replaced(*arguments, **named):\n"
        f"    if next(count) == {calls}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return before(*arguments, **named)\n"
        f"{owner}.{name} = replaced\n{RUN}"
    )


def test_killed(command: str, log: Path, tmp_path: Path) -> None:
    """Nothing is there under a final name but all of it; inputs stay; the next run succeeds."""
    given = tree(log)
    begin = time.monotonic()
    start(command, log, tmp_path).communicate()
    duration = time.monotonic() - begin
    whole = tree(tmp_path)
    dice = random.Random(command)
    killed = 0
    for i, (function, moment) in enumerate(MOMENTS):
        to = tmp_path / str(i)
        to.mkdir()
        if function is None:
            process = start(command, log, to)
            time.sleep(duration * dice.uniform(moment - 0.15, moment + 0.15))
            process.send_signal(signal.SIGKILL)
        else:
            process = start(command, log, to, killing(function, int(moment)))
        process.communicate(timeout=PATIENCE_S)
        killed += process.returncode == -signal.SIGKILL
        found = {name: hashed for name, hashed in tree(to).items() if not name.startswith(".")}
        assert not (to / "out").exists() or {name for name in whole if name.startswith("out/")} <= found.keys()
        assert found.items() <= whole.items()
        assert tree(log) == given
    assert killed >= 4, "those before a call are sure"
    (to / "kept.jsonl").unlink(missing_ok=True)
    _, words = start(command, log, to).communicate(timeout=PATIENCE_S)
    assert "a run that was killed" in words
    assert {name: hashed for name, hashed in tree(to).items() if not name.startswith(".")} == whole


def test_full_disk(command: str, log: Path, tmp_path: Path) -> None:
    """A file may not become as large as a segment: one error names the output, and nothing is left.

    What is looked at deeply waits in a temporary file, which is refused first.
    """
    given = tree(log)

    def no_large_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))

    elsewhere = tmp_path / "full"
    elsewhere.mkdir()
    process = start(command, log, elsewhere, preexec_fn=no_large_files)
    _, words = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    (told,) = [line for line in words.splitlines() if "error" in line]
    refused = tempfile.gettempdir() if "--deep" in command else elsewhere / "out"
    assert f" {refused}: cannot be written: File too large" in told
    assert list(elsewhere.iterdir()) == []
    assert tree(log) == given


@pytest.mark.parametrize("where", ["a file/out", "nowhere/out", "a file", "log", "log/__consumer_offsets-0/out"])
def test_targets_that_cannot_be(command: str, where: str, log: Path, tmp_path: Path) -> None:
    """In a file, in no directory, on what exists, on or inside of an input."""
    (tmp_path / "a file").touch()
    shutil.copytree(log, tmp_path / "log")
    before = tree(tmp_path)
    done = run(*COMMANDS[command], tmp_path / "log", "--to", tmp_path / where)
    assert done.exit_code == 1
    assert str(tmp_path / where) in done.stderr.splitlines()[-1]
    assert done.stdout == ""
    assert tree(tmp_path) == before
