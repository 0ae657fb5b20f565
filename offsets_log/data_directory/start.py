"""A broker's start over its data directories, before it loads a log: does it start, and which folders does it keep?

A broker looks at ``meta.properties`` first, then at the metadata log's folder, then lists each directory: every folder
in it is a partition's, or the start ends. Whatever `LogManager` throws while it loads ends the start; what it cannot
read takes a directory offline, which ends it too where that is the only one, or holds the metadata log. Folders whose
topic id is not in the cluster's metadata are renamed, and partitions made again in their place (``ST-1`` … ``ST-7``).

What is missing is judged only of directories that are whole: a copy of some folders says nothing about the others.

References: ``MetaPropertiesEnsemble.java``, ``KafkaRaftServer.scala``, ``LogManager.java``, ``LocalLog.java``
(``parseTopicPartitionName``), ``LogLoader.java``, ``PartitionMetadataFile.java``, ``CheckpointFile.java``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from offsets_log.broker.failures import ENDS_START, SERVES_NOTHING, TAKES_OFFLINE, StartError
from offsets_log.data_directory.checkpoints import (
    NotNumbersError,
    decode_leader_epoch_checkpoint,
    decode_offset_checkpoint,
)
from offsets_log.data_directory.directory import DataDirectory, identify
from offsets_log.data_directory.identity import MetaProperties, decode_partition_metadata, decode_quorum_state
from offsets_log.data_directory.start_folders import (
    JAVA_LONG,
    METADATA_FOLDER,
    Check,
    Directories,
    files_of_none,
    folders_of_none,
    is_of_kraft,
    partition_of,
    same_partitions,
    topic_id_in,
    unknown_replica,
)
from offsets_log.data_directory.texts import lines_of
from offsets_log.errors import CorruptFileError, Damage, OffsetsLogError
from offsets_log.log_format.file_names import (
    BOOTSTRAP,
    CLEANED_UNTIL,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
)
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.segment import Buffer, iter_batches

if TYPE_CHECKING:
    from offsets_log.data_directory.metadata_log import MetadataReplay

Version = tuple[int, ...]
FIRST_KRAFT = (3, 3)
"""The first release whose brokers may run without ZooKeeper in production."""
ALL_KRAFT = (4, 0)
"""The first release whose brokers know no ZooKeeper."""
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
RESERVED_IDS = 100
"""How many of the lowest directory ids name no directory (``DirectoryId.java``)."""

_JAVA_INT = re.compile(r"[+-]?[0-9]{1,10}")


class BrokerStart:
    """The start of one broker.

    Args:
        directories: its data directories, as far as they were given.
        metadata: what the cluster's metadata beside them says; None where it is not here, cannot be read whole, or is
            not to be asked.
    """

    def __init__(self, directories: Sequence[DataDirectory], metadata: MetadataReplay | None) -> None:
        self._directories = directories
        self._metadata = metadata

    def error(self, directory: DataDirectory, topic: str, partition: int, release: Version) -> StartError | None:
        """Return why a broker of a release serves nothing of a partition's folder; None where it may."""
        return self._refusal(directory, release) or self._aside(directory, topic, partition, release)

    def _refusal(self, directory: DataDirectory, release: Version) -> StartError | None:
        """Return what ends the start, or takes this directory offline; None where the broker serves from it."""
        is_kraft = self._is_kraft(release)
        met = [(own, error) for own, error in self._met if is_kraft or error.rule not in KRAFT_RULES]
        ending = next((error for _, error in met if error.effect == ENDS_START), None)
        offline = {id(own): error for own, error in reversed(met) if error.effect == TAKES_OFFLINE}
        if ending is not None:
            return ending
        keeps_metadata = [one for one in self._directories if one.has_folder(METADATA_FOLDER)]
        if len(offline) == len(self._directories) or any(id(one) in offline for one in keeps_metadata):
            return next(iter(offline.values())).with_effect(ENDS_START)
        if id(directory) in offline:
            return offline[id(directory)].with_effect(SERVES_NOTHING)
        return next((error for own, error in met if own is directory), None)

    def _aside(self, directory: DataDirectory, topic: str, partition: int, release: Version) -> StartError | None:
        """Return why a partition's folder is renamed ``-stray``, and an empty partition takes its place (``ST-7``)."""
        if not self._is_kraft(release):
            return None
        name = f"{topic}-{partition}"
        folder = next((one for one in directory.folders if one.name == name), None)
        if folder is None:
            return None
        file = f"{directory.shown_path}/{name}/{PARTITION_METADATA}"
        if folder.topic_id is None and not any(
            one.topic_id for one in directory.folders if one.name != METADATA_FOLDER
        ):
            if not any(map(is_of_kraft, self._directories)):
                return None  # a copy of logs alone, which tells nothing of the original
            return StartError(
                f"this copy lacks {PARTITION_METADATA} in all its folders: a broker started on it would rename them to "
                "…-stray and begin empty partitions",
                rule="ST-7",
                file=directory.shown_path,
                do=f"the original may have these files: copy them too, or {self._give_id(topic)}",
                effect=SERVES_NOTHING,
            )
        if folder.topic_id is None:
            problem, do = f"{name} has no {PARTITION_METADATA}", self._give_id(topic)
        else:
            found = topic_id_in(folder.topic_id, file)
            unknown = found and unknown_replica(self._metadata, found, topic, partition, identify(directory).node_id)
            if not unknown:
                return None
            problem, do = unknown, self._give_id(topic)
        return StartError(
            f"{problem}: the broker renames the folder to {name}.…-stray and begins an empty partition",
            rule="ST-7",
            file=file,
            do=do,
            effect=SERVES_NOTHING,
        )

    def _is_kraft(self, release: Version) -> bool:
        return release >= ALL_KRAFT or (release >= FIRST_KRAFT and any(map(is_of_kraft, self._directories)))

    def _give_id(self, topic: str) -> str:
        image = None if self._metadata is None else self._metadata.image.topic_named(topic)
        known = f", which is {image.topic_id}" if image is not None else ""
        return f"write {PARTITION_METADATA} with the topic id that the cluster's metadata has{known}"

    @cached_property
    def _met(self) -> list[tuple[DataDirectory, StartError]]:
        """What is met, in a broker's order, each with the directory in which."""
        return [
            (directory, error)
            for check in CHECKS
            for directory in self._directories
            for error in check(self._directories, directory, self._metadata)
        ]


