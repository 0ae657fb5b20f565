"""Requests and responses as frames on the wire: an `Api` is two schema tables, and every frame is made from them.

A frame is its size (int32), a header, and the message. Both sides of the protocol are made from the same rows: a client
encodes requests and decodes responses, a server the other way round.

References: ``RequestHeader.json``, ``ResponseHeader.json``, ``ApiMessageTypeGenerator.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import construct as c

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format import primitives as p
from offsets_log.log_format import readers
from offsets_log.messages.message_struct import NO_TAGS
from offsets_log.messages.schema import INT16, INT32, STRING, Field, Message
from offsets_log.protocol.error_codes import UNSUPPORTED_VERSION

SIZE_BYTES = 4
"""Before each frame: how many bytes follow."""

REQUEST_HEADER = Message(
    "RequestHeader",
    (
        Field("request_api_key", INT16),
        Field("request_api_version", INT16),
        Field("correlation_id", INT32),
        Field("client_id", STRING, nullable=True),
    ),
    versions="1",
)
"""Version 2 has the same fields, of which the client id keeps a length of two bytes, and tagged fields behind them."""

RESPONSE_HEADER = Message("ResponseHeader", (Field("correlation_id", INT32),), versions="0-1", flexible="1+")

_TAGS = Message("Tags", (), flexible="0+")


MOST_EXPLAINED_BYTES = 1 << 16
"""Of a larger request that is wrong it is not said where, which would keep a server from other clients for seconds."""


class Header(NamedTuple):
    """What a request says before its message."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """One kind of request with its response.

    Attributes:
        key: its number in Kafka.
        request, response: tables of the same versions.
        always_plain_header: whether the response's header has no tagged fields in any version, so that a client can
            read it before it knows the versions.
        asked_from: the first version that a client here sends; earlier ones are only answered.
    """

    key: int
    request: Message
    response: Message
    always_plain_header: bool = False
    asked_from: int = 0

    @property
    def name(self) -> str:
        """Kafka's name of the API."""
        return self.request.name.removesuffix("Request")

    @property
    def versions(self) -> tuple[int, int]:
        """The first and the last version of the tables."""
        first, _, last = self.request.versions.partition("-")
        return int(first), int(last or first)

    def newest_of(self, first: int, last: int) -> int | None:
        """Return the newest version to ask a broker that takes a range; None if there is none."""
        newest = min(last, self.versions[1])
        return newest if newest >= max(first, self.versions[0], self.asked_from) else None

    def encode_request(self, header: Header, body: Mapping[str, Any]) -> bytes:
        """Return a request's frame. Raises CorruptRecordError if the body does not fit the version."""
        fields = dict(zip((field.name for field in REQUEST_HEADER.fields), header, strict=True))
        head = p.build(REQUEST_HEADER.struct(1), fields, "header")
        if self.request.is_flexible(header.version):
            head += NO_TAGS
        return _framed(head + p.build(self.request.struct(header.version), body, self.request.name))

    def decode_request(self, frame: bytes) -> tuple[Header, dict[str, Any]]:
        """Return what a frame without its size holds.

        What follows the message is passed over, as by a broker: librdkafka sends some bytes too many.

        Raises:
            CorruptRecordError: also for a version without a table.
        """
        header, at = _header_of(frame)
        first, last = self.versions
        if not first <= header.version <= last:
            raise CorruptRecordError(f"{self.name} has no version {header.version}", field="header")
        parse = p.parse_from if len(frame) <= MOST_EXPLAINED_BYTES else _parse_unexplained
        if self.request.is_flexible(header.version):
            _, at = parse(_TAGS.struct(0), frame, "header", at)
        body: dict[str, Any] = parse(self.request.struct(header.version), frame, self.request.name, at)[0]
        return header, body

    def encode_response(self, correlation_id: int, version: int, body: Mapping[str, Any]) -> bytes:
        """Return a response's frame. Raises CorruptRecordError if the body does not fit the version."""
        head = p.build(RESPONSE_HEADER.struct(self._header_version(version)), {"correlation_id": correlation_id}, "")
        return _framed(head + p.build(self.response.struct(version), body, self.response.name))

    def decode_response(self, version: int, frame: bytes) -> tuple[int, dict[str, Any]]:
        """Return the correlation id and the body of a frame without its size.

        A broker that does not know the version of an ApiVersions request answers in version 0.

        Raises:
            CorruptRecordError: with the field's path.
        """
        header, at = p.parse_from(RESPONSE_HEADER.struct(self._header_version(version)), frame, "header")
        if self.always_plain_header and frame[at : at + 2] == UNSUPPORTED_VERSION.to_bytes(2):
            version = 0
        body, end = p.parse_from(self.response.struct(version), frame, self.response.name, at)
        return header["correlation_id"], _whole(body, end, frame, self.response.name)

    def _header_version(self, version: int) -> int:
        return int(self.response.is_flexible(version) and not self.always_plain_header)


def decode_header(frame: bytes) -> tuple[Header, bytes]:
    """Return a request's header without tagged fields, and what follows. Raises CorruptRecordError."""
    header, at = _header_of(frame)
    return header, frame[at:]


def _header_of(frame: bytes) -> tuple[Header, int]:
    fields, at = p.parse_from(REQUEST_HEADER.struct(1), frame, "header")
    return Header(*fields.values()), at


def _whole(body: dict[str, Any], end: int, frame: bytes, root: str) -> dict[str, Any]:
    if end != len(frame):
        raise CorruptRecordError(f"{len(frame) - end} bytes are left over", field=root)
    return body


def _parse_unexplained(struct: c.Construct, frame: bytes, root: str, at: int) -> tuple[Any, int]:
    if (found := readers.read(struct, frame, at)) is None:
        raise CorruptRecordError("its bytes are not those of such a message", field=root)
    return found


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(SIZE_BYTES) + data
