"""The columns of a ledger. A row's number counts the rows of its log; a key's number is that of its raw bytes there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.kinds import Longs
from offsets_log.columnar.jit.records import Long, Record, Table

OTHER_CONTROL = a.RECORD_KINDS
"""Besides the kinds of `arrays.RECORD_KINDS`: a control record that ends no transaction."""
KINDS = OTHER_CONTROL + 1

_numbers, _versions = np.divmod(np.arange(KINDS + 1), a.VERSIONS + 1)
_is_data = np.arange(KINDS + 1) < a.MARKERS
IS_TOMBSTONE = _is_data & (_versions == a.NO_VERSION)
IS_COMMIT = _is_data & ~IS_TOMBSTONE & (_numbers < a.COMMIT_TYPES)
"""By kind, and at last of NOTHING: whether it is a tombstone, an offset commit with a value."""


class Columns(NamedTuple):
    """Columns of some rows, int64 each; one that nobody asked for is empty.

    Attributes:
        key: number of the key; NOTHING of control records, and of what cannot be decoded.
        kind: record type and value version, as `arrays.RECORD_KINDS`, or `OTHER_CONTROL`.
        bytes: share of the bytes of its batch (`rows.batch_bytes`).
        timestamp_ms: epoch milliseconds; NO_TIMESTAMP of magic 0.
        committed_offset: that an offset commit commits, else 0.
        before: number of the row of the key's record before it; NOTHING without one.
        before_kind, before_bytes, before_committed_offset: what that row says; NOTHING, 0 and 0 without one.
        holder: number of the name of whoever held the partition, where that is looked for.
    """

    key: Longs
    kind: Longs
    bytes: Longs
    timestamp_ms: Longs
    committed_offset: Longs
    before: Longs
    before_kind: Longs
    before_bytes: Longs
    before_committed_offset: Longs
    holder: Longs


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
        latest: by the number of a key.
    """

    counts: Longs
    columns: Columns
    latest: Table[Latest]


def columns_with(names: frozenset[str], rows: int) -> Columns:
    """Return room for rows in the columns of these names."""
    return Columns(*(np.zeros(rows if name in names else 0, np.int64) for name in Columns._fields))


NO_LEDGER = LedgerArrays(np.zeros(COUNTS, np.int64), columns_with(frozenset(), 0), Table(Latest, 0))
