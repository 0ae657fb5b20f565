"""The card of a data directory: whose it is, how its broker was left, what its cluster agreed on, how new it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice

from offsets_log.data_directory.checkpoints import TopicPartition, decode_offset_checkpoint
from offsets_log.data_directory.copied_logs import CopiedPartition
from offsets_log.data_directory.directory import LOCK, DataDirectory, Identity
from offsets_log.data_directory.log_ends import LogEnds, find_log_ends
from offsets_log.data_directory.metadata_copies import Clusters
from offsets_log.data_directory.told_ends import LOG_ENDS
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.kafka_releases import METADATA_VERSIONS
from offsets_log.log_format.file_names import CLEAN_SHUTDOWN, HIGH_WATERMARKS
from offsets_log.log_format.segment import NO_PIECES
from offsets_log.messages.internal_topics import CLUSTER_METADATA, INTERNAL_TOPICS
from offsets_log.rows.tables import Column, Row
from offsets_log.words import counted

OTHER_TOPICS = "other topics"
"""Those whose newest records are not told one by one."""

IN_ORDER, NOT_IN_ORDER, PULLED = "stopped in order", "running or killed", "pulled from a running cluster"
"""How a broker was left. What a running one has on its disk is what a killed one leaves."""

INDEXES_LOOKED_AT = 200
"""Of one directory."""

CARD_COLUMNS = (
    Column("data_directory", "string", "path of the directory"),
    Column(
        "cluster_id",
        "string",
        "the cluster's id; like node_id and directory_id from meta.properties, null if that does not say",
    ),
    Column("node_id", "int", "the id of the broker or controller"),
    Column("directory_id", "string", "the id of this data directory, since Kafka 3.7"),
    Column(
        "left",
        "string",
        f"how the broker was stopped: {IN_ORDER}, {NOT_IN_ORDER}, {PULLED}; null if the files do not show it",
    ),
    Column("left_shown_by", "array<string>", "the facts that show how it was stopped"),
    Column(
        "metadata_version",
        "string",
        "the cluster's metadata.version, by its metadata; null without metadata",
    ),
    Column("features", "map<string,int>", "the cluster's other feature levels"),
    Column("metadata_end_offset", "bigint", "where the newest copy of the metadata log ends"),
    Column("metadata_timestamp_ms", "bigint", "time of the metadata log's newest record"),
    Column("brokers", "array<int>", "all brokers that are registered in the cluster"),
    Column("node_directories", "int", "how many directories this broker has registered; null if unknown"),
    Column("node_directories_given", "int", "how many of these directories were given"),
    Column("partitions", "int", "folders of partitions, of all topics"),
    Column("deleted_partitions", "int", "folders that are being deleted"),
    Column("future_partitions", "int", "folders that are being moved here from another directory"),
    Column("stray_partitions", "int", "folders that the broker found to be stray (not its own)"),
    Column("unreadable_logs", "int", "partitions whose last segment cannot be opened"),
    Column("newest_timestamp_ms", "map<string,bigint>", "topic → time of its newest record; all other topics together"),
    Column("newest_span_ms", "bigint", "time between the oldest and the newest of these times"),
)


def metadata_version_name(level: int | None) -> str | None:
    """Return the name that Kafka's tools show; the number of a later version."""
    if level is None:
        return None
    return METADATA_VERSIONS[level - 1] if 0 < level <= len(METADATA_VERSIONS) else str(level)


@dataclass(slots=True)
class _Logs:
    """What the logs in a data directory show.

    Attributes:
        indexes: those of last segments that were looked at.
        with_room: of these, those that a broker has made larger than their entries.
        behind: logs that go on behind the high watermark noted.
        noted: logs with one.
    """

    partitions: int = 0
    unreadable: int = 0
    indexes: int = 0
    with_room: int = 0
    behind: int = 0
    noted: int = 0
    newest: dict[str, int] = field(default_factory=dict)


def card_rows(
    clusters: Clusters, partitions: Sequence[CopiedPartition], damages: list[Damage] | None = None
) -> Iterator[Row]:
    """Return `CARD_COLUMNS` of each data directory.

    Args:
        partitions: all in these directories.
        damages: takes what could not be read of the directories' own files and of the metadata.
    """
    given = Counter((one.cluster_id, one.node_id) for one in clusters.identities)
    noting = [] if damages is None else damages
    noting += [identity.damage for identity in clusters.identities if identity.damage is not None]
    noting += [damage for metadata in clusters.by_id.values() for damage in metadata.replay.damages]
    for identity in clusters.identities:
        own = [partition for partition in partitions if partition.above is identity.directory.files]
        logs = _look_at(own, identity.directory, noting)
        yield {
            **_whose(identity),
            **_how_left(identity.directory, logs),
            **_agreed(clusters, identity, given),
            "partitions": logs.partitions,
            **{f"{title}_partitions": identity.directory.leftovers.get(kind, 0) for title, kind in _LEFTOVERS},
            "unreadable_logs": logs.unreadable,
            "newest_timestamp_ms": logs.newest,
            "newest_span_ms": max(logs.newest.values()) - min(logs.newest.values()) if logs.newest else None,
        }


_LEFTOVERS = (("deleted", "delete"), ("future", "future"), ("stray", "stray"))


def _whose(identity: Identity) -> Row:
    meta = identity.meta
    directory_id = None if meta is None or meta.directory_id is None else str(meta.directory_id)
    return {
        "data_directory": identity.directory.shown_path,
        "cluster_id": identity.cluster_id,
        "node_id": identity.node_id,
        "directory_id": directory_id,
    }


