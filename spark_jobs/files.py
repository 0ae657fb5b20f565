"""Logs as tasks open them: files on a disk that all machines see, or in a store, where segments are fetched one by one.

The driver finds them by the library's own code, which knows which copy of a partition is read; a task gets their names.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from offsets_log.disk import stores
from offsets_log.disk.archives import unpack_one
from offsets_log.disk.dumps import Dumps
from offsets_log.disk.finder import PACKED, PARQUET_SUFFIX, Finder
from offsets_log.disk.local import Place, list_directory, map_data, map_file, place_of, stored
from offsets_log.disk.reader import DiskLogs, open_logs
from offsets_log.disk.stored import Stored, StorePath, read_ahead
from offsets_log.disk.urls import is_url
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import NOTHING_TOLD, Checkpoints, PartitionLog, Segment
from offsets_log.log_format.segment import Buffer

Options = Mapping[str, Any]
"""Options of a store, as fsspec's file system of its kind takes them."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A segment file.

    Attributes:
        path: path to open and to show; in a store a URL without secrets.
        size: size in bytes as stored.
        url: a URL of its store; None on this machine.
        options: options of the store.
        modified_ms: when it was last written, if that is known.
    """

    path: str
    base_offset: int | None
    size: int
    url: str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    modified_ms: int | None = None
    is_of_broken: bool = False

    @classmethod
    def of(cls, segment: Segment) -> FoundFile:
        """Return the file of a segment. Raises InputError: it is not a file of its own."""
        contents = segment.contents
        path, url = segment.file, None
        options: tuple[tuple[str, Any], ...] = ()
        if isinstance(contents, Stored):
            url, options = contents.path.store.url, tuple(sorted(contents.path.store.options.items()))
        elif Path(path).is_file():
            path = str(Path(path).absolute())
        else:
            raise InputError("Spark reads segment files; unpack archives, and write pipes into files", file=path)
        return cls(
            path, segment.base_offset, segment.size_bytes, url, options, segment.modified_ms, segment.is_of_broken
        )  # fmt: skip

    def open(self, stack: ExitStack) -> Segment:
        """Open it until the stack closes. Raises InputError."""
        zeros = 0
        contents: Buffer | Stored
        if self.url is not None:
            contents = stored(self._place(self.path, self.size, self.modified_ms), stack)
        else:
            contents, zeros = map_data(Path(self.path), stack)
        if self.path.endswith(PACKED):
            contents = unpack_one(self.path, contents() if isinstance(contents, Stored) else contents)
        return Segment(
            self.path, self.base_offset, contents, zeros_behind=zeros, modified_ms=self.modified_ms,
            is_of_broken=self.is_of_broken,
        )  # fmt: skip

    def read_beside(self, name: str, stack: ExitStack) -> Buffer:
        """Return a file of the same directory until the stack closes. Raises InputError."""
        path = posixpath.join(posixpath.dirname(self.path), name)
        return map_file(Path(path) if self.url is None else self._place(path), stack)

    def _place(self, path: str, size: int | None = None, modified_ms: int | None = None) -> StorePath:
        assert self.url is not None
        store = stores.open_store(self.url, dict(self.options))
        found = store.path_of(path)
        if size is not None:
            store.note(found, stores.Entry(size, modified_ms))
        return StorePath(store, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFiles:
    """The files of a log, and what is known of it; attributes as of `PartitionLog`.

    Attributes:
        beside: names of the files beside the segments.
    """

    offsets_partition: int | None
    files: tuple[FoundFile, ...]
    notes: tuple[str, ...] = ()
    checkpoints: Checkpoints = NOTHING_TOLD
    beside: tuple[str, ...] = ()
    begins_late: str = ""
    selection: str | None = None

    @classmethod
    def of(cls, log: PartitionLog) -> LogFiles:
        """Return those of a log. Raises InputError: not all segments are files."""
        return cls(
            offsets_partition=log.offsets_partition,
            files=tuple(map(FoundFile.of, log.segments)),
            notes=log.notes,
            checkpoints=log.checkpoints,
            beside=tuple(log.beside),
            begins_late=log.begins_late,
            selection=log.selection,
        )

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(file.size for file in self.files)

    def open(self, stack: ExitStack) -> PartitionLog:
        """Open the log until the stack closes. Raises InputError."""
        segments = tuple(file.open(stack) for file in self.files)
        read_ahead(segments)
        return PartitionLog(
            self.offsets_partition,
            segments,
            notes=self.notes,
            checkpoints=self.checkpoints,
            beside={name: partial(self.files[0].read_beside, name, stack) for name in self.beside if self.files},
            begins_late=self.begins_late,
            selection=self.selection,
        )


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


def no_logs(stack: ExitStack) -> DiskLogs:
    """Return opened logs of which there are none, where records are read instead."""
    return DiskLogs([], Dumps(None), Finder((), stack), stack)


def _places(path: str, options: Options | None) -> Sequence[str | Place]:
    return StorePath.of(path, options).expand() if options and is_url(path) else [path]


def is_parquet(paths: Sequence[str], options: Options | None = None) -> bool:
    """Return whether the input is Parquet written by ``decode -o parquet``: such files, or directories of them."""
    return all(path.endswith(PARQUET_SUFFIX) or _holds_parquet(path, options) for path in paths)


def _holds_parquet(path: str, options: Options | None) -> bool:
    place = StorePath.of(path, options) if is_url(path) else place_of(path)
    if isinstance(place, Path):
        return any(place.glob(f"*{PARQUET_SUFFIX}"))
    place.store.sweep(place.path)
    return place.is_dir() and any(name.endswith(PARQUET_SUFFIX) for name in list_directory(place)[0])
