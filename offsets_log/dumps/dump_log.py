"""Read the text of kafka-dump-log, of every release since 0.9, even as somebody has pasted it.

0.9 – 2.1    one line for each record, with the facts of its batch
2.2 – 2.8    one line for each batch, and lines ``| `` of records that repeat the batch's facts
3.0 and on   one line for each batch, and lines ``| `` of records with their own facts; 3.8 prints Kafka's JSON

An entry continues until a line that begins another one: metadata may hold line breaks, a console breaks long lines, and
blank lines stand between them. The printed sizes of key and value decide: the first reading that has them is taken.

Keys and values are read by `dump_log_text`. References: ``DumpLogSegments`` (Scala, Java).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from offsets_log.columnar.large import is_large
from offsets_log.dumps.dump_log_text import (
    UNTOLD_OF_EXPANDED,
    KeylessTombstone,
    NotTold,
    Sizes,
    coordinator_bytes,
    records_untold,
)
from offsets_log.dumps.kafka_json import UnknownFields, field_bytes
from offsets_log.dumps.source import (
    Remark,
    SegmentPiece,
    SegmentPlace,
    SourceBatch,
    SourcePiece,
    damaged_line,
    header,
    iter_placed_lines,
    place_of,
)
from offsets_log.errors import CorruptBatchError, CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format.control_record import ControlRecord, control_record
from offsets_log.log_format.partition_log import BYTES
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Buffer

if TYPE_CHECKING:
    from offsets_log.columnar.texts.reading import BatchText

FILE_LINE = re.compile(r"Dumping (?P<file>\S.*)$")
START_LINE = re.compile(r"(?:Log s|S)tarting offset: -?\d+$")
BATCH_LINE = re.compile(r"baseOffset: -?\d+ lastOffset: -?\d+ count: |offset: -?\d+ position: \d+ \w+: -?\d+ size: ")
RECORD_LINE = re.compile(
    r"(?:\| )?offset: -?\d+ (?:position|isvalid|isValid|CreateTime|LogAppendTime|NoTimestampType): "
)
BARE_LINE = re.compile(r"\|  ?(?:key|payload): ")
"""A record's line without its facts, as --skip-record-metadata prints it."""
TAIL_LINE = re.compile(r"Found \d+ invalid bytes at the end of ")
ORDER_LINE = re.compile(r"Non-consecutive offsets in |  -?\d+ is followed by -?\d+$")
CRASH_LINE = re.compile(r"Exception in thread |(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)(?:: |$)|\tat [\w$.]+\(")
BEGINNINGS = (FILE_LINE, START_LINE, BATCH_LINE, RECORD_LINE, BARE_LINE, TAIL_LINE, ORDER_LINE, CRASH_LINE)
FIRST_LETTERS = frozenset("DLSbo|FN Eabcdefghijklmnopqrstuvwxyz\t")

FACT = re.compile(r"(\w+): (\[[^\]]*\]|[^\s}]+)\}?(?: |$)")
CONTENT = re.compile(r"(?:^| )(?:key: |payload: )")
MARKER = re.compile(r"endTxnMarker: (?P<type>COMMIT|ABORT) coordinatorEpoch: (?P<epoch>-?\d{1,10})$")
CONTROL = re.compile(r" (?:endTxnMarker|controlType): .*$", re.DOTALL)

TIMESTAMP_TYPES = {"CreateTime": "create", "LogAppendTime": "log_append", "NoTimestampType": "none"}
CODEC_NAMES = {"nocompressioncodec": "none", "gzipcompressioncodec": "gzip", "snappycompressioncodec": "snappy",
               "lz4compressioncodec": "lz4", "zstdcompressioncodec": "zstd"}  # fmt: skip
KEY_SIZES = ("keySize", "keysize")
VALUE_SIZES = ("valueSize", "valuesize", "payloadsize")
MAX_LINES_OF_ENTRY = 10_000

Facts = dict[str, str]

KEYLESS_TOMBSTONES = Remark(
    "kafka-dump-log before 2.4 prints tombstones without their keys: offsets and groups in the answer may be deleted "
    "by one of these; print the segments with a later release to know"
)


def is_dump_log(text: str) -> bool:
    """Return whether one of the lines is printed by the tool."""
    return any(form.match(line) for line in text.split("\n") for form in (FILE_LINE, BATCH_LINE, RECORD_LINE))


