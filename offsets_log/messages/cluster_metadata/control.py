"""Control records of the metadata log: elections, the ends of snapshots, and who votes.

References: ``clients/.../LeaderChangeMessage.json``, ``SnapshotHeaderRecord.json``, ``SnapshotFooterRecord.json``,
``KRaftVersionRecord.json``, ``VotersRecord.json``, ``ControlRecordUtils.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format import primitives as p
from offsets_log.messages.schema import INT16, INT32, INT64, STRING, UINT16, UUID, ArrayOf, Field, Message, Struct

VOTER = Struct((Field("voter_id", INT32), Field("voter_directory_id", UUID, "1+")))

LEADER_CHANGE_MESSAGE = Message(
    "LeaderChangeMessage",
    (
        Field("version", INT16),
        Field("leader_id", INT32),
        Field("voters", ArrayOf(VOTER)),
        Field("granting_voters", ArrayOf(VOTER)),
    ),
    versions="0-1",
    flexible="0+",
)

SNAPSHOT_HEADER_RECORD = Message(
    "SnapshotHeaderRecord", (Field("version", INT16), Field("last_contained_log_timestamp", INT64)), flexible="0+"
)

SNAPSHOT_FOOTER_RECORD = Message("SnapshotFooterRecord", (Field("version", INT16),), flexible="0+")

K_RAFT_VERSION_RECORD = Message(
    "KRaftVersionRecord", (Field("version", INT16), Field("k_raft_version", INT16)), flexible="0+"
)

VOTER_END_POINT = Struct((Field("name", STRING), Field("host", STRING), Field("port", UINT16)))
K_RAFT_VERSION_FEATURE = Struct((Field("min_supported_version", INT16), Field("max_supported_version", INT16)))
VOTERS_RECORD = Message(
    "VotersRecord",
    (
        Field("version", INT16),
        Field(
            "voters",
            ArrayOf(
                Struct(
                    (
                        Field("voter_id", INT32),
                        Field("voter_directory_id", UUID),
                        Field("endpoints", ArrayOf(VOTER_END_POINT)),
                        Field("k_raft_version_feature", K_RAFT_VERSION_FEATURE),
                    )
                )
            ),
        ),
    ),
    flexible="0+",
)

CONTROL_MESSAGES = {
    "LEADER_CHANGE": LEADER_CHANGE_MESSAGE,
    "SNAPSHOT_HEADER": SNAPSHOT_HEADER_RECORD,
    "SNAPSHOT_FOOTER": SNAPSHOT_FOOTER_RECORD,
    "KRAFT_VERSION": K_RAFT_VERSION_RECORD,
    "KRAFT_VOTERS": VOTERS_RECORD,
}
"""Type of a control record, as `log_format.record.control_type` calls it → its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlMessage:
    """The value of a control record.

    Attributes:
        type: one of `CONTROL_MESSAGES`.
        version: of the layout, which the value's own first field names.
        fields: the value's fields.
        trailing: bytes behind the last field.
    """

    type: str
    version: int
    fields: dict[str, Any]
    trailing: bytes = b""

    def to_json(self) -> dict[str, Any]:
        """Return the value as Kafka's JSON."""
        return CONTROL_MESSAGES[self.type].to_json(self.fields, self.version)


def decode_control_message(type_name: str, value: bytes | None) -> ControlMessage:
    """Decode the value of a control record, of the version that its first field names.

    As in Kafka, one newer than all that are known is read as the newest.

    Raises:
        CorruptRecordError: it does not parse, or its version is negative.
    """
    message, data = CONTROL_MESSAGES[type_name], value or b""
    named, _ = p.parse_prefix(p.INT16, data, "control.value.version")
    if named < 0:
        raise CorruptRecordError(f"the version is {named}", field="control.value.version")
    version = min(named, int(message.versions.rpartition("-")[2]))
    fields, trailing = p.parse_prefix(message.struct(version), data, "control.value")
    return ControlMessage(type=type_name, version=version, fields=fields, trailing=trailing)


def encode_control_message(message: ControlMessage) -> bytes:
    """Encode a message, the inverse of `decode_control_message`."""
    struct = CONTROL_MESSAGES[message.type].struct(message.version)
    return p.build(struct, message.fields, "control.value") + message.trailing
