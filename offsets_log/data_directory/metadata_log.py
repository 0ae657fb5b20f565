"""``__cluster_metadata-0`` replayed: the newest whole snapshot, and the log behind it.

A metadata transaction counts when its end is there: records behind its beginning wait for that, and are dropped by an
abort, or where the log ends first. Records at the end of the log may not have reached the quorum's majority and be
undone later; no file tells how far that goes.

References: ``MetadataBatchLoader.java``, ``RecordsSnapshotReader.java``, ``Snapshots.java``.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from offsets_log.data_directory.cluster_image import ClusterImage, TopicImage
from offsets_log.data_directory.directory import Opener
from offsets_log.errors import Damage, MissingLogError, OffsetsLogError, TruncatedBatchError
from offsets_log.log_format.batch import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER_SIZE,
    CONTROL_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    RecordBatch,
)
from offsets_log.log_format.compression import CODEC_MASK
from offsets_log.log_format.control_record import control_type
from offsets_log.log_format.partition_log import LogItem, LogWalk, PartitionLog, Segment, iter_log
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record, iter_records
from offsets_log.log_format.segment import Buffer, Tail, iter_batches
from offsets_log.messages.cluster_metadata.control import decode_control_message
from offsets_log.messages.cluster_metadata.registry import MetadataRecord, decode_metadata_record
from offsets_log.messages.internal_topics import CLUSTER_METADATA

SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
"""Name of a snapshot: the offset it goes up to, exclusive, and the epoch there. ``.part`` and ``.deleted`` are none."""

BEGIN, END, ABORT = 23, 24, 25
"""API keys of the marks of metadata transactions."""
NAMING = frozenset({2, 3, 9, BEGIN, END, ABORT})
"""API keys of what tells which topics there once were."""
MAKING = NAMING - {3}
"""The same without their partitions."""

_BASE_OFFSET_AND_SIZE = struct.Struct(">qi")
_ATTRIBUTES_AND_LAST_DELTA = struct.Struct(">hi")
_UP_TO_CHECKSUM = struct.Struct(">qiibI")


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """A snapshot: the state of the log before an offset."""

    end_offset: int
    epoch: int


@dataclass(slots=True)
class MetadataReplay:
    """What the metadata log says.

    Attributes:
        image: the state at its end.
        former_topics: topics that were deleted, as far as the log goes back, by id.
        snapshot: what the replay began with; None for the beginning of the log.
        end_offset: of the log; that of the snapshot where nothing is behind it.
        last_timestamp_ms: of the newest record; None without one.
        leader_id, leader_epoch: by the last election in the log; None without one.
        voters: ids of those that vote, as that election or the log's own list says.
        kraft_version: of the quorum, None where the log does not say.
        unknown: records of API keys and versions that no table has, by name.
        damages: what could not be read or applied. The state may be wrong then.
        notes: what was passed over, one sentence each.
        is_partial: whether what the log began with is in no file that is there.
    """

    image: ClusterImage = field(default_factory=ClusterImage)
    former_topics: dict[Uuid, TopicImage] = field(default_factory=dict)
    snapshot: SnapshotId | None = None
    end_offset: int = 0
    last_timestamp_ms: int | None = None
    leader_id: int | None = None
    leader_epoch: int | None = None
    voters: tuple[int, ...] = ()
    kraft_version: int | None = None
    unknown: Counter[str] = field(default_factory=Counter)
    damages: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_partial: bool = False

    @property
    def topic_names(self) -> dict[bytes, str]:
        """Topic id → name, of all topics that are there or once were."""
        topics = [*self.former_topics.values(), *self.image.topics.values()]
        return {bytes(topic.topic_id): topic.name for topic in topics}


def replay_metadata_log(log: PartitionLog, snapshots: Mapping[str, Opener], is_still: bool = False) -> MetadataReplay:
    """Replay a copy of the metadata log.

    Args:
        log: its segments.
        is_still: whether its broker had stopped in order, so that no batch at its end is half written.
        snapshots: name → how to read a file beside them; those that are no snapshots are passed over.
    """
    replay = MetadataReplay()
    fold = _Fold(replay)
    found = _snapshots(snapshots)
    for snapshot, segment in found:
        if (batches := _whole_snapshot(segment)) is not None:
            replay.snapshot, replay.end_offset = snapshot, snapshot.end_offset
            for batch in batches:
                fold.batch(batch, segment.file)
            break
        replay.notes.append(f"{segment.file} is left out: it has no end, or cannot be read")
    start = replay.end_offset
    first_offset = log.segments[0].base_offset if log.segments else None
    if first_offset is not None and first_offset > start:
        replay.is_partial = True
        missing = f"offsets {start} to {first_offset - 1}"
        replay.notes.append(
            f"{missing} of {CLUSTER_METADATA} are in no segment or snapshot: what they said is not known"
        )
    fold.log(log, start)
    replay.damages += fold.cut_off(log, start, is_still=is_still)
    replay.former_topics = _former_topics(log, found, replay.image)
    return replay


def _snapshots(files: Mapping[str, Opener]) -> list[tuple[SnapshotId, Segment]]:
    """Return the snapshots, newest first."""
    named = [(SnapshotId(int(match[1]), int(match[2])), name) for name in files if (match := SNAPSHOT.fullmatch(name))]
    ordered = sorted(named, key=lambda item: (item[0].end_offset, item[0].epoch), reverse=True)
    return [(snapshot, Segment(name, 0, files[name]())) for snapshot, name in ordered]


def _whole_snapshot(segment: Segment) -> list[RecordBatch] | None:
    """Return the batches of a snapshot that has its header and its footer, and nothing unreadable between them."""
    items = [item for _, item in iter_log(PartitionLog(None, (segment,)))]
    batches = [item for item in items if isinstance(item, RecordBatch)]
    if len(batches) < len(items) or len(batches) < 2:
        return None
    ends = [_control_types(batch) for batch in (batches[0], batches[-1])]
    return batches if "SNAPSHOT_HEADER" in ends[0] and "SNAPSHOT_FOOTER" in ends[1] else None


def _control_types(batch: RecordBatch) -> list[str]:
    if not batch.is_control:
        return []
    try:
        return [control_type(record) for record in iter_records(batch) if isinstance(record, Record)]
    except OffsetsLogError:
        return []


class _Fold:
    """Applies batches one after the other.

    Args:
        only: API keys to look at, told by a record's first bytes; None for all.
    """

    def __init__(self, replay: MetadataReplay, only: frozenset[int] | None = None) -> None:
        self.replay = replay
        self.only = only
        self.waiting: list[tuple[MetadataRecord, Record, str]] | None = None
        self.log_end = 0
        self.tail: tuple[Segment, Tail] | None = None

    def log(self, log: PartitionLog, start: int) -> None:
        """Take a log from an offset on, and what control records say before that: no snapshot holds elections."""
        for segment, item in _from_offset(log, start):
            if isinstance(item, int):
                self.log_end = item
            elif isinstance(item, Damage):
                self.replay.damages.append(item)
            elif isinstance(item, Tail):
                self.tail = segment, item
            else:
                self.log_end = item.next_offset
                if item.is_control or item.last_offset >= start:
                    self.batch(item, segment.file, 0 if item.is_control else start)
                    self.replay.end_offset = max(self.replay.end_offset, item.next_offset)
        if self.waiting is not None:
            words = f"a metadata transaction of {len(self.waiting)} records has no end in the log: they do not count"
            self.replay.notes.append(words)
            self.waiting = None

    def cut_off(self, log: PartitionLog, start: int, *, is_still: bool) -> Iterator[Damage]:
        """Yield why the log must have been cut off: it ends before its snapshot, or in a batch after an orderly stop.

        A snapshot is of what the log holds, or of what it begins with.

        Args:
            start: where the snapshot ends; other arguments as of `replay_metadata_log`.
        """
        end = max(self.log_end, log.segments[-1].base_offset or 0) if log.segments else start
        if end < start:
            words = f"the log ends at offset {end}, and a snapshot is of its first {start}: it was cut off"
            yield Damage(MissingLogError(words, file=log.segments[-1].file), b"")
        elif self.tail is not None and is_still:
            words = "no whole batch is at its end, and its broker had stopped in order: the log was cut off"
            yield Damage(TruncatedBatchError(words, file=self.tail[0].file, position=self.tail[1].position), b"")

    def batch(self, batch: RecordBatch, file: str, start: int = 0) -> None:
        """Take one batch, from an offset on."""
        for record in iter_records(batch):
            if isinstance(record, Damage):
                record.error.at(file=file)
                self.replay.damages.append(record)
            elif record.offset >= start:
                self._record(batch, record, file)

    def _record(self, batch: RecordBatch, record: Record, file: str) -> None:
        try:
            if batch.is_control:
                self._control(batch, record)
            elif self.only is None or _api_key(record.value) in self.only:
                self._data(decode_metadata_record(record.value), record, file)
        except OffsetsLogError as error:
            self._note_damage(error, record, file)
        newest = self.replay.last_timestamp_ms
        self.replay.last_timestamp_ms = record.timestamp_ms if newest is None else max(newest, record.timestamp_ms)

    def _note_damage(self, error: OffsetsLogError, record: Record, file: str) -> None:
        error.at(file=file, position=record.position, record_offset=record.offset)
        self.replay.damages.append(Damage(error, b""))

    def _data(self, decoded: MetadataRecord, record: Record, file: str) -> None:
        if decoded.api_key == BEGIN:
            self.waiting = []
        elif decoded.api_key == END:
            waiting, self.waiting = self.waiting or [], None
            for one, at, of_file in waiting:
                self._apply(one, at, of_file)
        elif decoded.api_key == ABORT:
            self.waiting = None
        elif self.waiting is not None:
            self.waiting.append((decoded, record, file))
        else:
            self._apply(decoded, record, file)

    def _apply(self, decoded: MetadataRecord, record: Record, file: str) -> None:
        if not decoded.is_known:
            self.replay.unknown[f"{decoded.name}, version {decoded.version}"] += 1
        try:
            self.replay.image.apply(decoded, record.timestamp_ms)
        except OffsetsLogError as error:
            self._note_damage(error, record, file)

    def _control(self, batch: RecordBatch, record: Record) -> None:
        name = control_type(record)
        if name in _CONTROL_RULES:
            _CONTROL_RULES[name](self.replay, decode_control_message(name, record.value).fields)
        if name == "LEADER_CHANGE":
            self.replay.leader_epoch = batch.partition_leader_epoch


def _api_key(value: bytes | None) -> int:
    """Return the API key in the first bytes of a frame as Kafka writes it; −1 where they are others."""
    return value[1] if value is not None and len(value) > 2 and value[0] == 1 else -1


def _election(replay: MetadataReplay, fields: Mapping[str, Any]) -> None:
    replay.leader_id = fields["leader_id"]
    replay.voters = tuple(voter["voter_id"] for voter in fields["voters"])


def _quorum_version(replay: MetadataReplay, fields: Mapping[str, Any]) -> None:
    replay.kraft_version = fields["k_raft_version"]


def _voters(replay: MetadataReplay, fields: Mapping[str, Any]) -> None:
    replay.voters = tuple(voter["voter_id"] for voter in fields["voters"])


_CONTROL_RULES: dict[str, Callable[[MetadataReplay, Mapping[str, Any]], None]] = {
    "LEADER_CHANGE": _election,
    "KRAFT_VERSION": _quorum_version,
    "KRAFT_VOTERS": _voters,
}


def _former_topics(
    log: PartitionLog, snapshots: list[tuple[SnapshotId, Segment]], now: ClusterImage
) -> dict[Uuid, TopicImage]:
    """Return topics of older snapshots and of the whole log that are not there any more.

    What is wrong with these bytes is told where they are replayed; here it only says less.
    """
    former: dict[Uuid, TopicImage] = {}
    for _, segment in snapshots:
        former = _topics_in(PartitionLog(None, (segment,)))[0] | former
    former |= _topics_in(log)[0] | now.removed_topics
    return {topic_id: topic for topic_id, topic in former.items() if topic_id not in now.topics}


def topics_made(log: PartitionLog) -> tuple[dict[Uuid, TopicImage], list[Damage]]:
    """Return topics that the log, not a snapshot, makes, deleted ones too, without partitions; and what is damaged."""
    return _topics_in(log, MAKING)


def metadata_batches(log: PartitionLog) -> dict[tuple[int, int], int]:
    """Return base offset and leader epoch → checksum of each batch, by headers alone.

    In one cluster no two copies have another batch with the same of both.
    """
    found: dict[tuple[int, int], int] = {}
    for segment in log.segments:
        for place in _places(segment.buffer):
            offset, _, epoch, _, crc = _UP_TO_CHECKSUM.unpack_from(segment.buffer, place.position)
            found[offset, epoch] = crc
    return found


def _topics_in(log: PartitionLog, only: frozenset[int] = NAMING) -> tuple[dict[Uuid, TopicImage], list[Damage]]:
    """Return the topics by their ids, and damaged bytes where some may be."""
    fold, damages = _Fold(MetadataReplay(), only), list[Damage]()
    for segment in log.segments:
        for item in _naming_items(segment.buffer, is_last=segment is log.segments[-1]):
            if isinstance(item, Damage):
                item.error.at(file=segment.file)
                damages.append(item)
            elif isinstance(item, RecordBatch) and not item.is_control:
                fold.batch(item, segment.file)
    return {**fold.replay.image.topics, **fold.replay.image.removed_topics}, damages


# A controller writes a record that says nothing every half second, for as long as it keeps the log: a week of these is
# passed over by the sizes of batches alone.

_NAMING_FRAME = re.compile(b"\x01[" + bytes(sorted(NAMING)) + b"]")
"""What a record of `NAMING` begins with; and other bytes too."""


@dataclass(frozen=True, slots=True)
class _BatchSpan:
    """A batch by its header alone."""

    position: int
    end: int
    last_offset: int
    attributes: int


def _places(buffer: Buffer) -> Iterator[_BatchSpan]:
    """Yield batches from the beginning, as far as headers lead from one to the next without a gap in offsets."""
    view, position = memoryview(buffer), 0
    before: _BatchSpan | None = None
    while position + BATCH_HEADER_SIZE <= len(view):
        base_offset, size = _BASE_OFFSET_AND_SIZE.unpack_from(view, position)
        end = position + LOG_OVERHEAD + size
        follows = before is None or base_offset == before.last_offset + 1
        if not follows or view[position + MAGIC_POSITION] != 2 or not position + BATCH_HEADER_SIZE <= end <= len(view):
            return
        if before is not None:
            yield before
        attributes, last_delta = _ATTRIBUTES_AND_LAST_DELTA.unpack_from(view, position + ATTRIBUTES_POSITION)
        before = _BatchSpan(position, end, base_offset + last_delta, attributes)
        position = end
    if before is not None and position == len(view):
        yield before


def _naming_items(buffer: Buffer, *, is_last: bool) -> Iterator[LogItem]:
    """Yield what may hold records of `NAMING`, and all that is behind the place to which headers lead."""
    view, end = memoryview(buffer), 0
    for place in _places(buffer):
        end = place.end
        is_plain = not place.attributes & (CODEC_MASK | CONTROL_MASK)
        if is_plain and _NAMING_FRAME.search(view, place.position + BATCH_HEADER_SIZE, end) is None:
            continue
        yield from iter_batches(view[:end], start=place.position)
    yield from iter_batches(view, start=end, is_last=is_last)


def _from_offset(log: PartitionLog, start: int) -> Iterator[tuple[Segment, LogItem | int]]:
    """Yield the items of a log from the first batch that reaches an offset, and control batches before it.

    Of batches that are passed over in a segment the offset behind the last one is yielded.
    """
    walk, last_offset = LogWalk(log), -1
    for index, segment in enumerate(log.segments):
        position = 0
        for place in _places(segment.buffer) if last_offset < start else ():
            if place.last_offset >= start:
                break
            if place.attributes & CONTROL_MASK:
                found = iter_batches(memoryview(segment.buffer)[place.position : place.end])
                yield from ((segment, item) for item in found)
            position, last_offset = place.end, max(last_offset, place.last_offset)
        yield segment, last_offset + 1
        for item, read_until in walk.items(index, position, last_offset):
            yield segment, item
            last_offset = read_until
