"""Records done to the state: the rules of `replay.partial`, over arrays.

What a rule means is told there; each is cited here where it acts. Records come staged, in log order, and are replayed
in blocks: first all hashes of a block with a request for their table slots, then for their rows, then for their key
bytes, so that the waits for memory of a block pass together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.folds import activity, inspection, newer
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.instructions import prefetch
from offsets_log.columnar.jit.kinds import Bytes
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.ledger.columns import LedgerArrays
from offsets_log.columnar.ledger.kernels import emit, is_full
from offsets_log.columnar.overflow import cancelled_at, more_at, named_at, opened_at, producer_at
from offsets_log.columnar.scan import staging as sc
from offsets_log.columnar.scan.interner import HIGH, LOW, find_row, intern, intern_newer, is_at
from offsets_log.columnar.wire.primitives import be16, be64, hash_bytes

# Bits of the rules: what `replay.profile.Profile` says.
LATEST_BY_MARKER = 1
ENDS_BY_RECORD = 2
TOMBSTONE_SPARES_COMMITTED = 4
CANCELS_OWN = 8


@inlined
def commit_value(rows: Table[a.Row], number: Any, place: a.Place, applied_offset: Any) -> None:
    """Make a value the committed offset."""
    row, record_offset = U(number), place.record_offset
    rows[row].record_offset = record_offset
    rows[row].applied_offset = applied_offset
    rows[row].batch = place.batch
    rows[row].index = place.record_index


@inlined
def apply_value(rows: Table[a.Row], number: Any, place: a.Place, marker_offset: Any, rules: Any) -> None:
    """Apply a value of a committed transaction, unless it is ended or a later one stands there (``J-11``, ``L-13``)."""
    row, record_offset = U(number), place.record_offset
    if (record_offset if rules & ENDS_BY_RECORD else marker_offset) < rows[row].tombstone_offset:
        return
    if rules & LATEST_BY_MARKER:
        if marker_offset <= rows[row].applied_offset:
            return
    elif record_offset <= rows[row].record_offset:
        return
    commit_value(rows, row, place, marker_offset)


@inlined
def end_values(rows: Table[a.Row], number: Any, tombstone_offset: Any) -> None:
    """End the committed offset, which stands before it, by a tombstone (``J-12``, ``L-18``)."""
    row = U(number)
    rows[row].tombstone_offset = tombstone_offset
    rows[row].record_offset = a.NEVER


@part
def open_record(arrays: a.Arrays, producer: Any, row: Any, place: a.Place, cancels: Any) -> Any:
    """Note a record of an open transaction; return False without room."""
    scan_state = arrays.scan_state
    number = scan_state.free
    if number >= 0:
        scan_state.free = opened_at(arrays, number).older
    else:
        number = scan_state.opened
        if number >= scan_state.opened_room:
            return False
        scan_state.opened += 1
    scan_state.open_count += 1
    entry = opened_at(arrays, number)
    owner = producer_at(arrays, producer)
    entry.row = row
    entry.offset = place.record_offset
    entry.batch = place.batch
    entry.index = place.record_index
    entry.cancels = cancels
    entry.older = owner.newest
    if owner.newest == a.NOTHING:
        owner.oldest = number
    owner.newest = number
    return True


@part
def mark(arrays: a.Arrays, producer: Any, commits: Any, marker_offset: Any, rules: Any) -> Any:
    """End the producer's transaction by a marker: the last record of every key counts (``J-10``, ``J-11``, ``L-12``).

    What the producer cancelled before its first marker concerns earlier pieces of the log too. False without room.
    """
    scan_state = arrays.scan_state
    owner = producer_at(arrays, producer)
    is_first = owner.head_offset == a.NOTHING
    if is_first and rules & CANCELS_OWN and scan_state.cancelled + scan_state.open_count > scan_state.cancelled_room:
        return False
    scan_state.resolution += 1
    number = owner.newest
    while number != a.NOTHING:
        entry = opened_at(arrays, number)
        row = entry.row
        cancels = entry.cancels
        if is_first and cancels:
            kept = cancelled_at(arrays, scan_state.cancelled)
            kept.producer = producer
            kept.row = row
            scan_state.cancelled += 1
        more = more_at(arrays, row)
        if more.seen_by != scan_state.resolution:
            more.seen_by = scan_state.resolution
            if commits and not cancels:
                place = a.Place(entry.offset, entry.batch, entry.index)
                apply_value(arrays.rows, row, place, marker_offset, rules)
        scan_state.open_count -= 1
        number = entry.older
    if owner.newest != a.NOTHING:
        opened_at(arrays, owner.oldest).older = scan_state.free
        scan_state.free = owner.newest
        owner.newest = a.NOTHING
        owner.oldest = a.NOTHING
    if is_first:
        owner.head_offset = marker_offset
        owner.head_commits = commits
    return True


@part
def note_topic_id(arrays: a.Arrays, row: Any, high: Any, low: Any, record_offset: Any) -> Any:
    """Note that a value names its topic's id; return False without room."""
    scan_state = arrays.scan_state
    more = more_at(arrays, row)
    is_other = more.topic_high != high or more.topic_low != low
    if is_other and (more.topic_high != 0 or more.topic_low != 0):
        if scan_state.named >= scan_state.named_room:
            return False
        old = named_at(arrays, scan_state.named)
        old.row = row
        old.high = more.topic_high
        old.low = more.topic_low
        old.offset = more.topic_offset
        scan_state.named += 1
    more.topic_high = high
    more.topic_low = low
    more.topic_offset = record_offset
    return True


