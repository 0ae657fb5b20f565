"""Where a source offset is in the target by what MirrorMaker 2 wrote down: its offset syncs and its checkpoints.

A sync (u, d) says that the source's record u was written at the target's offset d. MirrorMaker writes one at its start,
at every gap in the source's offsets, every ``offset.lag.max`` records, and with each commit. It keeps 64 of a
partition in memory and never goes more than one past a sync, for it must not skip what is still to come. In the files
lie all of them since the last cleaning, and between two of them nothing is to come any more:

- Where both sides go on by the same number, no record was left out between them, so offsets are counted from the first.
- Where the source goes on by k more, k of its offsets have no record in the target. Which ones, nothing tells, but the
  answer is at most k below the count.

Neither holds where the target has transactions (their markers take offsets), where syncs between the two were cleaned
away or their log is broken, or where MirrorMaker went back, which the target's timestamps show, for the sync of it may
be lost: there the answer is the one after the sync, as MirrorMaker's own. One thing is left that nothing shows, so that
"by count" is not called exact: a MirrorMaker that copied some records of one and the same millisecond again, as many as
a gap beside them is wide, while its syncs of both were lost.

References: ``OffsetSyncWriter.java``, ``OffsetSyncStore.java``, ``MirrorCheckpointTask.java``.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, iter_log
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.mirror_maker import (
    CHECKPOINTS,
    OFFSET_SYNCS,
    MirrorMakerRecord,
    MirrorMakerTopic,
    decode_mirror_maker_record,
)
from offsets_log.translation.answers import AT_LEAST, BY_COUNT, EXACT, Answer, Later

SourcePartition = tuple[str, int]
"""Topic and partition in the source."""

IsPlain = Callable[[int, int], bool]
"""Whether the target's offsets from the first up to but without the second are a range of `PlainRanges`."""


class PartitionSyncs:
    """The syncs of a source partition that still hold: both offsets go up, and `closed` says what is known between."""

    def __init__(self) -> None:
        self.upstream, self.downstream = array("q"), array("q")
        self.closed = bytearray()
        """1 if every sync between the one before and this one is known."""

    def add(self, upstream: int, downstream: int, *, is_next: bool) -> None:
        """Take the next sync of the log.

        Args:
            is_next: whether nothing is missing in the log since this partition's sync before.
        """
        if self.upstream and (
            downstream < self.downstream[-1] or (downstream == self.downstream[-1] and upstream != self.upstream[-1])
        ):
            self._forget(0)
        kept = bisect_right(self.upstream, upstream - 1)
        if kept == len(self.upstream) - 1 and self.downstream[kept] == downstream:
            return
        is_closed = is_next and kept == len(self.upstream) > 0
        self._forget(kept)
        self.upstream.append(upstream)
        self.downstream.append(downstream)
        self.closed.append(is_closed)

    def _forget(self, kept: int) -> None:
        """Keep the first syncs only: MirrorMaker wrote the source's later records again, or the target began again."""
        del self.upstream[kept:], self.downstream[kept:], self.closed[kept:]

    def translate(self, offset: int, is_plain: IsPlain, target_end: int | None = None) -> Answer | None:
        """Return where the first record from a source offset on is in the target; None if it lies before all syncs.

        Args:
            target_end: where the target's log ends, if that is known.
        """
        at = bisect_right(self.upstream, offset) - 1
        if at < 0:
            starts_the_target = bool(self.downstream) and self.downstream[0] == 0
            return Answer(0, EXACT, 0) if starts_the_target else None
        if offset == self.upstream[at]:
            return Answer(self.downstream[at], EXACT, 0, before=self.downstream[at] - 1)
        return replace(self._behind(at, offset, is_plain, target_end), before=self.downstream[at])

    def _behind(self, at: int, offset: int, is_plain: IsPlain, target_end: int | None) -> Answer:
        """Return where a source offset is that is behind that of a sync, and before the next."""
        u, d = self.upstream[at], self.downstream[at]
        is_last = at + 1 == len(self.upstream)
        next_d = target_end if is_last else self.downstream[at + 1]
        if next_d is None or next_d <= d:
            return Answer(d + 1, AT_LEAST, None)
        if not is_plain(d, next_d if is_last else next_d + 1) or not (is_last or self.closed[at + 1]):
            return Answer(d + 1, AT_LEAST, next_d - d - 1)
        if offset == u + 1 or next_d == d + 1:
            return Answer(d + 1, BY_COUNT, 0)
        count = d + (offset - u)
        if is_last:
            return Answer(d + 1, AT_LEAST, min(count, next_d) - d - 1)
        left_out = (self.upstream[at + 1] - u) - (next_d - d)
        if left_out < 0:
            return Answer(d + 1, AT_LEAST, next_d - d - 1)
        if left_out == 0:
            return Answer(count, BY_COUNT, 0)
        lowest, highest = max(d + 1, count - left_out), min(count, next_d)
        return Answer(lowest, AT_LEAST, highest - lowest, later=Later(highest, 0, highest - lowest))


