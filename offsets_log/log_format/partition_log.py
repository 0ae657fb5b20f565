"""The segments of one offsets partition, in memory or mapped: what the code that reads files hands over.

`iter_log` walks all batches of a partition in offset order and yields what does not fit, too: damage, tails, and
batches that an earlier segment already held.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from offsets_log.errors import CorruptBatchError, Damage, OffsetsLogError
from offsets_log.log_format.batch import (
    BATCH_HEADER_SIZE,
    CONTROL_MASK,
    LOG_OVERHEAD,
    MAX_OFFSETS_IN_SEGMENT,
    MIN_SIZE,
    TRANSACTIONAL_MASK,
    RecordBatch,
    decode_batch_header,
)
from offsets_log.log_format.segment import Buffer, Search, Tail, iter_batches

POSITION, BYTES = "position", "bytes"
"""Names in `Segment.missing_columns` for facts of the files themselves: where a record lies, and how many bytes it
takes."""
PRINTED = "a dump holds what was printed"
"""`PartitionLog.selection` of a dump: why nothing is missing before it; between the files in it all was printed."""
OUTCOMES = "transaction outcomes"
"""Name in `Segment.missing_columns` where of some commits it is not told whether they took effect: these are the
commits of `UNTOLD_PRODUCER_ID`."""
UNRECORDED_GROUPS = "what groups without records are"
"""Name in `Segment.missing_columns` where nothing tells what a group is of which only offsets are there."""
OF_GROUPS = frozenset(
    {
        "type", "state", "protocol_type", "protocol", "leader", "generation", "group_epoch", "assignment_epoch",
        "current_state_timestamp_ms", "topology_epoch", "topology", "members",
    }
)  # fmt: skip
"""Columns of what groups' own records tell."""


class Contents(Protocol):
    """What gets a file's contents when they are asked for."""

    size_bytes: int

    def __call__(self) -> Buffer:
        """Return them. Raises InputError."""

    def release(self, begin: int, end: int) -> None:
        """Note that a part of them, which is read, needs no memory any more; whoever reads it again gets it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment file.

    Attributes:
        file: name to show, such as ``backup.tar!__consumer_offsets-3/00000000000000000000.log``.
        base_offset: the number in the file's name; None where the name holds none.
        contents: the whole file, read-only, without the zeros at its end that nobody ever wrote; or what gets it.
        missing_columns: columns that the dump does not tell, if the segment was made from one; null in rows.
        lines: record offset → line of the dump that the segment was made from.
        zeros_behind: how many such zeros follow.
        modified_ms: when the file was last written; None where nothing tells.
        is_of_broken: whether it comes from an archive that cannot be read to its end, and may have gone on.
        is_restored: whether the file itself has other bytes: those of a copy through a terminal.
    """

    file: str
    base_offset: int | None
    contents: Buffer | Contents
    missing_columns: frozenset[str] = frozenset()
    lines: Mapping[int, int] = field(default_factory=dict, repr=False, compare=False)
    zeros_behind: int = 0
    modified_ms: int | None = None
    is_of_broken: bool = False
    is_restored: bool = False

    @property
    def buffer(self) -> Buffer:
        """The contents. Raises InputError where they have to be fetched, and cannot be."""
        return self.contents if isinstance(self.contents, Buffer) else self.contents()

    @property
    def is_fetched(self) -> bool:
        """Whether the contents are there only while somebody holds them."""
        return not isinstance(self.contents, Buffer)

    @property
    def length(self) -> int:
        """Length of the contents."""
        return len(self.contents) if isinstance(self.contents, Buffer) else self.contents.size_bytes

    def release(self, begin: int, end: int) -> None:
        """Note that a part of the contents was read, which may be large."""
        if not isinstance(self.contents, Buffer):
            self.contents.release(begin, end)

    @property
    def size_bytes(self) -> int:
        """Size of the file."""
        return self.length + self.zeros_behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """What a broker's data directory tells of a partition beside its segments; None for what it does not tell.

    Attributes:
        cleaned_until: records below it were compacted, so history is incomplete (``cleaner-offset-checkpoint``).
        high_watermark: the log once reached this offset (``replication-offset-checkpoint``).
        log_start_offset: the log may begin here; older records are deleted (``log-start-offset-checkpoint``).
        recovery_point: records below it were flushed (``recovery-point-offset-checkpoint``).
        stopped_cleanly: whether ``.kafka_cleanshutdown`` is there; None without any file of a data directory.
        reached: the log once reached this offset, by files beside its segments.
        reached_by: the name of that file, and what is odd about it.
    """

    cleaned_until: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    recovery_point: int | None = None
    stopped_cleanly: bool | None = None
    reached: int | None = None
    reached_by: str = ""


