"""Machine code that is kept: the user's folder of it, and the package's, which wheels may have."""

from __future__ import annotations

import atexit
import fcntl
import functools
import hashlib
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from offsets_log.columnar.jit.sources import PACKAGE, common_stamp_of, place_of, stamp_of

Kept = tuple[str, bytes]
"""The name of a kernel's entry, and its code."""
SHIPPED = "shipped"
"""The folder beside the rooms of kernels that ``make wheel`` fills."""
LOCK, NEW = ".lock", ".new"
"""Endings of what is beside a kernel's file, under its name behind a dot, while it is made."""

_WRITING = threading.Lock()
_HELD: set[Path] = set()
"""Locks of what this process makes."""


@functools.cache
def cache_base() -> Path:
    """Return the user's cache folder, if nobody else can write to it; else one that is removed with the process."""
    base = os.environ.get("OFFSETS_LOG_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with suppress(OSError, RuntimeError):
        found = Path(base).expanduser().absolute()
        folder = found / "offsets-log" / "kernels"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        if status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(folder, os.W_OK):
            return found
    passing = tempfile.TemporaryDirectory(prefix="offsets-log-")
    atexit.register(passing.cleanup)
    (Path(passing.name) / "offsets-log" / "kernels").mkdir(parents=True)
    return Path(passing.name)


def file_of(function: Callable[..., Any]) -> Path:
    return cache_base() / "offsets-log" / "kernels" / f"{place_of(function)}-{stamp_of(function.__module__)}"


def shipped_name(function: Callable[..., Any]) -> str | None:
    """Return the name of a kernel's file in the package's folder; None where such code does not run."""
    stamp = common_stamp_of(function.__module__)
    return stamp and f"{place_of(function)}-{stamp}"


def shipped(function: Callable[..., Any]) -> Kept | None:
    """Return the code of a kernel that came with the package."""
    name = shipped_name(function)
    if name is None:
        return None
    with suppress(OSError, KeyError):
        return unpacked(resources.files(PACKAGE).joinpath(SHIPPED, name).read_bytes())
    return None


@contextmanager
def one_at_a_time(file: Path) -> Iterator[None]:
    """Wait while another process makes a file, so that it then exists; if nothing can be kept, nobody waits."""
    lock = file.with_name(f".{file.name}{LOCK}")
    with ExitStack() as stack:
        with suppress(OSError):
            is_ours = False
            while not is_ours:  # who had it before may have removed it
                held = stack.enter_context(lock.open("wb"))
                fcntl.flock(held, fcntl.LOCK_EX)
                with suppress(FileNotFoundError):
                    is_ours = os.path.samestat(lock.stat(), os.fstat(held.fileno()))
            _HELD.add(lock)
            stack.callback(_HELD.discard, lock)
            stack.callback(lock.unlink, missing_ok=True)
        yield


def leave(status: int = 1) -> NoReturn:
    """End this process at once, whatever its other threads do; nothing stays of what is not whole."""
    with _WRITING:
        for lock in _HELD:
            lock.unlink(missing_ok=True)
        os._exit(status)


def tidy() -> None:
    """Remove what is left of processes that were killed while they made a file."""
    for lock in (cache_base() / "offsets-log" / "kernels").glob(f".*{LOCK}"):
        with suppress(OSError), lock.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(lock.stat(), os.fstat(held.fileno())):
                lock.with_suffix(NEW).unlink(missing_ok=True)
                lock.unlink()


@contextmanager
def as_rest() -> Iterator[bool]:
    """Yield whether this process is the only one that compiles the rest."""
    with _rest().open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        yield True


def end_rest() -> None:
    """End the process that compiles the rest: nobody may wait for what it does at the lowest priority."""
    with suppress(OSError, ValueError), _rest().open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.kill(int(file.read()), signal.SIGTERM)


def _rest() -> Path:
    return cache_base() / "offsets-log" / "kernels" / ".rest"


def read(file: Path) -> Kept | None:
    """Return the entry and the code of a kernel; None if it is not kept, or is damaged."""
    try:
        return unpacked(file.read_bytes())
    except OSError:
        return None


def packed(symbol: str, code: bytes) -> bytes:
    """Return a kernel's code as it is kept: after the name of its entry, after a digest of both."""
    kept = symbol.encode() + b"\n" + code
    return hashlib.sha256(kept).hexdigest().encode() + b"\n" + kept


def unpacked(data: bytes) -> Kept | None:
    digest, _, kept = data.partition(b"\n")
    if digest != hashlib.sha256(kept).hexdigest().encode():
        return None
    symbol, _, code = kept.partition(b"\n")
    return symbol.decode(), code


def keep(file: Path, data: bytes) -> None:
    """Write what `packed` returned, whole or not at all."""
    made = file.with_name(f".{file.name}{NEW}")
    with _WRITING:
        try:
            made.write_bytes(data)
        except OSError:
            made.unlink(missing_ok=True)
            raise
        made.replace(file)
