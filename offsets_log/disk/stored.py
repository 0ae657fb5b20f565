"""Files of stores as paths and as contents: a segment is fetched when it is read, into a file of this machine.

A store's segment is fetched as a whole, in ranges at a time, into an unnamed temporary file, which is mapped like any
segment; the next segment of its log is fetched meanwhile. Mappings live as long as somebody holds them, and temporary
files as long as there is room: a log may be larger than the memory and the disk. What has to make room is fetched again
if it is read again.
"""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import posixpath
import queue
import re
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import translate
from functools import partial
from itertools import pairwise
from typing import IO, Any

from offsets_log.disk.stores import Stamp, Store, open_store
from offsets_log.disk.urls import bare
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import Segment
from offsets_log.log_format.segment import NO_PIECES, Buffer, Pieces

RANGE_BYTES = 8 << 20
"""So much is asked for by one request."""
REQUESTS = 8
"""How many requests wait for the network at once."""
BLOCK_BYTES = 1 << 14
"""So much is read at once, in bytes, of files of which only pieces are read."""
MAPPINGS_KEPT = 2
"""So many mappings are kept although nobody holds them, for whoever comes back to one."""
SHARE_OF_DISK = 2
"""Temporary files take no more than one part in so many of what is free when the first is made."""
CHANGED = "it was changed while it was read: copy it, and read the copy"


@dataclass(frozen=True, slots=True)
class StorePath:
    """A place in a store, with what this package asks of a `pathlib.Path`.

    Attributes:
        path: as the store has it, without a slash at its end.
    """

    store: Store
    path: str

    @classmethod
    def of(cls, url: str, options: Mapping[str, Any] | None = None) -> StorePath:
        """Return the place of a URL, with options as of `open_store`. Raises InputError: there is no such store."""
        store = open_store(url, options)
        return cls(store, store.path_of(url))

    def __str__(self) -> str:
        return self.store.shown(self.path)

    def __truediv__(self, name: str) -> StorePath:
        return StorePath(self.store, posixpath.join(self.path, name))

    @property
    def name(self) -> str:
        """The last component."""
        return posixpath.basename(bare(self.path))

    @property
    def suffix(self) -> str:
        """The name's suffix."""
        return posixpath.splitext(self.name)[1]

    @property
    def parent(self) -> StorePath:
        """The directory that it is in."""
        return StorePath(self.store, posixpath.dirname(self.path))

    def absolute(self) -> StorePath:
        """Return the same."""
        return self

    def is_dir(self) -> bool:
        """Return whether it is a directory. Raises InputError."""
        entry = self.store.entry(self.path)
        return entry is not None and entry.size_bytes is None

    def is_file(self) -> bool:
        """Return whether it is a file. Raises InputError."""
        entry = self.store.entry(self.path)
        return entry is not None and entry.size_bytes is not None

    @property
    def size_bytes(self) -> int:
        """The size of a file. Raises InputError."""
        entry = self.store.entry(self.path)
        if entry is None or entry.size_bytes is None:
            raise InputError("cannot be read: there is no such file in the store", file=str(self))
        return entry.size_bytes

    @property
    def modified_ms(self) -> int | None:
        """When a file was last written, in epoch milliseconds, as far as the store tells."""
        entry = self.store.entry(self.path)
        return None if entry is None else entry.written_ms

    def stamp(self) -> Stamp:
        """Return the file's stamp. Raises InputError: it is not the one that was listed, or cannot be looked at."""
        entry, stamp = self.store.entry(self.path), self.store.stamp(self.path)
        if entry is None or not stamp.is_of(entry):
            raise InputError(CHANGED, file=str(self))
        return stamp

    def listed(self) -> tuple[list[str], list[str]]:
        """Return the sorted names of the files and directories in a directory. Raises InputError."""
        entries = self.store.entries(self.path).items()
        files = sorted(name for name, entry in entries if entry.size_bytes is not None)
        return files, sorted(name for name, entry in entries if entry.size_bytes is None)

    def expand(self) -> list[StorePath]:
        """Return the path if it exists, else those that it matches as a glob of ``*`` and ``[``.

        Raises:
            InputError: nothing has this name or matches.
        """
        if self.store.sweep(self.path) is not None:
            return [self]
        parts = self.path.split("/")
        first = next((number for number, part in enumerate(parts) if set(part) & set("*[")), None)
        if first is None:
            raise InputError(self.store.why_absent(self.path) or "no such file or directory", file=str(self))
        found = [StorePath(self.store, "/".join(parts[:first]))]
        self.store.sweep(found[0].path)
        for part in parts[first:]:
            fits = re.compile(translate(part)).match
            found = [one / name for one in found for name in sorted(self.store.entries(one.path)) if fits(name)]
        if not found:
            raise InputError(self.store.why_absent(self.path) or "no file matches", file=str(self))
        return found

    def contents(self, stack: ExitStack) -> Buffer:
        """Return the whole contents, until the stack closes. Raises InputError."""
        if self.size_bytes <= RANGE_BYTES:
            return self.store.read_whole(self.path)
        stored = Stored(self)
        stack.callback(stored.close)
        return stored()

    def open_pieces(self) -> Pieces:
        """Return the file, of which a block is asked for at a time: each request costs more than its bytes."""
        here: dict[int, bytes] = {}
        size = self.size_bytes

        def read_at(position: int, size_bytes: int) -> bytes:
            first, beyond = position // BLOCK_BYTES, -(-min(position + size_bytes, size) // BLOCK_BYTES)
            missing = [number for number in range(first, beyond) if number not in here]
            if missing:
                begin, end = missing[0] * BLOCK_BYTES, min((missing[-1] + 1) * BLOCK_BYTES, size)
                data = self.store.read(self.path, begin, end - begin)
                for number in range(missing[0], missing[-1] + 1):
                    here[number] = data[number * BLOCK_BYTES - begin :][:BLOCK_BYTES]
            found = b"".join(here[number] for number in range(first, beyond))
            return found[position - first * BLOCK_BYTES :][:size_bytes]

        return Pieces(size, read_at) if size else NO_PIECES


