"""A log repaired in memory, read again, and what must hold of it whatever the log was."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from offsets_log.broker.batches import FileBatch, entry_at
from offsets_log.broker.recovery import open_log
from offsets_log.checking.findings import DAMAGE, FAILS
from offsets_log.checking.partition_check import PartitionCheck
from offsets_log.cleaner.folder import FolderFile
from offsets_log.errors import Damage
from offsets_log.events import Event
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment, iter_log
from offsets_log.log_format.record import iter_records
from offsets_log.log_format.segment import Tail
from offsets_log.pipeline import iter_events
from offsets_log.repairing.comparing import compare
from offsets_log.repairing.left_out import LeftOut
from offsets_log.repairing.refusals import find_unloadable
from offsets_log.repairing.unloadable import NOTHING
from offsets_log.repairing.writing import Repaired, repair
from offsets_log.replay.partition_count import partition_count
from offsets_log.replay.releases import release_named

Files = dict[str, bytes]
RELEASES = (None, "4.3.0", "3.9.1", "3.7.2-java", "2.0.0", "0.10.2.0")

OF_FILES = ("records:T", "L-7", "C-24", "D-8")
"""Rules of findings about bytes that are no batch, or that overlap."""


def repaired(log: PartitionLog, release: str | None = None) -> tuple[Repaired, Files, list[LeftOut]]:
    """A log repaired: what is told, every file, what is left out; kernels do the same."""
    done, files, told = _repaired(log, release, in_bulk=False)
    in_bulk, files_in_bulk, told_in_bulk = _repaired(log, release, in_bulk=True)
    assert in_bulk == done
    assert files_in_bulk == files
    assert [str(one) for one in told_in_bulk] == [str(one) for one in told]
    if release is not None:
        made, profile = read_again(done, files), release_named(release).profile
        assert compare(log, made, profile, in_bulk=True) == compare(log, made, profile)
    return done, files, [one for one in told if isinstance(one, LeftOut)]


def _repaired(
    log: PartitionLog, release: str | None, *, in_bulk: bool
) -> tuple[Repaired, Files, list[LeftOut | Missing]]:
    files: Files = {}
    told: list[LeftOut | Missing] = []

    def emit(file: FolderFile) -> None:
        assert file.name not in files
        files[file.name] = b"".join(file.pieces)

    unloadable = NOTHING if release is None else find_unloadable(log, release_named(release), in_bulk=in_bulk)
    return repair(log, emit, unloadable=unloadable, tell=told.append, miss=told.append, in_bulk=in_bulk), files, told


def read_again(done: Repaired, files: Files) -> PartitionLog:
    """The log that a folder with these files holds."""
    segments = [Segment(name, int(name[:20]), data) for name, data in sorted(files.items()) if name.endswith(".log")]
    beside = {name: partial(bytes, data) for name, data in files.items() if not name.endswith(".log")}
    checkpoints = done.checkpoints()
    return PartitionLog(done.log.offsets_partition, tuple(segments), checkpoints=checkpoints, beside=beside)


def must_hold(log: PartitionLog, release: str | None = None) -> tuple[Repaired, Files]:
    """Repair a log and look at what came of it; what holds of every repaired log is asserted."""
    done, files, left_out = repaired(log, release)
    again = read_again(done, files)
    items = [item for _, item in iter_log(again)]
    assert not [item for item in items if isinstance(item, Damage | Tail)], "only whole batches, in their places"
    for batch in items:
        assert not [one for one in iter_records(batch) if isinstance(one, Damage)], "all records can be read"
    undecodable = [one.damage.error for one in iter_events(again) if isinstance(one, Event) and one.damage is not None]
    assert done.undecodable == [str(error) for error in undecodable]
    assert len(items) == done.batches
    assert sum(len(data) for name, data in files.items() if name.endswith(".log")) == done.size_bytes
    _holds_on_brokers(done, again)
    _holds_for_check(again, release)
    assert {bool(left_out)} == {bool(done.left_out)}
    assert sum(one.pieces for one in done.left_out.values()) == len(left_out)
    for in_bulk in (False, True):
        second, files_again, _ = _repaired(again, release, in_bulk=in_bulk)
        assert files_again == files, "there is nothing to repair any more"
        assert not second.left_out
    return done, files


def _holds_on_brokers(done: Repaired, again: PartitionLog) -> None:
    """It opens after any stop, recovery cuts nothing and makes the same files."""
    for stopped_cleanly in (True, False):
        for finds_by_base_offset in (True, False):
            opened = open_log(again, stopped_cleanly=stopped_cleanly, finds_by_base_offset=finds_by_base_offset)
            assert opened.refusal is None, opened.refusal
            assert not opened.cuts
            assert opened.end_offset == done.end_offset
    bare = replace(again, beside={}, checkpoints=Checkpoints())
    recovered = open_log(bare, stopped_cleanly=False, finds_by_base_offset=True)
    assert not recovered.cuts
    for base_offset, file in recovered.files.items():
        assert file.index.encode() == again.beside[f"{base_offset:020}.index"]()
        assert file.times.encode() == again.beside[f"{base_offset:020}.timeindex"]()
        written = again.beside.get(f"{base_offset:020}.txnindex", bytes)()
        assert file.aborted.encode() == written
    if done.checkpoints().log_start_offset is None:
        assert recovered.producers.entries == opened.producers.entries


def _holds_for_check(again: PartitionLog, release: str | None) -> None:
    releases = [release_named(release or "4.3.0")]
    check = PartitionCheck(again, releases)
    check.read(iter_events(again), lambda damage: None)
    assert all(load.starts and load.ends for load in check.loads), check.loads
    findings = check.findings(partition_count({0: check.groups}), check.newest_ms)
    assert not [finding for finding in findings if (finding.rule or "").startswith(OF_FILES)]
    if release is not None:
        assert all(load.ok for load in check.loads if load.failure is None or not load.failure.is_served)
        assert not [finding for finding in findings if finding.severity == FAILS and finding.rule != "L-39"]
        skipped = [finding for finding in findings if finding.severity == DAMAGE]
        assert {finding.rule for finding in skipped} <= {"J-3"}, "only of records that this release passes over"


def check_repaired(data: bytes) -> tuple[int, int]:
    """Repair hostile bytes, for a release or for none; (batches that stay, pieces left out)."""
    dice = random.Random(data)
    done, _ = must_hold(PartitionLog(0, tuple(segments_of(data, dice))), dice.choice(RELEASES))
    return done.batches, sum(one.pieces for one in done.left_out.values())


def batches_of(data: bytes) -> Iterator[FileBatch]:
    """The batches of a segment that is whole."""
    position = 0
    while (batch := entry_at("", memoryview(data), position, len(data))) is not None:
        yield batch
        position = batch.end


def segments_of(data: bytes, dice: random.Random) -> Sequence[Segment]:
    """Hostile bytes as one segment, or as several of any names."""
    bases = sorted({dice.choice((0, 0, 1, 40, 1000, 1 << 40)) for _ in range(dice.choice((1, 1, 2, 3)))})
    cuts = sorted(dice.randrange(len(data) + 1) for _ in bases[1:])
    return [
        Segment(f"{base:020}.log", base, data[start:end])
        for base, start, end in zip(bases, [0, *cuts], [*cuts, len(data)], strict=True)
    ]
