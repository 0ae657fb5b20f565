"""Whose a data directory is and how it was left: ``meta.properties``, ``partition.metadata``, ``quorum-state``,
``.kafka_cleanshutdown`` (``CL-51``).

References: ``MetaProperties.java``, ``PartitionMetadataFile.java``, ``FileQuorumStateStore.java``,
``CleanShutdownFileHandler.java``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from offsets_log.data_directory.texts import json_object, lines_of, number_in, refused, text_of
from offsets_log.errors import InputError, OffsetsLogError
from offsets_log.java_properties import parse_properties
from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import ZERO_UUID, Uuid
from offsets_log.log_format.segment import Buffer

QUORUM_STATE = "quorum-state"

_UUID = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?")
_COLON = re.compile(r":\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """Whose directory it is.

    Attributes:
        version: 1 with KRaft, 0 with ZooKeeper.
        cluster_id: None where it is not said.
        node_id: of the broker or controller; None where it is not said.
        directory_id: of this one of its directories, since 3.7; None before.
    """

    version: int
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: Uuid | None = None


def decode_meta_properties(data: Buffer, file: str) -> MetaProperties:
    """Decode a ``meta.properties``.

    Raises:
        CorruptFileError: it is no properties file, or a number or an id in it is none.
    """
    try:
        properties = parse_properties(text_of(data, file), file)
    except InputError as error:
        raise refused(error.problem, file) from None
    version = _number(properties, "version", file)
    if version not in (None, 0, 1):
        raise refused(f"the version is {version}; 0 and 1 are known", file)
    node = _number(properties, "node.id" if version == 1 else "broker.id", file)
    directory = properties.get("directory.id")
    return MetaProperties(
        version=version or 0,
        cluster_id=properties.get("cluster.id"),
        node_id=node,
        directory_id=None if directory is None else _uuid(directory, file, None),
    )


def _number(properties: Mapping[str, str], name: str, file: str) -> int | None:
    if name not in properties:
        return None
    number = number_in(properties[name], 32)
    if number is None:
        raise refused(f"{name} is {properties[name]!r}, which is no number", file)
    return number


def _uuid(text: str, file: str, line: int | None) -> Uuid:
    if not _UUID.fullmatch(text):
        raise refused(f"{text!r} is no id: 22 characters of URL-safe base64 were expected", file, line)
    return Uuid.from_text(text.rstrip("="))


def decode_partition_metadata(data: Buffer, file: str) -> Uuid:
    """Return the topic id in a ``partition.metadata``.

    Raises:
        CorruptFileError: with the line.
    """
    lines = lines_of(data, file)
    version = number_in(_after_colon(lines, 0, "version", file), 32)
    if version is None or version < 0:
        raise refused(f"{lines[0]!r} names no version", file, 1)
    topic_id = _uuid(_after_colon(lines, 1, "topic_id", file), file, 2)
    if topic_id == ZERO_UUID:
        raise refused("the topic id is zero", file, 2)
    return topic_id


def topic_id_of(files: Mapping[str, Callable[[], Buffer]]) -> str | None:
    """Return the topic id that a partition's files tell; None if none tells it, or it cannot be read."""
    read = files.get(PARTITION_METADATA)
    try:
        return None if read is None else str(decode_partition_metadata(read(), PARTITION_METADATA))
    except OffsetsLogError:
        return None


def of_topic(log: PartitionLog, topic_id: str | None) -> PartitionLog:
    """Return a log whose ``partition.metadata`` has a topic id, without a line end behind it (``CL-51``).

    Args:
        topic_id: None for what it says; without the file where that is nothing.
    """
    if topic_id is None:
        if topic_id_of(log.beside) is not None:
            return log
        return replace(log, beside={name: read for name, read in log.beside.items() if name != PARTITION_METADATA})
    metadata = f"version: 0\ntopic_id: {topic_id}".encode()
    return replace(log, beside={**log.beside, PARTITION_METADATA: lambda: metadata})


def _after_colon(lines: list[str], index: int, name: str, file: str) -> str:
    if index >= len(lines):
        raise refused(f"{name} is missing", file, index + 1)
    parts = _COLON.split(lines[index])
    if len(parts) != 2:  # a broker does not look at the names
        raise refused(f"{lines[index]!r} is not {name} with its value", file, index + 1)
    return parts[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """The last that a node knew of the metadata log's leader.

    Attributes:
        leader_id: −1 without one.
        voted_id: whom it voted for in this epoch, −1 for nobody.
        voted_directory_id: that one's directory, since ``kraft.version`` 1.
        voters: ids of those that vote; None where the log says it (``kraft.version`` 1).
        data_version: 0 or 1.
    """

    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: Uuid | None
    voters: tuple[int, ...] | None
    data_version: int


def decode_quorum_state(data: Buffer, file: str) -> QuorumState:
    """Decode a ``quorum-state``, of the folder of ``__cluster_metadata-0``.

    Raises:
        CorruptFileError: it is no such JSON.
    """
    found = json_object(data, file)
    version = _json_number(found, "data_version", file, None)
    if version not in (0, 1):
        raise refused(f"data_version is {version}; 0 and 1 are known", file)
    voters, directory = found.get("currentVoters"), found.get("votedDirectoryId")
    if voters is not None and not (isinstance(voters, list) and all(isinstance(voter, dict) for voter in voters)):
        raise refused("currentVoters is no list of voters", file)
    return QuorumState(
        leader_id=_json_number(found, "leaderId", file, -1),
        leader_epoch=_json_number(found, "leaderEpoch", file, -1),
        voted_id=_json_number(found, "votedId", file, -1),
        voted_directory_id=None if directory is None else _uuid(str(directory), file, None),
        voters=None if voters is None else tuple(_json_number(voter, "voterId", file, None) for voter in voters),
        data_version=version,
    )


def _json_number(found: Mapping[str, Any], name: str, file: str, default: int | None) -> int:
    number = found.get(name, default)
    if not isinstance(number, int) or isinstance(number, bool):
        raise refused(f"{name} is {number!r}, which is no number", file)
    return number


def decode_clean_shutdown(data: Buffer, file: str) -> int | None:
    """Return the broker epoch in a ``.kafka_cleanshutdown``; None in an empty one, as releases up to 3.6 leave it.

    That the file is there is what counts: the broker had stopped in order. Of its contents a broker believes nothing
    that it cannot read.

    Raises:
        CorruptFileError: it is neither empty nor such JSON.
    """
    if not len(data):
        return None
    return _json_number(json_object(data, file), "brokerEpoch", file, None)