@inlined
def replay_offset(
    arrays: a.Arrays, row: Any, is_value: Any, place: a.Place, applied_offset: Any, producer: Any, rules: Any
) -> Any:
    """Replay a record of type 0 or 1 (`PartialState.add_offset`, `add_tombstone`); return False without room.

    Args:
        applied_offset: where it stands among batches: at its offset, but for some that are read on the slow path.
        producer: the producer of the transaction it belongs to, else NOTHING.
    """
    rows = arrays.rows
    if is_value:
        arrays.groups[U(rows[U(row)].group)].value_offset = applied_offset
        if producer < 0:
            commit_value(rows, row, place, applied_offset)
            return True
    else:
        if producer < 0 or not rules & TOMBSTONE_SPARES_COMMITTED:
            end_values(rows, row, applied_offset)
        if producer < 0 or not rules & CANCELS_OWN:
            return True
    return open_record(arrays, producer, row, place, np.int64(not is_value))


@inlined
def prepare(arrays: a.Arrays, data: Any, staged: Table[a.Staged], first: Any, last: Any) -> None:
    """Hash the keys of a block, and ask for the memory that replaying it will need."""
    scan_state, slots = arrays.scan_state, arrays.slots
    mask = np.int64(len(slots) - 1)
    seed = scan_state.seed
    hashes, found_rows = scan_state.hashes, scan_state.found
    for number in range(first, last):
        i = U(number)
        if staged[i].kind <= a.TOMBSTONE:
            found = hash_bytes(data, staged[i].key_at, staged[i].key_size, seed)
            hashes[U(number - first)] = found
            prefetch(slots, found & mask)
    for number in range(first, last):
        i = U(number)
        if staged[i].kind <= a.TOMBSTONE:
            found = hashes[U(number - first)]
            at = found & mask
            slot = slots[U(at)]
            while slot != 0 and (slot ^ found) & HIGH != 0:
                at = at + 1 & mask
                slot = slots[U(at)]
            row = (slot & LOW) - 1
            found_rows[U(number - first)] = row
            if row >= 0:
                prefetch(arrays.rows, row)
    for number in range(first, last):
        i = U(number)
        if staged[i].kind <= a.TOMBSTONE and found_rows[U(number - first)] >= 0:
            key_at = arrays.rows[U(found_rows[U(number - first)])].key_at
            prefetch(arrays.arena, key_at)
            if staged[i].key_size > a.CACHE_LINE - a.SIZE_BYTES:
                prefetch(arrays.arena, key_at + a.CACHE_LINE)


@inlined
def row_of(arrays: a.Arrays, staged: Table[a.Staged], data: Any, i: Any, place: Any, newer_target: Any) -> Any:
    """Return the row of a staged record's key, which is added if it is new; else what `intern` says.

    Args:
        newer_target: `Row.target` of newer kinds' keys: IS_NEWER, or IS_GROUP where only their group is asked for.
    """
    scan_state = arrays.scan_state
    start, size = staged[U(i)].key_at, staged[U(i)].key_size
    row = scan_state.found[U(place)]
    if row >= 0 and is_at(arrays.arena, arrays.rows[U(row)].key_at, data, start, size):
        return row
    found = scan_state.hashes[U(place)]
    row = find_row(arrays.slots, arrays.rows, arrays.arena, data, start, size, found)
    if row >= 0:
        return row
    number = be16(data, start)
    known = scan_state.group_count
    if number >= a.KEY_TYPES:
        member_type = newer.TYPES[number, newer.OF_MEMBER] if newer_target == a.IS_NEWER else np.int64(a.NOTHING)
        row = intern_newer(arrays, data, start, size, found, member_type, newer_target)
    else:
        row = intern(arrays, data, start, size, found)
    if scan_state.group_count > known:
        arrays.groups[known].first_offset = staged[U(i)].offset
    return row


