"""Processes that race for a file that they share, some of which are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import pytest

from tests.shared_files import after_the_first, made_once, unpacked
from tests.waiting import wait_for

ROOT = Path(__file__).parents[1]
RACING = 8
FILES = 200

MAKER = f"""
import os, signal, sys
from pathlib import Path
from tests.shared_files import made_once

place, makers, dies_at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])

def make(folder):
    with makers.open("a") as file:
        file.write("x")
    folder.mkdir()
    for number in range({FILES}):
        if number == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / str(number)).write_bytes(b"%d" % number)

sys.stdin.readline()
found = made_once(place, make)
held = (found / "0").open("rb")
told = [int((found / str(number)).read_bytes()) for number in range({FILES})]
sys.exit(told != list(range({FILES})) or len(list(found.iterdir())) != {FILES} or held.read() != b"0")
"""


def race(place: Path, dying: Sequence[int] = (), living: int = RACING) -> tuple[list[int], list[int]]:
    """How processes end that all begin at once: those that would die while they make it, and those that would not."""
    command = [sys.executable, "-c", MAKER, str(place), str(place.with_name("makers"))]
    begun = [
        subprocess.Popen([*command, str(dies_at)], cwd=ROOT, stdin=subprocess.PIPE)
        for dies_at in (*dying, *[FILES] * living)
    ]
    for process in begun:
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.close()
    ended = [process.wait() for process in begun]
    return ended[: len(dying)], ended[len(dying) :]


def test_of_processes_that_race_one_makes_it_and_all_find_it_whole(tmp_path: Path) -> None:
    assert race(tmp_path / "made") == ([], [0] * RACING)
    assert (tmp_path / "makers").read_text() == "x"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".made.making", "made", "makers"]
    assert list((tmp_path / ".made.making").iterdir()) == []


def test_makers_that_are_killed_leave_it_to_the_next(tmp_path: Path) -> None:
    """In the middle of their work, alone and while others wait."""
    place = tmp_path / "made"
    assert race(place, dying=[0], living=0) == ([-signal.SIGKILL], [])
    assert race(place, dying=[FILES // 2], living=0) == ([-signal.SIGKILL], [])
    assert not place.exists()
    died, lived = race(place, dying=range(10, 10 + RACING))
    assert lived == [0] * RACING
    assert set(died) <= {-signal.SIGKILL, 0}
    assert len((tmp_path / "makers").read_text()) == 2 + died.count(-signal.SIGKILL) + 1
    assert list((tmp_path / ".made.making").iterdir()) == []


def test_what_is_there_is_never_made_again(tmp_path: Path) -> None:
    place = tmp_path / "below" / "made"
    assert made_once(place, lambda path: path.write_text("first")) == place  # type: ignore[arg-type, func-returns-value]
    made_once(place, Path.unlink)
    assert place.read_text() == "first"


def test_what_cannot_be_made_is_not_there_and_is_tried_again(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        path.write_text("half")
        raise OSError("full")

    place = tmp_path / "made"
    with pytest.raises(OSError, match="full"):
        made_once(place, fails)
    assert not place.exists()
    assert list((tmp_path / ".made.making").iterdir()) == []
    made_once(place, lambda path: path.touch())
    assert place.exists()


def test_a_process_of_a_maker_that_was_killed_writes_where_nobody_looks(tmp_path: Path) -> None:
    """As Maven does, when whoever has started it is gone."""
    place = tmp_path / "made"
    left: list[Callable[[], int]] = []

    def begins(path: Path) -> None:
        path.mkdir()
        left.append(lambda: (path / "late").write_text("late"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_once(place, begins)
    made_once(place, Path.mkdir)
    with pytest.raises(FileNotFoundError):
        left[0]()
    assert list(place.iterdir()) == []


def waiting_for(place: Path) -> int:
    """How many wait for the lock of a folder, as the system lists them."""
    locks = Path("/proc/locks").read_text().splitlines()
    return sum("->" in line and line.split()[-3].endswith(f":{place.stat().st_ino}") for line in locks)


def test_who_comes_while_the_first_is_at_work_waits_and_goes_with_the_others(tmp_path: Path) -> None:
    together = Barrier(3)
    first_has_begun, first_may_end = Event(), Event()
    order: list[str] = []

    def first() -> None:
        with after_the_first(tmp_path):
            first_has_begun.set()
            first_may_end.wait()
            order.append("first")

    def other() -> None:
        with after_the_first(tmp_path):
            together.wait()  # none of them is alone
            order.append("other")

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(first)]
        first_has_begun.wait()
        running += [pool.submit(other) for _ in range(3)]
        wait_for("three wait for the first", lambda: waiting_for(tmp_path) == 3)
        first_may_end.set()
        for one in running:
            one.result()
    assert order == ["first", *["other"] * 3]


def test_archives_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as tar:
        tar.add(tmp_path / "file", "below/file")
    folder = unpacked(tmp_path / "a.tar.xz", tmp_path / "run" / "a")
    assert (folder / "below" / "file").read_text() == "text"
