"""The columns of a ledger. A row's number counts the rows of its log; a key's number is that of its raw bytes there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.kinds import Longs, Number
from offsets_log.columnar.jit.records import Long, Record, Table
from offsets_log.log_format.control_record import CONTROL_TYPES, END_TRANSACTION
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import Message

OF_LAYOUT = a.RECORD_TYPES * (a.VERSIONS + 1)
"""Kinds of data records by type, and by value version or `arrays.NO_VERSION`, with a version's first layout; behind
them those with its second one."""
LAYOUTS = 2
CONTROLS = LAYOUTS * OF_LAYOUT
"""Kinds of control records, from here on by `CONTROL_NAMES`: as kernels stage them first."""
CONTROL_NAMES = ("COMMIT", "ABORT", *sorted({*CONTROL_TYPES.values(), "UNKNOWN"} - END_TRANSACTION))
NOT_DECODED = CONTROLS + len(CONTROL_NAMES)
KINDS = NOT_DECODED + 1

_all = np.arange(KINDS + 1)
_numbers, _versions = np.divmod(_all % OF_LAYOUT, a.VERSIONS + 1)
IS_CONTROL = (_all >= CONTROLS) & (_all < NOT_DECODED)
ENDS_TRANSACTION = (_all >= CONTROLS) & (_all < CONTROLS + len(END_TRANSACTION))
IS_OF_OFFSET = (_all < CONTROLS) & (_numbers < a.COMMIT_TYPES)
IS_TOMBSTONE = (_all < CONTROLS) & (_versions == a.NO_VERSION)
IS_COMMIT = IS_OF_OFFSET & ~IS_TOMBSTONE
"""By kind, and at last of NOTHING: whether it is an offset commit with a value, and so on."""


def kind_of(record_type: int, value_version: int | None, layout: Message | None) -> int:
    """Return the kind of a data record; without a version, of a tombstone."""
    version = a.NO_VERSION if value_version is None else value_version
    kind = record_type * (a.VERSIONS + 1) + version
    if layout is None or record_type < a.KEY_TYPES:
        return kind
    return kind + OF_LAYOUT * [*RECORD_TYPES[record_type].layouts(version)].index(layout)


def told_by(kind: int) -> tuple[int, int | None, Message | None]:
    """Return record type, value version and layout of a kind of data records."""
    number, version = divmod(kind % OF_LAYOUT, a.VERSIONS + 1)
    if version == a.NO_VERSION:
        return number, None, None
    return number, version, [*RECORD_TYPES[number].layouts(version)][kind // OF_LAYOUT]


class Columns(NamedTuple):
    """Columns of some rows, int64 each; one that nobody asked for is empty.

    Attributes:
        key: number of the key; NOTHING of control records, and of what cannot be decoded.
        kind: record type, value version and layout, see `kind_of`; else of `CONTROLS`, or NOT_DECODED.
        record_offset: at most what int64 holds, as of hostile messages inside of others.
        bytes: share of the bytes of its batch (`rows.batch_bytes`).
        timestamp_ms: epoch milliseconds; NO_TIMESTAMP of magic 0.
        committed_offset: that an offset commit commits, else 0.
        before: number of the row of the key's record before it; NOTHING without one.
        before_kind, before_bytes, before_committed_offset: what that row says; NOTHING, 0 and 0 without one.
        producer_id, is_transactional: of the batch; NO_PRODUCER_ID without one, and 0 or 1.
        topic_id: number of the topic id that an offset commit names, 0 of none, where that is looked for.
    """

    key: Longs
    kind: Longs
    record_offset: Longs
    bytes: Longs
    timestamp_ms: Longs
    committed_offset: Longs
    before: Longs
    before_kind: Longs
    before_bytes: Longs
    before_committed_offset: Longs
    producer_id: Longs
    is_transactional: Longs
    topic_id: Longs


class Said(NamedTuple):
    """What a record says, as in `Columns`."""

    record_offset: Number
    timestamp_ms: Number
    committed_offset: Number
    producer_id: Number
    is_transactional: Number
    topic_id: Number


class Latest(Record):
    """The latest record of a key."""

    row: Long  # its number and one more; 0 if there is none
    kind: Long
    bytes: Long
    committed_offset: Long


USED, FIRST, BYTES, BATCH_WEIGHT, BATCH_SUM, COUNTS = range(6)
"""In ``counts``: rows that are not taken yet, the number of the first; bytes of all rows that kernels made; the weights
of all records of the batch that they are in, and of those that have rows."""


class LedgerArrays(NamedTuple):
    """What kernels write rows to; without room for any row they write none.

    Attributes:
        kinds: by record type the kind of a value of version 0, in the layout that kernels read.
        latest: by the number of a key.
    """

    counts: Longs
    kinds: Longs
    columns: Columns
    latest: Table[Latest]


def columns_with(names: frozenset[str], rows: int) -> Columns:
    """Return room for rows in the columns of these names."""
    return Columns(*(np.zeros(rows if name in names else 0, np.int64) for name in Columns._fields))


def kinds_of_values(layouts: Mapping[int, Message]) -> Longs:
    """Return `LedgerArrays.kinds`; of other record types kernels read the first layout."""
    return np.array([kind_of(number, 0, layouts.get(number)) for number in range(a.RECORD_TYPES)], np.int64)


NO_LEDGER = LedgerArrays(
    np.zeros(COUNTS, np.int64), kinds_of_values({}), columns_with(frozenset(), 0), Table(Latest, 0)
)
