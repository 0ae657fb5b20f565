"""Records of the other internal topics with coordinators: ``__transaction_state`` and ``__share_group_state``.

Their keys and values begin as those of ``__consumer_offsets`` do, with a record type and a version. Only the numbers
mean something else, so every topic has rows of its own.

References: ``TransactionLog.java``, ``TransactionCoordinatorRecordSerde.java``, ``ShareCoordinatorRecordSerde.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from offsets_log.messages import share_group_state as ss
from offsets_log.messages.internal_topics import SHARE_GROUP_STATE, TRANSACTION_STATE
from offsets_log.messages.mirror_maker import MirrorMakerRecord, decode_mirror_maker_record, mirror_maker_topic
from offsets_log.messages.registry import (
    KeyAndValue,
    RecordType,
    decode_value,
    encode_key_and_value,
    read_key,
)
from offsets_log.messages.transaction_log import TRANSACTION_LOG_KEY, TRANSACTION_LOG_VALUE

STATE_RECORD_TYPES: Mapping[str, Mapping[int, RecordType]] = {
    TRANSACTION_STATE: {0: RecordType(0, "TransactionLog", TRANSACTION_LOG_KEY, (TRANSACTION_LOG_VALUE,))},
    SHARE_GROUP_STATE: {
        0: RecordType(0, "ShareSnapshot", ss.SHARE_SNAPSHOT_KEY, (ss.SHARE_SNAPSHOT_VALUE,)),
        1: RecordType(1, "ShareUpdate", ss.SHARE_UPDATE_KEY, (ss.SHARE_UPDATE_VALUE,)),
    },
}
"""Topic → number in the key → its tables."""


def is_decoded_topic(name: str) -> bool:
    """Whether records of a topic of that name can be decoded: one of the above, or one of MirrorMaker's."""
    return name in STATE_RECORD_TYPES or mirror_maker_topic(name) is not None


def decode_topic_record(topic: str, key: bytes | None, value: bytes | None) -> StateRecord | MirrorMakerRecord:
    """Decode a record of a topic of `is_decoded_topic`. Raises as `decode_state_record`."""
    of_mirror_maker = mirror_maker_topic(topic)
    if of_mirror_maker is not None:
        return decode_mirror_maker_record(of_mirror_maker, key, value)
    return decode_state_record(topic, key, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecord(KeyAndValue):
    """A decoded key and value of one of these topics.

    Attributes:
        type: the tables of this record type.
    """

    type: RecordType

    @property
    def name(self) -> str:
        """Kafka's name of the record type."""
        return self.type.name

    @property
    def record_type(self) -> int:
        """The number in the key."""
        return self.type.number

    def key_json(self) -> dict[str, Any]:
        """Return the key as Kafka's JSON."""
        return self.type.key.to_json(self.key, 0)


def decode_state_record(topic: str, key: bytes | None, value: bytes | None) -> StateRecord:
    """Decode a record of one of the topics of `STATE_RECORD_TYPES`.

    Raises:
        CorruptRecordError, UnknownRecordTypeError, UnsupportedVersionError: with the field's path.
    """
    row, key_fields, key_trailing = read_key(key, STATE_RECORD_TYPES[topic])
    if value is None:
        return StateRecord(type=row, key=key_fields, key_trailing=key_trailing)
    version, fields, layout, trailing = decode_value(row, value)
    return StateRecord(
        type=row,
        key=key_fields,
        value_version=version,
        value=fields,
        layout=layout,
        key_trailing=key_trailing,
        value_trailing=trailing,
    )


def encode_state_record(record: StateRecord) -> tuple[bytes, bytes | None]:
    """Encode a record, the inverse of `decode_state_record`: return key and value, byte for byte."""
    return encode_key_and_value(record.type, record)
