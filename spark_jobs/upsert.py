"""Write what changed in a batch into tables that are current: for each offsets partition a file that is replaced whole.

Tasks write files with new names beside the table, the driver puts them in their places, and each file says which batch
it is of: a batch that is written again changes nothing, however far it came the first time. Readers see the offsets of
a partition before a batch or after it, never between.
"""

from __future__ import annotations

import json
import posixpath
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame

from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.disk.writer import output_errors
from offsets_log.errors import OutputError
from spark_jobs.effects import UNKNOWN
from spark_jobs.files import open_store, path_here
from spark_jobs.places import WITH_DIRECTORIES
from spark_jobs.stateful import COLUMNS, DAMAGED, GROUPS, KEYS, OFFSETS, TELLS_GONE

STAGED = ".staged"
ABOUT = "_follow.json"
BATCH = b"offsets_log.batch"
WRITTEN = "staged string, place string"
LATEST = (OFFSETS, GROUPS)
CHANGED = {OFFSETS: "offset_changes", GROUPS: "group_changes"}
DAMAGE_COLUMNS = pa.schema(
    [("file", pa.string()), ("position", pa.int64()), ("record_offset", pa.int64()), ("field", pa.string()),
     ("kind", pa.string()), ("problem", pa.string()), ("raw_base64", pa.string())]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A directory of tables, on a disk that all machines see or in a store; files in it appear whole."""

    url: str
    options: tuple[tuple[str, Any], ...] = ()

    def open(self) -> tuple[fs.FileSystem, str]:
        """Return its file system, and its path there."""
        here = path_here(self.url)
        if here is not None:
            return fs.LocalFileSystem(), str(Path(here).absolute())
        store, path = open_store(self.url, self.options)
        return store, path.rstrip("/")

    def names(self, folder: str = "") -> list[str]:
        """Return the names of all files in it, or in a folder of it, but those that are being written."""
        store, root = self.open()
        inside = posixpath.join(root, folder).rstrip("/")
        with output_errors(self.url):
            infos = store.get_file_info(fs.FileSelector(inside, recursive=True, allow_not_found=True))
        names = (info.path[len(root) + 1 :] for info in infos if info.is_file)
        return sorted(name for name in names if not name.startswith("."))

    def write(self, name: str, write: Callable[[Any], None]) -> None:
        """Write a file with a name that is new, or that nobody reads yet."""
        store, root = self.open()
        path = f"{root}/{name}"
        with output_errors(self.url):
            if store.type_name in WITH_DIRECTORIES:
                store.create_dir(posixpath.dirname(path), recursive=True)
            with store.open_output_stream(path) as file:
                write(file)

    def read(self, name: str) -> bytes | None:
        """Return a file; None where there is none."""
        store, root = self.open()
        with output_errors(self.url):
            try:
                with store.open_input_file(f"{root}/{name}") as file:
                    return bytes(file.readall())
            except FileNotFoundError:
                return None

    def move(self, staged: str, name: str) -> None:
        """Put a file in its place, in one step for those who read; one that was moved before stays."""
        store, root = self.open()
        with output_errors(self.url):
            if store.type_name in WITH_DIRECTORIES:
                store.create_dir(posixpath.dirname(f"{root}/{name}"), recursive=True)
            store.move(f"{root}/{staged}", f"{root}/{name}")

    def remove(self, folder: str) -> None:
        """Remove a folder, if it is there."""
        store, root = self.open()
        with output_errors(self.url), suppress(FileNotFoundError):
            store.delete_dir(f"{root}/{folder}")


@dataclass(frozen=True, slots=True)
class Upsert:
    """Writes batches into tables.

    Attributes:
        with_changes: also keep what changed in each batch, as tables of their own.
    """

    place: TablePlace
    with_changes: bool = False

    def begin(self) -> None:
        """Remove what a run that was ended has left, and write tables without rows, so that they can be read."""
        self.place.remove(STAGED)
        there = set(self.place.names())
        for kind in LATEST:
            name = f"{kind}/columns.parquet"
            if name not in there:
                empty = schema_of(COLUMNS[kind]).empty_table()
                self.place.write(name, partial(pq.write_table, empty))

    def write(self, changes: DataFrame, batch: int) -> None:
        """Write a batch; what ``foreachBatch`` calls."""
        rows = changes.groupBy("offsets_partition").applyInArrow(self.writer(batch), WRITTEN)
        for row in rows.collect():
            self.place.move(row["staged"], row["place"])

    def writer(self, batch: int) -> Callable[[pa.Table], pa.Table]:
        """Return the function that writes the files of an offsets partition, and says what is to be moved where."""
        place, with_changes = self.place, self.with_changes

        def write_one(table: pa.Table) -> pa.Table:
            return _write_partition(place, with_changes, batch, table)

        return write_one

    def count(self, kind: str) -> int:
        """Return how many rows a table has."""
        return sum(_metadata(self.place, name).num_rows for name in self.place.names(kind))

    def damages(self) -> list[dict[str, Any]]:
        """Return what could not be read since the stream began."""
        names = self.place.names(DAMAGED)
        return [row for name in names for row in pq.read_table(_buffer(self.place, name)).to_pylist()]


def _metadata(place: TablePlace, name: str) -> pq.FileMetaData:
    return pq.ParquetFile(_buffer(place, name)).metadata


def _buffer(place: TablePlace, name: str) -> pa.BufferReader:
    return pa.BufferReader(place.read(name) or b"")


def _write_partition(place: TablePlace, with_changes: bool, batch: int, table: pa.Table) -> pa.Table:
    number = table["offsets_partition"][0].as_py()
    name = "unknown" if number == UNKNOWN else f"{number:05}"
    written: list[dict[str, str]] = []

    def stage(rows: pa.Table, folder: str, file: str) -> None:
        staged = f"{STAGED}/{batch}-{folder}-{name}-{secrets.token_hex(4)}.parquet"
        marked = rows.replace_schema_metadata({BATCH: str(batch)})
        place.write(staged, partial(pq.write_table, marked, compression="zstd"))
        written.append({"staged": staged, "place": f"{folder}/{file}.parquet"})

    for kind in LATEST:
        changes = _changes(table, kind)
        if len(changes):
            latest = _latest(place, f"{kind}/{name}.parquet", batch, changes, kind)
            if latest is not None:
                stage(latest, kind, name)
            if with_changes:
                numbered = changes.append_column("batch", pa.array([batch] * len(changes), pa.int64()))
                stage(numbered, CHANGED[kind], f"{batch:012}-{name}")
    if damages := list(map(json.loads, _of_kind(table, DAMAGED))):
        stage(pa.Table.from_pylist(damages, DAMAGE_COLUMNS), DAMAGED, f"{batch:012}-{name}")
    return pa.Table.from_pylist(written, pa.schema([("staged", pa.string()), ("place", pa.string())]))


def _of_kind(table: pa.Table, kind: str) -> list[bytes]:
    held: list[bytes] = table.filter(pc.equal(table["kind"], kind))["held"].to_pylist()
    return held


def _changes(table: pa.Table, kind: str) -> pa.Table:
    tables = (pa.ipc.open_stream(held).read_all() for held in _of_kind(table, kind))
    return pa.concat_tables([schema_of(COLUMNS[kind]).empty_table(), *tables])


def _latest(place: TablePlace, name: str, batch: int, changes: pa.Table, kind: str) -> pa.Table | None:
    """Return a file's rows after a batch; None if it has them already. Raises OutputError: it is beyond the batch."""
    keys = list(KEYS[kind])
    data = place.read(name)
    rows = changes.filter(pc.is_valid(changes[TELLS_GONE[kind]]))
    if data is not None:
        before = pq.read_table(pa.BufferReader(data))
        written = int(before.schema.metadata[BATCH])
        if written > batch:
            raise OutputError(f"this is of batch {written}, and batch {batch} is written", file=f"{place.url}/{name}")
        if written == batch:
            return None
        stay = before.join(changes.select(keys), keys, join_type="left anti").select(changes.schema.names)
        rows = pa.concat_tables([stay.cast(changes.schema), rows])
    return rows.sort_by([(key, "ascending") for key in keys])