def read_offset_syncs(log: PartitionLog, damages: list[Damage]) -> dict[SourcePartition, PartitionSyncs]:
    """Read a log of offset syncs; return the syncs of each source partition.

    Args:
        damages: takes what could not be read.
    """
    found: dict[SourcePartition, PartitionSyncs] = {}
    runs: dict[SourcePartition, int] = {}
    for run, record in _records(log, OFFSET_SYNCS, damages):
        partition = record.key["topic"], record.key["partition"]
        if record.value is None:
            found.pop(partition, None)
            continue
        upstream, downstream = record.value["upstream_offset"], record.value["downstream_offset"]
        if upstream < 0 or downstream < 0:
            continue
        syncs = found.setdefault(partition, PartitionSyncs())
        syncs.add(upstream, downstream, is_next=runs.get(partition) == run)
        runs[partition] = run
    return found


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a group committed in the source, and MirrorMaker's translation of it."""

    upstream_offset: int
    downstream_offset: int
    metadata: str

    def translate(self, offset: int) -> Answer | None:
        """Return MirrorMaker's own answer, if it was made for this source offset or one before; it never skips."""
        if not 0 <= self.upstream_offset <= offset or self.downstream_offset < 0:
            return None
        return Answer(self.downstream_offset, AT_LEAST, None)


def read_checkpoints(log: PartitionLog, damages: list[Damage]) -> dict[tuple[str, str, int], Checkpoint]:
    """Read a log of checkpoints; return the last of each group, topic of the target, and partition.

    Args:
        damages: takes what could not be read.
    """
    found: dict[tuple[str, str, int], Checkpoint] = {}
    for _, record in _records(log, CHECKPOINTS, damages):
        key = record.key["group"], record.key["topic"], record.key["partition"]
        if record.value is None:
            found.pop(key, None)
        else:
            value = record.value
            found[key] = Checkpoint(value["upstream_offset"], value["downstream_offset"], value["metadata"])
    return found


class PlainRanges:
    """The offsets of a target partition that are there, of no transaction, and copied once, as ranges.

    A MirrorMaker that was killed copies records again; they keep their timestamps, so these go back there. Timestamps
    that go back in the source, too, only make the ranges shorter.
    """

    def __init__(self) -> None:
        self.first, self.behind = array("q"), array("q")
        self._newest_ms = -1

    def add(self, first: int, last: int, first_ms: int, newest_ms: int) -> None:
        """Take a batch of no transaction whose records have their producers' timestamps, in the order of the log."""
        if self.behind and self.behind[-1] == first and first_ms >= self._newest_ms:
            self.behind[-1] = last + 1
        else:
            self.first.append(first)
            self.behind.append(last + 1)
        self._newest_ms = newest_ms

    def covers(self, first: int, behind: int) -> bool:
        """Whether all from the first up to but without the second are; for `PartitionSyncs.translate`."""
        at = bisect_right(self.first, first) - 1
        return at >= 0 and behind <= self.behind[at]


def _records(
    log: PartitionLog, topic: MirrorMakerTopic, damages: list[Damage]
) -> Iterator[tuple[int, MirrorMakerRecord]]:
    """Yield the records with the number of their run: it goes up where offsets are missing or could not be read."""
    run, next_offset = 0, None
    for segment, item in iter_log(log):
        if isinstance(item, Damage):
            damages.append(item)
            run += 1
            continue
        if not isinstance(item, RecordBatch) or item.is_control:
            continue
        for record in iter_records(item):
            if not isinstance(record, Record):
                record.error.at(file=segment.file)
                damages.append(record)
                run += 1
                continue
            run += next_offset not in (None, record.offset)
            next_offset = record.offset + 1
            try:
                decoded = decode_mirror_maker_record(topic, record.key, record.value)
            except OffsetsLogError as error:
                error.at(file=segment.file, position=record.position, record_offset=record.offset)
                damages.append(Damage(error, (record.key or b"") + (record.value or b"")))
                run += 1
                continue
            yield run, decoded
        run += next_offset != item.last_offset + 1
        next_offset = item.last_offset + 1
