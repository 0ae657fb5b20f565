"""Look at directories of partitions again and again while their files grow."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from offsets_log.data_directory.cluster_image import TopicImage
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.metadata_log import topics_made
from offsets_log.data_directory.told_ends import LOG_ENDS, ToldEnds, decode_told_ends
from offsets_log.disk.folder import DirectoryName
from offsets_log.disk.local import input_errors, real_path
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.errors import InputError, OffsetsLogError
from offsets_log.following.growth import PIECE_BYTES, SegmentFile, end_of_batches
from offsets_log.following.lags import KnownEnds
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.internal_topics import CLUSTER_METADATA, INTERNAL_TOPICS

MOST_ENDS_BYTES = 1 << 30
METADATA_DIRECTORY = f"{CLUSTER_METADATA}-0"
_SEGMENT = re.compile(r"([0-9]{20})\.log(\.swap)?")


class GrowingDirectories:
    """The partition directories of `__consumer_offsets` in some directories, also those that are yet to come.

    Args:
        known: directories of partitions that are there now.
        partitions: those asked for; empty for all.
    """

    def __init__(self, known: Iterable[Path], partitions: Collection[int]) -> None:
        self._known = {partition_of(path): path for path in known}
        self._above = {path.parent for path in self._known.values() if DirectoryName.parse(path.name).is_offsets}
        self._partitions = partitions

    @property
    def above(self) -> Collection[Path]:
        """The data directories, where partitions of one lie."""
        return self._above

    def look(self) -> dict[int | None, Path]:
        """Return the partitions that are there, and where."""
        for above in self._above:
            for name in _names(above):
                parsed = DirectoryName.parse(name)
                is_asked = not self._partitions or parsed.partition in self._partitions
                if parsed.is_offsets and not parsed.leftover and is_asked:
                    self._known.setdefault(parsed.partition, above / name)
        return self._known


class GrowingTopics:
    """The topics that the metadata logs in some data directories make (``DD-4``); each look reads only what is new."""

    def __init__(self) -> None:
        self._made: dict[Uuid, TopicImage] = {}
        self._read_until: dict[Path, int] = {}

    def look(self, above: Iterable[Path]) -> Iterable[TopicImage]:
        """Return them; what cannot be read only says less."""
        for directory in (path / METADATA_DIRECTORY for path in above):
            with suppress(InputError):
                for file in segment_files(directory):
                    self._read(directory, file)
        return self._made.values()

    def _read(self, directory: Path, file: SegmentFile) -> None:
        path = directory / file.name
        begin = self._read_until.get(path, 0)
        begin = 0 if file.size_bytes < begin else begin  # it was cut off
        while size_bytes := end_of_batches(data := read_at(directory, file.name, begin, PIECE_BYTES)):
            log = PartitionLog(None, (Segment(str(path), file.base_offset, data[:size_bytes]),))
            self._made |= topics_made(log)[0]
            begin += size_bytes
        self._read_until[path] = begin


def look_for_ends(above: Collection[Path], topics: GrowingTopics) -> KnownEnds:
    """Look where users' partitions end: by their logs in data directories, or as a cluster answered for a copy.

    Logs are opened when they are asked for; what cannot be read tells no end.

    Args:
        topics: what is known of topics by the metadata there.

    Raises:
        InputError: a data directory cannot be read.
    """
    now_ms = int(time.time() * 1000)
    told, partitions = ToldEnds(), []
    for directory in above:
        for name in _names(directory):
            parsed = DirectoryName.parse(name)
            if parsed.is_foreign and not parsed.leftover and parsed.topic not in INTERNAL_TOPICS:
                partitions.append(UserPartition(parsed.topic, parsed.partition, directory / name, {}))
        if data := read_at(directory, LOG_ENDS, 0, MOST_ENDS_BYTES):
            with suppress(OffsetsLogError):
                told.add(decode_told_ends(data, str(directory / LOG_ENDS)))
    asked_ms = now_ms if told.asked_ms is None else told.asked_ms
    return KnownEnds(CopiedLogs(partitions, told=(told, []), made=lambda: topics.look(above)), asked_ms)


def partition_of(path: Path) -> int | None:
    """Return the partition that a directory's name tells."""
    parsed = DirectoryName.parse(path.name if DirectoryName.parse(path.name).topic else real_path(path).name)
    return parsed.partition if parsed.may_be_offsets else None


def segment_files(directory: Path) -> list[SegmentFile]:
    """Return the segments in a directory, by base offset; none if it is not there.

    Sizes are looked at when all names are known: a segment with one behind it has its last size then.
    """
    files = []
    for base_offset, name in named_segments(_names(directory)):
        try:
            status = os.stat(directory / name)  # noqa: PTH116 - a Path of each costs more than the call
        except FileNotFoundError:
            continue
        files.append(SegmentFile(base_offset, name, status.st_size, status.st_mtime_ns))
    return files


def named_segments(names: Iterable[str]) -> list[tuple[int, str]]:
    """Return the base offsets and names of those files that are segments, by base offset."""
    found: dict[int, str] = {}
    for name in sorted(names):  # a .swap comes behind the segment of that name
        match = _SEGMENT.fullmatch(name)
        if match and not (match[2] and int(match[1]) in found):  # and takes its place where that is gone
            found[int(match[1])] = name
    return sorted(found.items())


def followed_directory(log: PartitionLog) -> Path:
    """Return the directory of a log's segments. Raises InputError: something else was named."""
    if any(segment.is_fetched for segment in log.segments):
        raise InputError("a store is not followed here: python -m spark_jobs follow does", file=log.segments[0].file)
    files = [Path(segment.file) for segment in log.segments]
    directory = files[0].parent
    is_whole = log.selection is None or partition_of(directory) is None
    if not is_whole or not all(_SEGMENT.fullmatch(file.name) and file.is_file() for file in files):
        raise InputError("only directories are followed: a data directory, or partitions of one", file=str(files[0]))
    return directory


def read_at(directory: Path, name: str, position: int, size: int) -> bytes:
    """Read a piece of a file; less of it, or nothing, if that is not there.

    Nothing is mapped: a file that is cut off while it is read ends no process.

    Raises:
        InputError: it cannot be read.
    """
    path = directory / name
    with input_errors(path):
        try:
            with path.open("rb", buffering=0) as file:
                return _read(file.fileno(), position, size)
        except FileNotFoundError:
            return b""


def _read(descriptor: int, position: int, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0 and (piece := os.pread(descriptor, size, position)):
        pieces.append(piece)
        position, size = position + len(piece), size - len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _names(directory: Path) -> list[str]:
    """Return the names in a directory; none where it is not there."""
    with input_errors(directory):
        try:
            return os.listdir(directory)  # noqa: PTH208 - Path.iterdir makes a Path of each
        except (FileNotFoundError, NotADirectoryError):
            return []
