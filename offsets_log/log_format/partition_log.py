"""One offsets partition as a row of segments, in memory or mapped: what the reading of files hands over.

`iter_log` walks all batches of a partition in offset order and tells what does not fit together: damage, tails, and
batches that an earlier segment already held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from offsets_log.errors import CorruptBatchError, Damage
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.segment import Buffer, Search, Tail, iter_batches

POSITION, BYTES = "position", "bytes"
"""Names in `Segment.missing_columns` that are of the files themselves: where a record lies, and how much of it is
whose."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment file.

    Attributes:
        file: name to show, such as ``backup.tar!__consumer_offsets-3/00000000000000000000.log``.
        base_offset: from the file's name; None where the name holds none.
        buffer: the whole file, read-only, but for zeros at its end that nobody ever wrote.
        missing_columns: columns of rows that the source of a segment made from a dump does not tell; null in rows.
        lines: of such a segment, record offset → line of the source.
        zeros_behind: so many of these zeros follow.
        modified_ms: when the file was last written; None where nothing tells.
    """

    file: str
    base_offset: int | None
    buffer: Buffer
    missing_columns: frozenset[str] = frozenset()
    lines: Mapping[int, int] = field(default_factory=dict, repr=False, compare=False)
    zeros_behind: int = 0
    modified_ms: int | None = None

    @property
    def size_bytes(self) -> int:
        """Of the file."""
        return len(self.buffer) + self.zeros_behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """What a broker's data directory says of a partition; None where nothing says it.

    Attributes:
        cleaned_until: records below were compacted (``cleaner-offset-checkpoint``): history before is incomplete.
        high_watermark: the log once reached so far (``replication-offset-checkpoint``).
        log_start_offset: the log may begin here, older records are deleted (``log-start-offset-checkpoint``).
        recovery_point: records below were flushed (``recovery-point-offset-checkpoint``).
        stopped_cleanly: whether ``.kafka_cleanshutdown`` lies there; None without any file of a data directory.
    """

    cleaned_until: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    recovery_point: int | None = None
    stopped_cleanly: bool | None = None


NOTHING_TOLD = Checkpoints()


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """The segments of one offsets partition, ordered by base offset.

    Attributes:
        offsets_partition: None where no directory name tells it and none was given.
        segments: in offset order.
        notes: what was found strange while the files were gathered, one sentence each.
        checkpoints: what the data directory says of it.
        beside: name → how to read a file that lies beside the segments: indexes, snapshots of producers.
        selection: why nothing is missing around these segments, in words; None where they are all that there was.
        topic: of `state_topics`, whose partition it is instead; None of ``__consumer_offsets``.
    """

    offsets_partition: int | None
    segments: tuple[Segment, ...]
    notes: tuple[str, ...] = ()
    checkpoints: Checkpoints = NOTHING_TOLD
    beside: Mapping[str, Callable[[], Buffer]] = field(default_factory=dict, repr=False, compare=False)
    selection: str | None = None
    topic: str | None = None

    @property
    def cleaned_until(self) -> int | None:
        """The first offset that the cleaner has not reached, as far as `Checkpoints` tell."""
        return self.checkpoints.cleaned_until

    @property
    def size_bytes(self) -> int:
        """Of all segments."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def bytes_to_read(self) -> int:
        """Of all segments, without the zeros that nobody ever wrote."""
        return sum(len(segment.buffer) for segment in self.segments)

    @property
    def missing_columns(self) -> frozenset[str]:
        """Columns that one segment or another does not tell."""
        return frozenset().union(*(segment.missing_columns for segment in self.segments))

    def since(self, record_offset: int) -> PartitionLog:
        """Without the segments that end before a record offset, as far as the names of the files tell."""
        following = [segment.base_offset or 0 for segment in self.segments[1:]]
        first = next((i for i, base_offset in enumerate(following) if base_offset > record_offset), len(following))
        return replace(self, segments=self.segments[first:])


LogItem = RecordBatch | Damage | Tail

MAX_OFFSETS_IN_SEGMENT = 1 << 31
"""A record's offset is at most so far from its segment's base offset: the index holds the difference in 4 bytes."""


def iter_log(log: PartitionLog) -> Iterator[tuple[Segment, LogItem]]:
    """Every batch, damaged piece and tail of a partition with its segment, in file order."""
    walk = LogWalk(log)
    last_offset = -1
    for i, segment in enumerate(log.segments):
        for item, read_until in walk.items(i, 0, last_offset):
            yield segment, item
            last_offset = read_until


class LogWalk:
    """Walks a partition segment by segment; may begin at any batch.

    Offsets only rise along a log. A batch that begins at or before the last offset already read is given as `Damage`
    and not twice: segments overlap when a copy was taken while the cleaner swapped them (``replay:C-24``). But the base
    offset is covered by no checksum: a batch whose offsets leave its segment, or lie beyond those of the next batch, is
    the odd one itself.
    """

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self._searches: dict[int, Search] = {}

    def following_base_offset(self, segment_index: int) -> int | None:
        """Base offset of the segment behind; None behind the last one, or where its name tells none."""
        segments = self.log.segments
        return segments[segment_index + 1].base_offset if segment_index + 1 < len(segments) else None

    def items(self, segment_index: int, position: int, last_offset: int) -> Iterator[tuple[LogItem, int]]:
        """What one segment holds from a batch on, each item with the last offset read with it.

        Args:
            last_offset: the last one read before.
        """
        segment = self.log.segments[segment_index]
        search = self._searches.setdefault(segment_index, Search(memoryview(segment.buffer)))
        is_last = segment_index + 1 == len(self.log.segments)
        batches = iter_batches(
            segment.buffer, is_last=is_last, start=position, search=search, zeros_behind=segment.zeros_behind
        )
        for item, next_offset in _with_next_offset(batches, self.following_base_offset(segment_index)):
            if isinstance(item, Damage):
                item.error.at(file=segment.file)
            elif isinstance(item, RecordBatch):
                problem = _offset_problem(item, last_offset, segment.base_offset, next_offset)
                if problem is not None:
                    yield _misplaced(segment, item, problem), last_offset
                    continue
                last_offset = item.last_offset
            yield item, last_offset


def _with_next_offset(items: Iterator[LogItem], after: int | None) -> Iterator[tuple[LogItem, int | None]]:
    """Each item with the base offset of the batch that follows; ``after`` at the end."""
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
    """What is wrong with a batch's place in the log; None if it fits."""
    offsets = f"offsets {batch.base_offset} to {batch.last_offset}"
    if batch.base_offset <= last_offset:
        return f"offsets up to {last_offset} were already read; this batch begins at {batch.base_offset}"
    if batch.last_offset < batch.base_offset:
        return f"{offsets} make no sense"
    if segment_base_offset is not None:
        end = segment_base_offset + MAX_OFFSETS_IN_SEGMENT
        if not segment_base_offset <= batch.base_offset <= batch.last_offset < end:
            return f"{offsets} cannot be in a segment that begins at {segment_base_offset}"
    follows_at_once = batch.base_offset in (last_offset + 1, segment_base_offset)
    least = max(last_offset + 1, segment_base_offset or 0)
    if not follows_at_once and next_offset is not None and least <= next_offset <= batch.last_offset:
        return f"{offsets} are beyond the next batch's {next_offset}"
    return None


def _misplaced(segment: Segment, batch: RecordBatch, problem: str) -> Damage:
    error = CorruptBatchError(
        problem, file=segment.file, position=batch.position, record_offset=batch.base_offset, field="base_offset"
    )
    return Damage(error, batch.raw)