NOTHING_TOLD = Checkpoints()


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """The segments of one offsets partition, ordered by base offset.

    Attributes:
        offsets_partition: its number; None if no directory name tells it and none was given.
        segments: its files, in offset order.
        notes: sentences about what was odd when the files were gathered.
        checkpoints: what the data directory says of it.
        beside: name → how to read a file beside the segments, such as an index or a producer snapshot.
        begins_late: why the log begins behind offset 0, and where what is before it may be; "" if nothing tells.
        selection: why nothing counts as missing around these segments, in words; None if they are all there was.
        topic: one of `state_topics` whose partition this is instead; None for ``__consumer_offsets``.
        at_start: returns, for a release, why its broker's start over the data directory leads to an empty partition or
            to none; None where it does not, or where no data directory was given. Takes also whether the cluster's
            metadata is read for that.
    """

    offsets_partition: int | None
    segments: tuple[Segment, ...]
    notes: tuple[str, ...] = ()
    checkpoints: Checkpoints = NOTHING_TOLD
    beside: Mapping[str, Callable[[], Buffer]] = field(default_factory=dict, repr=False, compare=False)
    begins_late: str = ""
    selection: str | None = None
    topic: str | None = None
    at_start: Callable[[tuple[int, int], bool], OffsetsLogError | None] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def cleaned_until(self) -> int | None:
        """The first offset that the cleaner has not reached, as far as `Checkpoints` tell."""
        return self.checkpoints.cleaned_until

    @property
    def size_bytes(self) -> int:
        """Size of all segments."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def bytes_to_read(self) -> int:
        """Size of all segments without the zeros that nobody ever wrote."""
        return sum(segment.length for segment in self.segments)

    @property
    def missing_columns(self) -> frozenset[str]:
        """Columns that at least one segment does not tell."""
        return frozenset().union(*(segment.missing_columns for segment in self.segments))

    def since(self, record_offset: int) -> PartitionLog:
        """Return the log without the segments that end before a record offset, as far as file names tell."""
        following = [segment.base_offset or 0 for segment in self.segments[1:]]
        first = next((i for i, base_offset in enumerate(following) if base_offset > record_offset), len(following))
        return replace(self, segments=self.segments[first:])


LogItem = RecordBatch | Damage | Tail


def iter_log(log: PartitionLog) -> Iterator[tuple[Segment, LogItem]]:
    """Yield every batch, damaged piece and tail of a partition with its segment, in file order."""
    walk = LogWalk(log)
    last_offset = -1
    for i, segment in enumerate(log.segments):
        for item, read_until in walk.items(i, 0, last_offset):
            yield segment, item
            last_offset = read_until


def batches_of(log: PartitionLog) -> Iterator[RecordBatch]:
    """Yield the batches of a partition that can be read."""
    return (item for _, item in iter_log(log) if isinstance(item, RecordBatch))


_HEADER = struct.Struct(">8xi4xb4xh20xq")
"""Of a batch's header: length, magic, attributes, producer id."""


def beginnings(log: PartitionLog) -> Iterator[RecordBatch]:
    """Yield control batches, and of transactions the batches that may be the first of their producer.

    Of all others only the size is looked at, and nothing is checked: a log that may be damaged is read by `batches_of`.
    """
    begun: set[int] = set()
    for segment in log.segments:
        view, at = memoryview(segment.buffer), 0
        while at + BATCH_HEADER_SIZE <= len(view):
            length, magic, attributes, producer_id = _HEADER.unpack_from(view, at)
            end = at + LOG_OVERHEAD + length
            if end > len(view) or length < MIN_SIZE.get(magic, BATCH_HEADER_SIZE):
                break
            if magic == 2 and attributes & CONTROL_MASK:
                begun.discard(producer_id)
                yield decode_batch_header(bytes(view[at:end]), at)
            elif magic == 2 and attributes & TRANSACTIONAL_MASK and producer_id not in begun:
                begun.add(producer_id)
                yield decode_batch_header(bytes(view[at:end]), at)
            at = end


