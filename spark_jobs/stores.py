"""Find segments on this machine's disk, or in any file system that pyarrow or fsspec knows (s3, gs, hdfs, abfs …).

Local paths are found as the command line finds them. In a remote store a path is a data directory, a partition
directory or a segment; names mean what they mean on a disk. Archives are read by the command line only.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from pyarrow import fs

from offsets_log.data_directory.directory import Opener
from offsets_log.disk.alike import Alike
from offsets_log.disk.finder import MAX_DEPTH, Finder
from offsets_log.disk.folder import (
    DirectoryName,
    Folder,
    checkpoints,
    lies_in,
    link_data_directories,
    matters_in,
)
from offsets_log.disk.local import input_errors
from offsets_log.disk.one_topic import refuse_several_topics
from offsets_log.disk.reader import NAMED, leader_of, open_logs
from offsets_log.disk.replicas import choose_replica
from offsets_log.disk.segments import select_segments
from offsets_log.errors import InputError
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import NOTHING_TOLD, Checkpoints, PartitionLog, Segment
from spark_jobs.files import FoundFile, open_store
from spark_jobs.stored_partitions import StoredPartition

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FoundLog:
    """The files of one offsets partition, by base offset; the attributes are those of `PartitionLog`."""

    offsets_partition: int | None
    files: tuple[FoundFile, ...]
    notes: tuple[str, ...] = ()
    checkpoints: Checkpoints = NOTHING_TOLD
    selection: str | None = None
    beside: Mapping[str, Opener] = field(default_factory=dict)

    def unread(self) -> PartitionLog:
        """Return the log as far as it is known without reading it: names and sizes."""
        segments = tuple(
            Segment(file.path, file.base_offset, b"", zeros_behind=file.size, modified_ms=file.modified_ms)
            for file in self.files
        )
        return PartitionLog(
            self.offsets_partition, segments, self.notes, self.checkpoints, self.beside, self.selection
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FoundLogs:
    """All logs; notes on what was left out; absent partitions."""

    logs: list[FoundLog]
    notes: tuple[str, ...]
    absent: tuple[Missing, ...] = ()


def find_logs(
    paths: Sequence[str],
    stack: ExitStack,
    *,
    as_partition: int | None = None,
    partitions: Collection[int] = (),
    options: Options | None = None,
    finder: Finder | None = None,
) -> FoundLogs:
    """Find the logs of local paths and URLs; arguments as in `offsets_log.disk.reader.open_logs`.

    Args:
        options: options of a remote store, as fsspec's file system of its kind takes them.
        finder: gets the data directories in a remote store, their partitions of other topics, and what is left out.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    local = [path for path in map(path_here, paths) if path is not None]
    remote = [path for path in paths if path_here(path) is None]
    if local and remote:
        raise InputError("paths on this machine and in a remote store cannot be read together")
    if remote:
        return _find_remote(remote, finder or Finder(partitions, stack), options or {}, as_partition, partitions)
    opened = stack.enter_context(open_logs(local, as_partition=as_partition, partitions=partitions))
    return FoundLogs([_local_log(log) for log in opened.logs], tuple(opened.notes), tuple(opened.absent))