def _agreed(clusters: Clusters, identity: Identity, given: Mapping[tuple[str | None, int | None], int]) -> Row:
    """Return what the cluster's metadata says of it, whichever directory that is in."""
    row: Row = dict.fromkeys(
        ("metadata_version", "features", "metadata_end_offset", "metadata_timestamp_ms", "brokers", "node_directories")
    )
    row["node_directories_given"] = None
    if identity.node_id is not None:
        row["node_directories_given"] = given[identity.cluster_id, identity.node_id]
    metadata = clusters.by_id.get(identity.cluster_id)
    if metadata is None:
        return row
    image, replay = metadata.replay.image, metadata.replay
    broker = None if identity.node_id is None else image.brokers.get(identity.node_id)
    features = {name: level for name, level in sorted(image.features.items()) if name != "metadata.version"}
    if replay.kraft_version:
        features["kraft.version"] = replay.kraft_version
    return row | {
        "metadata_version": metadata_version_name(image.metadata_version),
        "features": dict(sorted(features.items())),
        "metadata_end_offset": replay.end_offset,
        "metadata_timestamp_ms": replay.last_timestamp_ms,
        "brokers": sorted(image.brokers),
        "node_directories": len(broker.log_dirs) or None if broker is not None else None,
    }


# ----------------------------------------------------------------------------------------- how it was left


def _how_left(directory: DataDirectory, logs: _Logs) -> Row:
    """Return how the broker was left, and the reasons.

    An orderly stop leaves its mark, and cuts indexes to their entries; newer releases then remove the lock. Indexes of
    the cluster's metadata tell nothing: since 4.4 an orderly stop leaves their unused room (``K44-23``).
    """
    if LOG_ENDS in directory.files:
        return {"left": PULLED, "left_shown_by": [f"{LOG_ENDS} is there"]}
    reasons: list[str] = []
    is_clean = CLEAN_SHUTDOWN in directory.files
    if is_clean:
        reasons.append(f"{CLEAN_SHUTDOWN} is there")
    if directory.has_lock:
        reasons.append(f"{LOCK} is there")
    if logs.with_room:
        reasons.append(
            f"{logs.with_room} of {counted(logs.indexes, 'active index', 'active indexes')} have unused room"
        )
    if logs.behind:
        reasons.append(f"{logs.behind} of {counted(logs.noted, 'log')} go on behind the high watermark noted last")
    if is_clean:
        return {"left": IN_ORDER, "left_shown_by": reasons}
    if logs.with_room or directory.has_lock:
        return {"left": NOT_IN_ORDER, "left_shown_by": [f"{CLEAN_SHUTDOWN} is not there", *reasons]}
    return {"left": None, "left_shown_by": [f"neither {CLEAN_SHUTDOWN} nor {LOCK} is there", *reasons]}


def _look_at(partitions: Sequence[CopiedPartition], directory: DataDirectory, damages: list[Damage]) -> _Logs:
    logs = _Logs(partitions=len(partitions))
    noted = _high_watermarks(directory, damages)
    for partition in partitions:
        try:
            _add_log(logs, partition, noted)
        except OffsetsLogError:
            logs.unreadable += 1
    telling = (partition for partition in partitions if partition.topic != CLUSTER_METADATA)
    for partition in islice(telling, INDEXES_LOOKED_AT):
        _add_index(logs, partition)
    return logs


def _high_watermarks(directory: DataDirectory, damages: list[Damage]) -> Mapping[TopicPartition, int]:
    if HIGH_WATERMARKS not in directory.files:
        return {}
    try:
        return decode_offset_checkpoint(directory.files[HIGH_WATERMARKS](), f"{directory.shown_path}/{HIGH_WATERMARKS}")
    except OffsetsLogError as error:
        damages.append(Damage(error, b""))
        return {}


def _add_log(logs: _Logs, partition: CopiedPartition, noted: Mapping[TopicPartition, int]) -> None:
    ends: LogEnds | None = find_log_ends(partition)
    if ends is None:
        return
    key = partition.topic, partition.partition
    if key in noted:
        logs.noted += 1
        logs.behind += ends.log_end_offset > noted[key]
    if ends.newest_timestamp_ms is not None:
        name = partition.topic if partition.topic in INTERNAL_TOPICS else OTHER_TOPICS
        logs.newest[name] = max(logs.newest.get(name, 0), ends.newest_timestamp_ms)


def _add_index(logs: _Logs, partition: CopiedPartition) -> None:
    """Note whether the last entry of the active index is one that nobody wrote."""
    try:
        bases = partition.base_offsets()
        with partition.open_index(bases[-1]) if bases else nullcontext(NO_PIECES) as index:
            if index.size_bytes:
                last = index.read_at(max(index.size_bytes - _INDEX_ENTRY_BYTES, 0), _INDEX_ENTRY_BYTES)
                logs.indexes += 1
                logs.with_room += len(last) == _INDEX_ENTRY_BYTES and not any(last)
    except OffsetsLogError:
        return  # `_add_log` counts what cannot be read


_INDEX_ENTRY_BYTES = 8


def given_in_words(identities: Iterable[Identity]) -> str:
    """Return how many directories of how many brokers there are."""
    found = list(identities)
    nodes = {(one.cluster_id, one.node_id) for one in found if one.node_id is not None}
    clusters = {one.cluster_id for one in found if one.cluster_id is not None}
    words = counted(len(found), "data directory", "data directories")
    if nodes:
        words += f" of {counted(len(nodes), 'broker')}"
    return words + (f" of {counted(len(clusters), 'cluster')}" if clusters else "")