class Stored:
    """The contents of a file in a store, fetched when they are asked for; call it for them.

    Attributes:
        following: what is read next.
    """

    def __init__(self, path: StorePath) -> None:
        self.path = path
        self.size_bytes = path.size_bytes
        self.following: Stored | None = None
        self._lock = threading.Lock()
        self._fetch: _Fetch | None = None
        self._stamp: Stamp | None = None
        self._mapping: weakref.ref[mmap.mmap] | None = None

    def __call__(self) -> Buffer:
        """Return the whole contents. Raises InputError."""
        if not self.size_bytes:
            return b""
        with self._lock:
            mapping = self._mapping() if self._mapping else None
            if mapping is None:
                fetch = self._begun(is_wanted=True)
                if self.following is not None:
                    self.following.fetch_ahead()
                descriptor, self._stamp = fetch.wait()
                mapping = mmap.mmap(descriptor, self.size_bytes, access=mmap.ACCESS_READ)
                self._mapping = weakref.ref(mapping)
        _KEPT.append(mapping)
        return memoryview(mapping)

    def release(self, begin: int, end: int) -> None:
        """Tell the system that bytes of the mapping need no memory any more."""
        mapping = self._mapping() if self._mapping else None
        first = begin - begin % mmap.PAGESIZE
        if mapping is not None and end - end % mmap.PAGESIZE > first and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED, first, end - end % mmap.PAGESIZE - first)

    def fetch_ahead(self) -> None:
        """Begin to fetch the contents, if that did not begin yet."""
        if self.size_bytes and self._lock.acquire(blocking=False):
            try:
                self._begun(is_wanted=False)
            finally:
                self._lock.release()

    def _begun(self, *, is_wanted: bool) -> _Fetch:
        if self._fetch is None:
            _ROOM.make(self)
            self._fetch = _Fetch(self.path, self.size_bytes, self._stamp, is_wanted=is_wanted)
        return self._fetch

    @property
    def is_held(self) -> bool:
        """Whether somebody reads it, or it is being fetched."""
        return self._lock.locked() or (self._mapping is not None and self._mapping() is not None)

    def close(self) -> None:
        """Drop what was fetched; what is held stays whole."""
        fetch, self._fetch = self._fetch, None
        if fetch is not None:
            fetch.close()


