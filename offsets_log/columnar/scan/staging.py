"""Stage batches: turn a segment's bytes to records in their order, until something is not plain.

Batches are taken whole: they are checked, their records are found and their values walked through, and only then are
they staged. A batch with anything unusual in it is not touched: the caller reads it with `log_format` and `messages`,
and continues after it. So damage is found, named and left out in one place only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, part
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.scan.interner import are_names_utf8, intern_producer, is_plain_text
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.primitives import be16, be32, be64, walk
from offsets_log.columnar.wire.programs import NO_PLACE

FLUSH_AT = 2 * a.BLOCK


@part
def is_in_place(scan_state: a.ScanState, data: Any, at: Any, size: Any) -> Any:
    """Return whether a batch's offsets fit those around it, as `log_format.partition_log` requires."""
    base = be64(data, at)
    last = bt.last_offset(data, at)
    before = scan_state.last_offset
    segment_base = scan_state.base_offset
    if base <= before or last < base:
        return False
    least = max(before + 1, max(segment_base, np.int64(0)))
    if segment_base >= 0 and (base < segment_base or last - least >= bt.MAX_OFFSETS_IN_SEGMENT):
        return False
    if base == before + 1 or base == segment_base:
        return True
    following = scan_state.following
    if at + size < len(data):
        next_size = bt.batch_at(data, at + size, np.int64(len(data)))
        if next_size < 0:
            return False
        scan_state.checked = at + size
        scan_state.checked_size = next_size
        following = be64(data, at + size)
    elif following == a.NOTHING:
        return True
    return following < least or following > last


@inlined
def _stage_marker(arrays: a.Arrays, staged: Table[a.Staged], data: Any, at: Any, size: Any) -> Any:
    """Stage a control batch of one marker."""
    scan_state = arrays.scan_state
    if be32(data, at + bt.RECORDS_COUNT) != 1 or be16(data, at + bt.ATTRIBUTES) & bt.CODEC_MASK:
        return oc.NOT_PLAIN
    n = scan_state.staged
    if bt.records_of(data, at + bt.HEADER_SIZE, at + size, np.int64(1), data, at, staged, n) < 0:
        return oc.NOT_PLAIN
    key, value = staged[n].key_at, staged[n].value_at
    if staged[n].key_size < 4 or staged[n].value_size < 6:
        return oc.NOT_PLAIN
    kind = be16(data, key + 2)
    if be16(data, key) < 0 or be16(data, value) < 0 or kind < 0 or kind > 1:
        return oc.NOT_PLAIN
    if scan_state.is_inspected == a.ALONE:
        return oc.NEEDS_OTHERS
    producer = intern_producer(arrays, bt.producer_of(data, at))
    if producer < 0:
        return oc.NEEDS_ROOM
    staged[n].batch = scan_state.segment + at
    staged[n].kind = a.COMMIT if kind == 1 else a.ABORT
    staged[n].producer = producer
    scan_state.staged = n + 1
    return oc.FINISHED


@part
def _is_newer_key(scan_state: a.ScanState, number: Any, data: Any, key: Any, size: Any) -> Any:
    """Return whether a key of a newer kind has a program in the scan state, UTF-8 names, and nothing after them."""
    program = scan_state.key_programs[number]
    if program == NO_PLACE or walk(scan_state, program, data, key + 2, key + size) != key + size:
        return False
    return is_plain_text(data, key + 2, size - 2) or are_names_utf8(data, key + 2, key + size)


