"""Write outputs that appear whole or not at all: written beside their place, synced, renamed."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from offsets_log.errors import OutputError

SYNCS_AT_ONCE = 16
"""How many files of a directory are synced at the same time."""


@contextmanager
def atomic_output(path: str | Path, *, inputs: Iterable[str | Path] = ()) -> Iterator[BinaryIO]:
    """Open a new binary file that takes its name when the block succeeds; otherwise nothing is left.

    Args:
        inputs: files that must not be replaced.

    Raises:
        OutputError: the path is an input or no regular file, or the system refuses.
    """
    with output_errors(path):
        target = _free_of(path, inputs)
        if target.exists() and not target.is_file():
            raise OutputError("this exists and is no regular file: write elsewhere", file=str(path))
        temporary = _beside(target)
        try:
            with temporary.open("xb") as file:
                yield file
            _sync(temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync(target.parent)


def ensure_place(path: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Raise an OutputError that `atomic_output` or `atomic_directory` would raise when all the work is done."""
    with output_errors(path):
        target = _free_of(path, inputs)
        if target.is_dir() and next(target.iterdir(), None) is not None:
            raise OutputError("this exists and is not an empty directory: give a new one", file=str(path))
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _free_of(path: str | Path, inputs: Iterable[str | Path]) -> Path:
    """Return a path in full; raise OutputError if it is one of the inputs."""
    target = Path(path).resolve()
    if target in {Path(file).resolve() for file in inputs}:
        raise OutputError("this is one of the inputs, it is not overwritten: write elsewhere", file=str(path))
    return target


@contextmanager
def atomic_directory(path: str | Path) -> Iterator[Path]:
    """Make a new directory that takes its name when the block succeeds; otherwise nothing is left.

    A block that has nothing to write may remove it: then there is none.

    Raises:
        OutputError: the path exists and is not an empty directory, or the system refuses.
    """
    with output_errors(path):
        target = Path(path).resolve()
        if target.exists() and not (target.is_dir() and next(target.iterdir(), None) is None):
            raise OutputError("this exists and is not an empty directory: give a new one", file=str(path))
        temporary = _beside(target)
        try:
            temporary.mkdir()
            yield temporary
            if not temporary.exists():
                return
            _sync_all([temporary, *temporary.rglob("*")])
            temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        _sync(target.parent)


@contextmanager
def output_errors(path: str | Path) -> Iterator[None]:
    """Raise what the system refuses in the block as an OutputError that names this file."""
    try:
        yield
    except BrokenPipeError:  # standard output is closed: no file causes this
        raise
    except OSError as error:
        above = Path(path).parent
        hint = ""
        if isinstance(error, FileNotFoundError) and not above.exists():
            hint = f": there is no directory {above}, make it first"
        elif error.errno == errno.EBUSY:
            hint = ": it is a mount point, give a directory below it"
        raise OutputError(f"cannot be written: {error.strerror or error}{hint}", file=str(path)) from error


def left_beside(path: str | Path) -> list[Path]:
    """Return the paths near an output's place under a name that it had while it was written."""
    target = Path(path).resolve()
    name = re.compile(rf"\.{re.escape(target.name[:200])}\.[0-9a-f]{{8}}\.tmp")
    try:
        return sorted(found for found in target.parent.iterdir() if name.fullmatch(found.name))
    except OSError:
        return []


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.tmp")


def _sync_all(paths: Sequence[Path]) -> None:
    """Sync files and directories, which the file system writes together.

    All begin to be written before the first is waited for: else each may wait for a commit of the journal of its own.
    """

    def each(step: Callable[[Path], None], first: int) -> None:
        for path in paths[first::SYNCS_AT_ONCE]:
            step(path)

    with ThreadPoolExecutor(SYNCS_AT_ONCE) as pool:
        for step in (_begin_to_write, _sync):
            deque(pool.map(partial(each, step), range(SYNCS_AT_ONCE)), 0)


def _begin_to_write(path: Path) -> None:
    """Have the system write what it holds of a file, where it takes such advice, and do not wait for it."""
    if not hasattr(os, "posix_fadvise"):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    except OSError:
        pass  # it is synced in any case
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems do not sync directories
            raise
    finally:
        os.close(descriptor)
