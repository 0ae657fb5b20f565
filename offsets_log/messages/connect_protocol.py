"""Decode what workers of a ``connect`` group put into type 2: metadata and assignment.

Version 0 is the eager protocol (``default``), 1 is ``compatible`` (2.3), 2 is ``sessioned`` (2.4). From 1 on a worker
includes its current assignment in its metadata, and the last fields may be missing.

References: ``connect/runtime/distributed/ConnectProtocol.java``, ``IncrementalCooperativeConnectProtocol.java``.
"""

from __future__ import annotations

from typing import Any

from offsets_log.messages.consumer_protocol import Embedded, EmbeddedMessage, decode_embedded
from offsets_log.messages.schema import BYTES, INT16, INT32, INT64, STRING, ArrayOf, Field, Struct

CONNECTOR = -1
"""The task number that stands for the connector instance itself."""

CONNECTOR_TASKS = Struct((Field("connector", STRING), Field("tasks", ArrayOf(INT32))))

CONNECT_METADATA = EmbeddedMessage(
    "ConnectMetadata",
    (
        Field("url", STRING),
        Field("config_offset", INT64),
        Field("allocation", BYTES, "1+", nullable=True),
    ),
    versions="0-2",
    may_end_before=("allocation",),
)

CONNECT_ASSIGNMENT = EmbeddedMessage(
    "ConnectAssignment",
    (
        Field("error", INT16),
        Field("leader", STRING),
        Field("leader_url", STRING),
        Field("config_offset", INT64),
        Field("assigned", ArrayOf(CONNECTOR_TASKS), "0"),
        Field("assignment", ArrayOf(CONNECTOR_TASKS), "1+", nullable=True),
        Field("revoked", ArrayOf(CONNECTOR_TASKS), "1+", nullable=True),
        Field("delay", INT32, "1+", default=0),
    ),
    versions="0-2",
    may_end_before=("assignment", "revoked", "delay"),
)


def decode_metadata(data: bytes, root: str = "subscription") -> Embedded:
    """Decode what a worker said of itself; ``allocation`` stays bytes. Raises CorruptRecordError."""
    return decode_embedded(CONNECT_METADATA, data, root)


def decode_assignment(data: bytes, root: str = "assignment") -> Embedded:
    """Decode what a worker was assigned. Raises CorruptRecordError, for zero bytes too (``records:E1``)."""
    return decode_embedded(CONNECT_ASSIGNMENT, data, root)


def metadata_json(metadata: Embedded) -> dict[str, Any]:
    """Return url and config offset as JSON; the caller who decodes the allocation adds ``assignment``."""
    return {"url": metadata.fields["url"], "config_offset": metadata.fields["config_offset"]}


def assignment_json(assignment: Embedded) -> dict[str, Any]:
    """Return connectors and tasks separately as JSON, in wire order; missing fields get Kafka's defaults."""
    fields = assignment.fields
    head = {name: fields[name] for name in ("error", "leader", "leader_url", "config_offset")}
    if assignment.version == 0:
        return {**head, "connectors": _connectors(fields["assigned"]), "tasks": _tasks(fields["assigned"])}
    assigned, revoked = fields.get("assignment"), fields.get("revoked")
    return {
        "version": assignment.version,
        **head,
        "connectors": _connectors(assigned),
        "tasks": _tasks(assigned),
        "revoked_connectors": _connectors(revoked),
        "revoked_tasks": _tasks(revoked),
        "scheduled_delay": fields.get("delay", 0),
    }


def _connectors(rows: list[dict[str, Any]] | None) -> list[str]:
    return [row["connector"] for row in rows or () for task in row["tasks"] if task == CONNECTOR]


def _tasks(rows: list[dict[str, Any]] | None) -> list[list[Any]]:
    return [[row["connector"], task] for row in rows or () for task in row["tasks"] if task != CONNECTOR]
