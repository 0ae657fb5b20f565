"""The directory of a copy: one run at a time writes it, the next goes on where the last one ended, however it ended."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from offsets_log.cluster.reader import ClusterNow, ClusterReader
from offsets_log.data_directory.checkpoints import TopicPartition, encode_offset_checkpoint
from offsets_log.data_directory.told_ends import LOG_ENDS, ToldEnds
from offsets_log.disk.writer import atomic_output, output_errors
from offsets_log.errors import ClusterError, InputError, OutputError
from offsets_log.log_format.file_names import HIGH_WATERMARKS, LOG_STARTS, META_PROPERTIES
from offsets_log.messages.internal_topics import INTERNAL_TOPICS, OFFSETS_TOPIC, SHARE_GROUP_STATE, TRANSACTION_STATE
from offsets_log.protocol.error_codes import NO_ERROR, name_of
from offsets_log.protocol.list_offsets import EARLIEST, LATEST
from offsets_log.pulling.facts import PULL, PartitionFacts, PullFacts, by_key, decode_facts
from offsets_log.pulling.folder import PartitionFolder
from offsets_log.pulling.partition import PulledPartition
from offsets_log.rows.tables import Row
from offsets_log.words import counted

SEGMENT_BYTES = 100 << 20
"""``offsets.topic.segment.bytes`` by default."""
ENDS_PATIENCE_SECONDS = 5.0
"""For the ends of users' partitions, some of which may have no leader for long."""
TOMBSTONES_MS = 24 * 3600 * 1000
"""``delete.retention.ms`` by default: for so long a reader of the log sees what was deleted."""


def now_ms() -> int:
    """Return the time, in epoch milliseconds."""
    return int(time.time() * 1000)


