"""Decode user data of the sticky assignors in a consumer's subscription.

`StickyAssignor` writes no version: the generation after the list (2.3) is the only difference.
`CooperativeStickyAssignor` writes the generation alone, from 2.8.

References: ``clients/consumer/StickyAssignor.java``, ``CooperativeStickyAssignor.java``.
"""

from __future__ import annotations

from typing import Any

from offsets_log.errors import CorruptRecordError
from offsets_log.messages.consumer_protocol import TOPIC_PARTITIONS, Embedded, EmbeddedMessage, decode_body
from offsets_log.messages.schema import INT32, ArrayOf, Field

STICKY_USER_DATA = EmbeddedMessage(
    "StickyUserData",
    (
        Field("previous_assignment", ArrayOf(TOPIC_PARTITIONS)),
        Field("generation", INT32, "1"),
    ),
    versions="0-1",
    number=None,
)

COOPERATIVE_STICKY_USER_DATA = EmbeddedMessage(
    "CooperativeStickyUserData", (Field("generation", INT32),), versions="0", number=None
)


def decode_sticky(data: bytes, root: str = "user_data") -> Embedded:
    """Decode as version 1 if it parses, else as version 0.

    Raises:
        CorruptRecordError: neither parses; the error is that of version 0.
    """
    try:
        return decode_body(STICKY_USER_DATA, 1, data, root)
    except CorruptRecordError:
        return decode_body(STICKY_USER_DATA, 0, data, root)


def sticky_json(user_data: Embedded) -> dict[str, Any]:
    """Return partitions by topic, in wire order, and the generation if there is one, as JSON."""
    fields = user_data.fields
    previous: dict[str, list[int]] = {}
    for row in fields["previous_assignment"]:
        previous.setdefault(row["topic"], []).extend(row["partitions"])
    json: dict[str, Any] = {"previous_assignment": previous}
    return json | {"generation": fields["generation"]} if user_data.version else json


def decode_cooperative_sticky(data: bytes, root: str = "user_data") -> Embedded:
    """Decode a generation and nothing else.

    Raises:
        CorruptRecordError: there are not exactly four bytes.
    """
    user_data = decode_body(COOPERATIVE_STICKY_USER_DATA, 0, data, root)
    if user_data.trailing:
        raise CorruptRecordError(f"it has {len(data)} bytes, not 4", field=root)
    return user_data
