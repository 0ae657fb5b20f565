"""Find what is new in a partition's segments since they were last looked at, batch by batch, and nothing twice.

The place where reading goes on is an offset: what happens to files below it is the cleaner's business. Three things say
that the log below it is another one: its last segment ends before the place, the last batch that was read stands there
no more, or the segments begin again behind it. Files come and go in several steps, so two looks in a row must say so.

Only whole batches are given out. What stands behind the last one may be on its way: it is left until it is whole, or
until a later segment shows that nothing more will come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from offsets_log.columnar.scan.reading import Cursor, ScanPlace
from offsets_log.errors import Damage
from offsets_log.events import TailFound
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.completeness import Missing, missing_before, missing_behind, missing_between
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Tail, iter_batches

PIECE_BYTES = 1 << 27
"""How much is given out at a time, unless one batch is larger: a segment as brokers make them by default."""


Read = Callable[[str, int, int], bytes]
"""Reads a file: name, position, size → what is there of that. Raises InputError."""


@dataclass(frozen=True, slots=True, order=True)
class SegmentFile:
    """A segment as one look found it."""

    base_offset: int
    name: str
    size_bytes: int
    modified_ns: int = 0


@dataclass(slots=True)
class Bookmark:
    """Where reading goes on: a position in a segment, and the offsets before it.

    Attributes:
        is_first: whether nothing was read yet.
        mark: the header of the last batch that was read in this segment, and where it stands; empty without one.
    """

    base_offset: int
    position: int = 0
    last_offset: int = -1
    next_offset: int = 0
    is_broken: bool = False
    is_first: bool = True
    mark: bytes = b""
    mark_at: int = 0


@dataclass(frozen=True, slots=True)
class GrownPiece:
    """A run of batches that are new.

    Attributes:
        log: the segment they stand in, of which the buffer begins at ``position``, then an empty one if others follow.
        cursor: where to begin; whoever reads the piece leaves it behind the last batch.
        position: what damage in the buffer is to be moved by.
    """

    log: PartitionLog
    cursor: Cursor
    position: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """The log below the place is another one; all that follows is read from its beginning.

    Attributes:
        why: in words.
    """

    offsets_partition: int | None
    next_offset: int
    why: str


Found = GrownPiece | Replaced | Missing
Rest = Damage | TailFound | Missing


@dataclass(slots=True)
class GrowingLog:
    """One partition's log, looked at again and again.

    Args:
        told: what is known of the partition: its number and checkpoints; its segments do not matter.
        prefix: stands before files' names when they are shown.
    """

    told: PartitionLog
    prefix: str
    read: Read
    piece_bytes: int = PIECE_BYTES
    _place: Bookmark | None = None
    _files: Sequence[SegmentFile] = ()
    _doubt: str | None = None

    @property
    def next_offset(self) -> int:
        """Where reading goes on."""
        return 0 if self._place is None else self._place.next_offset

    def read_again(self) -> None:
        """Go on from the begin of the log at the next look."""
        self._place, self._files = None, ()

    @property
    def place(self) -> Bookmark | None:
        """Where reading goes on in the files; None before the first look."""
        return self._place

    @property
    def doubt(self) -> str | None:
        """Why the log may be another one, if the last look said so and none before it."""
        return self._doubt

    @property
    def bytes_behind(self) -> int:
        """Bytes of segments that the last look found, and that were not read yet."""
        place = self._place
        if place is None:
            return sum(file.size_bytes for file in self._files)
        left = (file.size_bytes for file in self._files if file.base_offset > place.base_offset)
        here = (file.size_bytes - place.position for file in self._files if file.base_offset == place.base_offset)
        return sum(left) + max(sum(here), 0)

    def grown(self, files: Sequence[SegmentFile]) -> Iterator[Found]:
        """Yield what is new. A piece must be read before the next one is asked for.

        Args:
            files: all segments that are there now, by base offset.
        """
        if files == self._files and self._doubt is None:
            return
        self._files = files
        index = self._index()
        if index is None:
            yield Replaced(self.told.offsets_partition, self.next_offset, self._doubt or "")
            self._place = self._doubt = None
            index = self._index()
        while index is not None and index >= 0:
            yield from self._missing_before(index)
            yield from self._pieces(index)
            index = self._enter(index + 1) if index + 1 < len(files) and self._is_read(index) else None

    # ------------------------------------------------------------------------------------ where to go on

    def _index(self) -> int | None:
        """Return the file to go on in, -1 if there is none yet; None if two looks say that the log is another one."""
        if self._place is None:
            return self._enter(0) if self._files else -1
        try:
            index = self._find(self._place)
        except _Doubt as doubt:
            if self._doubt is None:
                self._doubt = str(doubt)
                return -1
            return None
        self._doubt = None
        return index

    def _enter(self, index: int) -> int:
        """Go on at the begin of a file."""
        base_offset, before = self._files[index].base_offset, self._place
        self._place = Bookmark(base_offset) if before is None else replace(before, base_offset=base_offset, position=0)
        self._place.mark = b""
        return index

    def _find(self, place: Bookmark) -> int:
        files = self._files
        at = next((i for i, file in enumerate(files) if file.base_offset > place.base_offset), len(files))
        is_active = at == len(files)
        if not files or (is_active and files[-1].base_offset < place.base_offset):
            raise _Doubt(f"its segments end before {place.base_offset}")
        if not is_active and files[at].base_offset <= place.last_offset:
            raise _Doubt(f"a segment begins at {files[at].base_offset}, offsets up to {place.last_offset} were read")
        here = files[at - 1] if at and files[at - 1].base_offset == place.base_offset else None
        if here is not None and self._is_as_it_was(here, place):
            return at - 1
        if is_active:
            raise _Doubt(
                f"{self.prefix}{files[-1].name} ends before position {place.position}, up to which it was read"
                if files[-1].size_bytes < place.position
                else f"{self.prefix}{files[-1].name} has another batch at position {place.mark_at}"
            )
        return self._find_again(place, max(0, at - 1))

    def _is_as_it_was(self, file: SegmentFile, place: Bookmark) -> bool:
        if file.size_bytes < place.position:
            return False
        return not place.mark or self.read(file.name, place.mark_at, len(place.mark)) == place.mark

    def _find_again(self, place: Bookmark, index: int) -> int:
        """Go on in a file that the cleaner wrote, or in the first that is left: behind what was read before."""
        file = self._files[index]
        place.base_offset, place.mark = file.base_offset, b""
        place.position = _position_of(self.read, file, place.next_offset)
        return index

    def _is_read(self, index: int) -> bool:
        return self._place is not None and self._place.position >= self._files[index].size_bytes

    # ------------------------------------------------------------------------------------ what is there

    def _pieces(self, index: int) -> Iterator[GrownPiece]:
        """Yield the batches of a file from the place on."""
        place, file = self._place, self._files[index]
        assert place is not None
        while place.position < file.size_bytes:
            data, header_at = self._whole_batches(index, place)
            if not data:
                return
            piece = self._piece(index, place, data)
            yield piece
            cursor = piece.cursor
            place.last_offset, place.next_offset, place.is_broken = (
                cursor.last_offset, cursor.next_offset, cursor.is_broken,
            )  # fmt: skip
            if header_at is not None:
                place.mark, place.mark_at = (
                    data[header_at : header_at + b.BATCH_HEADER_SIZE],
                    place.position + header_at,
                )
            place.position += len(data)
            place.is_first = False

    def _piece(self, index: int, place: Bookmark, data: bytes) -> GrownPiece:
        here, *behind = self._files[index : index + 2]
        segments = [Segment(self.prefix + here.name, here.base_offset, data)]
        segments += [Segment(self.prefix + file.name, file.base_offset, b"") for file in behind]
        log = PartitionLog(self.told.offsets_partition, tuple(segments), selection="only what is new is read")
        cursor = Cursor(ScanPlace(0, 0), place.last_offset, place.next_offset, 0, place.is_broken)
        return GrownPiece(log, cursor, place.position)

    def _whole_batches(self, index: int, place: Bookmark) -> tuple[bytes, int | None]:
        """Return what may be read now, and where the header of its last batch is; nothing where more must come."""
        file, is_last = self._files[index], index + 1 == len(self._files)
        left = file.size_bytes - place.position
        size = min(left, self.piece_bytes)
        while True:
            data = self.read(file.name, place.position, size)
            end, header_at, needed = _step(data)
            is_all = size == left or len(data) < size
            if not is_last and is_all:
                return data, header_at
            if header_at is not None and b.decode_batch_header(data[header_at:end]).is_valid():
                return data[:end], header_at
            if is_all:
                return _settled(data)
            # What is wrong is told together with what follows it, up to the next batch that is right.
            size = min(left, needed) if not end and needed > size else left

    def _missing_before(self, index: int) -> Iterator[Missing]:
        """Yield offsets that no segment holds before one at whose begin reading goes on."""
        place, files = self._place, self._files
        assert place is not None
        if place.position or files[index].base_offset <= place.next_offset:
            return
        segments = [
            Segment(self.prefix + file.name, file.base_offset, self.read(file.name, 0, file.size_bytes))
            for file in files[max(0, index - 1) : index + 1]
        ]
        log = self._log(segments)
        if place.is_first:
            yield from missing_before(log)
        else:
            yield from missing_between(log, segments[-1], place.next_offset, is_broken=place.is_broken)
        place.next_offset = files[index].base_offset

    def _log(self, segments: Sequence[Segment]) -> PartitionLog:
        told = self.told
        return PartitionLog(
            told.offsets_partition, tuple(segments), (), told.checkpoints, selection=told.selection,
            begins_late=told.begins_late,
        )  # fmt: skip

    def rest(self) -> Iterator[Rest]:
        """Yield what stands behind the last whole batch, and what is missing there, where no more is waited for."""
        place, files = self._place, self._files
        if place is None or not files or files[-1].base_offset != place.base_offset or self._doubt is not None:
            return
        data = self.read(files[-1].name, place.position, files[-1].size_bytes - place.position)
        segment = Segment(self.prefix + files[-1].name, files[-1].base_offset, data)
        log, is_broken = self._log([segment]), place.is_broken
        lost = sum(missing.count for missing in missing_behind(log, place.next_offset) if missing.is_lost)
        for item in iter_batches(data, is_last=True):
            if isinstance(item, Tail):
                tail = Tail(item.kind, place.position + item.position, item.size_bytes)
                yield TailFound(segment, tail, lost)
            elif isinstance(item, Damage):
                is_broken = True
                yield moved(item, place.position, segment.file)
        yield from missing_behind(log, place.next_offset, is_broken=is_broken)


class ReadAgainError(Exception):
    """What follows a log cannot go on with what it holds: it is to be read from its beginning."""


class _Doubt(Exception):
    """The log may be another one than that which was read."""


def moved(damage: Damage, position: int, file: str | None = None) -> Damage:
    """Return damage in a buffer with its position in the file that the buffer is a part of."""
    damage.error.at(file=file)
    if damage.error.position is not None:
        damage.error.position += position
    return damage


def _step(data: bytes) -> tuple[int, int | None, int]:
    """Step from batch to batch by their lengths.

    Returns:
        Where the last whole one ends and begins, and up to where the next one goes; 0 where it is none.
    """
    end, begin = 0, None
    while len(data) - end > b.MAGIC_POSITION:
        length = int.from_bytes(data[end + 8 : end + b.LOG_OVERHEAD], signed=True)
        if length < b.MIN_SIZE.get(data[end + b.MAGIC_POSITION], len(data) + 1):
            return end, begin, 0
        if end + b.LOG_OVERHEAD + length > len(data):
            return end, begin, end + b.LOG_OVERHEAD + length
        begin, end = end, end + b.LOG_OVERHEAD + length
    return end, begin, 0 if end == len(data) else end + b.BATCH_HEADER_SIZE


def end_of_batches(data: bytes) -> int:
    """Return where the last batch ends that is whole by its length."""
    return _step(data)[0]


def _settled(data: bytes) -> tuple[bytes, int | None]:
    """Return the bytes up to the end of the last batch that is whole and right: no more comes into those."""
    end, begin = 0, None
    for item in iter_batches(data, is_last=True):
        if isinstance(item, RecordBatch):
            begin, end = item.position, item.position + item.size_bytes
    return data[:end], begin


def _position_of(read: Read, file: SegmentFile, offset: int) -> int:
    """Return where the first batch that reaches an offset begins, stepping from header to header."""
    begin, data = 0, b""
    while True:
        at = 0
        while len(data) - at >= b.BATCH_HEADER_SIZE:
            length = int.from_bytes(data[at + 8 : at + b.LOG_OVERHEAD], signed=True)
            last_offset = int.from_bytes(data[at : at + 8], signed=True)
            if data[at + b.MAGIC_POSITION] == 2:
                delta_at = at + b.LAST_OFFSET_DELTA_POSITION
                last_offset += int.from_bytes(data[delta_at : delta_at + 4], signed=True)
            if last_offset >= offset or length < b.MIN_SIZE[0]:
                return begin + at
            at += b.LOG_OVERHEAD + length
        begin += at
        data = read(file.name, begin, 1 << 20) if begin < file.size_bytes else b""
        if len(data) < b.BATCH_HEADER_SIZE:
            return min(begin, file.size_bytes)
