"""Whose rules a copy is to be read by: which coordinator had it, as far as its files tell.

==============================  =======================================================================================
what tells                      whose rules
==============================  =======================================================================================
brokers' registrations in the   a broker names the levels of ``metadata.version`` that it supports, so which release it
cluster's metadata              is; up to 3.9 it had the Scala coordinator, unless records of the Java one are here
``metadata.version``            a level that only 4.0 and later know: the Java coordinator
``meta.properties``             version 0 is of a cluster with ZooKeeper: the Scala coordinator (4.0 has none)
the newest records              values, record types and batch formats that only some releases write
==============================  =======================================================================================

What is not there tells nothing: values of version 3 are written by both coordinators, so they decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from offsets_log.data_directory.metadata_copies import Clusters
from offsets_log.errors import OffsetsLogError
from offsets_log.kafka_releases import NEWEST, TABLE, KafkaRelease, newest_metadata_version
from offsets_log.log_format.batch import NO_TIMESTAMP, RecordBatch
from offsets_log.log_format.late_batches import late_batches
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record

BATCHES = 64
"""How many of a log's newest batches are looked at."""
RECORDS = 256
"""How many records of them."""
SPAN_MS = 3_600_000
"""How much older than the newest a batch may be to tell who wrote last."""
LOGS = 64
"""How many logs are looked at."""
METADATA_VERSION = "metadata.version"
UNTOLD = "value_version"
"""A text that does not tell this column tells nothing of who wrote it."""

MODERN, PREVIEW, CLASSIC = "modern", "modern-3.7", "classic"
"""Names of `replay.profile.PROFILES`."""
FIRST_PREVIEW = "3.7"
"""The release whose preview of the Java coordinator has rules of its own."""
LAST_SCALA = [row for row in TABLE if row.scala is not None][-1]
"""The last release with the Scala coordinator."""
RELEASE_OF = {MODERN: NEWEST.name, PREVIEW: f"{FIRST_PREVIEW}-java", CLASSIC: ".".join(map(str, LAST_SCALA.line))}
"""Profile → a release that has it, as ``--release`` takes it."""
FIRST_JAVA_ALONE = next(row for row in TABLE if row.version > LAST_SCALA.version)


@dataclass(frozen=True, slots=True)
class WhoseRules:
    """Whose rules an answer follows.

    Attributes:
        profile: a name of `replay.profile.PROFILES`.
        why: what tells it, in words; None where nothing does, and for what the user gave.
        is_sure: whether the files or the user tell it.
    """

    profile: str
    why: str | None = None
    is_sure: bool = True

    @property
    def release(self) -> str:
        """A release with these rules, as ``--release`` takes it."""
        return RELEASE_OF[self.profile]

    @property
    def other_release(self) -> str:
        """A release with the rules that might be right instead."""
        return RELEASE_OF[self.other]

    @property
    def other(self) -> str:
        """The profile that might be right instead, where it is not sure."""
        return CLASSIC if self.profile == MODERN else MODERN


def whose_rules(clusters: Clusters, logs: Sequence[PartitionLog]) -> WhoseRules:
    """Return whose rules the files show; `MODERN`, and not sure, where they show none.

    Raises:
        InputError: a file cannot be read.
    """
    of_cluster = _of_brokers(clusters) or _of_level(clusters) or _of_meta_properties(clusters)
    if of_cluster is not None and of_cluster.profile == MODERN:
        return of_cluster
    evidence = _Evidence()
    for log in _telling(logs):
        evidence.add(log)
        if evidence.profile == MODERN:
            break
    if of_cluster is None:
        return evidence.rules
    if evidence.has_java_types:  # the preview of the Java coordinator, in a cluster up to 3.9
        return evidence.rules
    return of_cluster


