"""``pull.json``: what was pulled, from which cluster, up to where, when."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.data_directory.texts import json_object, refused
from offsets_log.rows.tables import Column, Row

PULL = "pull.json"
VERSION = 1

PULL_COLUMNS = (
    Column("topic", "string", "internal topic"),
    Column("partition", "int", "partition of that topic"),
    Column("start_offset", "bigint", "where the copy begins: the log's start when copying began"),
    Column("end_offset", "bigint", "where the copy ends"),
    Column("high_watermark", "bigint", "high watermark that the broker gave last"),
    Column(
        "last_stable_offset",
        "bigint",
        "last stable offset that the broker gave last: where the oldest open transaction begins",
    ),
    Column("leader_epoch", "int", "leader epoch of the leader that was asked last"),
    Column("bytes", "bigint", "bytes of the batches in the copy"),
    Column("pulled_bytes", "bigint", "how many of these bytes were copied in this run"),
    Column("damaged", "int", "batches whose checksum is wrong on the broker, too; they are in the copy"),
    Column("began_timestamp_ms", "bigint", "when the first run began to read the partition"),
    Column("ended_timestamp_ms", "bigint", "when the partition was read last"),
    Column("whole", "boolean", "whether the copy reaches the place where the log ended when this run began"),
    Column("problem", "string", "why the copy does not reach that place"),
)


@dataclass(slots=True)
class PartitionFacts:
    """What is known of a partition's copy; the attributes are fields of ``pull.json``.

    Attributes:
        topic_id: None where brokers do not tell.
        start_offset, log_start_offset: where the log began at the first run, and at the last.
        began_ms, ended_ms: when the first run began, and when the last one ended.
    """

    topic: str
    partition: int
    topic_id: str | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    leader_epoch: int | None = None
    bytes: int = 0
    damaged: int = 0
    began_ms: int | None = None
    ended_ms: int | None = None
    whole: bool = False
    problem: str | None = None

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return self.topic, self.partition

    def row(self, pulled_bytes: int) -> Row:
        """Return the cells of `PULL_COLUMNS`."""
        cells = asdict(self) | {
            "pulled_bytes": pulled_bytes,
            "began_timestamp_ms": self.began_ms,
            "ended_timestamp_ms": self.ended_ms,
        }
        return {column.name: cells[column.name] for column in PULL_COLUMNS}


@dataclass(slots=True)
class PullFacts:
    """What is known of a copy.

    Attributes:
        whole: whether every partition is.
    """

    cluster_id: str | None = None
    began_ms: int | None = None
    ended_ms: int | None = None
    whole: bool = False
    partitions: list[PartitionFacts] = field(default_factory=list)

    def encode(self) -> bytes:
        """Return the file's contents."""
        return (json.dumps({"version": VERSION} | asdict(self), indent=1) + "\n").encode()


_KINDS: dict[str, tuple[type, ...]] = {"topic": (str,), "topic_id": (str,), "problem": (str,), "whole": (bool,)}


def decode_facts(data: bytes, file: str) -> PullFacts:
    """Parse the file.

    Raises:
        CorruptFileError: it is not of that form.
    """
    found = json_object(data, file)
    if found.get("version") != VERSION:
        raise refused(f"the version is {found.get('version')!r}, not {VERSION}", file)
    rows = found.get("partitions")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise refused("partitions is no list of objects", file)
    cluster_id = found.get("cluster_id")
    if not isinstance(cluster_id, str | None):
        raise refused("cluster_id is no text", file)
    facts = PullFacts(cluster_id, partitions=[_partition(row, file) for row in rows])
    facts.began_ms = _checked(found, "began_ms", (int,), file)
    return facts


def _partition(row: dict[str, Any], file: str) -> PartitionFacts:
    known = [one.name for one in fields(PartitionFacts)]
    values = {name: _checked(row, name, _KINDS.get(name, (int,)), file) for name in known if name in row}
    if not isinstance(values.get("topic"), str) or not isinstance(values.get("partition"), int):
        raise refused("a partition has no topic and number", file)
    return PartitionFacts(**values)


def _checked(row: dict[str, Any], name: str, kinds: tuple[type, ...], file: str) -> Any:
    value = row.get(name)
    is_bool = isinstance(value, bool)
    if value is not None and (not isinstance(value, kinds) or (is_bool and bool not in kinds)):
        raise refused(f"{name} is {value!r}", file)
    return value


def by_key(partitions: Iterable[PartitionFacts]) -> dict[TopicPartition, PartitionFacts]:
    """Return topic and partition → facts."""
    return {one.key: one for one in partitions}