@dataclass(slots=True)
class Copy:
    """A directory that a run may write; use `open_copy`.

    Attributes:
        partitions: those of this run, set by `begin`.
        refused: those of which it is not known where they begin or end.
        absent: why topics are left out that were asked for beside the first, a sentence each.
    """

    path: Path
    facts: PullFacts
    partitions: list[PulledPartition] = field(default_factory=list)
    refused: list[PartitionFacts] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)

    def begin(self, reader: ClusterReader, topics: Sequence[str], wanted: Collection[int]) -> ClusterNow:
        """Find out what there is to pull, and open its folders.

        Args:
            wanted: partitions of the first topic; empty for all.

        Raises:
            ClusterError: the cluster is not that of the copy, or does not show a topic.
            InputError: there is no such partition.
            OutputError: a folder cannot be written.
        """
        now = reader.metadata()
        self._check_cluster(now)
        keys = _partitions(now, topics[0], wanted)
        for topic in topics[1:]:
            try:
                keys += _partitions(now, topic)
            except ClusterError as error:
                self.absent.append(error.problem)
        starts, no_start = reader.list_offsets(keys, EARLIEST)
        ends, no_end = reader.list_offsets(keys, LATEST)
        self._counts = {topic: len(now.topics[topic].leaders) for topic in topics if topic in now.topics}
        self.facts.cluster_id = now.cluster_id
        self.facts.began_ms = self.facts.began_ms or now_ms()
        known = by_key(self.facts.partitions)
        for key in keys:
            facts = known.setdefault(key, PartitionFacts(*key))
            facts.whole, facts.problem = False, None
            if key in starts and key in ends:
                self.partitions.append(self._open(facts, now, starts[key], ends[key]))
            else:
                facts.problem = f"where the log begins and ends is not known: {no_start.get(key) or no_end.get(key)}"
                self.refused.append(facts)
        self.facts.partitions = [known[key] for key in sorted(known)]
        self._write()
        return now

    def write_log_ends(self, reader: ClusterReader, now: ClusterNow) -> str | None:
        """Ask where the partitions of users' topics begin and end, for lags; return what could not be answered.

        Raises:
            ClusterError: no broker answers any more.
            OutputError: the file cannot be written.
        """
        topics = {name: topic for name, topic in now.topics.items() if name not in INTERNAL_TOPICS}
        keys = [(name, partition) for name, topic in topics.items() for partition in topic.leaders]
        told, refused = ask_ends(reader, now, keys)
        self._replace(LOG_ENDS, told.encode())
        if not topics:
            return "the cluster shows no user's topic to this user: --lag will find no log's end"
        missing = len(keys) - len(told.spans)
        if not missing:
            return None
        why = next(iter(refused.values()), "no answer")
        return f"{counted(missing, 'partition')} of users' topics told no end, so that --lag will not know it: {why}"

    def note(self, reader: ClusterReader, tell: Callable[[str], None]) -> None:
        """Write where the copy and users' partitions end by now, while a run goes on.

        Args:
            tell: told of partitions that the topics have got since it began.

        Raises:
            OutputError: a file cannot be written.
        """
        self._write()
        with suppress(ClusterError):  # the next time may be better
            now = reader.metadata(0)
            self.write_log_ends(reader, now)
            for topic, known in self._counts.items():
                if len(now.topics[topic].leaders if topic in now.topics else ()) > known:
                    tell(f"{topic} has more than {counted(known, 'partition')} now: another run pulls all")

    def end(self) -> Iterator[str]:
        """Close all folders, and write what was pulled; yield what a user has to know of it.

        Raises:
            OutputError: a file cannot be written.
        """
        for partition in self.partitions:
            facts = partition.facts
            since = facts.ended_ms or facts.began_ms or now_ms()
            facts.end_offset, facts.bytes = partition.end_offset, partition.folder.size_bytes
            facts.problem, facts.whole = partition.problem, partition.is_whole
            facts.ended_ms = now_ms()
            partition.folder.close()
            if facts.ended_ms - since > TOMBSTONES_MS and partition.has_gaps:
                yield (
                    f"{facts.topic}-{facts.partition} was read over {(facts.ended_ms - since) / 3.6e6:.0f} h, and the "
                    "cleaner went over what was read last: offsets that were deleted meanwhile may still be in the "
                    "copy; one pulled again has none of them"
                )
        self.facts.ended_ms = now_ms()
        self.facts.whole = all(facts.whole for facts in self.facts.partitions)
        self._write()

    def rows(self) -> Iterator[Row]:
        """Yield what was pulled, by topic and partition, as `facts.PULL_COLUMNS`."""
        pulled = {partition.key: partition.pulled_bytes for partition in self.partitions}
        of_run = {**pulled, **{facts.key: 0 for facts in self.refused}}
        for facts in self.facts.partitions:
            if facts.key in of_run:
                yield facts.row(of_run[facts.key])

    # ---------------------------------------------------------------------------------------------------------

    def _check_cluster(self, now: ClusterNow) -> None:
        known = self.facts.cluster_id
        if known is not None and now.cluster_id != known:
            raise InputError(
                f"this copy is of cluster {known}, and the one that answers is {now.cluster_id}: give another "
                "directory",
                file=str(self.path),
            )

    def _open(self, facts: PartitionFacts, now: ClusterNow, start: int, end: int) -> PulledPartition:
        folder = PartitionFolder(self.path / f"{facts.topic}-{facts.partition}", SEGMENT_BYTES)
        topic_id = now.topics[facts.topic].topic_id
        if folder.end_offset is None:
            facts.topic_id = None if topic_id is None else str(topic_id)
            facts.start_offset, facts.began_ms, facts.damaged = start, now_ms(), 0
            folder.begin(start, facts.topic_id)
        facts.log_start_offset = start
        facts.end_offset = first = folder.end_offset if folder.end_offset is not None else start
        partition = PulledPartition(facts, folder, end, first)
        partition.doubt()
        is_same = topic_id is None or facts.topic_id in (None, str(topic_id))  # else a run tells of it
        if end < first and is_same:
            partition.problem = (
                f"the log ends at {end}, before the end of the copy, {first}: it was truncated, or made again; pull it "
                "into another directory"
            )
        return partition

    def _write(self) -> None:
        """Write ``pull.json``, and what a broker keeps in its data directory."""
        self._replace(PULL, self.facts.encode())
        if self.facts.cluster_id is not None:
            self._replace(META_PROPERTIES, f"version=1\ncluster.id={self.facts.cluster_id}\n".encode())
        for name, attribute in ((HIGH_WATERMARKS, "end_offset"), (LOG_STARTS, "start_offset")):
            told = {one.key: getattr(one, attribute) for one in self.facts.partitions}
            offsets: dict[TopicPartition, int] = {key: offset for key, offset in told.items() if offset}
            self._replace(name, encode_offset_checkpoint(offsets).encode())

    def _replace(self, name: str, data: bytes) -> None:
        with atomic_output(self.path / name) as file:
            file.write(data)


