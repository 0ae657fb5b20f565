"""Users' credentials, delegation tokens and access control lists. What a password could be guessed from is secret.

References: ``metadata/.../UserScramCredentialRecord.json``, ``RemoveUserScramCredentialRecord.json``,
``DelegationTokenRecord.json``, ``RemoveDelegationTokenRecord.json``, ``AccessControlEntryRecord.json``,
``RemoveAccessControlEntryRecord.json``, ``RecordRedactor.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offsets_log.messages.schema import BYTES, INT8, INT32, INT64, STRING, UUID, ArrayOf, Field, Message


def always(_: Mapping[str, Any]) -> bool:
    """Return True: the field is secret whatever stands around it."""
    return True


USER_SCRAM_CREDENTIAL_RECORD = Message(
    "UserScramCredentialRecord",
    (
        Field("name", STRING),
        Field("mechanism", INT8),
        Field("salt", BYTES, secret=always),
        Field("stored_key", BYTES, secret=always),
        Field("server_key", BYTES, secret=always),
        Field("iterations", INT32),
    ),
    flexible="0+",
)

REMOVE_USER_SCRAM_CREDENTIAL_RECORD = Message(
    "RemoveUserScramCredentialRecord", (Field("name", STRING), Field("mechanism", INT8)), flexible="0+"
)

DELEGATION_TOKEN_RECORD = Message(
    "DelegationTokenRecord",
    (
        Field("owner", STRING),
        Field("requester", STRING),
        Field("renewers", ArrayOf(STRING)),
        Field("issue_timestamp", INT64),
        Field("max_timestamp", INT64),
        Field("expiration_timestamp", INT64),
        Field("token_id", STRING, secret=always),
    ),
    flexible="0+",
)
"""With the cluster's own secret, the id gives the token."""

REMOVE_DELEGATION_TOKEN_RECORD = Message(
    "RemoveDelegationTokenRecord", (Field("token_id", STRING, secret=always),), flexible="0+"
)

ACCESS_CONTROL_ENTRY_RECORD = Message(
    "AccessControlEntryRecord",
    (
        Field("id", UUID),
        Field("resource_type", INT8),
        Field("resource_name", STRING),
        Field("pattern_type", INT8),
        Field("principal", STRING),
        Field("host", STRING),
        Field("operation", INT8),
        Field("permission_type", INT8),
    ),
    flexible="0+",
)

REMOVE_ACCESS_CONTROL_ENTRY_RECORD = Message("RemoveAccessControlEntryRecord", (Field("id", UUID),), flexible="0+")
