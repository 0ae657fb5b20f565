"""Logs that grow, on disks that all machines see or in stores: how far they go now, and the slices between two places.

Where a stream is in a log is a `following.growth.Bookmark`, kept with the checkpoint. Of a segment that others follow,
the driver reads the end alone: all of its bytes are there. Of the last one it steps over the batches that are whole.
"""

from __future__ import annotations

import posixpath
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from offsets_log.disk.folder import DirectoryName
from offsets_log.disk.growing import followed_directory, named_segments
from offsets_log.disk.local import input_errors
from offsets_log.disk.segments import next_offset
from offsets_log.disk.stored import Stored
from offsets_log.errors import InputError
from offsets_log.following.growth import Bookmark, GrowingLog, GrownPiece, Replaced, SegmentFile
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import PLAUSIBLE, Buffer
from offsets_log.rows.tables import partition_name
from spark_jobs.directories import Directory
from spark_jobs.files import find_logs
from spark_jobs.options import SourceOptions

T = TypeVar("T")
SLICE_BYTES = 1 << 25
"""About how much a task reads at a time, but for the rest of a segment that others follow."""
TAIL_BYTES = 1 << 18
"""So much of its end tells what a slice was."""
MOST_TRIES = 1 << 10
SECOND_LOOK_S = 0.3
"""Files come and go in several steps: what looks like another log is looked at again after so long."""


@dataclass(frozen=True, slots=True)
class Folder(Directory):
    """A partition's directory."""

    number: int | None = None

    @property
    def name(self) -> str:
        """The partition's name."""
        return partition_name(self.number)

    def ask(self, do: Callable[[Any, str], T]) -> T:
        """Do what `Directory.ask` does. Raises InputError."""
        with input_errors(self.path):
            return self._answer(do)

    def files(self) -> list[SegmentFile]:
        """Return the segments that are there now, by base offset; sizes are looked at when all names are known."""
        found = {info.base_name: info for info in self.listed(is_deep=False) if info.is_file}
        return [
            SegmentFile(base_offset, name, found[name].size, found[name].mtime_ns or 0)
            for base_offset, name in named_segments(found)
        ]

    def piece(self, name: str, position: int, size_bytes: int) -> bytes:
        """Return a piece of a file, or less of it if there is not so much."""

        def do(files: Any, path: str) -> bytes:
            try:
                with files.open_input_file(f"{path}/{name}") as file:
                    left = min(size_bytes, file.size() - position)
                    return bytes(file.read_at(left, position)) if left > 0 else b""
            except FileNotFoundError:
                return b""

        return self.ask(do)


def open_folders(reading: SourceOptions) -> Callable[[], list[Folder]]:
    """Return a function that says which partitions there are at the time it is called, sorted.

    Raises:
        InputError: nothing was found, or something else was named than directories.
    """
    with ExitStack() as stack:
        known = {log.offsets_partition: _folder_of(log) for log in find_logs(reading, stack).logs}
    named = (folder for folder in known.values() if DirectoryName.parse(posixpath.basename(folder.path)).is_offsets)
    above = {Folder(posixpath.dirname(one.path), one.options, one.url) for one in named}

    def look() -> list[Folder]:
        for directory in above:
            for name in (info.base_name for info in directory.listed(is_deep=False) if not info.is_file):
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


@dataclass(frozen=True, slots=True)
class Slice:
    """Bytes of one segment that a task reads: whole batches, unless nothing more comes into the segment.

    Attributes:
        checksum: zlib's CRC-32 of the last `TAIL_BYTES`, so that no others are taken for them.
    """

    folder: Folder
    name: str
    start: Bookmark
    size_bytes: int
    checksum: int

    def read(self) -> PartitionLog:
        """Read it. Raises InputError: the file has other bytes now."""
        start, file = self.start, f"{self.folder.path}/{self.name}"
        data = self.folder.piece(self.name, start.position, self.size_bytes)
        if len(data) != self.size_bytes or zlib.crc32(data[-TAIL_BYTES:]) != self.checksum:
            raise InputError(
                "it was cleaned, cut off or written again since this batch was planned: start the stream again, which "
                "plans it again", file=file, position=start.position,
            )  # fmt: skip
        segment = Segment(file, start.base_offset, data)
        return PartitionLog(self.folder.number, (segment,), selection="only what is new is read")