@inlined
def _replay_group(arrays: a.Arrays, row: Any, staged: Table[a.Staged], i: Any, data: Any) -> Any:
    """Replay a staged record of a group; return False without room."""
    groups = arrays.groups
    place = a.Place(staged[i].offset, staged[i].batch, staged[i].index)
    is_value = staged[i].kind == a.VALUE
    if arrays.scan_state.is_read_again:
        return True
    if arrays.rows[row].target == a.IS_NEWER:
        number, value, size = be16(data, staged[i].key_at), staged[i].value_at, staged[i].value_size
        return newer.replay_newer(arrays, row, number, is_value, place, data, value, size)
    group = arrays.rows[row].group
    if groups[group].newer_flags & newer.READ_AGAIN:
        return newer.keep(arrays, group, place)
    groups[group].metadata_offset = place.record_offset
    groups[group].metadata_batch = place.batch
    groups[group].metadata_index = place.record_index
    groups[group].is_tombstone = not is_value
    if groups[group].newer_kind != 0:
        groups[group].newer_flags |= newer.WHOLE
    return True


@inlined
def _note_staged_id(arrays: a.Arrays, row: Any, staged: Table[a.Staged], i: Any, data: Any) -> Any:
    """Note the topic id of a staged record, if it has one; return False without room."""
    topic_id = staged[i].topic_id_at
    if topic_id < 0:
        return True
    high, low = be64(data, topic_id), be64(data, topic_id + 8)
    return (high == 0 and low == 0) or note_topic_id(arrays, row, high, low, staged[i].offset)


@part
def flush(arrays: a.Arrays, staged: Table[a.Staged], data: Any) -> Any:
    """Replay what is staged, from where it was left: FINISHED, NEEDS_ROOM, or KEY_NOT_PLAIN of the next one."""
    scan_state = arrays.scan_state
    rules = scan_state.rules
    while scan_state.flushed < scan_state.staged:
        first = scan_state.flushed
        last = min(first + a.BLOCK, scan_state.staged)
        prepare(arrays, data, staged, first, last)
        for number in range(first, last):
            scan_state.flushed = number
            i = U(number)
            kind = staged[i].kind
            record_offset = staged[i].offset
            if kind > a.TOMBSTONE:
                producer = staged[i].producer
                if kind != a.PASSED and not mark(arrays, producer, np.int64(kind == a.COMMIT), record_offset, rules):
                    return oc.NEEDS_ROOM
                continue
            row = row_of(arrays, staged, data, number, number - first, np.int64(a.IS_NEWER))
            if row < 0:
                return row
            staged[i].row = row
            if arrays.rows[U(row)].target < 0:
                if not _replay_group(arrays, row, staged, i, data):
                    return oc.NEEDS_ROOM
                continue
            row = arrays.rows[U(row)].target
            if not _note_staged_id(arrays, row, staged, i, data):
                return oc.NEEDS_ROOM
            producer = staged[i].producer
            place = a.Place(record_offset, staged[i].batch, staged[i].index)
            if not replay_offset(arrays, row, kind == a.VALUE, place, record_offset, producer, rules):
                return oc.NEEDS_ROOM
        scan_state.flushed = last
    scan_state.staged = 0
    scan_state.flushed = 0
    return oc.FINISHED


@kernel
def scan(arrays: a.Arrays, buffers: a.Buffers, data: Bytes, ledger: LedgerArrays) -> Any:
    """Replay a segment from ``scan_state.at`` on; why it came back, with what all that is staged was replayed.

    Rows are written of what is staged when all of it was replayed.
    """
    scan_state, staged = arrays.scan_state, buffers.staged
    begin = scan_state.at
    outcome = np.int64(oc.GO_ON)
    while outcome == oc.GO_ON:
        outcome = sc.stage(arrays, buffers, data, begin)
        source = buffers.window if scan_state.in_window else data
        records = a.Records(buffers.staged, source, data)
        count = scan_state.staged
        if is_full(ledger, count):
            return oc.NEEDS_ROOM
        flushed = flush(arrays, staged, source)
        if flushed != oc.FINISHED:
            return flushed
        emit(ledger, arrays, records, count)
        if scan_state.is_inspected:
            inspection.count(arrays, records, count)
        if scan_state.notes_activity:
            activity.note_all(arrays, records, count)
        outcome = sc.outcome_of(scan_state, begin, outcome)
    return outcome
