"""New directories that tasks write into: on a disk that all machines see, or in a store."""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from offsets_log.disk import stores
from offsets_log.disk.folders import WRITTEN_AT_ONCE, write_file
from offsets_log.disk.local import place_of
from offsets_log.disk.urls import is_url, without_secrets
from offsets_log.disk.writer import output_errors
from offsets_log.errors import OutputError
from offsets_log.log_format.segment import Buffer

WITH_DIRECTORIES = ("hdfs", "local")
"""File systems where a directory has to be made before a file in it, and is renamed in one step."""
COMPRESSION = "zstd"
Options = tuple[tuple[str, Any], ...]


def path_here(path: str) -> str | None:
    """Return a path of this machine; None for a URL of a store."""
    return None if is_url(path) else str(place_of(path))


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """A directory; files in it appear whole, and a task may write one again.

    Attributes:
        url: a path, or a URL of a store.
        options: of the store, as fsspec takes them.
    """

    url: str
    options: Options = ()

    @property
    def shown(self) -> str:
        """Its name without secrets."""
        return without_secrets(self.url) if is_url(self.url) else self.url

    def open(self) -> tuple[fs.FileSystem, str]:
        """Return its file system, and its path there. Raises InputError: there is no such kind of store."""
        here = path_here(self.url)
        if here is not None:
            return fs.LocalFileSystem(), str(Path(here).absolute())
        store = stores.open_store(self.url, dict(self.options))
        return store.files, store.path_of(self.url).rstrip("/")

    def names(self, folder: str = "") -> list[str]:
        """Return the names of all files in it, or in a folder of it, but those that are being written."""
        store, root = self.open()
        inside = posixpath.join(root, folder).rstrip("/")
        with output_errors(self.shown):
            infos = store.get_file_info(fs.FileSelector(inside, recursive=True, allow_not_found=True))
        names = (info.path[len(root) + 1 :] for info in infos if info.is_file)
        return sorted(name for name in names if not any(part.startswith(".") for part in name.split("/")))

    def put(self, name: str, write: Callable[[Any], None]) -> None:
        """Write a file by a function that is given its stream."""
        store, root = self.open()
        path = f"{root}/{name}"
        is_moved = store.type_name in WITH_DIRECTORIES
        part = f"{posixpath.dirname(path)}/.{posixpath.basename(path)}.{secrets.token_hex(4)}" if is_moved else path
        with output_errors(self.shown):
            if is_moved:
                store.create_dir(posixpath.dirname(path), recursive=True)
            with store.open_output_stream(part) as file:
                write(file)
            if is_moved:
                store.move(part, path)

    def put_table(self, name: str, table: pa.Table) -> None:
        """Write a table as Parquet."""
        self.put(name, lambda file: pq.write_table(table, file, compression=COMPRESSION))

    def write(self, name: str, pieces: Iterable[Buffer], modified_ms: int | None = None) -> None:
        """Implement `disk.folders.Place.write`; a store keeps no times."""
        if (here := path_here(self.url)) is not None:
            target = Path(here, name)
            part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
            with output_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                write_file(part, pieces, modified_ms)
                part.replace(target)
            return

        def write(file: Any) -> None:
            for piece in pieces:
                view = memoryview(piece)
                for at in range(0, len(view), WRITTEN_AT_ONCE):
                    file.write(view[at : at + WRITTEN_AT_ONCE])

        self.put(name, write)

    def read(self, name: str) -> bytes | None:
        """Return a file; None where there is none."""
        store, root = self.open()
        with output_errors(self.shown):
            try:
                with store.open_input_file(f"{root}/{name}") as file:
                    return bytes(file.readall())
            except FileNotFoundError:
                return None

    def move(self, staged: str, name: str) -> None:
        """Put a file in its place, in one step for those who read."""
        store, root = self.open()
        with output_errors(self.shown):
            if store.type_name in WITH_DIRECTORIES:
                store.create_dir(posixpath.dirname(f"{root}/{name}"), recursive=True)
            store.move(f"{root}/{staged}", f"{root}/{name}")

    def table(self, name: str) -> pa.Table:
        """Return a Parquet file's rows."""
        return pq.read_table(pa.BufferReader(self.read(name) or b""))

    def remove(self, folder: str = "") -> None:
        """Remove it, or a folder in it, as far as the store allows."""
        store, root = self.open()
        with suppress(OSError):
            store.delete_dir(posixpath.join(root, folder).rstrip("/"))

    def tidy(self) -> None:
        """Remove what tasks that were ended have left."""
        store, root = self.open()
        with output_errors(self.shown):
            for info in store.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True)):
                if info.is_file and info.base_name.startswith("."):
                    store.delete_file(info.path)

    def check_free(self, inputs: Sequence[str] = ()) -> None:
        """Raise OutputError if something is there, or it is inside of an input in a store."""
        store, root = self.open()
        with output_errors(self.shown):
            there = store.get_file_info(root)
            is_taken = there.is_file or bool(store.get_file_info(fs.FileSelector(root, allow_not_found=True)))
        if is_taken:
            raise OutputError("this exists and is not an empty directory: give a new one", file=self.shown)
        for given in inputs:
            other, path = OutputPlace(given, self.options).open()
            if other.type_name == store.type_name and f"{root}/".startswith(f"{path.rstrip('/')}/"):
                raise OutputError("this is inside of an input: write elsewhere", file=self.shown)

    @contextmanager
    def staged(self) -> Iterator[OutputPlace]:
        """Make it: yield a place beside it that takes its name when the block succeeds; else nothing is left.

        In a store that cannot rename, files are put into their places one by one.
        """
        store, root = self.open()
        base, query = self.url.rstrip("/").partition("?")[::2] if is_url(self.url) else (self.url.rstrip("/"), "")
        folder, name = posixpath.split(base)
        staged = f"{folder}/.{name}.{secrets.token_hex(4)}.tmp" if folder else f".{name}.{secrets.token_hex(4)}.tmp"
        place = OutputPlace(f"{staged}?{query}" if query else staged, self.options)
        try:
            yield place
            place.tidy()
            with output_errors(self.shown):
                if store.type_name in WITH_DIRECTORIES:
                    store.create_dir(place.open()[1], recursive=True)
                    if store.get_file_info(root).type == fs.FileType.Directory:
                        store.delete_dir(root)
                    store.move(place.open()[1], root)
                    return
                for file in place.names():
                    store.move(f"{place.open()[1]}/{file}", f"{root}/{file}")
        finally:
            place.remove()

    @contextmanager
    def appearing(self, inputs: Sequence[str]) -> Iterator[OutputPlace]:
        """Make it where files are too large to be written twice; if the block fails, nothing is left in it."""
        self.check_free(inputs)
        try:
            yield self
        except BaseException:
            self.remove()
            raise
