"""Copies of one log that are damaged at different places become that log again; copies of others are never mixed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from offsets_log.broker.batches import entry_at
from offsets_log.disk.alike import Alike
from offsets_log.disk.complete import Completing, FromOthers
from offsets_log.errors import InputError
from offsets_log.log_format.batch import MAGIC_POSITION, decode_batch_header
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.record import Record, iter_records
from offsets_log.repairing.writing import Repaired, repair
from tests.repairing.damaged_copies import damaged, original
from tests.sizes import so_many

Files = dict[str, bytes]


def repaired(log: PartitionLog) -> tuple[Repaired, Files]:
    files: Files = {}
    done = repair(log, lambda file: files.update({file.name: b"".join(file.pieces)}))
    return done, files


def completed(*copies: PartitionLog, in_bulk: bool = False) -> tuple[Repaired, Files, FromOthers, Sequence[str], bool]:
    """What `repair` makes of copies: its result and files, what is told, and whether anything is in doubt."""
    with ExitStack() as scratch:
        completing, alike = Completing(scratch), Alike()
        log = completing.log(copies, None, alike, lambda size_bytes: None, in_bulk=in_bulk)
        found = completing.of(0)
        assert found is not None
        return *repaired(log), found, log.notes, alike.are_in_doubt


def is_refused(notes: Sequence[str]) -> bool:
    return any(note.startswith("nothing is taken of ") for note in notes)


def raw_batches(files: Files) -> set[bytes]:
    """The batches of all segments."""
    found: set[bytes] = set()
    for name, data in files.items():
        position = 0
        while name.endswith(".log") and (batch := entry_at(name, memoryview(data), position, len(data))) is not None:
            found.add(batch.raw())
            position = batch.end
    return found


@pytest.mark.parametrize("in_bulk", [False, True])
def test_what_is_whole_in_either_copy_is_there_byte_for_byte(in_bulk: bool) -> None:
    """Refused are only logs with holes, as a cleaner leaves, of which too much is gone."""
    same = refused = 0
    for seed in range(so_many(120 if in_bulk else 600)):
        dice = random.Random(seed)
        whole = original(dice)
        cut = dice.choice((None, 0, 1))
        one = damaged(whole, "one", dice, set(), cut == 0)
        other = damaged(whole, "other", dice, one.lost, cut == 1)
        due, due_files = repaired(whole.log("whole"))
        for copies in (one, other), (other, one):
            done, files, found, notes, _ = completed(*(copy.log for copy in copies), in_bulk=in_bulk)
            if is_refused(notes):
                assert whole.is_cleaned, (seed, notes)
                refused += 1
                continue
            same += 1
            assert files == due_files, (seed, notes)
            assert done.checkpoints() == due.checkpoints()
            assert not done.left_out, (seed, notes, done.left_out)
            for _, taken in found.taken:
                assert taken.file.startswith(("one/", "other/"))
    assert same > 20 * refused


def test_what_is_damaged_in_both_is_left_out_as_of_one_copy() -> None:
    for seed in range(so_many(400)):
        dice = random.Random(seed)
        whole = original(dice)
        if whole.is_cleaned or len(whole.batches) < 8:
            continue
        lost = dice.randrange(1, len(whole.batches) - 1)
        logs = []
        for turn, name in enumerate(("one", "other")):
            broken = {lost, dice.choice([at for at in range(len(whole.batches)) if at % 2 == turn and at != lost])}
            logs.append(whole.log(name, whole.broken(broken)))
        alone, alone_files = repaired(whole.log("whole", whole.broken({lost})))
        done, files, _, notes, _ = completed(*logs)
        assert not is_refused(notes)
        assert files == alone_files, (seed, notes)
        told, due = ([(reason, one.pieces) for reason, one in made.left_out.items()] for made in (done, alone))
        assert told == due


def test_copies_that_went_apart_are_never_mixed() -> None:
    """All that comes of them is of one of both, whatever is damaged in each."""
    refused = 0
    for seed in range(so_many(500)):
        dice = random.Random(seed)
        whole = original(dice)
        forked = whole.forked(dice)
        copies = [damaged(of, name, dice, set(), False) for of, name in ((whole, "one"), (forked, "other"))]
        dice.shuffle(copies)
        try:
            _, files, _, notes, _ = completed(*(copy.log for copy in copies))
        except InputError:
            refused += 1
            continue
        made = {raw[MAGIC_POSITION:] for raw in raw_batches(files) if decode_batch_header(raw).records_count}
        of = [{raw[MAGIC_POSITION:] for raw in log.batches} for log in (whole, forked)]
        assert made <= of[0] or made <= of[1], (seed, notes)
        refused += is_refused(notes)
    assert refused > so_many(500) / 2


def test_no_deleted_key_comes_back_where_copies_were_cleaned_at_different_times() -> None:
    """Each key has its last value, or none, as before; or nothing is taken."""
    used = refused = 0
    for seed in range(so_many(1000)):
        dice = random.Random(seed)
        keys = [(dice.randrange(6), dice.choice((None, b"v"))) for _ in range(dice.randrange(6, 30))]
        due: dict[int, int] = {}
        for offset, (key, value) in enumerate(keys):
            due.pop(key, None)
            if value is not None:
                due[key] = offset
        logs, lost = [], set[int]()
        for name in ("one", "other"):
            kept = cleaned(keys, dice)
            broken = {offset for offset in kept if offset not in lost and dice.random() < 0.15}
            lost |= broken
            logs.append(single(name, keys, kept, broken))
        try:
            _, files, found, notes, _ = completed(*logs)
        except InputError:
            continue
        if is_refused(notes) or not found.taken:
            refused += is_refused(notes)
            continue
        used += 1
        answers: dict[int, int] = {}
        for raw in sorted(raw_batches(files), key=lambda raw: raw[:8]):
            for record in iter_records(decode_batch_header(raw)):
                assert isinstance(record, Record)
                assert record.key is not None
                answers.pop(int(record.key), None)
                if record.value is not None:
                    answers[int(record.key)] = record.offset
        assert answers == due, (seed, notes)
    assert used > so_many(1000) / 20
    assert refused > 10


def cleaned(keys: Sequence[tuple[int, bytes | None]], dice: random.Random) -> list[int]:
    """The offsets that a cleaner leaves that came to some offset, and takes tombstones below another one."""
    until = dice.randrange(len(keys))
    without_tombstones = dice.randrange(until + 1)
    last = {key: offset for offset, (key, _) in enumerate(keys[:until])}
    return [
        offset
        for offset, (key, value) in enumerate(keys)
        if offset >= until or (last[key] == offset and (value is not None or offset >= without_tombstones))
    ]


def single(name: str, keys: Sequence[tuple[int, bytes | None]], kept: Sequence[int], broken: set[int]) -> PartitionLog:
    """A log of one segment with a batch for each record."""
    raws = []
    for offset in kept:
        key, value = keys[offset]
        raw = build_batch([Record(offset=offset, timestamp_ms=offset, key=b"%d" % key, value=value)])
        raws.append(raw[:30] + bytes(len(raw) - 30) if offset in broken else raw)
    return PartitionLog(0, (Segment(f"{name}/{0:020}.log", 0, b"".join(raws)),))
