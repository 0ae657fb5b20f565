"""A log with records taken out of it, for another reason than that of a round: batches stay what they are.

A batch that keeps all its records is copied; one that loses some is written again as the cleaner does it; one that
loses all goes. Control batches go only where no data of theirs is left, if at all: a transaction that is in the log
has its marker there (``CL-35``). Where the log's last batch goes, an empty one of nobody takes its place
(``CL-21``, ``CL-32``): the Java coordinator answers from a log only once a batch reached its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from offsets_log.broker.batches import FileBatch, entry_in_memory
from offsets_log.broker.log_file import LogFile
from offsets_log.broker.recovery import OpenLog
from offsets_log.cleaner.batches import batches, records
from offsets_log.cleaner.choice import Choice, CutPiece, Named, Run
from offsets_log.cleaner.rewriting import rewritten
from offsets_log.cleaner.settings import Rules
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT, NEWEST_MAGIC, RecordBatch
from offsets_log.log_format.building import empty_batch, encode_records
from offsets_log.log_format.file_names import LEADER_EPOCHS, PARTITION_METADATA
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import Buffer

Store = Callable[[list[Buffer]], Buffer]
"""Stores the joined pieces of a segment."""


def pieces_of(
    opened: OpenLog, choice: Choice, rules: Rules, end_offset: int, *, in_bulk: bool = False
) -> Iterator[CutPiece]:
    """Yield the batches that stay, or what is left of them.

    Args:
        end_offset: where the new log goes on.
        in_bulk: whether kernels do it where they can choose.

    Raises:
        OffsetsLogError: something cannot be read, or not be written.
    """
    next_offset, last = min(opened.files), None
    for file, batch, run in _batches(opened, choice.named if in_bulk else None):
        yield from run.pieces
        next_offset = run.pieces[-1].last_offset + 1 if run.pieces else next_offset
        last = last if run.last is None else (file, run.last)
        if batch is None:
            continue
        end = choice.end_within(batch)
        piece = _piece(file, batch, choice, rules, end)
        if piece is not None:
            next_offset = piece.last_offset + 1
            yield piece
        if end is None or end > batch.offset:
            last = file, batch
        if end is not None:
            break
    if last is not None and next_offset < end_offset:
        file, whole, offset = last[0], last[1].whole(), end_offset - 1
        yield CutPiece(
            last_batch(offset, whole.partition_leader_epoch, whole.max_timestamp_ms), offset, offset, file, False
        )  # fmt: skip


def _batches(opened: OpenLog, named: Named | None) -> Iterator[tuple[LogFile, FileBatch | None, Run]]:
    """Yield each batch to examine, and None at the end of a segment, with what was taken in bulk before it."""
    if named is None:
        yield from ((file, batch, Run()) for file in opened.files.values() for batch in batches(file))
        return
    from offsets_log.cleaner.bulk_editing import edit

    for editing, batch in edit(opened, named):
        yield editing.file, batch, editing.taken()


def last_batch(offset: int, leader_epoch: int, max_timestamp_ms: int) -> bytes:
    """Write an empty batch without a producer for a log's last offset, with the time and leader of the batch before."""
    empty = RecordBatch(
        position=0,
        raw=b"",
        magic=NEWEST_MAGIC,
        crc=0,
        attributes=0,
        base_offset=offset,
        last_offset=offset,
        partition_leader_epoch=leader_epoch,
        max_timestamp_ms=max_timestamp_ms,
    )
    return empty_batch(empty)


def _piece(file: LogFile, batch: FileBatch, choice: Choice, rules: Rules, end: int | None) -> CutPiece | None:
    if end is None and not batch.is_control and choice.keeps_all(batch):
        return CutPiece(batch.view[batch.position : batch.end], batch.offset, batch.last_offset, file, True)
    found = [] if batch.is_control else list(records(batch))
    base_offset = found[0].offset if batch.is_legacy and found else batch.offset
    if end is not None and end <= base_offset:
        return None
    left = [record for record in found if (end is None or record.offset < end) and choice.keeps_record(batch, record)]
    if len(left) == len(found) and (end is None or batch.is_legacy):
        if not found and not choice.keeps_bare(batch):
            return None
        return CutPiece(batch.view[batch.position : batch.end], base_offset, batch.last_offset, file, True)
    if not left:
        return None
    horizon_ms = b.NO_TIMESTAMP if batch.delete_horizon_ms is None else batch.delete_horizon_ms
    raw = rewritten(batch, left, horizon_ms, rules).raw
    if end is not None:
        raw = _ending_before(raw, end)
    return CutPiece(raw, left[0].offset if batch.is_legacy else batch.offset, _last_offset(raw), file, False)


