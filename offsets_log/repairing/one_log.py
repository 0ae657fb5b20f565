"""Whether two copies are of one log: the batches that both have, and what speaks against it.

A leader appends, and a follower copies: where two logs have the same batch, all that is before it is the same, and an
offset and a leader epoch together name one batch. Copies of one log hold no other records at the same offsets, but for
what a cleaner took in one of them, and no batches that a cluster would have truncated.

No checksum covers a batch's first offset and leader epoch. Where two copies have the same batch with others, the one
that fits its neighbours is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from offsets_log.broker.leader_lines import Line, truncation
from offsets_log.columnar.jit.records import places
from offsets_log.columnar.scan.batch_rows import BatchRow
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.record import Record, iter_records
from offsets_log.repairing.copies import Copy, Longs

CONTENT = BatchRow.size_bytes, BatchRow.checksum
PLACES = places(*CONTENT)
OF_ITS_OWN = b.TIMESTAMP_TYPE_MASK | b.TRANSACTIONAL_MASK | b.CONTROL_MASK
"""Attributes of a batch that a cleaner leaves as they are (``CL-28``)."""


class NotJoinedError(OffsetsLogError):
    """Two copies cannot be joined; ``record_offset`` is where that begins."""


class NotOneLogError(NotJoinedError):
    """They are not of one log, or nothing tells that they are."""


class ForeignLogError(NotOneLogError):
    """They hold the same offsets, and not one batch that is the same."""


def apart(problem: str, offset: int, one: str, other: str) -> NotOneLogError:
    """Return the error for two places that contradict each other."""
    return NotOneLogError(f"from offset {offset} on {problem} ({one}; {other})", record_offset=offset)


def same_batches(base: Copy, other: Copy) -> tuple[Longs, Longs]:
    """Return the numbers of the batches that both copies have, but for their leader epochs."""
    _, left, right = np.intersect1d(
        base.rows.column(BatchRow.base_offset),
        other.rows.column(BatchRow.base_offset),
        assume_unique=True,
        return_indices=True,
    )
    fields = (*CONTENT, BatchRow.last_offset)
    same = (base.rows.of(left).columns(*fields) == other.rows.of(right).columns(*fields)).all(axis=1)
    return left[same].astype(np.int64), right[same].astype(np.int64)


def settled(base: Copy, other: Copy) -> tuple[Copy, Copy]:
    """Return two copies without the batches whose first offset or leader epoch is damaged in one of them.

    Raises:
        NotOneLogError: which of two is damaged is in doubt.
    """
    dropped: tuple[list[int], list[int]] = [], []
    left, right = same_batches(base, other)
    epochs = base.rows.column(BatchRow.leader_epoch)[left], other.rows.column(BatchRow.leader_epoch)[right]
    agrees = epochs[0] == epochs[1]
    agreed = epochs[0][agrees]
    for at in np.flatnonzero(~agrees).tolist():
        number = int(agrees[:at].sum())
        before, behind = agreed[:number][-1:].tolist(), agreed[number : number + 1].tolist()
        wrong = _wrong_epoch(int(epochs[0][at]), int(epochs[1][at]), before, behind)
        if wrong is None:
            problem = f"they have leader epochs {epochs[0][at]} and {epochs[1][at]} in batches that are else the same"
            offset = int(base.rows[int(left[at])].base_offset)
            raise apart(problem, offset, base.place(int(left[at])), other.place(int(right[at])))
        dropped[wrong].append(int((left, right)[wrong][at]))
    bounds = zip([-1, *left.tolist(), len(base.rows)], [-1, *right.tolist(), len(other.rows)], strict=True)
    for one, two in pairwise(bounds):
        if two[0] - one[0] > 1 and two[1] - one[1] > 1:
            for side, number in _moved(base, other, range(one[0] + 1, two[0]), range(one[1] + 1, two[1])):
                dropped[side].append(number)
    return base.without(dropped[0]), other.without(dropped[1])


def _wrong_epoch(one: int, other: int, before: list[int], behind: list[int]) -> int | None:
    """Return which of two leader epochs does not fit those around it: 0, 1, or None if that is in doubt."""
    low, high = before[0] if before else b.NO_PARTITION_LEADER_EPOCH, behind[0] if behind else None
    for fits in (
        [low <= epoch and (high is None or epoch <= high) for epoch in (one, other)],
        [epoch in (*before, *behind) for epoch in (one, other)],
    ):
        if fits[0] != fits[1]:
            return int(fits[0])
    return None


def _moved(base: Copy, other: Copy, left: range, right: range) -> Iterator[tuple[int, int]]:
    """Yield the batches whose first offset is damaged, by copy and number, between two that both copies have.

    Raises:
        NotOneLogError: one is, and which of two it is is in doubt.
    """
    contents = {tuple(base.rows[number].numbers[PLACES].tolist()): number for number in left}
    for there in right:
        here = contents.get(tuple(other.rows[there].numbers[PLACES].tolist()))
        offsets = None if here is None else (int(base.rows[here].base_offset), int(other.rows[there].base_offset))
        if here is None or offsets is None or offsets[0] == offsets[1]:
            continue
        joins = _joins(base, here), _joins(other, there)
        if not any(joins):
            problem = f"they have the same batch, at offset {offsets[0]} and at offset {offsets[1]}"
            raise apart(problem, min(offsets), base.place(here), other.place(there))
        if not all(joins):
            yield (1, there) if joins[0] else (0, here)


def _joins(copy: Copy, number: int) -> bool:
    """Return whether no offset is missing before or behind a batch."""
    row = copy.rows[number]
    before = int(copy.rows[number - 1].last_offset) + 1 if number else copy.begin_offset
    behind = int(copy.rows[number + 1].base_offset) if number + 1 < len(copy.rows) else None
    return int(row.base_offset) == before or int(row.last_offset) + 1 == behind


def check_lines(base: Copy, other: Copy) -> None:
    """Check that a cluster would truncate neither of two copies.

    Raises:
        NotOneLogError: it would.
    """
    for copy, leader in ((base, other), (other, base)):
        cut = truncation(copy.line, leader.line)
        if cut is not None:
            at = [_reached(one, cut.offset) for one in (copy, leader)]
            problem = f"one has leader epoch {cut.epoch} and the other {cut.later}: they went apart"
            raise apart(problem, cut.offset, *at)


def _reached(copy: Copy, offset: int) -> str:
    """Return where a copy holds an offset, or ends before it, in words."""
    number = int(copy.rows.column(BatchRow.last_offset).searchsorted(offset))
    if number < len(copy.rows):
        return copy.place(number)
    return f"the end of {copy.log.segments[-1].file}"


def told_epoch(line: Line, offset: int) -> int | None:
    """Return the leader epoch that a copy tells of an offset; None if it tells none."""
    begun = [entry.epoch for entry in line if entry.start_offset <= offset]
    return begun[-1] if begun else None


def fuller(base: Copy, left: int, other: Copy, right: int) -> int | None:
    """Return which of two batches that share offsets holds more records, 0 or 1; None if both hold the same.

    Raises:
        NotOneLogError: no cleaner makes one of the other.
    """
    one, two = base.batch(left), other.batch(right)
    if _is_cleaned_alike(one, two):
        records = [list(iter_records(batch)) for batch in (one, two)]
        if not any(isinstance(item, Damage) for items in records for item in items):
            held = [{_content(item) for item in items if isinstance(item, Record)} for items in records]
            for side in (0, 1):
                if held[1 - side] < held[side]:
                    return side
            if held[0] == held[1]:
                return None
    offset = min(one.base_offset, two.base_offset)
    raise apart("they hold other records", offset, base.place(left), other.place(right))


def _is_cleaned_alike(one: RecordBatch, two: RecordBatch) -> bool:
    """Return whether all is the same of two batches that a cleaner leaves as it is."""
    facts = [
        (batch.base_offset, batch.last_offset, batch.partition_leader_epoch, batch.producer_id, batch.producer_epoch,
         batch.base_sequence, batch.attributes & OF_ITS_OWN)
        for batch in (one, two)
    ]  # fmt: skip
    return one.magic == two.magic == b.NEWEST_MAGIC and facts[0] == facts[1]


def _content(record: Record) -> tuple[object, ...]:
    return record.offset, record.timestamp_ms, record.key, record.value
