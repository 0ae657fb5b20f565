"""SaslHandshake (17), version 1, and SaslAuthenticate (36), versions 0–2: a login.

Version 1 of the first (Kafka 1.0) says that the second carries the mechanism's messages.

References: ``SaslHandshakeRequest.json``, ``SaslAuthenticateRequest.json`` and their responses.
"""

from offsets_log.messages.schema import BYTES, INT16, INT64, STRING, ArrayOf, Field, Message
from offsets_log.protocol.api import Api

SASL_HANDSHAKE = Api(
    17,
    Message("SaslHandshakeRequest", (Field("mechanism", STRING),), versions="1"),
    Message("SaslHandshakeResponse", (Field("error_code", INT16), Field("mechanisms", ArrayOf(STRING))), versions="1"),
)

SASL_AUTHENTICATE = Api(
    36,
    Message("SaslAuthenticateRequest", (Field("auth_bytes", BYTES),), versions="0-2", flexible="2+"),
    Message(
        "SaslAuthenticateResponse",
        (
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
            Field("auth_bytes", BYTES),
            Field("session_lifetime_ms", INT64, "1+", default=0),
        ),
        versions="0-2",
        flexible="2+",
    ),
)