def read(buffer: Buffer) -> Iterator[SourcePiece]:
    """Yield the batches of a dump, in its order."""
    reader, at, line = _Reader(), 0, 1
    if is_large(len(buffer), "texts.kernels.read_batches"):
        from offsets_log.columnar.texts.reading import EMBEDDED, BatchText

        text = BatchText(buffer, [partial(field_bytes, name) for name in EMBEDDED])
        while at < len(buffer):
            if reader.place is not None:
                yield from _in_bulk(text, reader.place, at, line)
                at, line = text.at, text.line
            at, line = yield from _slow_path(reader, buffer, at, line, is_bulk=True)
    else:
        yield from _slow_path(reader, buffer, at, line, is_bulk=False)


def _in_bulk(text: BatchText, place: SegmentPlace, at: int, line: int) -> Iterator[SourcePiece]:
    """Yield plain batches from a position on."""
    for some in text.batches(at, line):
        missing_columns = frozenset({BYTES} if some.is_resized else ()) | (
            UNTOLD_OF_EXPANDED if some.is_expanded else set()
        )
        yield SegmentPiece(place, some.data, some.lines, missing_columns)


def _slow_path(
    reader: _Reader, buffer: Buffer, at: int, begun_at: int, *, is_bulk: bool
) -> Generator[SourcePiece, None, tuple[int, int]]:
    """Yield pieces from entries read line by line, from a position on; return the position and line number of the end.

    Args:
        is_bulk: whether to return before the second batch begins.
    """
    entry: list[str] = []
    for position, number, raw in iter_placed_lines(buffer, at, begun_at):
        line = raw.decode(errors="replace")
        if _begins_entry(line):
            yield from reader.entry(begun_at, entry)
            if is_bulk and position > at and reader.place is not None and BATCH_LINE.match(line):
                yield from reader.end()
                return position, number
            begun_at, entry = number, [line]
        elif entry:
            entry.append(line)
            if len(entry) > MAX_LINES_OF_ENTRY:
                yield damaged_line(begun_at, "\n".join(entry).encode(), "it goes on for too many lines")
                entry = []
        # Text before the first entry was written by a person.
    yield from reader.entry(begun_at, entry)
    yield from reader.end()
    return len(buffer), begun_at


def _begins_entry(line: str) -> bool:
    return line[:1] in FIRST_LETTERS and any(form.match(line) for form in BEGINNINGS)


@dataclass(slots=True)
class _Open:
    """A batch whose records are being read; ``facts`` are those of its line, or of its first record's line."""

    line: int
    facts: Facts
    has_line: bool
    records: list[Record] = field(default_factory=list)
    seen: int = 0
    control: bool = False
    missing_columns: set[str] = field(default_factory=set)