@inlined
def value_kind(scan_state: a.ScanState, source: Any, key: Any, key_size: Any, value: Any, size: Any) -> Any:
    """Return VALUE or TOMBSTONE for a record that the programs can read through, else −1.

    Keys and values of the newer kinds of groups must end with their last field: one version number may have several
    layouts, and the first that fits the whole value is the program's.
    """
    number = be16(source, key)
    if number < 0 or number >= a.RECORD_TYPES:
        return np.int64(-1)
    if number >= a.KEY_TYPES and not _is_newer_key(scan_state, number, source, key, key_size):
        return np.int64(-1)
    if size == -1:
        return np.int64(a.TOMBSTONE)
    if size < 2:
        return np.int64(-1)
    version = be16(source, value)
    if version < 0 or version >= a.VERSIONS:
        return np.int64(-1)
    before = scan_state.one_string[U(number), U(version)]
    if before >= 0:  # numbers, one string, numbers: no need of the program
        if size < before + 2:
            return np.int64(-1)
        length = be16(source, value + before)
        fits = 0 <= length <= size - scan_state.around_string[U(number), U(version)]
        scan_state.notes[0] = a.NOTHING
        return np.int64(a.VALUE if fits else -1)
    program = scan_state.value_programs[U(number), U(version)]
    if program == NO_PLACE:
        return np.int64(-1)
    end = walk(scan_state, program, source, value + 2, value + size)
    return np.int64(a.VALUE if end == value + size or (end >= 0 and number < a.KEY_TYPES) else -1)


@inlined
def _is_read_by_all(scan_state: a.ScanState, source: Any, staged: Table[a.Staged], i: Any) -> Any:
    """Return whether releases with another layout of a value, if they are asked about, can read it too (``B-9``)."""
    size, value = staged[i].value_size, staged[i].value_at
    program = scan_state.other_programs[be16(source, staged[i].key_at)]
    return size < 0 or program == NO_PLACE or walk(scan_state, program, source, value + 2, value + size) >= 0


@inlined
def _begins_behind(scan_state: a.ScanState, data: Any, at: Any, staged: Table[a.Staged]) -> Any:
    """Return whether the first offset of a batch whose records were found is beyond the last one before."""
    return not bt.is_older(data, at) or staged[U(scan_state.staged)].offset > scan_state.last_offset


@part
def _stage_records(
    arrays: a.Arrays, staged: Table[a.Staged], source: Any, start: Any, end: Any, data: Any, at: Any
) -> Any:
    """Stage the records of the data batch at ``at``, which are in ``source[start:end]``."""
    scan_state = arrays.scan_state
    count = bt.count_of(source, start, end, data, at)
    n = scan_state.staged
    if n + count >= len(staged):
        scan_state.needed = count
        return oc.NEEDS_RECORDS
    if bt.records_of(source, start, end, count, data, at, staged, n) < 0 or not _begins_behind(
        scan_state, data, at, staged
    ):
        return oc.NOT_PLAIN
    producer_id = bt.producer_of(data, at)
    producer = np.int64(a.NOTHING)
    is_marked = bt.attributes_of(data, at) & bt.TRANSACTIONAL_MASK != 0
    if scan_state.is_inspected and is_marked != (producer_id != -1):
        return oc.NOT_PLAIN  # whether it belongs to a transaction is not the same by all rules
    if scan_state.is_inspected == a.ALONE and is_marked:
        return oc.NEEDS_OTHERS
    if is_marked if scan_state.by_bit else producer_id != -1:
        producer = intern_producer(arrays, producer_id)
        if producer < 0:
            return oc.NEEDS_ROOM
    for item in range(n, n + count):
        i = U(item)
        kind = value_kind(
            scan_state, source, staged[i].key_at, staged[i].key_size, staged[i].value_at, staged[i].value_size
        )
        if kind < 0:
            return oc.NOT_PLAIN
        if scan_state.is_inspected and not _is_read_by_all(scan_state, source, staged, i):
            return oc.NOT_PLAIN
        staged[i].kind = kind
        staged[i].batch = scan_state.segment + at
        staged[i].index = item - n
        staged[i].producer = producer
        is_commit = be16(source, staged[i].key_at) < a.KEY_TYPES and kind == a.VALUE
        staged[i].topic_id_at = scan_state.notes[0] if is_commit else np.int64(a.NOTHING)
    scan_state.staged = n + count
    return oc.FINISHED


@inlined
def _is_for_others(scan_state: a.ScanState, data: Any, at: Any, size: Any) -> Any:
    """Return whether a batch must be left to the slow path because of a bound or its size."""
    if bt.last_offset(data, at) >= scan_state.until_offset:
        return True
    return scan_state.is_inspected != 0 and size > scan_state.most_bytes


