"""Files as they are found, on this machine or in a remote store, and how a store is opened."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyarrow import fs

from offsets_log.disk.archives import unpack_one
from offsets_log.disk.local import input_errors, map_file
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.segment import Buffer

PACKED = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A segment file.

    Attributes:
        path: path to open and to show; in a remote store a URL without its query.
        url: the URL its store was given as; None on this machine.
        options: options of the store.
        size: size in bytes as stored.
        mapped: a log of this one file, on the machine that found it.
        modified_ms: when it was last written, if the store tells.
    """

    path: str
    base_offset: int | None
    size: int
    url: str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    mapped: PartitionLog | None = None
    modified_ms: int | None = None

    @property
    def is_packed(self) -> bool:
        """Whether the whole file is compressed."""
        return self.path.endswith(PACKED)

    def open(self, stack: ExitStack) -> Buffer:
        """Return the whole contents, read-only. Raises InputError."""
        if self.url is None:
            buffer = map_file(Path(self.path), stack)
        else:
            store, path = self._place()
            with input_errors(self.path), store.open_input_file(path) as file:
                buffer = memoryview(file.read_buffer())
        return unpack_one(self.path, buffer) if self.is_packed else buffer

    def read_tail(self, size: int) -> Buffer:
        """Return the last ``size`` bytes, or all if there are fewer. Raises InputError."""
        if self.mapped is not None:
            return memoryview(self.mapped.segments[0].buffer)[-size:]
        store, path = self._place()
        with input_errors(self.path), store.open_input_file(path) as file:
            begin = max(0, self.size - size)
            return memoryview(file.read_at(self.size - begin, begin))

    def read_at(self, position: int, size: int) -> bytes:
        """Return that many bytes at a position, fewer at the file's end; nothing else is read. Raises InputError."""
        store, path = self._place()
        end = min(position + size, self.size)
        with input_errors(self.path):
            if isinstance(store, fs.PyFileSystem):  # an open file of fsspec reads megabytes ahead
                return bytes(store.handler.fs.cat_file(path, start=position, end=end))
            with store.open_input_file(path) as file:
                return bytes(file.read_at(end - position, position))

    def _place(self) -> tuple[fs.FileSystem, str]:
        assert self.url is not None
        return open_store(self.url, self.options)[0], path_in_store(self.path)


@cache
def open_store(url: str, options: tuple[tuple[str, Any], ...]) -> tuple[fs.FileSystem, str]:
    """Return a store and the path in it. With options it is fsspec's, else pyarrow's if pyarrow knows the kind.

    Raises:
        InputError: there is no such kind of store, or it cannot be reached.
    """
    scheme = url.partition("://")[0]
    with input_errors(url):
        if not options:
            try:
                store, path = fs.FileSystem.from_uri(url.replace("s3a://", "s3://", 1))
            except (ValueError, NotImplementedError):
                pass
            else:
                return store, path
        try:
            import fsspec
        except ImportError:
            raise InputError(f"fsspec is needed for {scheme}:// with options: pip install fsspec", file=url) from None
        try:
            made = fsspec.filesystem(scheme, **dict(options))
        except ImportError as error:
            raise InputError(f"this kind of store needs another package: {error}", file=url) from None
        return fs.PyFileSystem(fs.FSSpecHandler(made)), path_in_store(url)


def path_in_store(url: str) -> str:
    """Return the path of a URL as its store knows it."""
    return url.partition("://")[2].partition("?")[0].rstrip("/")
