"""New directories that tasks write into: on a disk that all of them see, or in a store."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from offsets_log.disk.folders import WRITTEN_AT_ONCE, write_file
from offsets_log.disk.writer import output_errors
from offsets_log.errors import OutputError
from offsets_log.log_format.segment import Buffer
from spark_jobs.files import open_store, path_here

WITH_DIRECTORIES = ("hdfs", "local")
"""Stores where a directory has to be made before a file in it."""


@dataclass(frozen=True, slots=True)
class SharedPlace:
    """A directory of a disk that all machines see."""

    path: str

    def write(self, name: str, pieces: Iterable[Buffer], modified_ms: int | None = None) -> None:
        """Implement `Place.write`; a file with its final name is whole, and a task may write it again."""
        target = Path(self.path, name)
        target.parent.mkdir(exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}.tmp")
        with output_errors(target):
            write_file(temporary, pieces, modified_ms)
            temporary.replace(target)

    def keep(self, folder: str, names: Iterable[str]) -> None:
        """Remove all files of a folder but these, such as of tasks that were ended."""
        kept = set(names)
        for path in Path(self.path, folder).glob("*"):
            if path.name not in kept:
                path.unlink()


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A directory of a store. It keeps no times, and shows files one by one."""

    url: str

    def write(self, name: str, pieces: Iterable[Buffer], modified_ms: int | None = None) -> None:
        """Implement `Place.write`."""
        store, root = self._root()
        path = f"{root}/{name}"
        with output_errors(self.url):
            if store.type_name in WITH_DIRECTORIES:
                store.create_dir(posixpath.dirname(path), recursive=True)
            with store.open_output_stream(path) as file:
                for piece in pieces:
                    view = memoryview(piece)
                    for at in range(0, len(view), WRITTEN_AT_ONCE):
                        file.write(view[at : at + WRITTEN_AT_ONCE])

    def keep(self, folder: str, names: Iterable[str]) -> None:
        """Implement `SharedPlace.keep`."""
        kept = set(names)
        for info in self.files(folder):
            if info.base_name not in kept:
                self._root()[0].delete_file(info.path)

    def remove(self) -> None:
        """Remove all of it, as far as the store allows."""
        store, root = self._root()
        with suppress(OSError):
            store.delete_dir(root)

    def files(self, folder: str = "") -> list[fs.FileInfo]:
        """Return all files in it, or in a folder of it. Raises OutputError: the store cannot be reached."""
        store, root = self._root()
        with output_errors(self.url):
            found = store.get_file_info(
                fs.FileSelector(posixpath.join(root, folder).rstrip("/"), recursive=True, allow_not_found=True)
            )
        return [info for info in found if info.is_file]

    def _root(self) -> tuple[fs.FileSystem, str]:
        store, path = open_store(self.url, ())
        return store, path.rstrip("/")


TaskPlace = SharedPlace | StorePlace
"""A place into which tasks write."""


def _path(url: str) -> str:
    return open_store(url, ())[1].rstrip("/")


@contextmanager
def new_in_store(url: str, inputs: Sequence[str]) -> Iterator[StorePlace]:
    """Make a directory that a store does not have yet; if the block fails, nothing is left in it.

    Args:
        inputs: paths and URLs that are read.

    Raises:
        OutputError: something is there, it is inside of an input, or the store refuses.
    """
    place, path = StorePlace(url), f"{_path(url)}/"
    if any(path.startswith(f"{_path(given)}/") for given in inputs if path_here(given) is None):
        raise OutputError("this is inside of an input", file=url)
    if place.files():
        raise OutputError("this exists and is not an empty directory", file=url)
    try:
        yield place
    except BaseException:
        place.remove()
        raise
