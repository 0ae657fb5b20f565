"""A data directory's folders, and the files in them, by their names: what a broker's start takes them for.

Digits are those of any script, as ``Integer.parseInt`` reads them.

References: ``LogManager.java``, ``LocalLog.java`` (``parseTopicPartitionName``), ``LogLoader.java``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from offsets_log.broker.failures import ENDS_START, TAKES_OFFLINE, StartError
from offsets_log.data_directory.directory import DataDirectory, ListedFolder, Opener, identify
from offsets_log.data_directory.identity import decode_partition_metadata
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.internal_topics import CLUSTER_METADATA

if TYPE_CHECKING:
    from offsets_log.data_directory.metadata_log import MetadataReplay

Directories = Sequence[DataDirectory]
Check = Callable[[Directories, DataDirectory, "MetadataReplay | None"], Iterator[StartError]]

METADATA_FOLDER = f"{CLUSTER_METADATA}-0"
INDEX_CACHE = "remote-log-index-cache"

_LEFTOVER = re.compile(r"\S+-\S+\.\S+-(?:delete|future|stray)")
_NUMBERED = re.compile(r".*\.(?:log|index|timeindex|txnindex|snapshot|cleaned|swap)")
JAVA_LONG = re.compile(r"[+-]?\d{1,99}")


def is_of_kraft(directory: DataDirectory) -> bool:
    """Whether a directory is that of a broker without ZooKeeper."""
    meta = identify(directory).meta
    return directory.has_folder(METADATA_FOLDER) or (meta is not None and meta.version == 1)


def folders_of_none(_: Directories, directory: DataDirectory, __: MetadataReplay | None) -> Iterator[StartError]:
    """Yield folders that are no partition's (``ST-3``)."""
    for folder in directory.folders:
        place = f"{directory.shown_path}/{folder.name}"
        if folder.name == INDEX_CACHE:
            continue
        partition = partition_of(folder.name)
        if partition is None:
            problem, effect = f"the folder {folder.name} is none of a partition, TOPIC-N", ENDS_START
        elif folder.name.endswith("-future") and directory.has_folder("-".join(map(str, partition))):
            problem, effect = f"the folder {folder.name} is beside the one that it is to replace", TAKES_OFFLINE
        else:
            continue
        do = "move it out of the data directory"
        yield StartError(problem, rule="ST-3", file=place, do=do, effect=effect)


def partition_of(name: str) -> tuple[str, int] | None:
    """Return topic and partition of a folder's name, as ``LocalLog.parseTopicPartitionName`` reads it."""
    if name.endswith(("-delete", "-future", "-stray")):
        if not _LEFTOVER.fullmatch(name):
            return None
        name = name.rpartition(".")[0]
    topic, dash, number = name.rpartition("-")
    if not (dash and topic and JAVA_LONG.fullmatch(number) and -(1 << 31) <= int(number) < 1 << 31):
        return None
    return topic, int(number)


def files_of_none(_: Directories, directory: DataDirectory, __: MetadataReplay | None) -> Iterator[StartError]:
    """Yield files in partitions' folders whose names begin with no number (``ST-4``)."""
    for folder in directory.folders:
        if folder.name == INDEX_CACHE or partition_of(folder.name) is None:
            continue
        for name in folder.names:
            number = name.partition(".")[0]
            is_long = JAVA_LONG.fullmatch(number) and -(1 << 63) <= int(number) < 1 << 63
            if _NUMBERED.fullmatch(name) and not is_long:
                yield StartError(
                    f"the file {name} has the ending of a log's file and begins with no number",
                    rule="ST-4",
                    file=f"{directory.shown_path}/{folder.name}/{name}",
                    do="move it out of the folder",
                )


def topic_id_in(read: Opener, file: str) -> Uuid | None:
    """Return the topic id in a ``partition.metadata``; None where it cannot be read."""
    try:
        return decode_partition_metadata(read(), file)
    except OffsetsLogError:
        return None


def unknown_replica(
    metadata: MetadataReplay | None, topic_id: Uuid, topic: str, partition: int, node_id: int | None
) -> str | None:
    """Return why the metadata does not have this replica; None where it does, or where there is none to ask."""
    if metadata is None:
        return None
    image = metadata.image.topics.get(topic_id)
    known = None if image is None else image.partitions.get(partition)
    if known is None:
        return f"the topic id of {topic}-{partition}, {topic_id}, is not the one that the cluster's metadata has"
    if node_id is not None and node_id not in known.replicas:
        replicas = ", ".join(map(str, known.replicas))
        return f"the cluster's metadata has {topic}-{partition} on {replicas}, and this is broker {node_id}"
    return None


def same_partitions(
    all_of: Directories, directory: DataDirectory, metadata: MetadataReplay | None
) -> Iterator[StartError]:
    """Yield each partition that a directory has in a second folder, or in a later directory too (``ST-8``)."""
    held: dict[tuple[str, int, bool], list[tuple[DataDirectory, ListedFolder]]] = {}
    for own in all_of:
        for folder in own.folders:
            partition = partition_of(folder.name)
            if partition is not None and not folder.name.endswith(("-delete", "-stray")):
                held.setdefault((*partition, folder.name.endswith("-future")), []).append((own, folder))
    for (topic, partition_id, _), holders in held.items():
        first: dict[Uuid | None, str] = {}
        for own, folder in holders if len(holders) > 1 and topic != CLUSTER_METADATA else ():
            place = f"{own.shown_path}/{folder.name}"
            is_kept, topic_id = _kept(own, folder, topic, partition_id, metadata)
            if is_kept and first.setdefault(topic_id, place) != place and own is directory:
                yield StartError(
                    f"{topic}-{partition_id} is in {first[topic_id]} and in {place}",
                    rule="ST-8",
                    file=place,
                    do="move one of the two out of the data directories, the one that ends earlier",
                )


def _kept(
    directory: DataDirectory, folder: ListedFolder, topic: str, partition: int, metadata: MetadataReplay | None
) -> tuple[bool, Uuid | None]:
    """Return whether a broker takes a folder for its partition's, and the topic id, which decides it (``ST-7``)."""
    if not is_of_kraft(directory):
        return True, None
    topic_id = None if folder.topic_id is None else topic_id_in(folder.topic_id, folder.name)
    if topic_id is None:
        return False, None
    return unknown_replica(metadata, topic_id, topic, partition, identify(directory).node_id) is None, topic_id