@dataclass(slots=True)
class Advance:
    """What is new in one partition's log.

    Attributes:
        files: its segments at one look, as much of them as is to be read.
        place: where to go on in them; None where there are none.
    """

    folder: Folder
    files: Sequence[SegmentFile]
    place: Bookmark | None
    slices: list[Slice] = field(default_factory=list)

    @classmethod
    def begin(cls, folder: Folder, start: Bookmark | None, last: SegmentFile | None = None) -> Advance:
        """Look twice before it is said that a place is not there.

        Args:
            last: the last segment that is to be read, and how much of it; None for all that there are.

        Raises:
            InputError: the log is another one.
        """
        growing = growing_log(folder, start)
        for pause_s in (SECOND_LOOK_S, 0):
            files = folder.files()
            found = next(growing.grown(files), None)
            if growing.doubt is None and not isinstance(found, Replaced):
                return cls(folder, files if last is None else files_until(files, last), copy(growing.place))
            time.sleep(pause_s)
        raise another(growing, folder, found.why if isinstance(found, Replaced) else growing.doubt)

    @property
    def new_bytes(self) -> int:
        """How many bytes stand behind the place."""
        base_offset, position = (-1, 0) if self.place is None else (self.place.base_offset, self.place.position)
        return max(sum(file.size_bytes for file in self.files if file.base_offset >= base_offset) - position, 0)

    def run(self, most_bytes: int | None = None) -> None:
        """Go on to the end of whole batches, or about so many bytes, and one batch at least. Raises InputError."""
        left, before = most_bytes or sys.maxsize, None
        places = {file.base_offset for file in self.files}
        while left > 0 and self.place is not None and self.place != before and self.place.base_offset in places:
            before, number = copy(self.place), len(self.slices)
            if not self._pass_rest(left):
                self._step(left)
            left -= sum(one.size_bytes for one in self.slices[number:])

    def _here(self) -> tuple[SegmentFile, int | None]:
        """Return the segment at the place, and the base offset of the next one."""
        assert self.place is not None
        index = next(i for i, file in enumerate(self.files) if file.base_offset == self.place.base_offset)
        return self.files[index], self.files[index + 1].base_offset if index + 1 < len(self.files) else None

    def _pass_rest(self, left: int) -> bool:
        """Pass the rest of a segment that others follow, if it is no more than is left."""
        file, following = self._here()
        place = self.place
        assert place is not None
        size_bytes = file.size_bytes - place.position
        if following is None or not 0 < size_bytes <= left:
            return False
        begin = max(place.position, file.size_bytes - TAIL_BYTES)
        tail = self.folder.piece(file.name, begin, file.size_bytes - begin)
        self._add(place, size_bytes, tail)
        last_offset = max(last_offset_in(tail, place.last_offset), following - 1)
        self.place = Bookmark(following, 0, last_offset, last_offset + 1, is_first=False)
        return True

    def _step(self, left: int) -> None:
        """Step over the batches of a segment that are whole, as far as bytes are left."""
        growing = growing_log(self.folder, self.place, min(left, SLICE_BYTES))
        for found in growing.grown(self.files):
            place = copy(growing.place)
            assert place is not None
            is_passed = self.place is not None and place.base_offset != self.place.base_offset
            self.place = place
            if is_passed or left <= 0:
                return
            if isinstance(found, GrownPiece):
                data = bytes(found.log.segments[0].buffer)
                self._add(place, len(data), data[-TAIL_BYTES:])
                found.cursor.last_offset = last_offset_in(data[-TAIL_BYTES:], place.last_offset)
                found.cursor.next_offset = found.cursor.last_offset + 1
                left -= len(data)
        if growing.doubt is not None:
            raise another(growing, self.folder, growing.doubt)
        self.place = copy(growing.place)

    def _add(self, start: Bookmark, size_bytes: int, tail: bytes) -> None:
        name = self._here()[0].name
        self.slices.append(Slice(self.folder, name, start, size_bytes, zlib.crc32(tail)))


def growing_log(folder: Folder, place: Bookmark | None, piece_bytes: int = SLICE_BYTES) -> GrowingLog:
    """Return a partition's log from a place on."""
    return GrowingLog(PartitionLog(folder.number, ()), f"{folder.path}/", folder.piece, piece_bytes, copy(place))


def another(growing: GrowingLog, folder: Folder, why: str | None) -> InputError:
    """Return the error that says so."""
    return InputError(
        f"offsets partition {folder.name} is another log than the one that was read "
        f"up to record offset {growing.next_offset}: {why}; begin again with another checkpoint",
        file=folder.path,
    )


def files_until(files: Sequence[SegmentFile], last: SegmentFile) -> list[SegmentFile]:
    """Return the segments up to the last one, and of this no more than its size."""
    return [
        replace(file, size_bytes=min(file.size_bytes, last.size_bytes))
        if file.base_offset == last.base_offset
        else file
        for file in files
        if file.base_offset <= last.base_offset
    ]


def last_offset_in(tail: Buffer, otherwise: int) -> int:
    """Return the last offset in the end of a segment, if whole batches lead to its last byte."""
    view = memoryview(tail)
    for tried, match in enumerate(PLAUSIBLE.finditer(view)):
        found = next_offset(view[match.start() :], -1)
        if found is not None and found > 0:
            return max(found - 1, otherwise)
        if tried == MOST_TRIES:
            break
    return otherwise


def place_of(told: Mapping[str, Any] | None) -> Bookmark | None:
    """Return a place as it was kept. Raises InputError: another program has kept it."""
    if told is None:
        return None
    try:
        return Bookmark(**{**told, "mark": bytes.fromhex(told["mark"])})
    except (KeyError, TypeError, ValueError):
        raise InputError("the checkpoint is of another kind of source, or of another version of it") from None


def told_of(place: Bookmark) -> dict[str, Any]:
    """Return a place as it is kept."""
    return asdict(place) | {"mark": place.mark.hex()}
