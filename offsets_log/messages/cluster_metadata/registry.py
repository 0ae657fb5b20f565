"""The frame of metadata records, and from the number in it to a table.

A record's key is null. Its value is a frame version (1), an API key and a version, each an unsigned varint, and the
fields of that version; bytes behind them are an error.

References: ``AbstractApiMessageSerde.java``, ``MetadataRecordSerde.java``, ``MetadataRecordType.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from offsets_log.errors import CorruptRecordError, UnsupportedVersionError
from offsets_log.log_format import primitives as p
from offsets_log.messages.cluster_metadata import nodes, security, settings, topics
from offsets_log.messages.schema import Message

FRAME_VERSION = 1
FRAME = p.PlainStruct("frame_version" / p.UVARINT, "api_key" / p.UVARINT, "version" / p.UVARINT)
MOST_VERSION = 0x7FFF

METADATA_RECORDS: dict[int, Message] = {
    0: nodes.REGISTER_BROKER_RECORD,
    1: nodes.UNREGISTER_BROKER_RECORD,
    2: topics.TOPIC_RECORD,
    3: topics.PARTITION_RECORD,
    4: settings.CONFIG_RECORD,
    5: topics.PARTITION_CHANGE_RECORD,
    7: nodes.FENCE_BROKER_RECORD,
    8: nodes.UNFENCE_BROKER_RECORD,
    9: topics.REMOVE_TOPIC_RECORD,
    10: security.DELEGATION_TOKEN_RECORD,
    11: security.USER_SCRAM_CREDENTIAL_RECORD,
    12: settings.FEATURE_LEVEL_RECORD,
    14: settings.CLIENT_QUOTA_RECORD,
    15: nodes.PRODUCER_IDS_RECORD,
    17: nodes.BROKER_REGISTRATION_CHANGE_RECORD,
    18: security.ACCESS_CONTROL_ENTRY_RECORD,
    19: security.REMOVE_ACCESS_CONTROL_ENTRY_RECORD,
    20: settings.NO_OP_RECORD,
    21: settings.ZK_MIGRATION_STATE_RECORD,
    22: security.REMOVE_USER_SCRAM_CREDENTIAL_RECORD,
    23: settings.BEGIN_TRANSACTION_RECORD,
    24: settings.END_TRANSACTION_RECORD,
    25: settings.ABORT_TRANSACTION_RECORD,
    26: security.REMOVE_DELEGATION_TOKEN_RECORD,
    27: nodes.REGISTER_CONTROLLER_RECORD,
    28: topics.CLEAR_ELR_RECORD,
    29: nodes.UNREGISTER_CONTROLLER_RECORD,
}
"""API key → table: all that 4.4 has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRecord:
    """A decoded value.

    Attributes:
        api_key: the number in the frame.
        version: of the fields.
        fields: None of a record that no table describes.
        raw: of such a record the bytes behind the frame, else empty.
        frame: the frame where it is longer than it need be, else empty.
    """

    api_key: int
    version: int
    fields: dict[str, Any] | None = None
    raw: bytes = b""
    frame: bytes = b""

    @property
    def name(self) -> str:
        """Kafka's name of the record; of an API key that is not known its number."""
        message = METADATA_RECORDS.get(self.api_key)
        return message.name if message is not None else f"API key {self.api_key}"

    @property
    def is_known(self) -> bool:
        """Whether there are fields."""
        return self.fields is not None

    def to_json(self) -> dict[str, Any] | None:
        """Return the fields as Kafka's JSON, secrets redacted; None where there are none: bytes may hold secrets."""
        return None if self.fields is None else METADATA_RECORDS[self.api_key].to_json(self.fields, self.version)


def decode_metadata_record(value: bytes | None) -> MetadataRecord:
    """Decode a record of ``__cluster_metadata``. One of an unknown API key or version is kept as bytes.

    Raises:
        CorruptRecordError: no value, no frame, or fields that do not fill it.
        UnsupportedVersionError: another frame, such as that of the preview in 2.8.
    """
    if value is None:
        raise CorruptRecordError("the value is null", field="value")
    frame, body = p.parse_prefix(FRAME, value, "value")
    if frame["frame_version"] != FRAME_VERSION:
        raise UnsupportedVersionError(f"the frame has version {frame['frame_version']}", field="value.frame_version")
    api_key, version = frame["api_key"], frame["version"]
    if api_key > MOST_VERSION or version > MOST_VERSION:
        raise CorruptRecordError(f"API key {api_key}, version {version} are out of range", field="value")
    head = value[: len(value) - len(body)]
    odd_frame = b"" if head == _frame(api_key, version) else head
    message = METADATA_RECORDS.get(api_key)
    if message is None or not message.has_version(version):
        return MetadataRecord(api_key=api_key, version=version, raw=body, frame=odd_frame)
    fields = p.parse_exactly(message.struct(version), body, "value")
    return MetadataRecord(api_key=api_key, version=version, fields=fields, frame=odd_frame)


def encode_metadata_record(record: MetadataRecord) -> bytes:
    """Encode a record, the inverse of `decode_metadata_record`, byte for byte."""
    frame = record.frame or _frame(record.api_key, record.version)
    if record.fields is None:
        return frame + record.raw
    return frame + p.build(METADATA_RECORDS[record.api_key].struct(record.version), record.fields, "value")


def _frame(api_key: int, version: int) -> bytes:
    return p.build(FRAME, {"frame_version": FRAME_VERSION, "api_key": api_key, "version": version}, "value")
