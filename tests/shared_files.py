"""What processes share on disk, made by the first that asks for it: whole or not there, never replaced, never deleted.

Jars of Kafka and what is made of them are kept for later runs in the user's cache; unpacked recordings are a run's own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from offsets_log.columnar.jit.keeping import cache_base


def cached(name: str) -> Path:
    """A place in the user's cache."""
    return cache_base() / "offsets-log" / name


def made_once(place: Path, make: Callable[[Path], None]) -> Path:
    """A file or folder that all processes use and none changes.

    Whoever comes while another makes it waits. If that one is killed, the next begins again; what it left, and what its
    own processes may still write, is in a folder that nobody uses.

    Args:
        make: writes it to the path that it is given, which does not exist, in a folder that does.
    """
    if not place.exists():
        with one_at_a_time(place) as folder:
            if not place.exists():
                made = Path(tempfile.mkdtemp(dir=folder)) / place.name
                make(made)
                made.rename(place)
    return place


@contextmanager
def one_at_a_time(place: Path) -> Iterator[Path]:
    """The folder beside a place in which it is made: one process has it at a time, emptied, and the others wait."""
    folder = place.with_name(f".{place.name}.making")
    folder.mkdir(parents=True, exist_ok=True)
    with _open(folder) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _empty(folder)
        try:
            yield folder
        finally:
            _empty(folder)


@contextmanager
def after_the_first(folder: Path) -> Iterator[None]:
    """Do what is cheaper once a process has done it: the first is alone, the others wait for it and go together."""
    with _open(folder) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def _open(folder: Path) -> Iterator[int]:
    """A folder as something to lock: no lock outlives its process."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield opened
    finally:
        os.close(opened)


def _empty(folder: Path) -> None:
    for left in folder.iterdir():
        shutil.rmtree(left, ignore_errors=True)


def unpacked(archive: Path, place: Path) -> Path:
    """The folder with an archive's contents."""

    def unpack(folder: Path) -> None:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")

    return made_once(place, unpack)
