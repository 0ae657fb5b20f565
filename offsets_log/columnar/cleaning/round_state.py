"""The state that kernels of the cleaner share: numbers in one array, and the columns of other arrays."""

from __future__ import annotations

from offsets_log.columnar import arrays as a

# Columns of the table of keys, whose places in the arena `scan.interner` finds.
KEY_AT = a.KEY_AT
LAST_OFFSET = 1
KEY_COLUMNS = 2

# Of staged records pass 1 does not look at values: their columns hold what is known of the key instead.
HASH = a.VALUE_AT
PROBABLE = a.VALUE_SIZE  # the row of a key with the same upper half of the hash, −1 without one

# Columns of entries that are due in the indexes of what is written.
DUE_OFFSET = 0
DUE_POSITION = 1
DUE_TIME = 2
DUE_TIME_OFFSET = 3
DUE_COLUMNS = 4

# Columns of aborted transactions: first those that are open, then those that begin next.
BEGINS_AT = 0
ENDS_AT = 1  # its marker
OF_PRODUCER = 2
IS_SEEN = 3  # whether data of it was met
ENDED_AS = 4  # 1 for the first one whose marker was taken, and so on; 0 before
ABORTING_COLUMNS = 5

# Columns of what is to be compressed again of what is written.
PACK_BEGIN = 0
PACK_END = 1
PACK_REASON = 2  # where it is counted
PACK_COLUMNS = 3

# The round state. Of the segment that is read:
POSITION = 0  # where to go on
END = 1
ALLOWED_AT = 2  # of a batch of a transaction that may be taken: it is known that its records are not to be discarded
RECORDS_READ = 3
# Of the map of keys:
FIRST_DIRTY = 4
LATEST = 5
KEYS = 6
ARENA_USED = 38
SEED = 39
# Of the segment that is written:
BASE_OFFSET = 9
INTERVAL = 10
SIZE = 11
INDEXED_AT = 12
LATEST_TIME = 13
LATEST_TIME_OFFSET = 14
DUE = 15
OUT_USED = 16
# Of what is kept:
NOW = 17
NEW_HORIZON = 18
LAST_BATCH_OFFSET = 19  # next offset of the batch that stays in any case, NO_BATCH for none
LAST_NEWEST = 20  # the last offset of the last batch of magic 2 that was followed, `NEVER_BEFORE` without one
# Of what is told of that, three numbers a reason: batches, records, bytes.
KEPT_LATEST = 21
KEPT_TOMBSTONES = 24
KEPT_BEYOND = 27
KEPT_MARKERS = 30
FIRST_HORIZON = 33
# Of open transactions, in an array: producers of those that commit and have data, then rows of those that abort.
COMMITTED = 34
ABORTED = 35
NEXT_ABORTED = 36  # where the next transaction begins of which it is known that it aborts, behind those with a row
EPOCH = 37  # of leaders, the latest so far
# Of compressed batches, where `scan.staging` has the same.
IN_WINDOW = a.IN_WINDOW
WINDOW_NEXT = a.WINDOW_NEXT
WINDOW_COUNT = a.WINDOW_COUNT
PLAIN_SIZE = 40  # of the batch that is read, decompressed
PACKS = 41
# Of logs that are written for another reason than a round.
RULE = 42  # what stays
UNTIL_OFFSET = 43  # batches that hold this offset or a later one are for Python
LAST_AT = 44  # where the last batch begins that was taken
LAST_KEPT = 45  # the last offset of the last batch that was written
CHANGED = 46  # batches that were not copied
# Of what pass 1 has taken, which pass 2 need not read again.
LAST_PUT = 47  # the offset of the last record that was entered
IS_UNSURE = 48  # whether offsets of records that were entered do not rise
KNOWN_UNTIL = 49  # batches from the position up to here were entered by a kernel
STAGED = 50  # records that pass 1 has staged
STAGED_BYTES = 51  # no less than the size of their keys
CHOSEN_AT = 52  # index of the first chosen offset that is not below the last one asked for
ENDED = 53  # aborted transactions whose markers were taken
LAST_ENDED = 54  # where the marker is of the last one
ABORTING = 55  # rows of aborted transactions
BEGUN = 56  # of these, so many have begun
STATE_SIZE = WINDOW_COUNT + 1

BY_KEYS, CHOSEN_STAY, CHOSEN_GO = range(3)
"""Rules."""

MOST_OPEN = 64
"""Transactions of either kind; with more of them their batches are taken one by one."""
MOST_COMING = 64
"""Aborted transactions that kernels are told before they begin."""

NO_BATCH = -1
NEVER_BEFORE = -(1 << 62)
NO_HORIZON = (1 << 63) - 1
