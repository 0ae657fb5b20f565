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
from offsets_log.dumps.dump_log_facts import (
    CODEC_NAMES,
    CONTENT,
    CONTROL,
    KEY_SIZES,
    MARKER,
    TIMESTAMP_TYPES,
    VALUE_SIZES,
    Facts,
    facts_in,
    facts_of_record,
    have_same_batch,
    is_dense,
    lies_in,
    number_in,
    readings,
    tells_transaction,
    time_in,
)
from offsets_log.dumps.dump_log_text import (
    UNTOLD_OF_EXPANDED,
    KeylessTombstone,
    NotTold,
    Sizes,
    coordinator_bytes,
    records_untold,
)
from offsets_log.dumps.kafka_json import UnknownFields, field_bytes
from offsets_log.dumps.positions import Positions
from offsets_log.dumps.source import (
    Remark,
    SegmentPiece,
    SegmentPlace,
    SourceBatch,
    SourcePiece,
    damaged_line,
    header,
    iter_placed_lines,
)
from offsets_log.dumps.untold import Files, Lineless, Parts
from offsets_log.errors import CorruptBatchError, CorruptRecordError, Damage, OffsetsLogError
from offsets_log.log_format.control_record import UNTOLD, ControlRecord, control_record
from offsets_log.log_format.partition_log import BYTES, OUTCOMES
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
TORN_LINE = re.compile(
    r" payload: |[iI]s[vV]alid: |keysize: |keySize: |endTxnMarker: |\"data\":\{|\"commitTimestamp\":"
)
"""What is in a line of which only the beginning is missing."""
CUT_HERE = "--"
"""The line that grep prints where it leaves out lines."""

MAX_LINES_OF_ENTRY = 10_000

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
            if reader.place is not None and reader.place.file:
                yield from _in_bulk(text, reader.place, reader.positions, at, line)
                at, line = text.at, text.line
            at, line = yield from _slow_path(reader, buffer, at, line, is_bulk=True)
    else:
        yield from _slow_path(reader, buffer, at, line, is_bulk=False)


def _in_bulk(
    text: BatchText, place: SegmentPlace, positions: Positions, at: int, line: int
) -> Iterator[SourcePiece]:  # fmt: skip
    """Yield plain batches that follow each other, from a position on."""
    for some in text.batches(at, line, positions.next_position):
        positions.extend(some.next_position)
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
        elif TORN_LINE.search(line):
            yield damaged_line(number, raw, "its beginning is missing")
        # Other text before the first entry was written by a person.
    yield from reader.entry(begun_at, entry)
    yield from reader.end()
    yield from reader.positions.missing()
    yield from reader.lineless.pieces()
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

    def takes(self, facts: Facts) -> bool:
        """Return whether the line of a record that follows is of this batch."""
        try:
            if self.has_line:
                return self.seen < number_in(self.facts, "count", default=self.seen + 1) and lies_in(self.facts, facts)
            rises = not self.records or self.records[-1].offset < number_in(facts, "offset", default=-1)
        except CorruptRecordError:
            return self.has_line
        return rises and have_same_batch(self.facts, facts)