def ask_ends(
    reader: ClusterReader, now: ClusterNow, keys: Collection[TopicPartition]
) -> tuple[ToldEnds, dict[TopicPartition, str]]:
    """Ask where partitions begin and end; return what was answered, and of the others why not.

    Raises:
        ClusterLostError: no broker answers any more.
    """
    starts, _ = reader.list_offsets(keys, EARLIEST, ENDS_PATIENCE_SECONDS)
    ends, refused = reader.list_offsets(keys, LATEST, ENDS_PATIENCE_SECONDS)
    names = dict.fromkeys(topic for topic, _ in keys)
    ids = {name: now.topics[name].topic_id for name in names if name in now.topics}
    told = ToldEnds(
        {key: (starts[key], ends[key]) for key in keys if key in starts and key in ends},
        {name: topic_id for name, topic_id in ids.items() if topic_id is not None},
        now_ms(),
    )
    return told, refused


@contextmanager
def open_copy(path: str, tell: Callable[[str], None] = lambda words: None) -> Iterator[Copy]:
    """Open a directory to pull into; it is made if it is missing.

    Args:
        tell: told what a user has to know at the end, one sentence each.

    Raises:
        OutputError: it holds something else, or another run writes it.
        CorruptFileError: its ``pull.json`` is none.
    """
    target = Path(path)
    with output_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OutputError("another run writes it at this moment: let that end", file=path) from None
        copy = Copy(target, _facts_in(target))
        try:
            yield copy
        finally:
            for words in copy.end() if copy.facts.began_ms is not None else ():
                tell(words)
    finally:
        os.close(descriptor)


def _facts_in(target: Path) -> PullFacts:
    with output_errors(target):
        for left in target.glob(".*.tmp"):
            left.unlink()
        if (target / PULL).exists():
            return decode_facts((target / PULL).read_bytes(), str(target / PULL))
        if next(target.iterdir(), None) is not None:
            raise OutputError("it holds something, and no pull has written it: give a new directory", file=str(target))
    return PullFacts()


_NEVER_USED = {
    OFFSETS_TOPIC: "no group has committed yet",
    TRANSACTION_STATE: "nobody has begun a transaction yet",
    SHARE_GROUP_STATE: "there has been no share group yet",
}


def _partitions(now: ClusterNow, name: str, wanted: Collection[int] = ()) -> list[TopicPartition]:
    topic = now.topics.get(name)
    if topic is None or topic.error_code != NO_ERROR or not topic.leaders:
        why = "" if topic is None or topic.error_code == NO_ERROR else f" ({name_of(topic.error_code)})"
        raise ClusterError(
            f"the cluster shows no topic {name} to this user{why}: {_NEVER_USED[name]}, or the right to READ the "
            "topic is missing, or it is a hosted service that does not let anybody"
            + ("; --from-admin asks for groups and their offsets instead" if name == OFFSETS_TOPIC else "")
        )
    if absent := sorted(set(wanted) - topic.leaders.keys()):
        raise InputError(f"{name} has no partition {', '.join(map(str, absent))}; it has {len(topic.leaders)}")
    return [(name, partition) for partition in sorted(wanted or topic.leaders)]
