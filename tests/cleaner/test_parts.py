"""A part of a log that is cleaned alone: its keys, and the few batches by which it changes transactions."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise

import pytest

from offsets_log.broker.bulk import Follower
from offsets_log.broker.indexes import AbortedTransaction, Indexing, OffsetIndex
from offsets_log.broker.log_file import LogFile
from offsets_log.cleaner.batches import batches, records
from offsets_log.cleaner.bulk import KeyTable, packed
from offsets_log.cleaner.bulk_steps import StepNotes
from offsets_log.cleaner.offset_map import NOT_ENTERED, OffsetMap, enter_segment
from offsets_log.cleaner.steps import Begins, Steps, begins_in, begins_of, steps_of, take_steps
from offsets_log.cleaner.transactions import Transactions, control_kind
from offsets_log.columnar.arrays import SIZE_BYTES
from offsets_log.columnar.cleaning.indexing import UNCHECKED
from offsets_log.columnar.cleaning.table import PackedKeys
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.control_record import CONTROL_TYPES
from offsets_log.log_format.record import Record
from tests.builders import TIME

PRODUCERS = range(1, 6)
PLAIN, DATA, ABORT, COMMIT, LEADER_CHANGE = range(5)


def batch(offset: int, producer_id: int, kind: int) -> bytes:
    """One record, or two; some that are plain of magic 0 or 1."""
    if kind in (PLAIN, DATA):
        key, value, count = b"key %d" % (offset % 37), b"value", 1 + offset % 2
    else:
        number = next(
            code for code, name in CONTROL_TYPES.items() if name == ("ABORT", "COMMIT", "LEADER_CHANGE")[kind - 2]
        )
        key, value, count = bytes((0, 0, 0, number)), bytes(6), 1
    records = [
        Record(offset=offset + i, timestamp_ms=TIME, key=key, value=value, headers=()) for i in range(count)
    ]  # fmt: skip
    if kind == PLAIN and offset % 4 == 0:
        return build_batch(records, magic=offset // 4 % 2, compression="gzip" if offset % 8 else "none")
    return build_batch(
        records, producer_id=producer_id, producer_epoch=0, base_sequence=-1 if kind > DATA else 0,
        is_transactional=kind != PLAIN, is_control=kind > DATA,
    )  # fmt: skip


def written(seed: int) -> tuple[LogFile, list[AbortedTransaction]]:
    """A segment, and entries of some transactions that abort in it, or are said to."""
    draw = random.Random(seed)
    raw, offset, entries = [], 100, []
    for _ in range(draw.choice((0, 1, 300))):
        producer_id, kind = draw.choice(PRODUCERS), draw.choices(range(5), (1, 5, 1, 4, 0.2))[0]
        raw.append(batch(offset, producer_id, kind))
        if kind == ABORT or draw.random() < 0.05:
            entries.append(AbortedTransaction(0, producer_id, max(100, offset - draw.randrange(40)), offset, offset))
        offset += 3
    data = b"".join(raw)
    return LogFile(100, "segment", memoryview(data), len(data), OffsetIndex(100), finds_by_base_offset=False), entries


def in_bulk(file: LogFile, begins: Begins) -> Steps:
    notes = StepNotes(begins)
    indexing = Indexing.of(file.base_offset, file.size_bytes)
    return steps_of(file, 0, begins, Follower(file, indexing, UNCHECKED, notes=notes.take), notes.positions)


@pytest.mark.parametrize("steps_in", [in_bulk, lambda file, begins: steps_of(file, 0, begins)])
def test_steps_do_what_all_batches_do(steps_in: Callable[[LogFile, Begins], Steps]) -> None:
    """CL-16, CL-17: whatever the transactions are where the segment begins."""
    for seed in range(60):
        file, entries = written(seed)
        steps = steps_in(file, begins_of(entries))
        draw = random.Random(seed)
        expected = Transactions(committed={*draw.sample(PRODUCERS, 2)})
        expected.expect(draw.sample(entries, len(entries) // 2) if seed % 2 else entries)
        found = expected.copy()
        for each in batches(file):
            expected.can_discard(each)
        take_steps(found, file.file, steps)
        assert (found.aborted, found.coming, found.committed) == (
            expected.aborted, expected.coming, expected.committed,
        )  # fmt: skip


def test_kernels_choose_what_is_chosen_of_all_but_for_what_is_forgotten() -> None:
    """Of a producer that aborts and then commits, nothing before that abort."""
    for seed in range(60):
        file, entries = written(seed)
        begins = begins_of(entries)
        found, every = in_bulk(file, begins), steps_of(file, 0, begins)
        forgotten = forgotten_in(file)
        expected = [step for step in every.taken if step[0] not in forgotten]
        assert (found.taken, found.last_offset, found.is_rising) == (expected, every.last_offset, every.is_rising)


def test_steps_are_the_same_by_the_begins_around_the_segment() -> None:
    for seed in range(60):
        file, entries = written(seed)
        end = 100 + 3 * 300
        around = [
            AbortedTransaction(0, one.producer_id, one.first_offset + by, end, end)
            for one in entries
            for by in (-95, 950)
        ]
        begins = begins_of((*entries, *around))
        some = begins_in(begins, file.base_offset, end)
        assert steps_of(file, 0, some) == steps_of(file, 0, begins)
        assert all(sum(at < file.base_offset for at in each) <= 1 and each[-1] < end for each in some.values())


def forgotten_in(file: LogFile) -> set[int]:
    """Where the batches are that have an abort of their producer behind them, and a commit behind that."""
    forgotten, before = set[int](), dict[int, tuple[list[int], list[int]]]()
    for each in batches(file):
        earlier, aborted = before.setdefault(each.producer_id, ([], []))
        kind = control_kind(each) if each.is_control else None
        if kind == "ABORT":
            aborted[:] = earlier
        elif kind == "COMMIT":
            forgotten.update(aborted)
        earlier.append(each.position)
    return forgotten


def keys_in(packed: PackedKeys) -> dict[bytes, int]:
    arena, begins = packed.arena.tobytes(), packed.begins.tolist()
    keys = [arena[begin + SIZE_BYTES : end] for begin, end in pairwise(begins)]
    return dict(zip(keys, packed.last_offsets.tolist(), strict=True))


@pytest.mark.parametrize("kind", [OffsetMap, KeyTable])
def test_keys_that_are_not_entered_are_noted(kind: type[OffsetMap]) -> None:
    """CL-9, CL-10: those before the first dirty offset and those of aborted transactions, in either kind of map."""
    for seed in range(60):
        file, entries = written(seed)
        first_dirty = 100 + seed * 5
        transactions, follows = Transactions(), Transactions()
        for each in (transactions, follows):
            each.expect(entries)
        expected: dict[bytes, int] = {}
        for batch_ in batches(file):
            is_entered = not follows.can_discard(batch_) and not batch_.is_control
            for record in () if batch_.is_control else records(batch_):
                assert record.key is not None
                is_dirty = is_entered and record.offset >= first_dirty
                expected[record.key] = record.offset if is_dirty else expected.get(record.key, NOT_ENTERED)
        with closing(kind()) as found:
            found.notes_others = True
            enter_segment(file, 0, first_dirty, found, transactions)
            assert keys_in(packed(found)) == expected
        with closing(kind()) as found:
            found.note_all(file)
            assert keys_in(packed(found)) == dict.fromkeys(expected, NOT_ENTERED)
