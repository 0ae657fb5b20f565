"""Logs of a live cluster, for streams: raw batches by Fetch, so that markers and producers are there.

Only what reads is asked (`cluster.reader`). A log that was truncated, made anew, or has lost what was not read yet, is
told by its topic's id, its leader epochs and where it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from offsets_log.broker.batches import FileBatch, entry_in_memory
from offsets_log.broker.failures import BrokerError
from offsets_log.cluster.reader import ClusterNow, ClusterReader, Pauses
from offsets_log.columnar.scan.reading import Cursor, ScanPlace
from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.errors import ClusterError, ClusterLostError, InputError
from offsets_log.following.growth import GrownPiece
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.protocol.error_codes import NO_ERROR, REFUSALS, name_of
from offsets_log.protocol.list_offsets import EARLIEST, LATEST
from spark_jobs.growing import Offsets

FETCH_BYTES = 8 << 20
LEAST_FETCH_BYTES = 1 << 16
SERVERS = "bootstrap.servers"
BYTES_OF_RECORD = 100
"""About, in the log; for how much a task should do."""
MOST_QUIET = 3
"""So many answers without a batch, of a broker that has all, mean that the cleaner has left none."""

Answer = TypeVar("Answer")


def open_cluster(client: Mapping[str, str]) -> ClusterReader:
    """Return a cluster's reader; to be closed. Raises ClusterError, InputError."""
    properties = dict(client)
    servers = properties.pop(SERVERS, "")
    if not servers:
        raise InputError(f"the option kafka.{SERVERS} is needed to read a cluster")
    return ClusterReader(servers, properties)


class _Partition:
    """One offsets partition, asked of whoever leads it.

    Args:
        told: what a stream's offsets say of it: where it goes on, the leader epoch and the topic's id then.
    """

    def __init__(self, reader: ClusterReader, number: int, told: Mapping[str, Any]) -> None:
        self.reader = reader
        self.key: TopicPartition = (OFFSETS_TOPIC, number)
        self.told = told

    def wrong(self, words: str) -> InputError:
        """Return the error that ends a stream."""
        return InputError(f"offsets partition {self.key[1]}: {words}; begin anew with another checkpoint")

    def ask(self, question: Callable[[int, ClusterNow], Answer], known: ClusterNow | None = None) -> Answer:
        """Ask the leader, again and again while leaders change. Raises ClusterLostError, InputError.

        Args:
            known: who leads, if that was just asked.
        """
        pauses, problem = Pauses(self.reader.patience), "it has no leader"
        while True:
            now, known = known or self.reader.metadata(), None
            leader = now.leader(self.key)
            if leader.node_id in now.brokers:
                try:
                    return question(leader.node_id, now)
                except (OSError, ClusterError) as error:
                    problem = str(error)
                    self.reader.drop(leader.node_id)
            if not pauses.wait():
                raise ClusterLostError(f"offsets partition {self.key[1]}: {problem}")

    def check(self, starts: Mapping[TopicPartition, int], known: ClusterNow | None = None) -> None:
        """See that the log goes on where it was read up to. Raises InputError, ClusterLostError.

        Args:
            starts: where logs begin now.
            known: who leads, if that was just asked.
        """
        begin, epoch = self.told["next_offset"], self.told["epoch"]

        def look(node_id: int, now: ClusterNow) -> tuple[int, int]:
            topic_id = _topic_id(now)
            if self.told["topic_id"] not in (None, topic_id):
                raise self.wrong(f"the topic was made anew: its id is {topic_id}, it was {self.told['topic_id']}")
            if epoch < 0 or now.leader(self.key).epoch == epoch:
                return -1, -1
            return self.reader.epoch_end(node_id, self.key, epoch)

        found, end = self.ask(look, known)
        if found >= 0 and end < begin:
            raise self.wrong(
                f"the log was truncated: it was read up to {begin}, records of leader epoch {found} end at {end}"
            )
        if starts.get(self.key, 0) > begin:
            raise self.wrong(f"the log begins at {starts[self.key]} now, behind {begin}, up to which it was read")

    def fetch(self, offset: int, most_bytes: int) -> tuple[bytes, int]:
        """Return bytes from an offset on, and the high watermark. Raises InputError, ClusterLostError."""

        def get(node_id: int, now: ClusterNow) -> tuple[bytes, int]:
            positions = {self.key: (now.leader(self.key).epoch, offset)}
            answers, _ = self.reader.fetch(node_id, positions, most_bytes, "")
            if self.key not in answers:
                raise ClusterError("the broker holds this client back: a quota")
            answer = answers[self.key]
            code = answer["error_code"]
            if code in REFUSALS:
                raise self.wrong(f"the broker refuses: {name_of(code)}")
            if code != NO_ERROR:
                raise ClusterError(f"broker {node_id} answers {name_of(code)}")
            return answer["records"] or b"", answer["high_watermark"]

        return self.ask(get)

    def batches(self, offset: int, end: int, most_bytes: int) -> tuple[bytes, int]:
        """Return whole batches from an offset on, and the offset behind them, at most ``end``; none at its end."""
        quiet = 0
        while True:
            records, high_watermark = self.fetch(offset, most_bytes)
            found = [batch for batch in self._entries(records) if offset <= batch.last_offset < end]
            if found:
                if self.told and found[0].base_offset < offset:
                    raise self.wrong(f"a batch begins at {found[0].base_offset}, where it was read up to {offset}")
                return records[found[0].position : found[-1].end], found[-1].last_offset + 1
            quiet = quiet + 1 if high_watermark >= end else 0
            if records or quiet >= MOST_QUIET:
                return b"", end

    def _entries(self, records: bytes) -> Iterator[FileBatch]:
        view, position = memoryview(records), 0
        try:
            while batch := entry_in_memory("", view, position, len(view)):
                yield batch
                position = batch.end
        except BrokerError as error:
            raise self.wrong(f"what the broker sends is no batch: {error.problem}") from None