@dataclass(frozen=True, slots=True)
class Writer:
    """The release that wrote a log, or the first that may have.

    Attributes:
        name: the release, such as ``3.9``, or ``3.9-java`` for its preview of the Java coordinator.
        why: what tells it, in words.
    """

    name: str
    why: str

    @property
    def is_preview(self) -> bool:
        """Whether it was a preview."""
        return self.name.endswith("-java")


def writer_of(clusters: Clusters, logs: Sequence[PartitionLog]) -> Writer | None:
    """Return the release that wrote the logs, as far as their files show it: the writer is that one or a later one.

    Raises:
        InputError: a file cannot be read.
    """
    evidence = _Evidence()
    for log in _telling(logs):
        evidence.add(log)
    level, told = _level_of(clusters)
    by_records, by_cluster = evidence.latest_first, None if level is None else _row_of_level(level)
    is_of_preview = by_cluster is not None and by_cluster.version < FIRST_JAVA_ALONE.version and evidence.has_java_types
    why = "it is the first that writes records like the late ones here"
    if evidence.profile == PREVIEW:
        return Writer(RELEASE_OF[PREVIEW], why)
    if by_cluster is not None and by_cluster.version >= by_records.version:
        return Writer(f"{'.'.join(map(str, by_cluster.line))}{'-java' if is_of_preview else ''}", told)
    if evidence.has_java_types:
        by_records = max(by_records, FIRST_JAVA_ALONE, key=lambda row: row.version)
    return None if by_records is TABLE[0] else Writer(by_records.name, why)


def _telling(logs: Sequence[PartitionLog]) -> Iterator[PartitionLog]:
    """Yield the logs whose records may tell who wrote them."""
    return islice((log for log in logs if log.topic is None and UNTOLD not in log.missing_columns), LOGS)


# ------------------------------------------------------------------------------------------ the cluster


def _level_of(clusters: Clusters) -> tuple[int | None, str]:
    """Return the newest ``metadata.version`` that all brokers know, else the cluster's, and what tells it in words."""
    if clusters.metadata is None:
        return None, ""
    image = clusters.metadata.replay.image
    nodes = {identity.node_id for identity in clusters.identities}
    asked = [broker for number, broker in image.brokers.items() if number in nodes] or list(image.brokers.values())
    known = {broker.features.get(METADATA_VERSION, (0, 0))[1] for broker in asked} - {0}
    if known:
        return min(known), "the cluster's metadata says so of its brokers"
    return image.metadata_version, "the cluster's metadata.version is of it"


def _of_brokers(clusters: Clusters) -> WhoseRules | None:
    if clusters.metadata is None:
        return None
    nodes = {identity.node_id for identity in clusters.identities}
    brokers = clusters.metadata.replay.image.brokers
    asked = [broker for number, broker in brokers.items() if number in nodes] or list(brokers.values())
    known = {broker.features.get(METADATA_VERSION, (0, 0))[1] for broker in asked} - {0}
    last = newest_metadata_version(LAST_SCALA)
    if not known or (min(known) <= last < max(known)):
        return None
    if min(known) > last:
        return WhoseRules(MODERN, f"by the cluster's metadata its brokers are of Kafka {_release(min(known))} or later")
    return WhoseRules(CLASSIC, f"by the cluster's metadata its brokers are of Kafka {_release(max(known))}")


def _release(level: int) -> str:
    """Return the first release that knows a level of ``metadata.version``."""
    return ".".join(map(str, _row_of_level(level).line))


def _row_of_level(level: int) -> KafkaRelease:
    known = ((row, row.features.get(METADATA_VERSION) or newest_metadata_version(row)) for row in TABLE)
    return next((row for row, newest in known if newest >= level), NEWEST)


def _of_level(clusters: Clusters) -> WhoseRules | None:
    level = None if clusters.metadata is None else clusters.metadata.replay.image.metadata_version
    if level is None or level <= newest_metadata_version(LAST_SCALA):
        return None
    return WhoseRules(MODERN, f"the cluster's metadata.version is of Kafka {_release(level)}")


