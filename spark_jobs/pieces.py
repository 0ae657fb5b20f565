"""Do a task: open a piece's files and return its rows at a level, as Arrow tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from offsets_log.columnar.events.rows import EVENT_COLUMNS
from offsets_log.columnar.folds.replay import Replay
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, ScanPlace, Seen
from offsets_log.columnar.shuffle.partials import PARTIAL_COLUMNS, partial_table, table_of
from offsets_log.columnar.shuffle.pieces import Bounds, iter_event_tables, replay_piece
from offsets_log.columnar.shuffle.records import HEADERS, RECORD_COLUMNS, iter_record_tables
from offsets_log.errors import Damage
from offsets_log.events import TailFound
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Tail
from offsets_log.rows.shown import Shown
from offsets_log.rows.tables import Column, Row, damage_row
from spark_jobs.effects import EFFECT_COLUMNS
from spark_jobs.options import SourceOptions, matcher
from spark_jobs.planning import PieceFiles


def columns_of(reading: SourceOptions) -> tuple[Column, ...]:
    """Return the columns of a read."""
    level = [column for column in COLUMNS[reading.level] if column is not HEADERS or reading.include_headers]
    if not reading.columns:
        return tuple(level)
    return tuple(column for name in reading.columns for column in level if column.name == name)


def open_piece(piece: PieceFiles, stack: ExitStack) -> tuple[PartitionLog, Bounds]:
    """Open the segments of a piece as a log, and return the piece's bounds in it."""
    segments = [Segment(file.path, file.base_offset, file.open(stack)) for file in piece.files]
    if not piece.is_last:
        segments.append(Segment("", piece.following, b""))
    count = len(piece.files)
    end = ScanPlace(count, 0) if piece.end is None else ScanPlace(count - 1, piece.end)
    bounds = Bounds(ScanPlace(0, piece.position), piece.last_offset, end, piece.next_first_offset)
    log = PartitionLog(
        piece.offsets_partition, tuple(segments), checkpoints=piece.checkpoints, selection=piece.selection
    )
    return log, bounds


def iter_tables(piece: PieceFiles, reading: SourceOptions) -> Iterator[pa.Table]:
    """Yield the rows of a piece at the reading's level."""
    schema = schema_of(columns_of(reading))
    with ExitStack() as stack:
        log, bounds = open_piece(piece, stack)
        for table in LEVELS[reading.level](piece, log, bounds, reading):
            yield table.select(schema.names).cast(schema)


def _partials(piece: PieceFiles, log: PartitionLog, bounds: Bounds, reading: SourceOptions) -> Iterator[pa.Table]:
    seen: list[Seen] = []
    replay = Replay(log, reading.rules, until=reading.until(log.offsets_partition), release=reading.kafka)
    layout, state, reach = replay_piece(replay, bounds, seen.append)
    with Scanner() as scanner:
        partials = partial_table(layout, state, scanner, members=reading.members)
    rows = [_piece_row(piece, state, reach, seen, reading), *(seen_row(item, i) for i, item in enumerate(seen))]
    table = _of_piece(pa.concat_tables([table_of(rows), partials]), piece)
    shows = matcher(reading.group)
    if shows is not None:
        names = [name for name in table["group"].unique().to_pylist() if name is not None and not shows(name)]
        table = table.filter(pc.invert(pc.is_in(table["group"], pa.array(names, pa.string()))))
    yield table


def _piece_row(piece: PieceFiles, state: ColumnarState, reach: Cursor, seen: list[Seen], reading: SourceOptions) -> Row:
    scan_state = state.arrays.scan_state
    damages = [item for item in seen if isinstance(item, Damage)]
    between = sum(item.count for item in seen if isinstance(item, Missing))
    unsupported = sum(damage.is_unsupported for damage in damages)
    facts = {
        "first_file": piece.files[0].path,
        "first_base_offset": piece.files[0].base_offset or 0,
        "begins_a_file": piece.position == 0,
        "next_offset": reach.next_offset,
        "end_offset": state.end_offset,
        "log_end": None if reading.until(piece.offsets_partition).record_offset is not None else piece.log_end,
        "is_stopped": reach.is_stopped,
        "batches": int(scan_state.batches),
        "records": int(scan_state.records),
        "corrupt": len(damages) - unsupported,
        "unsupported": unsupported,
        "kafka": reading.kafka,
        "notes": piece.notes,
        "absent": [asdict(missing) for missing in piece.absent],
        "checkpoints": asdict(piece.checkpoints),
        "selection": piece.selection,
        "until_offset": reading.until(piece.offsets_partition).record_offset,
        "is_broken": reach.is_broken,
        "last_file": piece.files[-1].path if piece.files[-1].size == 0 and len(piece.files) > 1 else None,
        "base_of_last": piece.files[-1].base_offset,
        "shows_cleaning": int(scan_state.missing) > between or not any(file.size for file in piece.files),
    }
    return {"kind": "piece", "facts": json.dumps(facts)}


def seen_row(seen: Seen, number: int) -> Row:
    """Return what was seen while reading as a row of partials.

    Args:
        number: its place among what the piece has seen.
    """
    match seen:
        case Damage(raw=raw):
            facts = damage_row(seen) | {"error": type(seen.error).__name__}
            del facts["raw_base64"]
            return {"kind": "damage", "number": number, "facts": json.dumps(facts), "value": raw}
        case TailFound(segment, tail):
            facts = {"file": segment.file, **asdict(tail), "lost": seen.lost}
            return {"kind": "tail", "number": number, "facts": json.dumps(facts)}
        case Missing():
            return missing_row(seen) | {"number": number}


def missing_row(missing: Missing) -> Row:
    """Return the row of offsets that no segment holds."""
    return {"kind": "missing", "facts": json.dumps(asdict(missing))}


def tail_of(facts: dict[str, Any]) -> TailFound:
    """Return a tail from its facts."""
    tail = Tail(facts["kind"], facts["position"], facts["size_bytes"])
    return TailFound(Segment(facts["file"], None, b""), tail, facts["lost"])


def _of_piece(table: pa.Table, piece: PieceFiles) -> pa.Table:
    facts: dict[str, Any] = {
        "log": piece.log, "piece": piece.number, "pieces": piece.count, "offsets_partition": piece.offsets_partition
    }  # fmt: skip
    for name, value in facts.items():
        place = table.schema.get_field_index(name)
        column = pa.repeat(pa.scalar(value, pa.int32()), len(table))
        table = table.set_column(place, table.schema.field(place), column)
    return table


def _events(piece: PieceFiles, log: PartitionLog, bounds: Bounds, reading: SourceOptions) -> Iterator[pa.Table]:
    shown = Shown(matcher(reading.group), matcher(reading.topic))
    until = reading.until(piece.offsets_partition)
    return iter_event_tables(log, bounds, shown, until, reading.kafka, note=lambda seen: None)


def _records(piece: PieceFiles, log: PartitionLog, bounds: Bounds, reading: SourceOptions) -> Iterator[pa.Table]:
    until = reading.until(piece.offsets_partition)
    return iter_record_tables(log, bounds, until, reading.kafka, note=lambda seen: None)


LEVELS = {"partials": _partials, "events": _events, "records": _records}
COLUMNS = {
    "partials": PARTIAL_COLUMNS, "events": EVENT_COLUMNS, "records": RECORD_COLUMNS, "effects": EFFECT_COLUMNS,
}  # fmt: skip
"""Columns of each level. Batches that cannot be read have rows only in partials, of kind ``damage``."""