@dataclass(frozen=True, slots=True)
class FetchedSlice:
    """Offsets of one partition, which a task fetches.

    Attributes:
        begin: what the stream's offsets say of the partition before it; None at the begin of the log.
    """

    client: Mapping[str, str]
    number: int
    offset: int
    end: int
    begin: Mapping[str, Any] | None

    @property
    def size_bytes(self) -> int:
        """How many bytes they have, about."""
        return (self.end - self.offset) * BYTES_OF_RECORD

    def pieces(self) -> Iterator[GrownPiece]:
        """Fetch the slice, and yield its pieces. Raises InputError, ClusterError."""
        reader = open_cluster(self.client)
        try:
            partition = _Partition(reader, self.number, self.begin or {})
            if self.begin is not None:
                partition.check(reader.list_offsets([partition.key], EARLIEST)[0])
            offset = self.offset
            while offset < self.end:
                data, following = partition.batches(offset, self.end, FETCH_BYTES)
                if data:
                    yield _piece(self.number, data, offset)
                offset = following
        finally:
            reader.close()


def _piece(number: int, data: bytes, offset: int) -> GrownPiece:
    segment = Segment(f"{OFFSETS_TOPIC}-{number}", None, data)
    log = PartitionLog(number, (segment,), selection="only what is new is read")
    batch = entry_in_memory("", memoryview(data), 0, len(data))
    last_offset = offset - 1 if batch is None else min(offset, batch.base_offset) - 1
    return GrownPiece(log, Cursor(ScanPlace(0, 0), last_offset, last_offset + 1, 0), 0)


class GrowingCluster:
    """The offsets partitions of a cluster; what the stream's reader asks.

    Args:
        partitions: those asked for; empty for all.
    """

    def __init__(self, client: Mapping[str, str], partitions: Sequence[int]) -> None:
        self._client = dict(client)
        self._partitions = partitions
        self._reader = open_cluster(client)
        self._target: dict[TopicPartition, int] | None = None

    def close(self) -> None:
        """Close all connections."""
        self._reader.close()

    def freeze(self) -> None:
        """Go no further than what is there now."""
        self._target = self._ends(self._now())

    def latest(self, start: Offsets, most_bytes: int | None) -> Offsets:
        """Return how far the logs go: to their high watermarks, or as far as about so many bytes go."""
        now = self._now()
        ends = self._ends(now) if self._target is None else self._target
        starts = self._asked(list(ends), EARLIEST)
        offsets = {key: int(start.get(str(key[1]), {"next_offset": starts[key]})["next_offset"]) for key in ends}
        behind = sum(max(ends[key] - offset, 0) for key, offset in offsets.items())
        found = dict(start)
        for key, offset in sorted(offsets.items()):
            told = start.get(str(key[1]))
            if told is not None:
                _Partition(self._reader, key[1], told).check(starts, now)
            end = max(ends[key], offset)
            if most_bytes is not None and end > offset:
                part = max(most_bytes * (end - offset) // behind, LEAST_FETCH_BYTES)
                end = _Partition(self._reader, key[1], told or {}).batches(offset, end, part)[1]
            if told is None or end > offset:
                first = {} if told is not None else {"first": offset}
                found[str(key[1])] = {
                    **(told or {}), **first, "next_offset": end, "epoch": now.leader(key).epoch,
                    "topic_id": _topic_id(now),
                }  # fmt: skip
        return found

    def slices(self, start: Offsets, end: Offsets) -> list[FetchedSlice]:
        """Return what stands between two offsets of each log."""
        made = []
        for name, upto in end.items():
            begin = start.get(name)
            offset = upto["first"] if begin is None else begin["next_offset"]
            if offset < upto["next_offset"]:
                made.append(FetchedSlice(self._client, int(name), offset, upto["next_offset"], begin))
        return made

    def _now(self) -> ClusterNow:
        now = self._reader.metadata()
        if not (OFFSETS_TOPIC in now.topics and now.topics[OFFSETS_TOPIC].leaders):
            raise InputError(f"the cluster has no topic {OFFSETS_TOPIC}, or does not let it be read")
        return now

    def _keys(self, now: ClusterNow) -> list[TopicPartition]:
        numbers = sorted(now.topics[OFFSETS_TOPIC].leaders)
        return [(OFFSETS_TOPIC, number) for number in numbers if not self._partitions or number in self._partitions]

    def _ends(self, now: ClusterNow) -> dict[TopicPartition, int]:
        return self._asked(self._keys(now), LATEST)

    def _asked(self, keys: Sequence[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        found, refused = self._reader.list_offsets(keys, timestamp)
        for key, problem in refused.items():
            raise ClusterLostError(f"{key[0]}-{key[1]}: {problem}")
        return found


def _topic_id(now: ClusterNow) -> str | None:
    """Return the id of the offsets topic; None where the cluster has no such ids."""
    topic_id = now.topics[OFFSETS_TOPIC].topic_id
    return None if topic_id is None else str(topic_id)
