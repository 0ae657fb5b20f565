"""Find the partitions that grow, in directories that all machines see or in stores, and look at their files."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

from offsets_log.disk.folder import DirectoryName
from offsets_log.disk.growing import followed_directory, named_segments
from offsets_log.disk.local import input_errors
from offsets_log.disk.stored import Stored
from offsets_log.errors import InputError
from offsets_log.following.growth import SegmentFile
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.rows.tables import partition_name
from spark_jobs.directories import Directory
from spark_jobs.files import find_logs
from spark_jobs.options import SourceOptions


@dataclass(frozen=True, slots=True)
class Folder(Directory):
    """A partition's directory."""

    number: int | None = None

    @property
    def name(self) -> str:
        """The partition's name."""
        return partition_name(self.number)

    def files(self) -> list[SegmentFile]:
        """Return the segments that are there now, by base offset. Raises InputError."""
        found = {info.base_name: info for info in look_into(self) if info.is_file}
        return [
            SegmentFile(base_offset, name, found[name].size, found[name].mtime_ns or 0)
            for base_offset, name in named_segments(found)
        ]

    def piece(self, name: str, position: int, size_bytes: int) -> bytes:
        """Return a piece of a file, or less of it if there is not so much. Raises InputError."""

        def do(files: Any, path: str) -> bytes:
            with files.open_input_file(f"{path}/{name}") as file:
                left = min(size_bytes, file.size() - position)
                return bytes(file.read_at(left, position)) if left > 0 else b""

        with input_errors(f"{self.path}/{name}"):
            try:
                return self.ask(do)
            except FileNotFoundError:
                return b""


def look_into(directory: Directory) -> list[fs.FileInfo]:
    """Return what is in a directory now; sizes are looked at when all names are known. Raises InputError."""
    with input_errors(directory.path):
        return directory.listed(is_deep=False)


def open_folders(reading: SourceOptions) -> Callable[[], list[Folder]]:
    """Return a function that says which partitions there are at the time it is called, sorted.

    Raises:
        InputError: nothing was found, or something else was named than directories.
    """
    with ExitStack() as stack:
        known = {log.offsets_partition: _folder_of(log) for log in find_logs(reading, stack).logs}
    named = (folder for folder in known.values() if DirectoryName.parse(posixpath.basename(folder.path)).is_offsets)
    above = {Directory(posixpath.dirname(one.path), one.options, one.url) for one in named}

    def look() -> list[Folder]:
        for directory in above:
            for name in (info.base_name for info in look_into(directory) if not info.is_file):
                parsed = DirectoryName.parse(name)
                is_asked = not reading.offsets_partition or parsed.partition in reading.offsets_partition
                if parsed.is_offsets and not parsed.leftover and is_asked:
                    folder = Folder(f"{directory.path}/{name}", directory.options, directory.url, parsed.partition)
                    known.setdefault(parsed.partition, folder)
        return sorted(known.values(), key=lambda folder: -1 if folder.number is None else folder.number)

    return look


def _folder_of(log: PartitionLog) -> Folder:
    """Return the directory of a log's segments. Raises InputError: something else was named."""
    file, contents = log.segments[0].file, log.segments[0].contents
    if not isinstance(contents, Stored):
        return Folder(str(followed_directory(log).absolute()), number=log.offsets_partition)
    if log.selection is not None:
        raise InputError("only directories are followed: a data directory, or partitions of one", file=file)
    store = contents.path.store
    return Folder(posixpath.dirname(file), tuple(sorted(store.options.items())), store.url, log.offsets_partition)