class _Reader:
    """Assemble entries to batches."""

    def __init__(self) -> None:
        self.place: SegmentPlace | None = SegmentPlace()
        self.batch: _Open | None = None

    def entry(self, line: int, lines: list[str]) -> Iterator[SourcePiece]:
        """Process an entry with all its lines."""
        if not lines:
            return
        first = lines[0]
        if found := FILE_LINE.match(first):
            yield from self.end()
            self.place = place_of(found["file"].strip())
            if self.place is None:
                yield Remark(f"left out, as it is of another topic: {found['file'].strip()}")
        elif CRASH_LINE.match(first):
            yield from self.end()
            if not first.startswith("\t"):
                yield damaged_line(line, first.encode(), f"the tool ended here, what followed is missing: {first}")
        elif TAIL_LINE.match(first):
            yield from self.end()
            yield Remark(f"{first}: a batch that was not written whole, normal at the end of a log")
        elif START_LINE.match(first) or ORDER_LINE.match(first) or self.place is None:
            pass
        elif BATCH_LINE.match(first):
            yield from self.end()
            yield from self._begin(line, lines)
        else:
            yield from self._record(line, lines)

    def _begin(self, line: int, lines: list[str]) -> Iterator[SourcePiece]:
        for text in ("".join(lines), "".join(lines[:1])):
            facts = _facts(text)
            if facts is not None and ("isvalid" in facts or text == lines[0]):
                self.batch = _Open(line, facts, has_line=True)
                return
        yield damaged_line(line, "\n".join(lines).encode(), "it is no whole line of a batch")

    def end(self) -> Iterator[SourcePiece]:
        """Finish the batch: it has no more records."""
        batch, self.batch = self.batch, None
        if batch is None or self.place is None:
            return
        try:
            yield from self._finished(batch, self.place)
        except OffsetsLogError as error:
            yield Damage(error.at(position=batch.line), str(batch.facts).encode())

    def _finished(self, batch: _Open, place: SegmentPlace) -> Iterator[SourcePiece]:
        facts = batch.facts
        base = _number(facts, "baseOffset", "offset")
        if facts.get("isvalid", facts.get("isValid")) == "false":
            raise CorruptBatchError("its checksum was wrong (isvalid: false)", record_offset=base)
        magic = _number(facts, "magic", default=2)
        if magic not in (0, 1, 2):
            raise CorruptBatchError(f"magic {magic}", record_offset=base)
        count = _number(facts, "count", default=batch.seen)
        if batch.has_line and batch.seen < (count if magic == 2 else 1):
            error = records_untold(batch.seen, count, is_control=facts.get("isControl") == "true")
            yield Damage(error.at(position=batch.line, record_offset=base), str(facts).encode())
        if not batch.records and (magic < 2 or count):
            return
        type_name = next((name for name in TIMESTAMP_TYPES if name in facts), "CreateTime")
        codec = facts.get("compresscodec", facts.get("compressType", "none")).lower()
        horizon = re.fullmatch(r"OptionalLong\[(\d+)\]", facts.get("deleteHorizonMs", ""))
        is_batch = batch.has_line and magic == 2
        records = tuple(batch.records)
        made = header(
            records,
            line=batch.line,
            magic=magic,
            compression=CODEC_NAMES.get(codec, codec),
            timestamp_type=TIMESTAMP_TYPES[type_name],
            base_offset=base if is_batch else None,
            last_offset=_number(facts, "lastOffset") if is_batch else None,
            max_timestamp_ms=_number(facts, type_name) if is_batch and type_name in facts else None,
            delete_horizon_ms=int(horizon[1]) if horizon else None,
            is_transactional=facts.get("isTransactional") == "true",
            is_control=facts.get("isControl") == "true" or batch.control,
            producer_id=_number(facts, "producerId", default=-1),
            producer_epoch=_number(facts, "producerEpoch", default=-1),
            base_sequence=_number(facts, "baseSequence", "sequence", default=-1),
            partition_leader_epoch=_number(facts, "partitionLeaderEpoch", default=-1),
        )
        size_bytes = _number(facts, "size") if batch.has_line and "size" in facts else None
        yield SourceBatch(place, made, records, frozenset(batch.missing_columns), size_bytes)

    # ----------------------------------------------------------------------------------------- records

    def _record(self, line: int, lines: list[str]) -> Iterator[SourcePiece]:
        error: OffsetsLogError | None = None
        for text, used in _readings(lines):
            try:
                found = self._read_record(line, text)
            except OffsetsLogError as problem:
                error = error or problem
                continue
            yield from self._take(line, found)
            for number, rest in enumerate(lines[used:], line + used):
                if rest.strip():
                    yield damaged_line(number, rest.encode(), "it belongs to no record")
            return
        assert error is not None
        yield from self._take(line, _Found(_facts_of_record(lines[0]) or {}))
        if isinstance(error, KeylessTombstone):
            yield KEYLESS_TOMBSTONES
        yield Damage(error.at(position=line), "\n".join(lines).encode())

    def _read_record(self, line: int, text: str) -> _Found:
        """Return one reading of an entry as a record. Raises OffsetsLogError if the reading is wrong."""
        text = text.removeprefix("| ")
        content = CONTENT.search(text)
        control = CONTROL.search(text) if content is None else None
        end = content.start() if content else control.start() if control else len(text)
        facts = _facts(text[:end])
        if facts is None:
            raise CorruptRecordError("it is no whole line of a record")
        if facts.get("isvalid", facts.get("isValid")) == "false":
            raise CorruptBatchError("its checksum was wrong (isvalid: false)")
        offset = _number(facts, "offset", default=self._next_offset())
        time = _time(facts) if facts.keys() & TIMESTAMP_TYPES.keys() or self.batch is None else _time(self.batch.facts)
        made = Record(offset=offset, position=line, timestamp_ms=time, key=None, value=None)
        if control is not None:
            if (marker := MARKER.search(text)) is None:
                raise NotTold(f"a control record: {control[0].strip()}", record_offset=offset)
            made = control_record(made, ControlRecord(marker["type"], int(marker["epoch"])))
            return _Found(facts, made, is_control=True)
        sizes = Sizes(
            *(_number(facts, *names) if facts.keys() & {*names} else None for names in (KEY_SIZES, VALUE_SIZES))
        )
        try:
            key, value, missing_columns = coordinator_bytes(text[end:].lstrip(" ") if content else None, sizes, offset)
        except UnknownFields as error:
            told = Damage(error.at(position=line), text.encode())
            return _Found(facts, replace(made, key=error.key, value=error.value), untold=(told,))
        return _Found(facts, replace(made, key=key, value=value), missing_columns=missing_columns)

    def _next_offset(self) -> int | None:
        """Return the offset of a record whose line has none, because --skip-record-metadata leaves it out."""
        if self.batch is None:
            return None
        if self.batch.records:
            return self.batch.records[-1].offset + 1
        return _number(self.batch.facts, "baseOffset", "offset")

    def _take(self, line: int, found: _Found) -> Iterator[SourcePiece]:
        """Add a record to its batch; where batches have no line, records of one position and producer form a batch."""
        batch, facts = self.batch, found.facts
        begins = batch is None or (not batch.has_line and not _same_batch(batch.facts, facts))
        if begins:
            yield from self.end()
            batch = self.batch = _Open(line, facts, has_line=False)
        assert batch is not None
        batch.seen += 1
        batch.control |= found.is_control
        batch.missing_columns |= found.missing_columns
        yield from found.untold
        if found.record is None:
            return
        if "offset" not in facts and not _is_dense(batch.facts):
            batch.missing_columns.add("record_offset")
        batch.records.append(found.record)


