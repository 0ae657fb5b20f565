"""Segments as tasks open them: on a disk that all machines see, or in a store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from offsets_log.disk import stores
from offsets_log.disk.archives import unpack_one
from offsets_log.disk.finder import PACKED, PARQUET_SUFFIX
from offsets_log.disk.local import Place, list_directory, map_file, place_of, stored
from offsets_log.disk.reader import DiskLogs, open_logs
from offsets_log.disk.stored import Stored, StorePath
from offsets_log.disk.urls import is_url
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Buffer

Options = Mapping[str, Any]
"""Options of a store, as fsspec's file system of its kind takes them."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A segment file.

    Attributes:
        path: path to open and to show; in a store a URL without secrets.
        url: a URL of its store; None on this machine.
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

    @classmethod
    def of(cls, log: PartitionLog, segment: Segment) -> FoundFile:
        """Return the file of a log's segment. Raises InputError: it is not a file of its own."""
        contents, size = segment.contents, segment.size_bytes
        if isinstance(contents, Stored):
            store = contents.path.store
            options = tuple(sorted(store.options.items()))
            return cls(segment.file, segment.base_offset, size, store.url, options, modified_ms=segment.modified_ms)
        if not Path(segment.file).is_file():
            raise InputError(
                "Spark reads segment files; unpack archives, and write pipes into files", file=segment.file
            )
        mapped = PartitionLog(log.offsets_partition, (segment,))
        return cls(str(Path(segment.file).absolute()), segment.base_offset, size, mapped=mapped)

    @property
    def is_packed(self) -> bool:
        """Whether the whole file is compressed."""
        return self.path.endswith(PACKED)

    def open(self, stack: ExitStack) -> Buffer:
        """Return the whole contents, read-only. Raises InputError."""
        buffer = map_file(Path(self.path), stack) if self.url is None else stored(self._place(), stack)()
        return unpack_one(self.path, buffer) if self.is_packed else buffer

    def read_tail(self, size: int) -> Buffer:
        """Return the last ``size`` bytes, or all if there are fewer. Raises InputError."""
        if self.mapped is not None:
            return memoryview(self.mapped.segments[0].buffer)[-size:]
        place = self._place()
        begin = max(0, self.size - size)
        return memoryview(place.store.read(place.path, begin, self.size - begin))

    def _place(self) -> StorePath:
        assert self.url is not None
        store = stores.open_store(self.url, dict(self.options))
        path = store.path_of(self.path)
        store.note(path, stores.Entry(self.size, self.modified_ms))
        return StorePath(store, path)


def find_logs(
    paths: Sequence[str],
    stack: ExitStack,
    *,
    as_partition: int | None = None,
    partitions: Collection[int] = (),
    options: Options | None = None,
) -> DiskLogs:
    """Open the logs of paths and URLs until the stack closes; arguments as in `open_logs`.

    Args:
        options: options of a store.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    places = [place for path in paths for place in _places(path, options)]
    return stack.enter_context(open_logs(places, as_partition=as_partition, partitions=partitions))


def _places(path: str, options: Options | None) -> Sequence[str | Place]:
    return StorePath.of(path, options).expand() if options and is_url(path) else [path]


def path_here(path: str) -> str | None:
    """Return a path of this machine; None for a URL of a store."""
    return None if is_url(path) else str(place_of(path))


def open_store(url: str, options: tuple[tuple[str, Any], ...]) -> tuple[fs.FileSystem, str]:
    """Return a store and the path in it. Raises InputError: there is no such kind of store."""
    store = stores.open_store(url, dict(options))
    return store.files, store.path_of(url)


def is_parquet(paths: Sequence[str], options: Options | None = None) -> bool:
    """Return whether the input is Parquet written by ``decode -o parquet``: such files, or directories of them."""
    return all(path.endswith(PARQUET_SUFFIX) or _holds_parquet(path, options) for path in paths)


def _holds_parquet(path: str, options: Options | None) -> bool:
    place = StorePath.of(path, options) if is_url(path) else place_of(path)
    if isinstance(place, Path):
        return any(place.glob(f"*{PARQUET_SUFFIX}"))
    place.store.sweep(place.path)
    return place.is_dir() and any(name.endswith(PARQUET_SUFFIX) for name in list_directory(place)[0])
