"""Name the parts of the table of all records while it is made: columns of numbers, entries, counts.

Keys, group names, topic names and topic ids are *entries*: bytes kept once and looked up by their hash.
"""

from __future__ import annotations

from typing import NamedTuple

from offsets_log.columnar.jit.kinds import ByteRows, Bytes, IntRows, LongRows, Longs


class ChunkArrays(NamedTuple):
    """The arrays of a chunk.

    Attributes:
        counts: how far they are filled.
        slots: hash table of entries.
        entries: one row for each.
        arena: bytes of the entries.
        longs, ints, texts: columns of the rows.
    """

    counts: Longs
    slots: Longs
    entries: LongRows
    arena: Bytes
    longs: LongRows
    ints: IntRows
    texts: ByteRows


# Rows of ``longs``: columns of 64 bits. OLDER_CHECKSUM is that of a record's message of magic 0 or 1, and told where
# batches have rows.
(
    POSITION, BATCH_BASE_OFFSET, RECORD_OFFSET, TIMESTAMP, PRODUCER_ID, COMMITTED_OFFSET, COMMIT_TIMESTAMP,
    EXPIRE_TIMESTAMP, OLDER_CHECKSUM, LONGS,
) = range(10)  # fmt: skip

# Rows of ``ints``: columns of 32 bits. Names are numbered as they come; from ENDS_AT on it is where what stands in
# ``texts`` for a row ends. KEY_SIZE, VALUE_SIZE and SEQUENCE are told where batches have rows.
(
    GROUP, TOPIC, TOPIC_ID, KIND, ATTRIBUTES, PRODUCER_EPOCH, RECORD_TYPE, PARTITION, VALUE_VERSION, LEADER_EPOCH,
    KEY_SIZE, VALUE_SIZE, SEQUENCE, ENDS_AT,
) = range(14)  # fmt: skip
METADATA, RAW_KEY, RAW_VALUE, TEXTS = range(4)
"""Rows of ``texts``: bytes of one column, one after the other."""
INTS = ENDS_AT + TEXTS

COMMITTED, COMMITTED_RAW, GROUP_VALUE, GROUP_TOMBSTONE, TOMBSTONE, ABORT_MARKER, COMMIT_MARKER, BATCH = range(8)
"""Kinds of rows.

Offset commits, the second kind with bytes that no column holds; records of groups, which are all other types;
tombstones of these and of offsets; markers; and if asked for, batches before their records. All but COMMITTED,
TOMBSTONE and BATCH have a raw key.
"""

LAYOUT = PARTITION
"""The layout of a GROUP_VALUE's version, numbered in the order in which layouts are tried."""
MOST_LAYOUTS = 4

# Columns of a batch's row, in place of what they are of a record.
LAST_OFFSET, MAX_TIMESTAMP, CRC, BASE_TIMESTAMP = RECORD_OFFSET, TIMESTAMP, COMMITTED_OFFSET, COMMIT_TIMESTAMP
RECORDS_COUNT, PARTITION_LEADER_EPOCH = PARTITION, LEADER_EPOCH
SIZE, BASE_SEQUENCE, LAST_SEQUENCE = KEY_SIZE, VALUE_SIZE, SEQUENCE

# Columns of ``entries``.
ENTRY_AT, ENTRY_SIZE, ENTRY_KIND, NUMBER, KEY_TYPE, KEY_GROUP, KEY_TOPIC, KEY_PARTITION, ENTRY_COLUMNS = range(9)
IS_GROUP, IS_TOPIC, IS_TOPIC_ID, IS_KEY = GROUP, TOPIC, TOPIC_ID, 3
"""Kinds of entries; those of the first three kinds are numbered, each kind from 0 on, in columns of the same number."""

# Of ``counts``: rows, entries, bytes of the arena, bytes of each text, entries of each kind, staged bytes; and as 0 or
# 1, whether batches have rows.
(
    ROWS,
    ENTRIES,
    ARENA_USED,
    TEXTS_USED,
) = range(4)
NUMBERED = TEXTS_USED + TEXTS
STAGED_BYTES = NUMBERED + IS_KEY
HAS_BATCHES = STAGED_BYTES + 1
COUNTS = HAS_BATCHES + 1
