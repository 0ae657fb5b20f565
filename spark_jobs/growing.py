"""Logs that grow, in directories of this machine or in stores: how far they go now, and the slices between two places.

Where a stream is in a log is a `following.growth.Bookmark`, kept with the checkpoint. From there the driver steps over
what is new, and tells tasks what to read: whole batches, of which the sizes and checksums are known. A large segment
that is complete is not read by the driver, if the end of its file tells where it ends.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from offsets_log.columnar.choose.selected import items_of_piece
from offsets_log.columnar.choose.selection import Selection
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, ScanOrder, ScanPlace
from offsets_log.disk.segments import next_offset
from offsets_log.errors import Damage, InputError
from offsets_log.events import EVERYTHING
from offsets_log.following.growth import Bookmark, GrowingLog, GrownPiece, Replaced, SegmentFile
from offsets_log.following.pieces import BULK_FROM_BYTES
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import LogWalk, PartitionLog, Segment
from offsets_log.log_format.segment import PLAUSIBLE, Buffer
from offsets_log.rows.tables import partition_name
from spark_jobs.growing_folders import Folder, Folders

PIECE_BYTES = 1 << 21
"""How much the driver reads at a time."""
SLICE_BYTES = 1 << 25
"""About how much a task reads at a time, but for whole segments."""
TAIL_BYTES = 1 << 18
MOST_TRIES = 1 << 10
SECOND_LOOK_S = 0.3
"""Files come and go in several steps: what looks like another log is looked at again after so long."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Whole batches in one segment, which a task reads.

    Attributes:
        following: the base offset of the next segment; None if there is none yet.
        last_offset, next_offset, is_broken: of the log before it, as a cursor has them.
        checked_from, checksum: zlib's CRC-32 of its bytes from a position on, so that no others are taken for them.
    """

    offsets_partition: int | None
    folder: Folder
    name: str
    base_offset: int
    following: int | None
    position: int
    size_bytes: int
    last_offset: int
    next_offset: int
    is_broken: bool
    checked_from: int
    checksum: int

    def pieces(self) -> Iterator[GrownPiece]:
        """Read it. Raises InputError: the file has other bytes now."""
        data = self.folder.read(self.name, self.position, self.size_bytes)
        file = f"{self.folder.path}/{self.name}"
        if len(data) != self.size_bytes or zlib.crc32(data[self.checked_from - self.position :]) != self.checksum:
            raise InputError(
                "it was cleaned, cut off or written again since this batch was planned: start the stream again, which "
                "plans it again", file=file, position=self.position,
            )  # fmt: skip
        segments = [Segment(file, self.base_offset, data)]
        if self.following is not None:
            segments.append(Segment("", self.following, b""))
        log = PartitionLog(self.offsets_partition, tuple(segments), selection="only what is new is read")
        cursor = Cursor(ScanPlace(0, 0), self.last_offset, self.next_offset, 0, self.is_broken)
        yield GrownPiece(log, cursor, self.position)

    def is_followed_by(self, place: Bookmark) -> bool:
        """Whether what stands at a place may be read together with it."""
        is_next = (self.base_offset, self.position + self.size_bytes) == (place.base_offset, place.position)
        return is_next and self.size_bytes < SLICE_BYTES and self.checked_from == self.position

    def with_more(self, data: bytes) -> Slice:
        """Return it with the batches that stand behind it in its file."""
        return replace(self, size_bytes=self.size_bytes + len(data), checksum=zlib.crc32(data, self.checksum))


@dataclass(slots=True)
class Advance:
    """How far a log was stepped over.

    Attributes:
        place: where to go on.
    """

    place: Bookmark | None
    slices: list[Slice] = field(default_factory=list)
    size_bytes: int = 0


Seen = Callable[[Sequence[SegmentFile]], list[SegmentFile]]


class Stepping:
    """Steps over what is new in one partition's log.

    Args:
        scanner: returns the buffers of kernels, entered.
    """

    def __init__(self, number: int | None, folder: Folder, scanner: Callable[[], Scanner]) -> None:
        self.number = number
        self.folder = folder
        self._scanner = scanner

    def advance(self, start: Bookmark | None, seen: Seen = list, most_bytes: int | None = None) -> Advance:
        """Step over whole batches from a place on, up to their end or until there are so many bytes, and one at least.

        Args:
            seen: returns those segments, and of them so much, as is to be read.

        Raises:
            InputError: the log is not the one that was read before, or cannot be read.
        """
        files, here = self._find(start)
        made, looked = Advance(here), seen(files)
        while self._step(made, looked, most_bytes):
            pass
        return made

    def upto(self, place: Bookmark, files: Sequence[SegmentFile]) -> list[SegmentFile]:
        """Return what stands before a place, wherever that is in the segments now. Raises InputError."""
        growing = self._growing(place)
        found = next(growing.grown(files), None)
        if growing.doubt is not None:
            raise self._another(growing, found)
        here = growing.place or place
        return [
            file if file.base_offset < here.base_offset else replace(file, size_bytes=here.position)
            for file in files
            if file.base_offset <= here.base_offset
        ]

    def _growing(self, place: Bookmark | None, most_bytes: int | None = None) -> GrowingLog:
        told = PartitionLog(self.number, ())
        piece_bytes = min(PIECE_BYTES, most_bytes or PIECE_BYTES)
        return GrowingLog(told, f"{self.folder.path}/", self.folder.read, piece_bytes, copy(place))

    def _find(self, place: Bookmark | None) -> tuple[list[SegmentFile], Bookmark | None]:
        """Return the segments, and where a place is in them; look twice before it is said that it is not there."""
        growing = self._growing(place)
        found = None
        for pause_s in (SECOND_LOOK_S, 0):
            files = self.folder.files()
            found = next(growing.grown(files), None)
            if growing.doubt is None and not isinstance(found, Replaced):
                return files, copy(growing.place)
            time.sleep(pause_s)
        raise self._another(growing, found)

    def _another(self, growing: GrowingLog, found: object) -> InputError:
        why = found.why if isinstance(found, Replaced) else growing.doubt
        return InputError(
            f"offsets partition {partition_name(self.number)} is another log than the one that was read up to record "
            f"offset {growing.next_offset}: {why}; begin again with another checkpoint",
            file=self.folder.path,
        )

    def _step(self, made: Advance, files: Sequence[SegmentFile], most_bytes: int | None) -> bool:
        """Step on, until a segment begins that may be passed as a whole; return whether there may be more."""
        growing = self._growing(made.place, most_bytes)
        for found in growing.grown(files):
            made.place = copy(growing.place)
            if most_bytes is not None and made.size_bytes >= most_bytes:
                return False
            if isinstance(found, GrownPiece):
                left = None if most_bytes is None else most_bytes - made.size_bytes
                if found.position == 0 and self._pass_segment(made, files, left):
                    return True
                self._add(made, found, files)
        if files and growing.doubt is not None:
            raise self._another(growing, None)
        made.place = copy(growing.place)
        return False

    def _pass_segment(self, made: Advance, files: Sequence[SegmentFile], left: int | None) -> bool:
        """Pass a large segment unread, if its last bytes say that the next one goes on where it ends."""
        place = made.place
        assert place is not None
        index = next(i for i, file in enumerate(files) if file.base_offset == place.base_offset)
        file = files[index]
        is_small = file.size_bytes < 2 * PIECE_BYTES
        if index + 1 == len(files) or is_small or place.next_offset != file.base_offset:
            return False
        if left is not None and file.size_bytes > left:
            return False
        begin = file.size_bytes - TAIL_BYTES
        tail = self.folder.read(file.name, begin, TAIL_BYTES)
        following = files[index + 1].base_offset
        if len(tail) < TAIL_BYTES or last_offset_in(tail) != following - 1:
            return False
        made.slices.append(self._slice(place, file, following, file.size_bytes, begin, zlib.crc32(tail)))
        made.size_bytes += file.size_bytes
        made.place = Bookmark(following, 0, following - 1, following, is_first=False)
        return True

    def _slice(
        self,
        place: Bookmark,
        file: SegmentFile,
        following: int | None,
        size_bytes: int,
        checked_from: int,
        checksum: int,
    ) -> Slice:
        return Slice(
            self.number, self.folder, file.name, file.base_offset, following, place.position, size_bytes,
            place.last_offset, place.next_offset, place.is_broken, checked_from, checksum,
        )  # fmt: skip

    def _add(self, made: Advance, piece: GrownPiece, files: Sequence[SegmentFile]) -> None:
        """Step over a piece, and add it to the slices."""
        place = made.place
        assert place is not None
        data = bytes(piece.log.segments[0].buffer)
        last = made.slices[-1] if made.slices else None
        made.size_bytes += len(data)
        if last is not None and last.is_followed_by(place):
            made.slices[-1] = last.with_more(data)
        else:
            made.slices.append(self._new(place, files, data))
        self._pass(piece)

    def _new(self, place: Bookmark, files: Sequence[SegmentFile], data: bytes) -> Slice:
        index = next(i for i, file in enumerate(files) if file.base_offset == place.base_offset)
        following = files[index + 1].base_offset if index + 1 < len(files) else None
        return self._slice(place, files[index], following, len(data), place.position, zlib.crc32(data))

    def _pass(self, piece: GrownPiece) -> None:
        """Move a piece's cursor behind it, as whoever reads it does."""
        cursor, log = piece.cursor, piece.log
        if log.bytes_to_read >= BULK_FROM_BYTES:
            order = ScanOrder(log, EVERYTHING, None)
            nothing = Selection(lambda name: False, record_types=frozenset())
            for _ in items_of_piece(order, cursor, order.end, self._scanner(), nothing):
                pass
            return
        for item, last_offset in LogWalk(log).items(0, 0, cursor.last_offset):
            if isinstance(item, Damage):
                cursor.is_broken = True
            elif isinstance(item, RecordBatch):
                cursor.last_offset, cursor.next_offset, cursor.is_broken = last_offset, item.next_offset, False


