"""Find the partitions that grow, in directories of this machine or in stores, and look at their files."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyarrow import fs

from offsets_log.disk import stores
from offsets_log.disk.folder import DirectoryName
from offsets_log.disk.growing import (
    GrowingDirectories,
    followed_directory,
    named_segments,
    partition_of,
    read_at,
    segment_files,
)
from offsets_log.disk.local import input_errors
from offsets_log.disk.reader import open_logs
from offsets_log.errors import InputError
from offsets_log.following.growth import SegmentFile
from offsets_log.rows.tables import partition_name
from spark_jobs.files import Options
from spark_jobs.places import path_here


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A partition's directory on a disk that all machines see."""

    path: str

    def files(self) -> list[SegmentFile]:
        """Return the segments that are there now, by base offset."""
        return segment_files(Path(self.path))

    def read(self, name: str, position: int, size_bytes: int) -> bytes:
        """Return a piece of a file, or less of it if there is not so much. Raises InputError."""
        return read_at(Path(self.path), name, position, size_bytes)


@dataclass(frozen=True, slots=True)
class StoredFolder:
    """A partition's directory in a store.

    Attributes:
        path: URL of the directory without a query; the store is that of ``url``.
    """

    path: str
    url: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def _store(self) -> stores.Store:
        return stores.open_store(self.url, dict(self.options))

    def files(self) -> list[SegmentFile]:
        """Implement `LocalFolder.files`."""
        store = self._store
        with input_errors(self.path):
            infos = store.files.get_file_info(fs.FileSelector(store.path_of(self.path), allow_not_found=True))
        found = {info.base_name: info for info in infos if info.is_file}
        return [
            SegmentFile(base_offset, name, found[name].size, found[name].mtime_ns or 0)
            for base_offset, name in named_segments(found)
        ]

    def read(self, name: str, position: int, size_bytes: int) -> bytes:
        """Implement `LocalFolder.read`."""
        with input_errors(f"{self.path}/{name}"):
            try:
                with self._store.files.open_input_file(f"{self._store.path_of(self.path)}/{name}") as file:
                    size_bytes = min(size_bytes, file.size() - position)
                    return bytes(file.read_at(size_bytes, position)) if size_bytes > 0 else b""
            except FileNotFoundError:
                return b""


Folder = LocalFolder | StoredFolder
Folders = Mapping[int | None, Folder]


def open_folders(
    paths: Sequence[str], *, as_partition: int | None, partitions: Sequence[int], options: Options
) -> Callable[[], Folders]:
    """Return a function that says which partitions there are, and where, at the time it is called.

    Raises:
        InputError: nothing was found, or something else was named than directories.
    """
    local = [path for path in map(path_here, paths) if path is not None]
    if local and len(local) < len(paths):
        raise InputError("paths on this machine and in a remote store cannot be read together")
    if not local:
        look = partial(_stored_folders, tuple(paths), as_partition, frozenset(partitions), options)
        if not look():
            raise InputError(f"no segment of __consumer_offsets was found in {', '.join(paths)}")
        return look
    with ExitStack() as stack:
        opened = stack.enter_context(open_logs(local, as_partition=as_partition, partitions=partitions))
        known = [(log.offsets_partition, followed_directory(log).absolute()) for log in opened.logs]
    named = [path for _, path in known if partition_of(path) is not None]
    others: Folders = {number: LocalFolder(str(path)) for number, path in known if partition_of(path) is None}
    growing = GrowingDirectories(named, partitions)
    return lambda: {**others, **{number: LocalFolder(str(path)) for number, path in growing.look().items()}}


def _stored_folders(
    urls: Sequence[str], as_partition: int | None, partitions: frozenset[int], options: Options
) -> Folders:
    frozen = tuple(sorted(options.items()))
    found: dict[int | None, Folder] = {}
    for url in urls:
        store = stores.open_store(url, options)
        root = store.path_of(url)
        with input_errors(store.shown(root)):
            infos = store.files.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
        directories = {posixpath.dirname(info.path) for info in infos if info.is_file and info.extension == "log"}
        for directory in sorted(directories):
            name = DirectoryName.parse(posixpath.basename(directory))
            number = name.partition if name.is_offsets else as_partition
            if name.leftover or name.is_foreign or (partitions and number not in partitions):
                continue
            folder = StoredFolder(store.shown(directory), url, frozen)
            if (other := found.setdefault(number, folder)) != folder:
                raise InputError(
                    f"offsets partition {partition_name(number)} lies in {other.path} too: name one of them",
                    file=folder.path,
                )
    return found