def _last_offset(raw: bytes) -> int:
    return b.decode_batch_header(raw).last_offset


def _ending_before(raw: bytes, end: int) -> bytes:
    """Make a batch that was cut end before the cut."""
    batch = b.decode_batch_header(raw)
    if batch.magic < NEWEST_MAGIC:
        return raw
    left = [record for record in iter_records(batch) if isinstance(record, Record)]
    return b.encode_batch(replace(batch, last_offset=min(batch.last_offset, end - 1)), encode_records(batch, left))


def edited(
    log: PartitionLog,
    opened: OpenLog,
    choice: Choice,
    rules: Rules,
    *,
    end_offset: int,
    store: Store = b"".join,
    in_bulk: bool = False,
) -> PartitionLog:
    """Return the log in the same segments; those that lose nothing are not copied.

    Args:
        end_offset: where the new log goes on.
        in_bulk: see `pieces_of`.
    """
    held: dict[int, list[CutPiece]] = {}
    for piece in pieces_of(opened, choice, rules, end_offset, in_bulk=in_bulk):
        held.setdefault(piece.file.base_offset, []).append(piece)
    files = [file for base_offset, file in opened.files.items() if base_offset <= end_offset]
    segments = [_segment(file, held.get(file.base_offset, []), store) for file in files or [*opened.files.values()][:1]]
    return _log_of(log, segments)


def _segment(file: LogFile, pieces: list[CutPiece], store: Store) -> Segment:
    view: Buffer = file.view[: file.size_bytes]
    if not all(piece.is_copied for piece in pieces) or sum(len(piece.raw) for piece in pieces) != file.size_bytes:
        view = store([piece.raw for piece in pieces])
    return Segment(file.file, file.base_offset, view, modified_ms=file.modified_ms)


def packed(
    log: PartitionLog, pieces: Iterable[CutPiece], segment_bytes: int, *, first: LogFile, store: Store = b"".join
) -> PartitionLog:
    """Return the log in segments as large as they may be."""
    segments: list[Segment] = []
    held: list[CutPiece] = []
    base_offset, size = first.base_offset, 0

    def close() -> None:
        written = held[-1].file.modified_ms if held else first.modified_ms
        raw = store([piece.raw for piece in held])
        segments.append(Segment(f"{base_offset:020}.log", base_offset, raw, modified_ms=written))

    for piece in pieces:
        rest: CutPiece | None = piece
        while rest is not None:
            part, rest = _divided(rest, segment_bytes - size, base_offset, is_first=not held)
            if part is not None:
                held.append(part)
                size += len(part.raw)
            if rest is not None:
                close()
                held, base_offset, size = [], rest.base_offset, 0
    close()
    return _log_of(log, segments)


def _divided(
    piece: CutPiece, room: int, base_offset: int, *, is_first: bool
) -> tuple[CutPiece | None, CutPiece | None]:
    """Split a piece: what fits into the rest of a segment, at least a batch if it is the first, and what does not."""
    if len(piece.raw) <= room and piece.last_offset - base_offset < MAX_OFFSETS_IN_SEGMENT:
        return piece, None
    view, end, last_offset = memoryview(piece.raw), 0, piece.last_offset
    while (batch := entry_in_memory(piece.file.file, view, end, len(view))) is not None:
        is_far = batch.last_offset - base_offset >= MAX_OFFSETS_IN_SEGMENT
        if (batch.end > room or is_far) and not (is_first and not end):
            break
        end, last_offset = batch.end, batch.last_offset
    if not end:
        return None, piece
    if batch is None:
        return piece, None
    return (
        piece._replace(raw=view[:end], last_offset=last_offset),
        piece._replace(raw=view[end:], base_offset=batch.base_offset),
    )


def _log_of(log: PartitionLog, segments: list[Segment]) -> PartitionLog:
    """Return a log of other segments, without the files beside them, which must be made again."""
    beside = {name: read for name, read in log.beside.items() if name in (LEADER_EPOCHS, PARTITION_METADATA)}
    return replace(log, segments=tuple(segments), beside=beside)
