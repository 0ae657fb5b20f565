"""Say why a kernel came back: one set of outcomes for all kernels.

FINISHED is 0 and every other outcome is below it, so that a function may return a row, a place or an outcome.
"""

from __future__ import annotations

FINISHED = 0
"""What was asked is done: the end is reached, the record is replayed, the batch is staged."""

(
    PAUSED,  # enough bytes for one call
    GO_ON,  # a scan does not come back yet
    STOPPED,  # the time bound is reached
    FULL,  # what is written to has no room for the next line, row or batch: it is taken away first
    NOT_FOUND,  # nothing has this key or name
    LOST,  # there is no such record at the place: the file was changed since
    # For the slow path:
    NOT_PLAIN,  # the batch, record, key or value is read there
    KEY_NOT_PLAIN,  # the staged record `ScanState.flushed` has a key for `messages`
    BEYOND,  # only the construct path can hold the data, such as a time of more than 64 bits
    # What the caller provides, and calls again:
    NEEDS_ROOM,  # for keys, groups, producers, open transactions, or for what is made of one batch
    NEEDS_RECORDS,  # room for the records of one batch
    NEEDS_WINDOW,  # the batch at the position is compressed
    NEEDS_COPY,  # room for a copy of keys and values
    NEEDS_ENTRIES,
    NEEDS_TEXTS,
    NEEDS_MEMBERS,
    NEEDS_TEMPLATE,  # of the next line, whose kind has none yet
    NEEDS_EMBEDDED,  # the text of embedded bytes that are not known
    NEEDS_OTHERS,  # the batch at the position has a producer: not all rules take it alike
    NEEDS_VERDICT,  # a group or topic was met: is it wanted
    NEEDS_HOLDERS,  # of the partitions of a group
    NEEDS_GROUP,  # what a record of a group says, which `messages` must read
) = range(-1, -23, -1)
