"""Hostile logs whose offsets rise, so that the cleaner comes far: what ``python -m tests.fuzz --what clean`` asks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from offsets_log.checking.findings import DAMAGE, FAILS, NOTE
from offsets_log.checking.partition_check import PartitionCheck
from offsets_log.cleaner.opening import as_opened, open_for_cleaning
from offsets_log.cleaner.settings import Rules, Settings
from offsets_log.errors import Damage
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log.log_format.record import iter_records
from offsets_log.log_format.segment import iter_batches
from offsets_log.pipeline import iter_events
from offsets_log.replay.partition_count import partition_count
from offsets_log.replay.releases import release_named
from tests.builders import TIME
from tests.cleaner.test_bulk import outcome, random_log
from tests.fuzz.mutation import mutate, mutate_records, with_right_checksum

LAST_DELTA = 23
"""Where a batch of magic 2 has the distance of its last offset from the first."""
MOST_OFFSET = 1 << 40
OVERLAP = "C-24"


def hostile_logs(seeds: Sequence[RecordBatch], seed: int, generated: float = 0.5) -> Iterator[bytes]:
    """Endless logs of few recorded batches again and again, or of transactions; some batches are mutated.

    Args:
        generated: the share of those with generated transactions, whose keys are no coordinator's.
    """
    dice = random.Random(seed)
    while True:
        share = dice.choice((0.05, 0.2, 0.5))
        if dice.random() < generated:
            raw, _ = random_log(dice)
        else:
            few = dice.sample(seeds, min(len(seeds), 4))
            raw = [dice.choice(few).raw for _ in range(dice.randrange(2, 12))]
        data = b"".join(_rising([_hostile(each, dice) if dice.random() < share else each for each in raw], dice))
        yield mutate(data, dice) if dice.random() < 0.05 else data


def _hostile(raw: bytes, dice: random.Random) -> bytes:
    (batch, *_) = iter_batches(raw)
    if isinstance(batch, RecordBatch) and dice.random() < 0.6:
        return mutate_records(batch, dice)
    return with_right_checksum(mutate(raw, dice))


def _rising(batches: Sequence[bytes], dice: random.Random) -> Iterator[bytes]:
    """Give most batches the offset behind those before them, which is under no checksum."""
    offset = 0
    for raw in batches:
        if dice.random() < 0.98:
            offset += dice.choice((0, 0, 0, 3))
            raw = offset.to_bytes(8) + raw[8:]
        is_new = raw[b.MAGIC_POSITION : b.MAGIC_POSITION + 1] == b"\x02"
        offset += 1 + min(int.from_bytes(raw[LAST_DELTA : LAST_DELTA + 4]), 1 << 20) * is_new
        yield raw


def check_cleaned(data: bytes) -> tuple[int, int]:
    """Clean hostile bytes by hand, in bulk and in threads, and check what is left; (batches read, rounds that failed).

    What `check` finds in a cleaned log, but for notes, it found before: in the log as it was given, or without what the
    broker cut off that opened it, which may have been all that explains a gap (``D-10``). Damage hides the rest of a
    load; it is gone where the round wrote a record again that only a load reads, as a null of a length below -1.
    """
    dice = random.Random(data)
    log, batches = cut_at_batches(data, dice)
    release = dice.choice(("4.4.0", "3.9.1"))
    settings = Settings(
        now_ms=TIME + dice.choice((0, 10_000, 200_000_000, 1 << 41)),
        rules=Rules.of(release_named(release).version[:2]),
        index_interval_bytes=dice.choice((1, 200, 4096)),
        segment_bytes=dice.choice((500, 1 << 20)),
    )
    by_hand = outcome(log, settings, in_bulk=False)
    assert outcome(log, settings, in_bulk=True) == by_hand
    assert outcome(log, settings, in_bulk=True, threads=2) == by_hand
    if isinstance(by_hand, str) or by_hand[0]["outcome"] != "cleaned":
        return batches, 1
    row, files = by_hand
    left = [Segment(name, int(name[:20]), files[name]) for name in sorted(files) if name.endswith(".log")]
    checkpoints = Checkpoints(cleaned_until=max(row["end_offset"], log.checkpoints.cleaned_until or 0))
    opened = replace(as_opened(log, open_for_cleaning(log, settings)), checkpoints=checkpoints)
    cleaned = PartitionLog(0, tuple(left), checkpoints=checkpoints)
    found = _found(replace(log, checkpoints=checkpoints), release) | (found_open := _found(opened, release))
    new = _found(cleaned, release) - found
    if FAILS in {severity for _, severity in found}:
        new = {(rule, severity) for rule, severity in new if severity == DAMAGE}
    assert not new or OVERLAP in {rule for rule, _ in found_open} or _unread(opened) - _unread(cleaned), new
    return batches, 0


def _unread(log: PartitionLog) -> set[tuple[int, int]]:
    """Records that hide from `check`, as base offset and place in the batch, though a load and the cleaner read them.

    Those that are only sound enough for a load, and messages inside of others.
    """
    return {
        (batch.base_offset, place)
        for segment in log.segments
        for batch in iter_batches(segment.buffer)
        if isinstance(batch, RecordBatch)
        for place, record in enumerate(iter_records(batch))
        if batch.magic < 2 or isinstance(record, Damage)
    }


def cut_at_batches(data: bytes, dice: random.Random) -> tuple[PartitionLog, int]:
    """Segments that begin at batches, as their sizes tell them; and how many of these there are."""
    begins: dict[int, int] = {}
    position = batches = 0
    while position + b.LOG_OVERHEAD <= len(data):
        offset = int.from_bytes(data[position : position + 8])
        if offset < MOST_OFFSET and offset > max(begins.values(), default=-1):
            begins[position] = offset
        position += b.LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + b.LOG_OVERHEAD])
        batches += 1
    chosen = sorted(dice.sample(sorted(begins), min(len(begins), dice.randrange(1, 5))))
    cuts = [0, *(position for position in chosen if position), len(data)]
    segments = [
        Segment(f"{begins.get(start, 0):020}.log", begins.get(start, 0), data[start:end], modified_ms=TIME)
        for start, end in pairwise(cuts)
    ]
    cleaned_until = dice.choice((None, None, 3, 40))
    return PartitionLog(0, tuple(segments), checkpoints=Checkpoints(cleaned_until=cleaned_until)), batches


def _found(log: PartitionLog, release: str) -> set[Any]:
    check = PartitionCheck(log, [release_named(release)])
    check.read(iter_events(log), lambda damage: None)
    findings = check.findings(partition_count({0: check.groups}), check.newest_ms)
    return {(each.rule, each.severity) for each in findings if each.severity != NOTE}
