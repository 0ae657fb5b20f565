"""Control records: the end of a transaction, and what else a broker writes between data.

References: ``ControlRecordType.java``, ``EndTransactionMarker.java``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import construct as c

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format import primitives as p
from offsets_log.log_format.record import Record

CONTROL_KEY = c.Struct("version" / p.INT16, "type" / p.INT16)
END_TXN_MARKER = c.Struct("version" / p.INT16, "coordinator_epoch" / p.INT32)
CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
    0x7FFE: "UNTOLD",
}
"""By their numbers. No broker writes ``UNTOLD``: it stands in segments made from texts for the end of a transaction of
which these do not tell whether it was committed."""
UNKNOWN_CONTROL_TYPE = 0x7FFF
UNTOLD = "UNTOLD"
END_TRANSACTION = frozenset({"ABORT", "COMMIT"})
MARKER_KEYS = (bytes(4), bytes(3) + b"\x01")
MARKER_VALUE_BYTES = 6


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """The contents of a control record: ``COMMIT``, ``ABORT`` or another of `CONTROL_TYPES`, else ``UNKNOWN``."""

    type: str
    coordinator_epoch: int | None

    @property
    def ends_transaction(self) -> bool:
        """Whether it is COMMIT or ABORT."""
        return self.type in END_TRANSACTION


def control_type(record: Record) -> str:
    """Return the type in a control record's key, the one part that a coordinator's load reads (``records:C2``).

    Raises:
        CorruptRecordError: the key is shorter than 4 bytes, or its version is negative.
    """
    key, _ = p.parse_prefix(CONTROL_KEY, record.key or b"", "control.key")
    if key.version < 0:
        raise CorruptRecordError(f"the version is {key.version}", field="control.key.version")
    return CONTROL_TYPES.get(key.type, "UNKNOWN")


def decode_control_record(record: Record) -> ControlRecord:
    """Read a control record's key and, of a transaction marker, its value (``records:C2``, ``C3``).

    Raises:
        CorruptRecordError: the key has no type, or a marker's value is cut off.
    """
    name = control_type(record)
    if name not in END_TRANSACTION:
        return ControlRecord(name, None)
    marker, _ = p.parse_prefix(END_TXN_MARKER, record.value or b"", "control.value")
    if marker.version < 0:
        raise CorruptRecordError(f"the version is {marker.version}", field="control.value.version")
    return ControlRecord(name, marker.coordinator_epoch)


def control_record(record: Record, control: ControlRecord) -> Record:
    """Return a record with a control record's key and value; only types that end a transaction get a value."""
    number = next((number for number, name in CONTROL_TYPES.items() if name == control.type), UNKNOWN_CONTROL_TYPE)
    marker = {"version": 0, "coordinator_epoch": control.coordinator_epoch or 0}
    return replace(
        record,
        key=p.build(CONTROL_KEY, {"version": 0, "type": number}, "control.key"),
        value=p.build(END_TXN_MARKER, marker, "control.value") if control.ends_transaction else b"",
    )


def marker_in(record: Record) -> ControlRecord | None:
    """Return the transaction marker that a record is; no record of data has a key of 4 and a value of 6 bytes."""
    is_one = record.value is not None and len(record.value) == MARKER_VALUE_BYTES and record.key in MARKER_KEYS
    return decode_control_record(record) if is_one else None
