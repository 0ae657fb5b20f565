"""On a machine where kernels are not kept: which way is taken, what is compiled, by whom, and that nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from offsets_log.columnar import large, needs
from offsets_log.columnar.jit import making
from offsets_log.columnar.jit.keeping import as_rest
from tests.cli.runs import SAMPLE

ROOT = Path(__file__).parents[2]
MB = 1_000_000
COMMAND = """
from offsets_log_cli.main import run
from offsets_log.columnar import large
large.BULK_FROM_BYTES = large.PLAIN_BYTES_PER_S = 0
run()
"""
IN_THREADS = "from offsets_log.columnar import needs; needs.lacking = lambda *places: []\n"
"""Before a command: threads that scan find that a kernel is not kept."""
PATIENCE_S = 120.0


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The places of the kernels that are kept; processors are two."""
    found: set[str] = set()
    monkeypatch.setattr("offsets_log.columnar.large.PLAIN_BYTES_PER_S", PLAIN_BYTES_PER_S)
    monkeypatch.setattr(needs, "kernel_at", lambda place: place)
    monkeypatch.setattr(needs, "is_kept", found.__contains__)
    monkeypatch.setattr(needs, "makers", lambda: 2)
    monkeypatch.setattr(needs, "LACKED", set())
    return found


PLAIN_BYTES_PER_S = large.PLAIN_BYTES_PER_S


@pytest.mark.parametrize("largest", sorted(needs.WITH.keys() & needs.SECONDS.keys()))
def test_a_small_log_is_read_record_by_record_until_kernels_are_kept(largest: str, kept: set[str]) -> None:
    assert not large.is_large(5 * MB, largest)
    assert largest in needs.LACKED
    assert large.is_large(100 * MB, largest)
    kept.update((largest, *needs.WITH[largest]))
    assert large.is_large(5 * MB, largest)
    assert not large.is_large(4 * MB, largest)


def test_kernels_that_take_no_longer_than_reading_are_compiled_first(kept: set[str]) -> None:
    """The largest are kept already: an earlier command needed them, or was ended while it compiled the others."""
    needed = ("folds.offsets.scan", *needs.WITH["folds.offsets.scan"])
    kept.add(needed[0])
    assert large.is_large(15 * MB)
    kept.clear()
    assert not large.is_large(15 * MB)


def test_the_longest_of_those_that_lack_is_compiled_first(kept: set[str]) -> None:
    kept.add("scan.gather.gather")
    lacked = [str(place) for place in needs.lacking("folds.offsets.scan", "folds.inspection.locate")]
    assert lacked[0] == "folds.offsets.scan"
    assert {*lacked} == {"folds.offsets.scan", "folds.inspection.locate", *needs.WITH["folds.offsets.scan"]} - kept


def test_what_takes_long_is_a_kernel() -> None:
    for place in (*needs.SECONDS, *needs.WITH, *(place for places in needs.WITH.values() for place in places)):
        assert needs.kernel_at(place).wanted.name == place.rpartition(".")[2]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def files_of(cache: Path) -> set[str]:
    return {path.name for path in (cache / "offsets-log" / "kernels").glob("*")}


def processes_of(cache: Path) -> set[int]:
    """Return the processes that have this cache in their environment."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"OFFSETS_LOG_CACHE={cache}\0".encode() in path.read_bytes():
                found.add(int(path.parent.name))
        except OSError:
            continue
    return found


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.01)


@contextmanager
def at_work(
    cache: Path, *command: str, environment: Mapping[str, str] = os.environ
) -> Iterator[subprocess.Popen[bytes]]:
    """Run what compiles, in a group of its own, as under a shell, until it is at the kernel that takes longest."""
    environment, nothing = {**environment, "OFFSETS_LOG_CACHE": str(cache)}, subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=environment, stdout=nothing, stderr=nothing, process_group=0
    ) as process:
        locks = f".{LONGEST}-*.lock"
        until(lambda: any((cache / "offsets-log" / "kernels").glob(locks)), "a kernel is being compiled")
        yield process
        process.kill()


LONGEST = "folds.offsets.scan"
COMPACT = ("compact", SAMPLE, "-o", "csv")


def left(cache: Path) -> list[str]:
    """Return what is left of kernels that were not made to the end; that one is none that was."""
    until(lambda: not processes_of(cache), "those that compiled have ended")
    return [name for name in files_of(cache) if name.startswith((".", LONGEST))]


in_proc = pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked for in /proc")


@in_proc
@pytest.mark.parametrize(
    ("number", "is_of_group", "before", "status"),
    [
        (signal.SIGINT, True, "", 130),
        (signal.SIGINT, False, "", 130),
        (signal.SIGINT, True, IN_THREADS, 130),
        (signal.SIGTERM, False, "", -15),
        (signal.SIGKILL, False, "", -9),
    ],
)
def test_whoever_waits_for_kernels_can_go_at_once_and_nothing_stays(
    number: int, is_of_group: bool, before: str, status: int, cache: Path
) -> None:
    with at_work(cache, "-c", before + COMMAND, *COMPACT) as process:
        (os.killpg if is_of_group else os.kill)(process.pid, number)
        assert process.wait(timeout=PATIENCE_S) == status
        # A process that was killed may leave a lock that nobody holds: who compiles next removes it.
        assert not [name for name in left(cache) if number != signal.SIGKILL or not name.endswith(".lock")]


@in_proc
def test_nobody_waits_for_a_process_that_does_not_end_by_itself_and_nothing_stays_of_it(cache: Path) -> None:
    with at_work(cache, "-c", COMMAND, *COMPACT) as process:
        for maker in processes_of(cache) - {process.pid}:
            os.kill(maker, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 130
        assert not left(cache)


@in_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_compiles_all_kernels_ends_at_once_and_nothing_stays(number: int, cache: Path) -> None:
    with at_work(cache, "-m", making.REST, environment=making.environment()) as process:
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE_S) == 128 + number
        assert not left(cache)


def test_the_rest_is_compiled_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offsets_log.columnar.jit.keeping.cache_base", lambda: tmp_path)
    (tmp_path / "offsets-log" / "kernels").mkdir(parents=True)
    with as_rest() as first, as_rest() as second:
        assert (first, second) == (True, False)
    with as_rest() as again:
        assert again


@in_proc
@pytest.mark.parametrize("end", ["session", "command"])
def test_the_rest_ends_with_the_session_and_for_a_command_that_compiles(end: str, cache: Path) -> None:
    """It gives way to everything else while it is there."""
    start = "from offsets_log.columnar.jit.making import start_rest; start_rest(); input()"
    environment = {**os.environ, "OFFSETS_LOG_CACHE": str(cache)}
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, "-c", start], cwd=ROOT, env=environment, stdin=pipe, stdout=nothing, start_new_session=True
    ) as leader:
        lock = cache / "offsets-log" / "kernels" / ".rest"
        until(lambda: lock.exists() and lock.read_text() != "", "the rest has begun")
        rest = int(lock.read_text())
        until(lambda: os.getpriority(os.PRIO_PROCESS, rest) == 19, "it gives way")
        if end == "command":
            asked = "from offsets_log.columnar.jit.keeping import end_rest; end_rest()"
            subprocess.run([sys.executable, "-c", asked], cwd=ROOT, env=environment, check=True)
            until(lambda: is_gone(rest), "the rest has ended")
            assert leader.poll() is None
        leader.communicate(b"\n")
    until(lambda: is_gone(rest), "the rest has ended")


def is_gone(process: int) -> bool:
    """Return whether a process has ended, though nobody may have asked how."""
    try:
        return ") Z " in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