# ---------------------------------------------------------------------------------------- what is met, in order


def _identity(_: Directories, directory: DataDirectory, metadata: MetadataReplay | None) -> Iterator[StartError]:
    """Yield what is wrong with ``meta.properties`` (``ST-1``)."""
    file = f"{directory.shown_path}/{META_PROPERTIES}"
    identity = identify(directory)
    problem = None
    if identity.damage is not None:
        problem = identity.damage.error.problem
    elif identity.meta is None:
        if directory.has_folder(METADATA_FOLDER):
            problem = "it is missing"
    elif is_of_kraft(directory):
        problem = _no_kraft_identity(identity.meta, metadata)
    if problem is not None:
        yield StartError(
            f"{META_PROPERTIES}: {problem}",
            rule="ST-1",
            file=file,
            do=f"bring {META_PROPERTIES} of this broker: node.id, cluster.id, directory.id and version=1, as formatted",
        )


def _no_kraft_identity(meta: MetaProperties, metadata: MetadataReplay | None) -> str | None:
    node_id, cluster_id, directory_id = meta.node_id, meta.cluster_id, meta.directory_id
    if node_id is None:
        return "it names no node.id"
    if cluster_id is None:
        return "it names no cluster.id"
    if directory_id is not None and directory_id[:8] == bytes(8) and int.from_bytes(directory_id) < RESERVED_IDS:
        return f"its directory.id {directory_id} is a reserved one, which names no directory"
    known = set() if metadata is None else {*metadata.image.brokers, *metadata.image.controllers, *metadata.voters}
    if known and node_id not in known:
        return (
            f"it is of node {node_id}, and the cluster's metadata beside it knows {', '.join(map(str, sorted(known)))}"
        )
    return None


def _metadata_log(all_of: Directories, directory: DataDirectory, _: MetadataReplay | None) -> Iterator[StartError]:
    """Yield what keeps the metadata log from opening, and a second one (``ST-2``)."""
    holders = [one for one in all_of if one.has_folder(METADATA_FOLDER)]
    if directory not in holders:
        return
    place = f"{directory.shown_path}/{METADATA_FOLDER}"
    if directory is not holders[0]:
        yield StartError(
            f"{METADATA_FOLDER} is in {holders[0].shown_path} too", rule="ST-2", file=place, do="remove one of the two"
        )
    folder = next(one for one in directory.folders if one.name == METADATA_FOLDER)
    found = None if folder.topic_id is None else topic_id_in(folder.topic_id, place)
    if found not in (None, METADATA_TOPIC_ID):
        file = f"{place}/{PARTITION_METADATA}"
        problem = f"the topic id {found} is not that of the metadata log, {METADATA_TOPIC_ID}"
        yield StartError(problem, rule="ST-2", file=file, do="remove the file: the broker writes it again")
    if folder.quorum_state is not None:
        file = f"{place}/quorum-state"
        try:
            decode_quorum_state(folder.quorum_state(), file)
        except OffsetsLogError as error:
            do = "remove the file: the broker asks its quorum again"
            yield StartError(f"quorum-state: {error.problem}", rule="ST-2", file=file, do=do)


