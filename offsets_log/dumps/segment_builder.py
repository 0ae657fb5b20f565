"""Write what a reader of one format yields as segments, as Kafka would."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from offsets_log.dumps.dump_log_text import LeftOut
from offsets_log.dumps.lines_of_offsets import InMemory, LinesOfOffsets, Store
from offsets_log.dumps.open_ends import with_ends_untold
from offsets_log.dumps.positions import DecodedBatch, RowPlaces
from offsets_log.dumps.source import Remark, SegmentPiece, SegmentPlace, SourceBatch, SourcePiece, Untold
from offsets_log.errors import CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, NEWEST_MAGIC, TIMESTAMP_TYPE_MASK, RecordBatch
from offsets_log.log_format.building import rebuild_batch
from offsets_log.log_format.compression import CODEC_MASK
from offsets_log.log_format.partition_log import BYTES, POSITION, PRINTED, PartitionLog, Segment
from offsets_log.log_format.record import Record, as_int64
from offsets_log.log_format.segment import Buffer
from offsets_log.words import counted

UNTOLD_SIZES = CODEC_MASK | TIMESTAMP_TYPE_MASK
"""Attributes of batches whose records take other bytes in the file."""
MOST_TIMES = 9  # that a text is seen to be pasted

CHOSEN = "its rows may have been chosen"
"""Why nothing is reported missing around rows of `records`."""


@dataclass(slots=True, eq=False)
class _Growing:
    """A segment that is being written.

    Attributes:
        times: how many times its text is in the source.
    """

    place: SegmentPlace
    data: Store
    lines: LinesOfOffsets
    rows: RowPlaces
    missing_columns: set[str] = field(default_factory=set)
    times: int = 1


class SegmentBuilder:
    """Build segments from the pieces of one source.

    Attributes:
        damages: what could not be read; the position is the line.
        remarks: remarks about the source, each once.

    Args:
        store: creates the store for the bytes of a segment.
        has_chosen_rows: whether the source may hold some records only, without a word of the others.
    """

    def __init__(self, name: str, store: Callable[[], Store] = InMemory, *, has_chosen_rows: bool = False) -> None:
        self.name = name
        self._has_chosen_rows = has_chosen_rows
        self._store = store
        self.damages: list[Damage] = []
        self.remarks: list[str] = []
        self._segments: dict[SegmentPlace, _Growing] = {}
        self._has_markers = False
        self._damaged_lines: list[int] = []

    def add(self, piece: SourcePiece) -> None:
        """Add the next piece."""
        match piece:
            case Remark(words):
                self._remark(words)
            case Damage(error):
                error.file = self._shown(error.file or "")
                self.damages.append(piece)
                self._damaged_lines.append(error.position or 0)
            case SegmentPiece(place, data, lines, missing_columns, decoded, has_markers):
                growing = self._growing(place, int.from_bytes(data[:8]))
                growing.data.append(data)
                growing.lines.add(lines)
                growing.missing_columns |= missing_columns
                self._has_markers |= has_markers
                for batch in decoded:
                    growing.rows.saw(batch)
            case Untold(place, columns):
                if place in self._segments:
                    self._segments[place].missing_columns |= columns
            case SourceBatch():
                try:
                    self._write(piece)
                except OffsetsLogError as error:
                    line = piece.batch.position
                    raw = b"".join((record.key or b"") + (record.value or b"") for record in piece.records)
                    problem = CorruptRecordError(
                        f"it makes no batch: {error}", position=line, record_offset=piece.batch.base_offset
                    )
                    self.add(Damage(problem, raw))

    def _write(self, piece: SourceBatch) -> None:
        data = _encode(piece.batch, piece.records)
        growing = self._growing(piece.place, piece.batch.base_offset)
        growing.data.append(data)
        growing.lines.add(_lines_of(piece))
        growing.missing_columns |= piece.missing_columns
        if self._has_chosen_rows:
            self._has_markers |= piece.batch.is_control
            growing.rows.saw(_decoded(piece, len(data)))
        if piece.size_bytes != len(data):
            growing.missing_columns.add(BYTES)

    def _growing(self, place: SegmentPlace, first_offset: int) -> _Growing:
        """Return the segment of a place: the last one of its name if batches from an offset on continue that."""
        if place not in self._segments:
            named = (one for one in self._segments.values() if place.log_line and one.place.is_named_like(place))
            earlier = max(named, key=lambda one: one.place.log_line, default=None)
            if earlier is not None and (earlier.lines.last or 0) < first_offset:
                self._segments[place] = earlier
            else:
                rows = RowPlaces(place.file, place.base_offset, self._damaged_lines)
                self._segments[place] = _Growing(place, self._store(), LinesOfOffsets(self._store()), rows)
        return self._segments[place]

    def _remark(self, words: str) -> None:
        if words not in self.remarks:
            self.remarks.append(words)

    def _shown(self, file: str) -> str:
        """Return the name to show of a file in the source; of the source itself if it has none."""
        return f"{self.name}!{file}" if file else self.name

    def logs(self) -> list[PartitionLog]:
        """Return the logs, in the order of the source; what it finds is among the damages.

        Each segment is a log of its own, but those of a log whose partition is not told are together.
        """
        found = self._read_once()
        selection = CHOSEN if self._has_chosen_rows else PRINTED
        segments = (
            PartitionLog(growing.place.offsets_partition, (self._segment(growing),), selection=selection)
            for growing in found
        )
        for growing in found:
            self._tell_holes(growing.rows)
        if not self._has_chosen_rows:
            return _together([growing.place for growing in found], segments)
        with_holes = {str(damage.error.file) for damage in self.damages if isinstance(damage.error, LeftOut)}
        logs: list[PartitionLog] = []
        for item in with_ends_untold(segments, self._whole, with_holes, self._store):
            if isinstance(item, Damage):
                self.add(item)
            else:
                logs.append(item)
        return logs

    def _read_once(self) -> list[_Growing]:
        """Return the segments without those whose text is there again, up to its end or as far as it had come."""
        found: list[_Growing] = []
        for growing in dict.fromkeys(self._segments.values()):
            contents = memoryview(growing.data.buffer())
            for i, one in enumerate(found):
                if growing.place.log_line and growing.place.is_named_like(one.place):
                    size = min(len(contents), len(before := memoryview(one.data.buffer())))
                    if contents[:size] == before[:size]:
                        longer = one if size == len(contents) else growing
                        found[i] = replace(longer, place=one.place, times=one.times + 1)
                        break
            else:
                found.append(growing)
        return found

    def _tell_holes(self, rows: RowPlaces) -> None:
        """Report what rows leave out: lost if markers are among them, which no choice by name leaves in."""
        if self._has_markers:
            for damage in rows.holes:
                self.add(damage)
        elif rows.holes:
            self._remark(
                f"its rows leave out {counted(rows.left_out_bytes, 'byte', 'bytes')} of {rows.file}: right if they "
                "were chosen, as by offsets-log records -g; if lines are missing, an older offset may stand for a "
                "newer one"
            )

    @property
    def _whole(self) -> set[str]:
        """Files of which it is certain that their rows leave out nothing."""
        return {self._shown(one.place.file) for one in self._segments.values() if one.rows.is_whole}

    def _segment(self, growing: _Growing) -> Segment:
        place, contents = growing.place, growing.data.buffer()
        file = self._shown(f"{place.file} (line {place.log_line})" if place.log_line else place.file)
        if (times := _times(contents)) * growing.times > 1:
            self._remark(f"the same text of {file} is in it {times * growing.times} times, and is read once")
            contents = memoryview(contents)[: len(contents) // times]
        return Segment(
            file,
            place.base_offset,
            contents,
            missing_columns=frozenset({POSITION, *growing.missing_columns}),
            lines=growing.lines,
        )


def _together(places: Sequence[SegmentPlace], segments: Iterable[PartitionLog]) -> list[PartitionLog]:
    """Return logs of one segment each, with those made one that are of a log whose partition is not told."""
    found: dict[object, PartitionLog] = {}
    for place, log in zip(places, segments, strict=True):
        is_nameless = place.offsets_partition is None and place.base_offset is not None
        key = place.log_line if is_nameless else place
        earlier = found[key].segments if key in found else ()
        joined = sorted((*earlier, *log.segments), key=lambda one: one.base_offset or 0)
        found[key] = replace(log, segments=tuple(joined))
    return [*found.values()]


def _times(contents: Buffer) -> int:
    """Return how many times the same bytes stand there one after the other: record offsets never repeat in a log."""
    view, size = memoryview(contents), len(contents)
    fitting = (times for times in range(MOST_TIMES, 1, -1) if size and size % times == 0)
    return next((times for times in fitting if view[size // times :] == view[: -(size // times)]), 1)


def _lines_of(piece: SourceBatch) -> bytes:
    """Return pairs of record offset and line, for the batch and for its records."""
    pairs = [(piece.batch.base_offset, -piece.batch.position)]
    pairs += [(record.offset, record.position) for record in piece.records]
    return struct.pack(f"={2 * len(pairs)}q", *(number for pair in pairs for number in pair))


def _decoded(piece: SourceBatch, size_bytes: int) -> DecodedBatch:
    """Return where a batch of `decode` was in its file.

    Args:
        size_bytes: how many bytes it takes as it is encoded here.
    """
    batch, records = piece.batch, piece.records
    last, is_told = records[-1], batch.magic == NEWEST_MAGIC and not batch.attributes & UNTOLD_SIZES
    last_size = (size_bytes if len(records) == 1 else len(_encode(batch, (last,)))) - BATCH_HEADER_SIZE
    return DecodedBatch(
        records[0].position,
        last.position,
        *((is_told and piece.positions) or (-1, -1)),
        others_size=size_bytes - BATCH_HEADER_SIZE - last_size,
        last_size=last_size,
        records_count=len(records),
        first_offset=records[0].offset,
        last_offset=last.offset,
        is_exact=not batch.is_control and all(record.value is not None for record in records),
    )


def _encode(batch: RecordBatch, records: tuple[Record, ...]) -> bytes:
    if any(as_int64(record.timestamp_ms) != record.timestamp_ms for record in records):
        raise CorruptRecordError("a timestamp has more than 64 bits")
    if batch.magic == 2 or (records and batch.codec.id):
        return rebuild_batch(batch, records)
    return b"".join(rebuild_batch(replace(batch, base_offset=record.offset), (record,)) for record in records)
