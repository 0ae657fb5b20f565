"""Tell transactions that are open from those of which only the end is not in a text.

``records -g``, grep and a cut leave out the markers that end transactions. A transaction without an end is open only
where nothing is missing behind its first record: the cleaner takes nothing from there on, as it stops at the first
offset that is not stable (``CL-3``). Of all others it is not told how they ended.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

import google_crc32c

from offsets_log.dumps.lines_of_offsets import Store
from offsets_log.dumps.untold import untold_commits
from offsets_log.errors import Damage
from offsets_log.log_format import batch as b
from offsets_log.log_format.partition_log import OUTCOMES, PartitionLog, Segment
from offsets_log.log_format.segment import Buffer

NO_END = "the ends of their transactions are left out (offsets-log records without -g and -t shows them)"
PRODUCER = struct.Struct(">q")
PRODUCER_POSITION = b.BATCH_NUMBERS.size - struct.calcsize(">qhii")
CRC = struct.Struct(">I")


class _Batch(NamedTuple):
    """A batch of magic 2 by its header."""

    begin: int
    end: int
    base_offset: int
    last_offset: int
    attributes: int
    producer_id: int
    records_count: int


def _batches(contents: Buffer) -> Iterator[_Batch]:
    view, at = memoryview(contents), 0
    while at < len(view):
        size = b.LOG_OVERHEAD + int.from_bytes(view[at + 8 : at + b.LOG_OVERHEAD])
        if view[at + b.MAGIC_POSITION] == b.NEWEST_MAGIC:
            base, _, _, _, _, attributes, delta, _, _, producer_id, _, _, count = b.BATCH_NUMBERS.unpack_from(view, at)
            yield _Batch(at, at + size, base, base + delta, attributes, producer_id, count)
        at += size


@dataclass(slots=True)
class _Ends:
    """What the batches of one log tell of its transactions.

    Attributes:
        has_ended: producers of which an end is there.
        begun: producer → the first offset of its transactions.
        dense_from: from this offset on nothing is missing.
    """

    has_ended: set[int] = field(default_factory=set)
    begun: dict[int, int] = field(default_factory=dict)
    dense_from: int = 0
    _next_offset: int = -1

    def saw(self, batch: _Batch) -> None:
        """Note a batch, in the order of the source."""
        if batch.base_offset != self._next_offset:
            self.dense_from = batch.base_offset
        self._next_offset = batch.last_offset + 1
        if batch.attributes & b.CONTROL_MASK:
            self.has_ended.add(batch.producer_id)
        elif batch.attributes & b.TRANSACTIONAL_MASK and batch.producer_id > b.NO_PRODUCER_ID:
            self.begun.setdefault(batch.producer_id, batch.base_offset)

    def untold(self, *, is_whole: bool, has_holes: bool) -> set[int]:
        """Return producers of which nobody can say whether their transaction is open.

        Args:
            is_whole: whether it is certain that nothing is left out, but at the end.
            has_holes: whether it is certain that something is left out.
        """
        is_chosen = not (self.has_ended or is_whole)  # names leave out all markers
        return {
            producer_id
            for producer_id, begin in self.begun.items()
            if producer_id not in self.has_ended and (is_chosen or (has_holes and begin < self.dense_from))
        }


def with_ends_untold(
    logs: Iterable[PartitionLog], whole: Set[str], with_holes: Set[str], store: Callable[[], Store]
) -> Iterator[PartitionLog | Damage]:
    """Pass on logs of one segment each; hold back commits of transactions of which it is not told how they ended.

    Args:
        whole: files of which it is certain that nothing is left out, but at the end.
        with_holes: files of which it is certain that something is.
        store: creates the store for the bytes of a segment.

    Yields:
        Logs in their order, and of each partition in which commits are held back what is said of them.
    """
    for _, of_one in groupby(logs, _log_of):
        segments = [*of_one]
        files = {log.segments[0].file for log in segments}
        ends = _Ends()
        for log in segments:
            for batch in _batches(log.segments[0].buffer):
                ends.saw(batch)
        untold = ends.untold(is_whole=files <= whole, has_holes=bool(files & with_holes))
        yield from _held_back(segments, untold, store) if untold else segments


def _log_of(log: PartitionLog) -> tuple[int | None, str]:
    """Return what segments of one log have in common."""
    return log.offsets_partition, log.segments[0].file.rpartition("/")[0]


def _held_back(
    logs: list[PartitionLog], untold: set[int], store: Callable[[], Store]
) -> Iterator[PartitionLog | Damage]:
    first = count = 0
    for log in logs:
        (segment,) = log.segments
        held = [
            batch
            for batch in _batches(segment.buffer)
            if batch.producer_id in untold and batch.attributes & b.TRANSACTIONAL_MASK
        ]
        count += sum(batch.records_count for batch in held)
        if held:
            first = first or segment.lines.get(held[0].base_offset, 0)
            segment = replace(
                segment,
                contents=_rewritten(segment, held, store()),
                missing_columns=segment.missing_columns | {OUTCOMES},
            )
        yield replace(log, segments=(segment,))
    yield untold_commits(first, count, NO_END)


def _rewritten(segment: Segment, held: list[_Batch], store: Store) -> Buffer:
    """Return a segment's bytes with some batches as those of `UNTOLD_PRODUCER_ID`."""
    view, at = memoryview(segment.buffer), 0
    for batch in held:
        raw = bytearray(view[batch.begin : batch.end])
        PRODUCER.pack_into(raw, PRODUCER_POSITION, b.UNTOLD_PRODUCER_ID)
        CRC.pack_into(raw, b.CRC_POSITION, google_crc32c.value(bytes(raw[b.ATTRIBUTES_POSITION :])))
        store.append(view[at : batch.begin].tobytes())
        store.append(bytes(raw))
        at = batch.end
    store.append(view[at:].tobytes())
    return store.buffer()
