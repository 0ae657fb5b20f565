"""What kernels of the cleaner share: the state of a round, and its tables."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from offsets_log.columnar.jit.kinds import Bytes
from offsets_log.columnar.jit.records import Long, Longs, Record, Table


class Key(Record):
    """A raw key, which `scan.interner` finds in the arena, and where it stands last."""

    key_at: Long
    last_offset: Long


class Due(Record):
    """An entry that is due in the indexes of what is written."""

    offset: Long
    position: Long
    time: Long
    time_offset: Long


class Aborting(Record):
    """An aborted transaction: first those that are open, then those that begin next."""

    begins_at: Long
    ends_at: Long  # its marker
    producer_id: Long
    is_seen: Long  # whether data of it was met
    ended_as: Long  # 1 for the first one whose marker was taken, and so on; 0 before


class Pack(Record):
    """What is to be compressed again of what is written."""

    begin: Long
    end: Long
    reason: Long  # for which it is counted


class Active(Record):
    """An active producer."""

    producer_id: Long
    last_offset: Long  # of its last batch of data


class RoundState(Record):
    """Numbers that the kernels of a round share."""

    # Of the segment that is read:
    position: Long  # where to go on
    end: Long
    allowed_at: Long  # of a batch of a transaction that may be taken: its records are known not to be discarded
    records_read: Long
    # Of the map of keys:
    first_dirty: Long
    latest: Long
    keys: Long
    arena_used: Long
    seed: Long
    # Of the segment that is written:
    base_offset: Long
    interval: Long
    size: Long
    indexed_at: Long
    latest_time: Long
    latest_time_offset: Long
    due: Long
    out_used: Long
    # Of what is kept:
    now: Long
    new_horizon: Long
    makes_newest: Long  # whether messages of magic 0 and 1 that stay become batches of magic 2
    keeps_old_tombstones: Long  # whether tombstones of magic 0 and 1 stay
    last_batch_offset: Long  # next offset of the batch that stays in any case, NO_BATCH for none
    last_newest: Long  # the last offset of the last batch of magic 2 that was followed, NEVER_BEFORE without one
    kept: Annotated[Longs, 4, 3]  # what is told of that, by reason: batches, records, bytes
    first_horizon: Long
    # Of open transactions, in an array: producers of those that commit and have data, then rows of those that abort.
    committed: Long
    aborted: Long
    next_aborted: Long  # where the next transaction begins of which it is known that it aborts, behind those with a row
    epoch: Long  # of leaders, the latest so far
    # Of compressed batches, as `scan.staging` has them:
    in_window: Long
    window_next: Long
    window_count: Long
    plain_size: Long  # of the batch that is read, decompressed
    packs: Long
    # Of logs that are written for another reason than a round:
    rule: Long  # what stays
    until_offset: Long  # batches that hold this offset or a later one are for Python
    last_at: Long  # where the last batch begins that was taken
    first_kept: Long  # the first offset of the first batch in what is written
    last_kept: Long  # the last offset of the last batch that was written
    changed: Long  # batches that were not copied
    # Of what pass 1 has taken, which pass 2 need not read again:
    notes: Long  # which keys are noted of those that are not entered
    last_put: Long  # the offset of the last record that was entered
    is_unsure: Long  # whether offsets of records that were entered do not rise
    known_until: Long  # batches from the position up to here were entered by a kernel
    staged: Long  # records that pass 1 has staged
    staged_bytes: Long  # no less than the size of their keys
    chosen_at: Long  # index of the first chosen offset that is not below the last one asked for
    ended: Long  # aborted transactions whose markers were taken
    last_ended: Long  # where the marker is of the last one
    aborting: Long  # rows of aborted transactions
    begun: Long  # of these, so many have begun


class RoundArrays(NamedTuple):
    """The arrays of a round.

    Attributes:
        slots: hash table of keys.
        arena: bytes of the keys, each behind its size.
        open_: open transactions, as the state says.
        aborting: transactions that are known to abort.
    """

    round_state: RoundState
    slots: Longs
    keys: Table[Key]
    arena: Bytes
    open_: Longs
    aborting: Table[Aborting]


class Sieve(NamedTuple):
    """What pass 2 goes by, and what it writes.

    Attributes:
        producers: active ones, rising, and beside each the last offset of its last batch of data, if it has one.
        chosen: offsets of records, rising: those that stay or go by the rule; if it asks the keys, where these stand
            last.
        out: what is kept, behind each other.
        packs: what of it is to be compressed again.
    """

    producers: Table[Active]
    chosen: Longs
    out: Bytes
    packs: Table[Pack]


KEPT_LATEST, KEPT_TOMBSTONES, KEPT_BEYOND, KEPT_MARKERS = range(4)
"""Reasons of `RoundState.kept`."""

NOTES_NONE, NOTES_OTHERS, NOTES_ALL = range(3)
"""Keys that pass 1 notes at `NOT_ENTERED`: none; those of records that it does not enter; all of a part of the log
that it does not read, where transactions are not followed."""
NOT_ENTERED = -(1 << 63)
"""That of `cleaner.offset_map`."""

BY_KEYS, CHOSEN_STAY, CHOSEN_GO = range(3)
"""Rules."""

MOST_OPEN = 64
"""Transactions of either kind; with more of them their batches are taken one by one."""
MOST_COMING = 64
"""Aborted transactions that kernels are told before they begin."""

NO_BATCH = -1
NEVER_BEFORE = -(1 << 62)
NO_HORIZON = (1 << 63) - 1