# ------------------------------------------------------------------------------------------ a stream's offsets

Offsets = dict[str, Any]
"""Name of the offsets partition → its place, as Spark keeps it in a checkpoint."""


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


class GrowingFiles:
    """The partitions that are streamed from files; what the stream's reader asks."""

    def __init__(self, folders: Callable[[], Folders]) -> None:
        self._folders = folders
        self._stack = ExitStack()
        self._scanner_made: Scanner | None = None
        self._planned: tuple[Offsets, Offsets, list[Slice]] | None = None
        self._target: dict[int | None, list[SegmentFile]] | None = None

    def close(self) -> None:
        """Give back the buffers of kernels."""
        self._stack.close()

    def _scanner(self) -> Scanner:
        if self._scanner_made is None:
            self._scanner_made = self._stack.enter_context(Scanner())
        return self._scanner_made

    def _stepping(self, start: Offsets) -> dict[int | None, Stepping]:
        folders = self._folders()
        for name in start.keys() - {partition_name(number) for number in folders}:
            raise InputError(f"offsets partition {name}, of which records were read, is not there any more")
        return {
            number: Stepping(number, folder, self._scanner)
            for number, folder in sorted(folders.items(), key=lambda item: -1 if item[0] is None else item[0])
        }

    def freeze(self) -> None:
        """Go no further than what is there now."""
        self._target = {number: folder.files() for number, folder in self._folders().items()}

    def latest(self, start: Offsets, most_bytes: int | None) -> Offsets:
        """Return how far the logs go, or as far as so many bytes go, of which each gets its part."""
        stepping = self._stepping(start)
        looks = {number: self._seen(number, one.folder.files()) for number, one in stepping.items()}
        new = {
            number: max(sum(file.size_bytes for file in looks[number]) - _read_before(start, number, looks), 0)
            for number in stepping
        }
        end, slices = dict(start), []
        for number, one in stepping.items():
            name = partition_name(number)
            part = None if most_bytes is None else max(most_bytes * new[number] // max(sum(new.values()), 1), 1)
            before = place_of(start.get(name))
            made = one.advance(before, partial(self._seen, number), part)
            slices += made.slices
            if made.place is not None:
                end[name] = told_of(made.place)
        self._planned = (start, end, slices)
        return end

    def _seen(self, number: int | None, files: Sequence[SegmentFile]) -> list[SegmentFile]:
        """Return the segments that are to be seen: none that came after `freeze`."""
        if self._target is None:
            return list(files)
        if not (target := self._target.get(number, [])):
            return []
        last = target[-1]
        return [
            replace(file, size_bytes=min(file.size_bytes, last.size_bytes)) if file.base_offset == last.base_offset
            else file
            for file in files
            if file.base_offset <= last.base_offset
        ]  # fmt: skip

    def slices(self, start: Offsets, end: Offsets) -> list[Slice]:
        """Return what stands between two places of each log: the same as when the second was told."""
        if self._planned is not None and self._planned[:2] == (start, end):
            return self._planned[2]
        slices: list[Slice] = []
        for number, one in self._stepping(end).items():
            name = partition_name(number)
            if name in end and start.get(name) != end[name]:
                upto = place_of(end[name])
                assert upto is not None
                slices += one.advance(place_of(start.get(name)), partial(one.upto, upto)).slices
        return slices


def _read_before(start: Offsets, number: int | None, looks: Mapping[int | None, Sequence[SegmentFile]]) -> int:
    """Return how many bytes of the files that are there were read before, about."""
    told = start.get(partition_name(number))
    if told is None:
        return 0
    before = (file.size_bytes for file in looks[number] if file.base_offset < told["base_offset"])
    return sum(before) + int(told["position"])


def last_offset_in(tail: Buffer) -> int | None:
    """Return the last offset in the end of a segment; None if no whole batches lead to its last byte."""
    view = memoryview(tail)
    for tried, match in enumerate(PLAUSIBLE.finditer(view)):
        if tried == MOST_TRIES:
            return None
        found = next_offset(view[match.start() :], -1)
        if found is not None and found > 0:
            return found - 1
    return None