def _of_meta_properties(clusters: Clusters) -> WhoseRules | None:
    versions = {identity.meta.version for identity in clusters.identities if identity.meta is not None}
    if versions != {0}:
        return None
    return WhoseRules(CLASSIC, "meta.properties is of a cluster with ZooKeeper, which Kafka 4 does not have")


# ------------------------------------------------------------------------------------------ the records


def _writers(column: str, version: int) -> tuple[KafkaRelease, KafkaRelease]:
    rows = [row for row in TABLE if row.writes.get(column) == version]
    return rows[0], rows[-1]


_SPANS = {
    (0, 0): _writers("offset_value_version", 0),
    **{(1, version): _writers("offset_value_version", version) for version in (3, 4)},
    **{(2, version): _writers("group_value_version", version) for version in range(4)},
}
"""(Record type, value version) → the first and the last release that writes it.

Versions 0 to 2 of an offset's value are not in it: later releases write version 1 for an explicit retention.
"""
CLASSIC_TYPES = frozenset({0, 1, 2})


class _Evidence:
    """What the newest records of logs tell.

    A log keeps old records beside new ones. What only old releases write is therefore believed of those alone that were
    written in the last `SPAN_MS` before the newest.
    """

    def __init__(self) -> None:
        self.latest_first = TABLE[0]
        self.has_java_types = False
        self.has_preview = False
        self._ends: list[tuple[int, KafkaRelease]] = []
        self._newest_ms = NO_TIMESTAMP

    def add(self, log: PartitionLog) -> None:
        """Look at late batches of a log."""
        batches = late_batches(log, BATCHES)
        for batch in batches:
            self._newest_ms = max(self._newest_ms, batch.max_timestamp_ms)
            if batch.magic < 2:
                self._ends.append((batch.max_timestamp_ms, LAST_SCALA))
        for time_ms, record in islice(_records(batches), RECORDS):
            if record.value_version is None:
                continue
            if record.record_type not in CLASSIC_TYPES:
                self._saw_java(record)
            span = _SPANS.get((record.record_type, record.value_version))
            if span is not None:
                self._begins(span[0])
                self._ends.append((time_ms, span[1]))

    def _saw_java(self, record: CoordinatorRecord) -> None:
        self.has_java_types = True
        self.has_preview |= record.layout is not None and record.layout.releases[1] == (3, 7)
        self._begins(next(row for row in TABLE if record.record_type in (row.java or {}).get("known_types", ())))

    def _begins(self, row: KafkaRelease) -> None:
        self.latest_first = max(self.latest_first, row, key=lambda one: one.version)

    @property
    def profile(self) -> str | None:
        """Whose rules they are; None where it is not told."""
        if self.latest_first.version >= FIRST_JAVA_ALONE.version:
            return MODERN
        if self.has_java_types:
            return PREVIEW if self.has_preview else MODERN
        ends = [row.version for time_ms, row in self._ends if time_ms >= self._newest_ms - SPAN_MS]
        return CLASSIC if min(ends, default=NEWEST.version) <= LAST_SCALA.version else None

    @property
    def rules(self) -> WhoseRules:
        """The answer."""
        profile = self.profile
        why = {
            MODERN: f"late records are as only Kafka {self.latest_first.name} and later write them",
            PREVIEW: "records of groups are as the preview in Kafka 3.7 writes them",
            CLASSIC: f"late records are as only releases before {FIRST_JAVA_ALONE.name} write them",
        }
        return WhoseRules(MODERN, is_sure=False) if profile is None else WhoseRules(profile, why[profile])


def _records(batches: Iterable[RecordBatch]) -> Iterator[tuple[int, CoordinatorRecord]]:
    """Yield the records of batches that can be read, each with the time of its batch."""
    for batch in batches:
        if batch.is_control:
            continue
        for record in iter_records(batch):
            if isinstance(record, Record):
                with suppress(OffsetsLogError):
                    yield batch.max_timestamp_ms, decode_coordinator_record(record.key, record.value)
