"""Logs as tasks open them: files on a disk that all machines see, or in a store, where segments are fetched one by one.

The driver finds them by the library's own code, which knows which copy of a partition is read; a task gets their names.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from offsets_log.disk import stores
from offsets_log.disk.archives import unpack_one
from offsets_log.disk.finder import PACKED
from offsets_log.disk.local import map_data, map_file, stored
from offsets_log.disk.reader import DiskLogs, open_logs
from offsets_log.disk.stored import Stored, StorePath, read_ahead
from offsets_log.disk.urls import is_url
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Buffer
from spark_jobs.options import SourceOptions

Options = Mapping[str, Any]
"""Options of a store, as fsspec's file system of its kind takes them."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A segment file.

    Attributes:
        segment: what is known of it, without its contents; its file is the path to open and to show, in a store a URL
            without secrets.
        size: size in bytes as stored.
        url: a URL of its store; None on this machine.
        options: options of the store.
    """

    segment: Segment
    size: int
    url: str | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, segment: Segment) -> FoundFile:
        """Return the file of a segment. Raises InputError: it is not a file of its own."""
        contents, path = segment.contents, segment.file
        known = replace(segment, contents=b"", zeros_behind=0)
        if isinstance(contents, Stored):
            store = contents.path.store
            return cls(known, segment.size_bytes, store.url, tuple(sorted(store.options.items())))
        if segment.is_restored or not Path(path).is_file():
            raise InputError("Spark reads segment files: unpack archives, and write pipes into files", file=path)
        return cls(replace(known, file=str(Path(path).absolute())), segment.size_bytes)

    def open(self, stack: ExitStack) -> Segment:
        """Open it until the stack closes. Raises InputError."""
        path, zeros = self.segment.file, 0
        contents: Buffer | Stored
        if self.url is not None:
            contents = stored(self._place(path, stores.Entry(self.size, self.segment.modified_ms)), stack)
        else:
            contents, zeros = map_data(Path(path), stack)
        if path.endswith(PACKED):
            contents = unpack_one(path, contents() if isinstance(contents, Stored) else contents)
        return replace(self.segment, contents=contents, zeros_behind=zeros)

    def read_beside(self, name: str, stack: ExitStack) -> Buffer:
        """Return a file of the same directory until the stack closes. Raises InputError."""
        path = posixpath.join(posixpath.dirname(self.segment.file), name)
        return map_file(Path(path) if self.url is None else self._place(path), stack)

    def _place(self, path: str, entry: stores.Entry | None = None) -> StorePath:
        assert self.url is not None
        store = stores.open_store(self.url, dict(self.options))
        found = store.path_of(path)
        if entry is not None:
            store.note(found, entry)
        return StorePath(store, found)


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of a log.

    Attributes:
        log: what is known of it, without segments.
        beside: names of the files beside the segments.
    """

    log: PartitionLog
    files: tuple[FoundFile, ...]
    beside: tuple[str, ...] = ()

    @classmethod
    def of(cls, log: PartitionLog) -> LogFiles:
        """Return those of a log. Raises InputError: not all segments are files."""
        known = replace(log, segments=(), beside={}, at_start=None)
        return cls(known, tuple(map(FoundFile.of, log.segments)), tuple(log.beside))

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(file.size for file in self.files)

    def open(self, stack: ExitStack) -> PartitionLog:
        """Open the log until the stack closes. Raises InputError."""
        segments = tuple(file.open(stack) for file in self.files)
        read_ahead(segments)
        beside = {name: partial(self.files[0].read_beside, name, stack) for name in self.beside if self.files}
        return replace(self.log, segments=segments, beside=beside)


def find_logs(reading: SourceOptions, stack: ExitStack) -> DiskLogs:
    """Open what a reading names, until the stack closes.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    options = reading.storage_options
    places = [
        place
        for path in reading.paths
        for place in (StorePath.of(path, options).expand() if options and is_url(path) else [path])
    ]
    opened = open_logs(places, as_partition=reading.as_partition, partitions=reading.offsets_partition)
    stack.enter_context(opened)
    if opened.are_of_dumps:
        raise InputError("this is a dump, not segments: read it by offsets-log, or as a DataFrame by table_of")
    return opened