@inlined
def refusal(scan_state: a.ScanState, data: Any, at: Any, size: Any) -> Any:
    """Return why a batch is not taken before its records are looked at; FINISHED if it may be."""
    if size < 0 or not is_in_place(scan_state, data, at, size):
        return oc.NOT_PLAIN
    if bt.max_timestamp(data, at) > scan_state.until_time:
        return oc.STOPPED
    return oc.NOT_PLAIN if _is_for_others(scan_state, data, at, size) else oc.FINISHED


@inlined
def take(arrays: a.Arrays, buffers: a.Buffers, data: Any, at: Any, size: Any) -> Any:
    """Stage the batch at a position, or return why not."""
    scan_state, table = arrays.scan_state, buffers.table
    refused = refusal(scan_state, data, at, size)
    if refused != oc.FINISHED:
        return refused
    attributes = bt.attributes_of(data, at)
    in_window = attributes & bt.CODEC_MASK != 0 and attributes & bt.CONTROL_MASK == 0
    if scan_state.staged and scan_state.in_window != in_window:
        return oc.PAUSED  # what is staged stands in one place
    scan_state.in_window = in_window
    if attributes & bt.CONTROL_MASK:
        return _stage_marker(arrays, buffers.staged, data, at, size)
    source, start, end = data, bt.records_begin(data, at), at + size
    if in_window:
        place = dp.find_in_window(scan_state, table, at)
        if place < 0:
            return oc.NEEDS_WINDOW
        source, start, end = buffers.window, table[place, dp.BEGIN], table[place, dp.END]
        if end < 0:
            return oc.NOT_PLAIN
    return _stage_records(arrays, buffers.staged, source, start, end, data, at)


@inlined
def accept(scan_state: a.ScanState, data: Any, at: Any, size: Any, staged: Table[a.Staged], first: Any) -> None:
    """Count a batch whose records are staged from ``first`` on."""
    base = bt.base_offset(data, at, staged, first)
    last = bt.last_offset(data, at)
    if scan_state.first_offset == a.NOTHING:
        scan_state.first_offset = base
    else:
        missing = base - scan_state.last_offset - 1
        scan_state.missing += missing
        scan_state.gaps += missing > 0
    scan_state.last_offset = last
    scan_state.end_offset = max(scan_state.end_offset, last + 1)
    attributes = bt.attributes_of(data, at)
    kind = U((attributes >> bt.OLDER_SHIFT) * a.CODEC_IDS + (attributes & bt.CODEC_MASK))
    if scan_state.formats[kind] == 0:
        scan_state.formats_first[kind] = scan_state.batches
        scan_state.formats_at[kind] = scan_state.segment + at
    scan_state.formats[kind] += 1
    scan_state.batches += 1
    scan_state.read_bytes += size
    scan_state.records += scan_state.staged - first
    scan_state.at = at + size


@inlined
def stage(arrays: a.Arrays, buffers: a.Buffers, data: Any, begin: Any) -> Any:
    """Stage batches until there are enough of them, or one is not plain; return why it ended."""
    scan_state = arrays.scan_state
    outcome = np.int64(oc.FINISHED)
    while (
        outcome == oc.FINISHED
        and scan_state.at < scan_state.stop
        and scan_state.at - begin < scan_state.pause
        and scan_state.staged < FLUSH_AT
    ):
        at, first = scan_state.at, scan_state.staged
        size = bt.next_batch_at(scan_state, data, at, np.int64(len(data)))
        outcome = np.int64(take(arrays, buffers, data, at, size))
        if outcome == oc.FINISHED:
            accept(scan_state, data, at, size, buffers.staged, first)
    return outcome


@inlined
def outcome_of(scan_state: a.ScanState, begin: Any, outcome: Any) -> Any:
    """Return why a scan returns when all that is staged is done; GO_ON if it does not return."""
    if outcome < oc.PAUSED:
        return outcome
    if scan_state.at >= scan_state.stop:
        return np.int64(oc.FINISHED)
    return np.int64(oc.PAUSED if scan_state.at - begin >= scan_state.pause else oc.GO_ON)