class _Reader:
    """Assemble entries to batches."""

    def __init__(self) -> None:
        self.place: SegmentPlace | None = SegmentPlace()
        self.batch: _Open | None = None
        self.is_named = False
        self.files = Files()
        self.parts = Parts()
        self.lineless = Lineless()
        self.positions = Positions()

    def entry(self, line: int, lines: list[str]) -> Iterator[SourcePiece]:
        """Process an entry with all its lines."""
        if not lines:
            return
        first = lines[0]
        if found := FILE_LINE.match(first):
            yield from self.end()
            yield from self.positions.missing()
            self.place, self.is_named = self.files.place_of(line, found["file"].strip()), True
            self.positions.file = self.place.file if self.place is not None else ""
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
        lines = [text for text in lines if text != CUT_HERE]
        for text in ("".join(lines), "".join(lines[:1])):
            facts = facts_in(text)
            if facts is not None and ("isvalid" in facts or text == lines[0]):
                self.batch = _Open(line, facts, has_line=True)
                yield from self.positions.saw(line, facts)
                return
        yield damaged_line(line, "\n".join(lines).encode(), "it is no whole line of a batch")

    def end(self) -> Iterator[SourcePiece]:
        """Finish the batch: it has no more records."""
        batch, self.batch = self.batch, None
        if batch is None or self.place is None:
            return
        if not self.is_named:
            self.place, said = self.parts.place_of(batch.line, batch.records)
            yield from said
        try:
            yield from self._finished(batch, self.place)
        except OffsetsLogError as error:
            yield Damage(error.at(position=batch.line), str(batch.facts).encode())

    def _finished(self, batch: _Open, place: SegmentPlace) -> Iterator[SourcePiece]:
        facts = batch.facts
        base = number_in(facts, "baseOffset", "offset")
        if facts.get("isvalid", facts.get("isValid")) == "false":
            raise CorruptBatchError("its checksum was wrong (isvalid: false)", record_offset=base)
        magic = number_in(facts, "magic", default=2)
        if magic not in (0, 1, 2):
            raise CorruptBatchError(f"magic {magic}", record_offset=base)
        count = number_in(facts, "count", default=batch.seen)
        if batch.has_line and batch.seen < (count if magic == 2 else 1):
            error = records_untold(batch.seen, count, is_control=facts.get("isControl") == "true")
            yield Damage(error.at(position=batch.line, record_offset=base), str(facts).encode())
            if facts.get("isControl") == "true" and not batch.seen:
                marker = Record(offset=base, position=batch.line, timestamp_ms=time_in(facts), key=None, value=None)
                batch.records.append(control_record(marker, ControlRecord(UNTOLD, None)))
                batch.missing_columns.add(OUTCOMES)
        if not batch.records and (magic < 2 or count):
            return
        type_name = next((name for name in TIMESTAMP_TYPES if name in facts), "CreateTime")
        is_plain = tells_transaction(facts)
        if not batch.has_line and not (is_plain and "position" in facts):
            for record in batch.records:
                one = self.lineless.batch(
                    place, record, TIMESTAMP_TYPES[type_name], is_control=batch.control, is_plain=is_plain
                )
                yield replace(one, missing_columns=one.missing_columns | batch.missing_columns)
            return
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
            last_offset=number_in(facts, "lastOffset") if is_batch else None,
            max_timestamp_ms=number_in(facts, type_name) if is_batch and type_name in facts else None,
            delete_horizon_ms=int(horizon[1]) if horizon else None,
            is_transactional=facts.get("isTransactional") == "true",
            is_control=facts.get("isControl") == "true" or batch.control,
            producer_id=number_in(facts, "producerId", default=-1),
            producer_epoch=number_in(facts, "producerEpoch", default=-1),
            base_sequence=number_in(facts, "baseSequence", "sequence", default=-1),
            partition_leader_epoch=number_in(facts, "partitionLeaderEpoch", default=-1),
        )
        size_bytes = number_in(facts, "size") if batch.has_line and "size" in facts else None
        yield SourceBatch(place, made, records, frozenset(batch.missing_columns), size_bytes)

    # ----------------------------------------------------------------------------------------- records

    def _record(self, line: int, lines: list[str]) -> Iterator[SourcePiece]:
        error: OffsetsLogError | None = None
        for text, used in readings(lines):
            try:
                found = self._read_record(line, text)
            except OffsetsLogError as problem:
                error = error or problem
                continue
            yield from self._take(line, found)
            for number, rest in enumerate(lines[used:], line + used):
                if rest.strip() and rest != CUT_HERE:
                    yield damaged_line(number, rest.encode(), "it belongs to no record")
            return
        assert error is not None
        yield from self._take(line, _Found(facts_of_record(lines[0]) or {}))
        if isinstance(error, KeylessTombstone):
            yield KEYLESS_TOMBSTONES
        yield Damage(error.at(position=line), "\n".join(lines).encode())

    def _read_record(self, line: int, text: str) -> _Found:
        """Return one reading of an entry as a record. Raises OffsetsLogError if the reading is wrong."""
        text = text.removeprefix("| ")
        content = CONTENT.search(text)
        control = CONTROL.search(text) if content is None else None
        end = content.start() if content else control.start() if control else len(text)
        facts = facts_in(text[:end])
        if facts is None:
            raise CorruptRecordError("it is no whole line of a record")
        if facts.get("isvalid", facts.get("isValid")) == "false":
            raise CorruptBatchError("its checksum was wrong (isvalid: false)")
        offset = number_in(facts, "offset", default=self._next_offset())
        time = (
            time_in(facts) if facts.keys() & TIMESTAMP_TYPES.keys() or self.batch is None else time_in(self.batch.facts)
        )
        made = Record(offset=offset, position=line, timestamp_ms=time, key=None, value=None)
        if control is not None:
            if (marker := MARKER.search(text)) is None:
                raise NotTold(f"a control record: {control[0].strip()}", record_offset=offset)
            made = control_record(made, ControlRecord(marker["type"], int(marker["epoch"])))
            return _Found(facts, made, is_control=True)
        sizes = Sizes(
            *(number_in(facts, *names) if facts.keys() & {*names} else None for names in (KEY_SIZES, VALUE_SIZES))
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
        return number_in(self.batch.facts, "baseOffset", "offset")

    def _take(self, line: int, found: _Found) -> Iterator[SourcePiece]:
        """Add a record to its batch; where batches have no line, records of one position and producer form a batch."""
        batch, facts = self.batch, found.facts
        if batch is None or not batch.takes(facts):
            yield from self.end()
            batch = self.batch = _Open(line, facts, has_line=False)
            yield from self.positions.saw(line, facts)
        assert batch is not None
        batch.seen += 1
        batch.control |= found.is_control
        batch.missing_columns |= found.missing_columns
        yield from found.untold
        if found.record is None:
            return
        if "offset" not in facts and not is_dense(batch.facts):
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