def _bootstrap(_: Directories, directory: DataDirectory, __: MetadataReplay | None) -> Iterator[StartError]:
    """Yield a ``bootstrap.checkpoint`` that is no row of batches (``ST-2``)."""
    if directory.read_bootstrap is None:
        return
    file = f"{directory.shown_path}/{BOOTSTRAP}"
    try:
        damaged = [item for item in iter_batches(directory.read_bootstrap(), is_last=False) if isinstance(item, Damage)]
        problem = damaged[0].error.problem if damaged else None
    except OffsetsLogError as error:
        problem = error.problem
    if problem is not None:
        yield StartError(
            f"{BOOTSTRAP}: {problem}", rule="ST-2", file=file, do="remove the file: only a first start needs it"
        )


def _topic_ids(_: Directories, directory: DataDirectory, __: MetadataReplay | None) -> Iterator[StartError]:
    """Yield each ``partition.metadata`` that cannot be read (``ST-6``)."""
    for folder in directory.folders:
        if folder.topic_id is None or partition_of(folder.name) is None:
            continue
        file = f"{directory.shown_path}/{folder.name}/{PARTITION_METADATA}"
        try:
            data = folder.topic_id()
            decode_partition_metadata(data, file)
        except OffsetsLogError as error:
            yield StartError(
                f"{PARTITION_METADATA} of {folder.name}: {error.problem}",
                rule="ST-6",
                file=file,
                do=f"write it with the topic's id, or remove it: then the broker puts {folder.name} aside",
                effect=ENDS_START if isinstance(error, CorruptFileError) and _throws(data, file) else TAKES_OFFLINE,
            )


def _throws(metadata: Buffer, file: str) -> bool:
    """Whether reading a ``partition.metadata`` ends in an exception that nobody catches, not in an ``IOException``."""
    try:
        lines = lines_of(metadata, file)
    except OffsetsLogError:
        return False
    if not lines:
        return True
    version = re.split(r":\s+", lines[0])
    if len(version) != 2 or not _JAVA_INT.fullmatch(version[1]) or int(version[1]) < 0:
        return False
    if len(lines) == 1:
        return True
    topic_id = re.split(r":\s+", lines[1])
    return len(topic_id) == 2 and topic_id[1] != str(Uuid(bytes(16)))


NUMBERS_LOST = {RECOVERY_POINTS: None, LOG_STARTS: None, CLEANED_UNTIL: None, HIGH_WATERMARKS: SERVES_NOTHING}
"""Checkpoint → what comes of lines in it whose numbers are none; None where the broker passes the file over."""


def _checkpoints(_: Directories, directory: DataDirectory, __: MetadataReplay | None) -> Iterator[StartError]:
    """Yield each checkpoint that cannot be read (``ST-5``)."""
    for name, effect in NUMBERS_LOST.items():
        if name not in directory.files:
            continue
        file = f"{directory.shown_path}/{name}"
        try:
            decode_offset_checkpoint(directory.files[name](), file)
        except OffsetsLogError as error:
            found = effect if isinstance(error, NotNumbersError) else TAKES_OFFLINE
            if found is not None:
                yield StartError(f"{name}: {error.problem}", rule="ST-5", file=file, do=_REMOVE, effect=found)


def _leader_epochs(_: Directories, directory: DataDirectory, __: MetadataReplay | None) -> Iterator[StartError]:
    """Yield each ``leader-epoch-checkpoint`` that cannot be read (``ST-5``)."""
    for folder in directory.folders:
        if folder.leader_epochs is None or partition_of(folder.name) is None:
            continue
        file = f"{directory.shown_path}/{folder.name}/{LEADER_EPOCHS}"
        try:
            decode_leader_epoch_checkpoint(folder.leader_epochs(), file)
        except OffsetsLogError as error:
            problem = f"{LEADER_EPOCHS} of {folder.name}: {error.problem}"
            is_read = isinstance(error, CorruptFileError)
            effect = ENDS_START if is_read and _has_letters(folder.leader_epochs()) else TAKES_OFFLINE
            yield StartError(problem, rule="ST-5", file=file, do=_REMOVE, effect=effect)


def _has_letters(checkpoint: Buffer) -> bool:
    """Whether an entry of leader epochs has its two parts, and one of them is no number."""
    lines = [line.split() for line in bytes(checkpoint).decode(errors="replace").splitlines()[2:]]
    return any(len(line) == 2 and not all(map(JAVA_LONG.fullmatch, line)) for line in lines)


_REMOVE = "remove the file: the broker starts without it, and writes it again"

CHECKS: tuple[Check, ...] = (
    _identity,
    _bootstrap,
    _metadata_log,
    folders_of_none,
    files_of_none,
    _topic_ids,
    _leader_epochs,
    same_partitions,
    _checkpoints,
)
"""In the order in which a broker comes to them."""
KRAFT_RULES = frozenset({"ST-2", "ST-6"})
"""Rules that hold of brokers without ZooKeeper only."""