@dataclass(frozen=True, slots=True)
class _Found:
    """A record's line: its facts, the record if it could be read, and what of its value is not known."""

    facts: Facts
    record: Record | None = None
    is_control: bool = False
    missing_columns: frozenset[str] = frozenset()
    untold: tuple[Damage, ...] = ()


def _readings(lines: list[str]) -> Iterator[tuple[str, int]]:
    """Yield readings of an entry of several lines, the most likely first, each with the number of lines it takes."""
    yield (whole := "\n".join(lines)), len(lines)
    if len(lines) == 1:
        return
    if (stripped := whole.rstrip()) != whole:
        yield stripped, len(lines)
    yield "".join(lines), len(lines)
    width = max(map(len, lines))
    yield "".join(text if len(text) == width else f"{text}\n" for text in lines).rstrip("\n"), len(lines)
    yield " ".join(text.strip() for text in lines), len(lines)
    yield lines[0], 1


def _facts(text: str) -> Facts | None:
    """Return the ``name: value`` pairs of a text; None if it holds anything else."""
    facts: Facts = {}
    end = 0
    for found in FACT.finditer(text):
        if found.start() != end:
            return None
        end = found.end()
        facts.setdefault(found[1], found[2])
    return None if text[end:].strip() else facts


def _facts_of_record(text: str) -> Facts | None:
    text = text.removeprefix("| ")
    content = CONTENT.search(text) or CONTROL.search(text)
    return _facts(text[: content.start()] if content else text)


def _same_batch(one: Facts, other: Facts) -> bool:
    """Return whether two records' lines are of one batch.

    Compressed records have their batch's position; an uncompressed message of magic 0 and 1 has its own.
    """
    return all(one.get(name) == other.get(name) for name in ("position", "magic", "producerId", "isTransactional"))


def _is_dense(facts: Facts) -> bool:
    """Return whether the records of a batch fill all its offsets, so that each offset follows from the order."""
    span = _number(facts, "lastOffset", default=0) - _number(facts, "baseOffset", default=0) + 1
    return _number(facts, "count", default=1) == span


def _time(facts: Facts) -> int:
    return next((_number(facts, name) for name in TIMESTAMP_TYPES if name in facts), -1)


def _number(facts: Facts, *names: str, default: int | None = None) -> int:
    """Return a fact as a number, under the first of the names that is present.

    Raises:
        CorruptRecordError: the fact is no number, or it is missing and there is no default.
    """
    name = next((name for name in names if name in facts), names[0])
    if (text := facts.get(name)) is None:
        if default is None:
            raise CorruptRecordError(f"it does not tell its {name}")
        return default
    if not re.fullmatch(r"-?\d{1,19}", text):
        raise CorruptRecordError(f"{name} is {text}, no number")
    return int(text)
