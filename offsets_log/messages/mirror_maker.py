"""Records of MirrorMaker 2's own topics: offset syncs, checkpoints, heartbeats. They are the same in 2.4 to 4.3.

Their keys begin with no record type, and the values of offset syncs with no version: the topic's name says what its
records are. Integers are big-endian, strings have an int16 length, nothing is flexible.

References: ``connect/mirror/.../OffsetSync.java``, ``connect/mirror-client/.../Checkpoint.java``, ``Heartbeat.java``,
``DefaultReplicationPolicy.java``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from offsets_log.errors import CorruptRecordError, UnsupportedVersionError
from offsets_log.log_format import primitives
from offsets_log.messages.registry import INT16, KeyAndValue, value_version_of
from offsets_log.messages.schema import INT32, INT64, STRING, Field, Message


@dataclass(frozen=True, slots=True, eq=False)
class MirrorMakerTopic:
    """One of these topics: the name of its records, their tables, and whether an int16 version 0 precedes values."""

    name: str
    pattern: re.Pattern[str]
    key: Message
    value: Message
    has_version: bool = True


OFFSET_SYNCS = MirrorMakerTopic(
    "OffsetSync",
    re.compile(r"mm2-offset-syncs[._-]+.+[._-]+internal"),
    Message("OffsetSyncKey", (Field("topic", STRING), Field("partition", INT32))),
    Message("OffsetSyncValue", (Field("upstream_offset", INT64), Field("downstream_offset", INT64))),
    has_version=False,
)
"""The record of a source partition at ``upstream_offset`` was written to its target at ``downstream_offset``."""

CHECKPOINTS = MirrorMakerTopic(
    "Checkpoint",
    re.compile(r".+[._-]+checkpoints[._-]+internal"),
    Message("CheckpointKey", (Field("group", STRING), Field("topic", STRING), Field("partition", INT32))),
    Message(
        "CheckpointValue",
        (Field("upstream_offset", INT64), Field("downstream_offset", INT64), Field("metadata", STRING)),
    ),
)
"""What a group committed in the source, and MirrorMaker's translation of it; the key has the target's topic."""

HEARTBEATS = MirrorMakerTopic(
    "Heartbeat",
    re.compile(r"(.+[.])?heartbeats"),
    Message("HeartbeatKey", (Field("source_cluster_alias", STRING), Field("target_cluster_alias", STRING))),
    Message("HeartbeatValue", (Field("timestamp", INT64),)),
)

MIRROR_MAKER_TOPICS = (OFFSET_SYNCS, CHECKPOINTS, HEARTBEATS)


def mirror_maker_topic(name: str) -> MirrorMakerTopic | None:
    """Return which of these topics one of that name is, whatever separator it was named with; None for another."""
    return next((topic for topic in MIRROR_MAKER_TOPICS if topic.pattern.fullmatch(name)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorMakerRecord(KeyAndValue):
    """A decoded key and value of one of these topics; ``value_version`` is None also where values have none."""

    topic: MirrorMakerTopic

    @property
    def name(self) -> str:
        """The name of MirrorMaker's class."""
        return self.topic.name

    @property
    def record_type(self) -> None:
        """Nothing: keys of these topics begin with no number."""
        return

    def key_json(self) -> dict[str, Any]:
        """Return the key as JSON."""
        return self.topic.key.to_json(self.key, 0)

    def value_json(self) -> dict[str, Any] | None:
        """Return the value as JSON; None for a tombstone."""
        return None if self.value is None else self.topic.value.to_json(self.value, 0)


def decode_mirror_maker_record(topic: MirrorMakerTopic, key: bytes | None, value: bytes | None) -> MirrorMakerRecord:
    """Decode a record of one of these topics.

    Raises:
        CorruptRecordError, UnsupportedVersionError: with the field's path.
    """
    if key is None:
        raise CorruptRecordError("the key is null", field="key")
    key_fields, key_trailing = primitives.parse_prefix(topic.key.struct(0), key, "key")
    if value is None:
        return MirrorMakerRecord(topic=topic, key=key_fields, key_trailing=key_trailing)
    version = None
    if topic.has_version:
        version, value = _version_of(topic, value), value[INT16.size :]
    fields, value_trailing = primitives.parse_prefix(topic.value.struct(0), value, "value")
    return MirrorMakerRecord(
        topic=topic,
        key=key_fields,
        value_version=version,
        value=fields,
        layout=topic.value,
        key_trailing=key_trailing,
        value_trailing=value_trailing,
    )


def encode_mirror_maker_record(record: MirrorMakerRecord) -> tuple[bytes, bytes | None]:
    """Encode a record, the inverse of `decode_mirror_maker_record`: return key and value, byte for byte."""
    topic = record.topic
    key = primitives.build(topic.key.struct(0), record.key, "key") + record.key_trailing
    if record.value is None:
        return key, None
    version = INT16.pack(0) if topic.has_version else b""
    return key, version + primitives.build(topic.value.struct(0), record.value, "value") + record.value_trailing


def _version_of(topic: MirrorMakerTopic, value: bytes) -> int:
    version = value_version_of(value)
    if version is None:
        raise CorruptRecordError(f"{len(value)} bytes are too few for the value version", field="value")
    if version != 0:
        raise UnsupportedVersionError(f"{topic.name} has no known value version {version}", field="value")
    return version
