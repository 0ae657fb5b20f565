"""Decode the bytes of members with the decoder for their protocol type and protocol.

The results are JSON, for people (``decode --expand``). The decoders themselves are in
`consumer_protocol`, `sticky_user_data`, `streams_protocol` and `connect_protocol`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from offsets_log.errors import CorruptRecordError
from offsets_log.messages import connect_protocol, consumer_protocol
from offsets_log.messages import sticky_user_data as sticky
from offsets_log.messages import streams_protocol as streams
from offsets_log.messages.consumer_protocol import Embedded

Json = dict[str, Any]
Expand = Callable[[bytes, str], Json]

MAX_BRACKETS = 100
"""Limit of brackets: a Schema Registry identity has one or two, and Python's JSON parser recurses into each."""


def expand_subscription(protocol_type: str | None, protocol: str | None, data: bytes) -> Json | None:
    """Return a member's subscription (a Connect worker's metadata) as JSON; the bytes are kept by the caller.

    Returns:
        None for no bytes and for opaque protocol types; ``{"error": text}`` for bytes that do not parse
        (``records:E2``), also in place of user data that does not parse.
    """
    match protocol_type:
        case "consumer":
            user_data = _SUBSCRIPTION_USER_DATA.get(protocol or "")
            return _guarded(_consumer(consumer_protocol.decode_subscription, user_data), data, "subscription")
        case "connect":
            return _guarded(_connect_metadata, data, "subscription")
        case "sr":
            return _guarded(_json_object, data, "subscription")
    return None


def expand_assignment(protocol_type: str | None, protocol: str | None, data: bytes) -> Json | None:
    """Return a member's assignment as JSON, as `expand_subscription` does; None for no assignment (``records:E1``)."""
    match protocol_type:
        case "consumer":
            user_data = _ASSIGNMENT_USER_DATA.get(protocol or "")
            return _guarded(_consumer(consumer_protocol.decode_assignment, user_data), data, "assignment")
        case "connect":
            return _guarded(_connect_assignment, data, "assignment")
        case "sr":
            return _guarded(_json_object, data, "assignment")
    return None


def _guarded(expand: Expand, data: bytes | None, root: str) -> Json | None:
    if not data:
        return None
    try:
        return expand(data, root)
    except CorruptRecordError as error:
        return {"error": str(error)}


def _with(decode: Callable[[bytes, str], Embedded], to_json: Callable[[Embedded], Json]) -> Expand:
    def expand(data: bytes, root: str) -> Json:
        message = decode(data, root)
        return to_json(message) | _trailing(message)

    return expand


def _trailing(message: Embedded) -> Json:
    return {"trailing_hex": message.trailing.hex()} if message.trailing else {}


def _consumer(decode: Callable[[bytes, str], Embedded], user_data: Expand | None) -> Expand:
    def expand(data: bytes, root: str) -> Json:
        message = decode(data, root)
        result = {"version": message.version, **message.to_json(), **_trailing(message)}
        decoded = _guarded(user_data, message.fields["user_data"], f"{root}.user_data") if user_data else None
        return result if decoded is None else result | {"userDataDecoded": decoded}

    return expand


_connect_assignment = _with(connect_protocol.decode_assignment, connect_protocol.assignment_json)


def _connect_metadata(data: bytes, root: str) -> Json:
    metadata = connect_protocol.decode_metadata(data, root)
    result = connect_protocol.metadata_json(metadata)
    if metadata.version > 0:
        result["assignment"] = _guarded(_connect_assignment, metadata.fields.get("allocation"), f"{root}.allocation")
    return result | _trailing(metadata)


def _json_object(data: bytes, root: str) -> Json:
    """Parse Schema Registry's identities and assignments, which are JSON text (``SchemaRegistryProtocol``)."""
    if data.count(b"{") + data.count(b"[") > MAX_BRACKETS:
        raise CorruptRecordError(f"more than {MAX_BRACKETS} brackets", field=root)
    try:
        value = json.loads(data.decode())
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # refuses NaN and lone surrogates
    except ValueError as error:
        raise CorruptRecordError(f"it is not JSON: {error}", field=root) from None
    if not isinstance(value, dict):
        raise CorruptRecordError("it is not a JSON object", field=root)
    return value


_SUBSCRIPTION_USER_DATA: dict[str, Expand] = {
    "sticky": _with(sticky.decode_sticky, sticky.sticky_json),
    "cooperative-sticky": _with(sticky.decode_cooperative_sticky, Embedded.to_json),
    "stream": _with(streams.decode_subscription_info, streams.subscription_info_json),
}

_ASSIGNMENT_USER_DATA: dict[str, Expand] = {
    "stream": _with(streams.decode_assignment_info, streams.assignment_info_json),
}