class LogWalk:
    """Walks a partition segment by segment; may begin at any batch.

    Offsets only rise along a log. A batch that begins at or before the last offset read so far comes as `Damage`, so
    that no record is read twice: segments overlap if a copy was taken while the cleaner swapped them (``replay:C-24``).
    No checksum covers the base offset, so a batch whose offsets leave its segment, or lie beyond those of the next
    batch, counts as the damaged one itself.
    """

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self._left_to_check: dict[int, int] = {}

    def following_base_offset(self, segment_index: int) -> int | None:
        """Return the next segment's base offset; None if there is no next one, or its name has no offset."""
        segments = self.log.segments
        return segments[segment_index + 1].base_offset if segment_index + 1 < len(segments) else None

    def items(self, segment_index: int, position: int, last_offset: int) -> Iterator[tuple[LogItem, int]]:
        """Yield what one segment holds from a batch on, each item with the last offset read with it.

        Args:
            last_offset: the last offset read before.
        """
        segment = self.log.segments[segment_index]
        buffer = segment.buffer
        search = Search(memoryview(buffer), self._left_to_check.get(segment_index))
        is_last = segment_index + 1 == len(self.log.segments)
        batches = iter_batches(
            buffer, is_last=is_last, start=position, search=search, zeros_behind=segment.zeros_behind
        )
        for item, next_offset in _with_next_offset(batches, self.following_base_offset(segment_index)):
            if isinstance(item, Damage):
                self._left_to_check[segment_index] = search.bytes_to_check
                item.error.at(file=segment.file)
            elif isinstance(item, RecordBatch):
                problem = _offset_problem(item, last_offset, segment.base_offset, next_offset)
                if problem is not None:
                    yield _misplaced(segment, item, problem), last_offset
                    continue
                last_offset = item.last_offset
            yield item, last_offset


def _with_next_offset(items: Iterator[LogItem], after: int | None) -> Iterator[tuple[LogItem, int | None]]:
    """Yield each item with the base offset of the batch that follows; ``after`` for the last."""
    held: list[LogItem] = []
    for item in items:
        if isinstance(item, RecordBatch):
            yield from ((earlier, item.base_offset) for earlier in held)
            held = []
        held.append(item)
    yield from ((item, after) for item in held)


def _offset_problem(
    batch: RecordBatch, last_offset: int, segment_base_offset: int | None, next_offset: int | None
) -> str | None:
    """Return what is wrong with a batch's place in the log; None if it fits."""
    offsets = f"offsets {batch.base_offset} to {batch.last_offset}"
    if batch.base_offset <= last_offset:
        return f"offsets up to {last_offset} were already read; this batch begins at {batch.base_offset}"
    if batch.last_offset < batch.base_offset:
        return f"{offsets} make no sense"
    least = max(last_offset + 1, segment_base_offset or 0)
    if segment_base_offset is not None:
        is_far = batch.last_offset >= least + MAX_OFFSETS_IN_SEGMENT
        is_confirmed = next_offset is not None and next_offset > batch.last_offset  # a log of KAFKA-6264
        if batch.base_offset < segment_base_offset or (is_far and not is_confirmed):
            return f"{offsets} cannot be in a segment that begins at {segment_base_offset}"
    follows_at_once = batch.base_offset in (last_offset + 1, segment_base_offset)
    if not follows_at_once and next_offset is not None and least <= next_offset <= batch.last_offset:
        return f"{offsets} are beyond the next batch's {next_offset}"
    return None


def _misplaced(segment: Segment, batch: RecordBatch, problem: str) -> Damage:
    error = CorruptBatchError(
        problem, file=segment.file, position=batch.position, record_offset=batch.base_offset, field="base_offset"
    )
    return Damage(error, batch.raw)