def path_here(path: str) -> str | None:
    """Return a path of this machine; None for a URL of a remote store."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return None if _URL.match(path) else path


def _local_log(log: PartitionLog) -> FoundLog:
    files = []
    for segment in log.segments:
        if not Path(segment.file).is_file():
            raise InputError(
                "Spark reads segment files; unpack archives, and write pipes into files", file=segment.file
            )
        mapped = PartitionLog(log.offsets_partition, (segment,))
        files.append(
            FoundFile(str(Path(segment.file).absolute()), segment.base_offset, segment.size_bytes, mapped=mapped)
        )
    return FoundLog(log.offsets_partition, tuple(files), log.notes, log.checkpoints, log.selection)


def is_parquet(paths: Sequence[str], options: Options | None = None) -> bool:
    """Return whether the input is Parquet written by ``decode -o parquet``."""
    return all(_holds_parquet(path, options or {}) for path in paths)


def _holds_parquet(path: str, options: Options) -> bool:
    """Return whether a path is a Parquet file, or a directory with Parquet files and no log."""
    if path.endswith(".parquet"):
        return True
    local = path_here(path)
    if local is not None:
        return next(Path(local).glob("*.parquet"), None) is not None
    store, inside = open_store(path, tuple(sorted(options.items())))
    with input_errors(path):
        entries = store.get_file_info(fs.FileSelector(inside, allow_not_found=True))
    return any(entry.base_name.endswith(".parquet") for entry in entries)


# ------------------------------------------------------------------------------------------ remote stores


def _find_remote(
    urls: Sequence[str], finder: Finder, options: Options, as_partition: int | None, partitions: Collection[int]
) -> FoundLogs:
    frozen = tuple(sorted(options.items()))
    found: dict[str, _StoredFolder] = {}
    for url in dict.fromkeys(urls):
        for one in _stored_folders(url, frozen):
            found.setdefault(one.folder.prefix, one)
    finder.add_folders(
        [one.folder for one in found.values()],
        lambda topic, partition, folder: StoredPartition(topic, partition, folder, found[folder.prefix].files),
    )
    logs: dict[int | None, list[FoundLog]] = {}
    above: dict[str, Mapping[str, Opener]] = {}
    folders = finder.folders()
    refuse_several_topics(folders)
    for folder in folders:
        name = DirectoryName.parse(folder.name)
        partition = name.partition if name.is_offsets else as_partition
        if name.leftover or name.is_foreign or (partitions and partition not in partitions):
            continue
        if (log := _stored_log(found[folder.prefix], partition)).files:
            logs.setdefault(partition, []).append(log)
            above[log.files[0].path] = folder.above
            finder.note_broken(folder)
    if not logs:
        raise InputError(f"no segment of __consumer_offsets was found in {', '.join(urls)}")
    unknown = logs.pop(None, [])
    alike = Alike()
    in_order = sorted(logs.items(), key=lambda item: item[0] or 0)
    known = [_one_replica(same, above, finder, alike) for _, same in in_order]
    finder.notes += alike.notes
    absent = finder.absent([partition for partition in logs if partition is not None])
    return FoundLogs(known + unknown, tuple(finder.notes), tuple(absent))


@dataclass(frozen=True, slots=True)
class _StoredFolder:
    folder: Folder
    files: dict[str, FoundFile]


def _stored_folders(url: str, options: tuple[tuple[str, Any], ...]) -> list[_StoredFolder]:
    """Return the folders at and below a URL, or the folder of a single file."""
    store, path = open_store(url, options)
    scheme = url.partition("://")[0]
    with input_errors(url):
        info = store.get_file_info(path.rstrip("/"))
        if info.type == fs.FileType.NotFound:
            raise InputError("there is nothing of that name in the store", file=url)
        if info.type == fs.FileType.File:
            entries = [info]
        else:
            entries = store.get_file_info(fs.FileSelector(path, recursive=True))
            depth = path.rstrip("/").count("/") + MAX_DEPTH + 2
            entries = [entry for entry in entries if entry.is_file and entry.path.count("/") <= depth]
    is_named = info.type == fs.FileType.File
    found: dict[str, _StoredFolder] = {}
    for entry in sorted(entries, key=lambda entry: entry.path):
        directory, name = posixpath.split(entry.path)
        last = posixpath.basename(directory)
        is_beside = lies_in(last, name) and not DirectoryName.parse(last).is_foreign
        if not (is_named or is_beside or matters_in(last, name)):
            continue
        written_ms = None if entry.mtime_ns is None else entry.mtime_ns // 1_000_000
        path = f"{scheme}://{entry.path}"
        file = FoundFile(path, _base_offset(name), entry.size, url, options, modified_ms=written_ms)
        kept = found.setdefault(directory, _StoredFolder(Folder(f"{scheme}://{directory}/", last), {}))
        kept.files[name] = file
        of_kind = kept.folder.beside if lies_in(last, name) else kept.folder.files
        of_kind[name] = cache(partial(file.open, ExitStack()))
        if is_named:
            kept.folder.named.add(name)
            kept.folder.is_choice = True
    link_data_directories({directory: kept.folder for directory, kept in found.items()})
    return list(found.values())


def _base_offset(name: str) -> int | None:
    return int(name[:20]) if name[:20].isdecimal() and len(name) > 20 else None


def _stored_log(found: _StoredFolder, offsets_partition: int | None) -> FoundLog:
    selected, notes = select_segments(found.folder)
    files = tuple(found.files[file.name] for file in selected)
    told = checkpoints(found.folder) if files else NOTHING_TOLD
    selection = NAMED if found.folder.is_choice else None
    return FoundLog(offsets_partition, files, tuple(notes), told, selection, found.folder.beside)


def _one_replica(
    replicas: Sequence[FoundLog], above: Mapping[str, Mapping[str, Opener]], finder: Finder, alike: Alike
) -> FoundLog:
    """Return the one of several copies of a partition that `choose_replica` chooses, which reads them all.

    Args:
        above: first file of a log → the files of the data directory it lies in.
    """
    if len(replicas) == 1:
        return replicas[0]
    logs = []
    for found in replicas:
        segments = tuple(Segment(file.path, file.base_offset, file.open(ExitStack())) for file in found.files)
        logs.append(PartitionLog(found.offsets_partition, segments, found.notes, found.checkpoints, found.beside))
    files = {id(log): above[log.segments[0].file] for log in logs}
    chosen = choose_replica(logs, leader_of(logs, files, finder.clusters), alike)
    by_path = {found.files[0].path: found for found in replicas}
    return replace(by_path[chosen.segments[0].file], notes=chosen.notes, checkpoints=chosen.checkpoints)
