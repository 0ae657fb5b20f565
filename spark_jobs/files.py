"""Logs as tasks open them: files on a disk that all machines see, or in a store, where segments are fetched one by one.

The driver finds them by the library's own code, which knows which copy of a partition is read; a task gets their names.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from offsets_log.disk.archives import unpack_one
from offsets_log.disk.finder import PACKED
from offsets_log.disk.local import Place, map_file, segment_of
from offsets_log.disk.reader import DiskLogs, open_logs
from offsets_log.disk.stored import Stored, StorePath, read_ahead
from offsets_log.disk.stores import Entry, open_store
from offsets_log.disk.urls import is_url
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog, Segment
from spark_jobs.directories import Options
from spark_jobs.options import SourceOptions


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of a log.

    Attributes:
        log: what is known of it. Its segments have no contents; their files are paths to open and to show, in a store
            URLs without secrets.
        sizes: sizes of the segments in bytes as stored.
        beside: names of the files beside the segments.
        store: a URL of their store, and its options; None on this machine.
        following: where these are not all segments of the log, the base offset of the next one.
    """

    log: PartitionLog
    sizes: tuple[int, ...] = ()
    beside: tuple[str, ...] = ()
    store: tuple[str, Options] | None = None
    following: int | None = None

    @classmethod
    def of(cls, log: PartitionLog) -> LogFiles:
        """Return those of a log. Raises InputError: not all segments are files."""
        contents = (segment.contents for segment in log.segments)
        stored = next((one.path.store for one in contents if isinstance(one, Stored)), None)
        segments = tuple(
            replace(one, file=one.file if stored else file_of(one), contents=b"", zeros_behind=0)
            for one in log.segments
        )
        store = None if stored is None else (stored.url, tuple(sorted(stored.options.items())))
        sizes = tuple(one.size_bytes for one in log.segments)
        return cls(replace(log, segments=segments, beside={}, at_start=None), sizes, tuple(log.beside), store)

    @property
    def size_bytes(self) -> int:
        """Size of all segments."""
        return sum(self.sizes)

    def cut(self, most_bytes: int) -> list[LogFiles]:
        """Return parts of no more bytes, but each of one whole segment at least."""
        bounds, size_bytes = [0], 0
        for index, size in enumerate(self.sizes):
            if size_bytes and size_bytes + size > most_bytes:
                bounds.append(index)
                size_bytes = 0
            size_bytes += size
        segments, parts = self.log.segments, []
        for begin, end in pairwise((*bounds, len(segments))):
            following = segments[end].base_offset if end < len(segments) else None
            log = replace(self.log, segments=segments[begin:end])
            parts.append(replace(self, log=log, sizes=self.sizes[begin:end], following=following))
        return parts

    def open(self, stack: ExitStack) -> PartitionLog:
        """Open the log until the stack closes. Raises InputError."""
        segments = tuple(self._segments(stack))
        read_ahead(segments)
        above = posixpath.dirname(segments[0].file) if segments else ""
        beside = {name: partial(map_file, self._place(posixpath.join(above, name)), stack) for name in self.beside}
        return replace(self.log, segments=segments, beside=beside)

    def _segments(self, stack: ExitStack) -> Iterator[Segment]:
        for segment, size_bytes in zip(self.log.segments, self.sizes, strict=True):
            place = self._place(segment.file)
            if isinstance(place, StorePath):
                place.store.note(place.path, Entry(size_bytes, segment.modified_ms))
            contents, zeros = segment_of(place, stack)
            if segment.file.endswith(PACKED):
                contents = unpack_one(segment.file, contents() if isinstance(contents, Stored) else contents)
            yield replace(segment, contents=contents, zeros_behind=zeros)

    def _place(self, path: str) -> Place:
        if self.store is None:
            return Path(path)
        url, options = self.store
        store = open_store(url, dict(options))
        return StorePath(store, store.path_of(path))


def file_of(segment: Segment) -> str:
    """Return the path of a segment that is a file of this machine. Raises InputError: it is none."""
    if segment.is_restored or not Path(segment.file).is_file():
        raise InputError("Spark reads segment files: unpack archives, and write pipes into files", file=segment.file)
    return str(Path(segment.file).absolute())


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
