"""Logs of a source and of its copies, in which it is known which record is a copy of which."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from offsets_log.columnar.aligning.reading import RowReader
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.disk.scratch import Pieces
from offsets_log.log_format.building import build_batch, build_marker
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record
from offsets_log.translation.sight import Pair

MARKER = None


@dataclass(frozen=True, slots=True)
class Said:
    """What a record says."""

    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def at(self, offset: int) -> Record:
        """Return the record at an offset."""
        return Record(offset=offset, timestamp_ms=self.time_ms, key=self.key, value=self.value, headers=self.headers)


def log_of(
    items: Iterable[tuple[int, Said | None]], *, batch: int = 3, codec: str = "none", **facts: object
) -> PartitionLog:
    """Return a log with these records and markers, by their offsets."""
    raw, held = b"", list[Record]()
    transactional = bool(facts.pop("is_transactional", False))

    def flush() -> None:
        nonlocal raw
        if held:
            raw += build_batch(
                held, compression=codec, is_transactional=transactional, producer_id=7 if transactional else -1, **facts
            )  # type: ignore[arg-type]
            held.clear()

    for offset, said in items:
        if said is MARKER:
            flush()
            raw += build_marker(offset, commit=True, producer_id=7, producer_epoch=0, timestamp_ms=0)
            continue
        held.append(said.at(offset))
        if len(held) == batch:
            flush()
    flush()
    return PartitionLog(0, (Segment("t/00000000000000000000.log", 0, raw),))


def pair_of(stack: ExitStack, source: PartitionLog, target: PartitionLog, end: int = 0) -> Pair:
    """Return both with what reads them."""
    readers = [RowReader(stack.enter_context(Scanner()), 12345) for _ in range(2)]
    return Pair(source, target, readers[0], readers[1], partial(Pieces, stack), target_end=end)


def with_header(said: Said, name: str, value: bytes) -> Said:
    """Return the same with another header."""
    return replace(said, headers=(*said.headers, (name, value)))