def read_ahead(segments: Sequence[Segment]) -> None:
    """Have each segment of a log fetched while the one before is read."""
    stored = [one.contents for one in segments if isinstance(one.contents, Stored)]
    for one, after in pairwise(stored):
        one.following = after


_KEPT: deque[mmap.mmap] = deque(maxlen=MAPPINGS_KEPT)


class _Fetch:
    """A file on its way into a temporary one."""

    def __init__(self, path: StorePath, size_bytes: int, stamp: Stamp | None, *, is_wanted: bool) -> None:
        """Args:
        stamp: the file's when it was fetched before.
        """
        self._path = path
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed by `close`
        weakref.finalize(self, self._file.close)
        self._missing = len(range(0, size_bytes, RANGE_BYTES))
        self._problem: InputError | None = None
        self._is_closed = False
        self._changed = threading.Condition()
        self._stamping = threading.Lock()
        self._stamp = stamp
        for begin in range(0, size_bytes, RANGE_BYTES):
            size = min(RANGE_BYTES, size_bytes - begin)
            _WORKERS.add(partial(self._range, begin, size), is_wanted=is_wanted)

    def _range(self, begin: int, size_bytes: int) -> None:
        try:
            with self._stamping:  # before anything is read: what is read of another state would go unnoticed
                if self._stamp is None and self._problem is None:
                    self._stamp = self._path.stamp()
            if self._problem is None and not self._is_closed:
                self._write(begin, self._path.store.read(self._path.path, begin, size_bytes))
        except InputError as error:
            self._problem = error
        except OSError as error:
            self._problem = InputError(_of_disk(error), file=str(self._path))
        finally:
            with self._changed:
                self._missing -= 1
                self._changed.notify_all()

    def _write(self, begin: int, data: bytes) -> None:
        with self._changed:
            if not self._is_closed:
                os.pwrite(self._file.fileno(), data, begin)

    def wait(self) -> tuple[int, Stamp]:
        """Return the temporary file's descriptor once all is in it, and the file's stamp.

        Raises:
            InputError: something of it cannot be read, or it is another file by now.
        """
        with self._changed:
            while self._missing and self._problem is None:
                self._changed.wait()
        if self._problem is not None:
            raise self._problem
        now = self._path.stamp()
        if now != self._stamp:
            self._problem = InputError(CHANGED, file=str(self._path))
            raise self._problem
        return self._file.fileno(), now

    def close(self) -> None:
        """Drop the temporary file."""
        with self._changed:
            self._is_closed = True
            self._file.close()


def _of_disk(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"cannot be fetched: {tempfile.gettempdir()} is full: set TMPDIR to a folder with more room"
    return f"cannot be fetched: {error.strerror or error}"


class _Workers:
    """Threads that send requests, those that somebody waits for first. They end with the process."""

    def __init__(self) -> None:
        self._works: queue.PriorityQueue[tuple[int, int, Callable[[], None]]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._threads: list[threading.Thread] = []

    def add(self, work: Callable[[], None], *, is_wanted: bool) -> None:
        """Have something done."""
        self._works.put((not is_wanted, next(self._numbers), work))
        if len(self._threads) < REQUESTS:
            self._threads.append(threading.Thread(target=self._run, daemon=True))
            self._threads[-1].start()

    def _run(self) -> None:
        while True:
            self._works.get()[2]()  # no name holds it while nothing is to be done


_WORKERS = _Workers()


class _Room:
    """The room that temporary files may take."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, weakref.ref[Stored]] = OrderedDict()
        self._most: int | None = None

    def make(self, wanted: Stored) -> None:
        """Drop what was fetched long ago and is not held, until one more file has room."""
        with self._lock:
            if self._most is None:
                self._most = shutil.disk_usage(tempfile.gettempdir()).free // SHARE_OF_DISK
            known = [one for reference in self._kept.values() if (one := reference()) is not None]
            used = sum(one.size_bytes for one in known) + wanted.size_bytes
            for one in known:
                if used <= self._most:
                    break
                if not one.is_held and one is not wanted:
                    one.close()
                    used -= one.size_bytes
                    known = [other for other in known if other is not one]
            self._kept = OrderedDict((id(one), weakref.ref(one)) for one in (*known, wanted))


_ROOM = _Room()
