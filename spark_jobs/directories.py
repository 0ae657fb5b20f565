"""Directories that tasks read and write: on a disk that all machines see, or in a store."""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from offsets_log.disk import stores
from offsets_log.disk.asking import Patience
from offsets_log.disk.local import place_of
from offsets_log.disk.urls import is_url, without_secrets
from offsets_log.disk.writer import output_errors
from offsets_log.errors import OutputError
from offsets_log.log_format.segment import Buffer

WITH_DIRECTORIES = ("hdfs", "local")
"""File systems where a directory has to be made before a file in it, and is renamed in one step."""
COMPRESSION = "zstd"
Options = tuple[tuple[str, Any], ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory; files in it appear whole, and a task may write one again. In a store, what fails is tried again.

    Attributes:
        path: a path, or a URL of a store.
        options: of the store, as fsspec takes them.
        url: a URL that opens the store; None where ``path`` does.
    """

    path: str
    options: Options = ()
    url: str | None = None

    @property
    def shown(self) -> str:
        """Its name without secrets."""
        return without_secrets(self.path) if is_url(self.path) else self.path

    def open(self) -> tuple[fs.FileSystem, str]:
        """Return its file system, and its path there. Raises InputError: there is no such kind of store."""
        if not is_url(self.path):
            return fs.LocalFileSystem(), str(Path(str(place_of(self.path))).absolute())
        store = stores.open_store(self.url or self.path, dict(self.options))
        return store.files, store.path_of(self.path).rstrip("/")

    def ask(self, do: Callable[[Any, str], T]) -> T:
        """Return what a function does with its file system and its path there. Raises OutputError."""
        with output_errors(self.shown):
            return self._answer(do)

    def _answer(self, do: Callable[[Any, str], T]) -> T:
        files, path = self.open()
        if files.type_name == "local":
            return do(files, path)
        return Patience(self.shown).answered(partial(do, files, path), stores.is_final, None)

    def listed(self, folder: str = "", *, is_deep: bool = True) -> list[fs.FileInfo]:
        """Return what is there now in it, or in a folder of it."""

        def look(files: Any, root: str) -> list[fs.FileInfo]:
            inside = posixpath.join(root, folder).rstrip("/")
            return list(files.get_file_info(fs.FileSelector(inside, recursive=is_deep, allow_not_found=True)))

        return self.ask(look)

    def names(self, folder: str = "") -> list[str]:
        """Return the names of all files in it, or in a folder of it, but those that are being written."""
        root = self.open()[1]
        names = (info.path[len(root) + 1 :] for info in self.listed(folder) if info.is_file)
        return sorted(name for name in names if not any(part.startswith(".") for part in name.split("/")))

    def write(self, name: str, pieces: Iterable[Buffer], modified_ms: int | None = None) -> None:
        """Implement `disk.folders.Place.write`; only a disk keeps times."""
        contents = [*pieces]

        def do(files: Any, root: str) -> None:
            path, is_moved = f"{root}/{name}", files.type_name in WITH_DIRECTORIES
            above, base = posixpath.split(path)
            part = f"{above}/.{base}.{secrets.token_hex(4)}.tmp" if is_moved else path
            if is_moved:
                files.create_dir(above, recursive=True)
            with files.open_output_stream(part) as file:
                for piece in contents:
                    file.write(piece)
            if modified_ms is not None and files.type_name == "local":
                os.utime(part, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
            if is_moved:
                files.move(part, path)

        self.ask(do)

    def put_tables(self, name: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
        """Write tables as one Parquet file, which grows on a disk of this machine; return how many rows it has."""
        count = 0
        with TemporaryDirectory() as here:
            path = f"{here}/{posixpath.basename(name)}"
            with pq.ParquetWriter(path, schema, compression=COMPRESSION) as writer:
                for table in tables:
                    count += len(table)
                    writer.write_table(table.cast(schema))
            with pa.memory_map(path) as file:
                self.write(name, [file.read_buffer()])
        return count

    def put_table(self, name: str, table: pa.Table) -> None:
        """Write a table as Parquet."""
        self.put_tables(name, table.schema, [table])

    def read(self, name: str) -> bytes | None:
        """Return a file; None where there is none."""

        def do(files: Any, root: str) -> bytes | None:
            try:
                with files.open_input_file(f"{root}/{name}") as file:
                    return bytes(file.readall())
            except FileNotFoundError:
                return None

        return self.ask(do)

    def table(self, name: str) -> pa.Table:
        """Return a Parquet file's rows."""
        return pq.read_table(pa.BufferReader(self.read(name) or b""))

    def move(self, staged: str, name: str) -> None:
        """Put a file in its place, in one step for those who read."""

        def do(files: Any, root: str) -> None:
            if files.type_name in WITH_DIRECTORIES:
                files.create_dir(posixpath.dirname(f"{root}/{name}"), recursive=True)
            _move(files, f"{root}/{staged}", f"{root}/{name}")

        self.ask(do)

    def remove(self, folder: str = "") -> None:
        """Remove it, or a folder in it, as far as the store allows."""
        with suppress(OutputError):
            self.ask(lambda files, root: files.delete_dir(posixpath.join(root, folder).rstrip("/")))

    def tidy(self) -> None:
        """Remove what tasks that were ended have left."""

        def do(files: Any, root: str) -> None:
            for info in files.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True)):
                if info.is_file and info.base_name.startswith("."):
                    files.delete_file(info.path)

        self.ask(do)

    def check_free(self) -> None:
        """Raise OutputError if something is there."""
        if self.ask(lambda files, root: files.get_file_info(root)).is_file or self.listed(is_deep=False):
            raise OutputError("this exists and is not an empty directory: give a new one", file=self.shown)

    def refuse_inside(self, others: Sequence[str]) -> None:
        """Raise OutputError if it is one of other directories with the same options, or inside of it."""
        files, path = self.open()
        for other in others:
            other_files, above = Directory(other, self.options).open()
            if other_files.type_name == files.type_name and f"{path}/".startswith(f"{above.rstrip('/')}/"):
                raise OutputError(f"this is inside of {without_secrets(other)}: write elsewhere", file=self.shown)

    @contextmanager
    def staged(self) -> Iterator[Directory]:
        """Make it: yield a place beside it that takes its name when the block succeeds; else nothing is left.

        In a store that cannot rename, files are put into their places one by one.
        """
        base, sign, query = self.path.partition("?") if is_url(self.path) else (self.path, "", "")
        above, name = posixpath.split(base.rstrip("/"))
        place = Directory(f"{posixpath.join(above, f'.{name}.{secrets.token_hex(4)}.tmp')}{sign}{query}", self.options)
        made = place.open()[1]

        def make(files: Any, path: str) -> None:
            if files.type_name in WITH_DIRECTORIES:
                files.create_dir(path, recursive=True)

        def take(files: Any, root: str) -> None:
            if files.type_name not in WITH_DIRECTORIES:
                for file in place.names():
                    _move(files, f"{made}/{file}", f"{root}/{file}")
            elif files.get_file_info(made).type == fs.FileType.Directory:  # else it was renamed, and nobody heard of it
                if files.get_file_info(root).type == fs.FileType.Directory:
                    files.delete_dir(root)
                files.move(made, root)

        try:
            place.ask(make)
            yield place
            place.tidy()
            self.ask(take)
        finally:
            place.remove()


def _move(files: Any, source: str, target: str) -> None:
    """Move a file that nobody else writes; where it is gone it was moved before, and nobody heard of it."""
    if not files.get_file_info(target).is_file or files.get_file_info(source).is_file:
        files.move(source, target)
