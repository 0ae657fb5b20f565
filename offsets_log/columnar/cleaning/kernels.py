"""Both passes of the cleaner over plain batches: of magic 2, with a key in each record and no headers.

Records of compressed batches are read in a window of decompressed ones (`wire.decompressed`). A compressed batch that
loses records is written plain, and noted to be compressed again. Of batches of transactions Python says first that
they may be taken; whatever is not plain stays to `offsets_log.cleaner`, whose rules these are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.cleaning.indexing import fits, newest_at
from offsets_log.columnar.cleaning.rewriting import HORIZON_MASK, can_be_rewritten, rewrite
from offsets_log.columnar.cleaning.table import has_room, last_offset, put
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs
from offsets_log.columnar.scan.staging import find_in_window
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.decompress import copy_bytes
from offsets_log.columnar.wire.primitives import be16, be32, be64
from offsets_log.log_format import batch as b

MOST_RECORD_OVERHEAD = 32
"""More bytes than a record takes beside its key and value."""
MARKER_SIZE = 78
"""Size of a transaction marker as coordinators write it."""


@inlined
def _has(open_: Any, first: Any, count: Any, producer_id: Any) -> Any:
    """Return where a producer stands among some; −1 if it does not."""
    for i in range(first, first + count):
        if open_[U(i)] == producer_id:
            return np.int64(i)
    return np.int64(-1)


@part
def _is_of_commit(round_state: Any, open_: Any, data: Any, at: Any) -> Any:
    """Return whether a transaction is to be kept, and note that it has data (``CL-15``, ``CL-16``)."""
    last = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
    producer_id = be64(data, at + bt.PRODUCER_ID)
    if (
        last >= round_state[d.NEXT_ABORTED]
        or _has(open_, np.int64(d.MOST_OPEN), round_state[d.ABORTED], producer_id) >= 0
    ):
        return False
    if _has(open_, np.int64(0), round_state[d.COMMITTED], producer_id) < 0:
        if round_state[d.COMMITTED] >= d.MOST_OPEN:
            return False
        open_[U(round_state[d.COMMITTED])] = producer_id
        round_state[d.COMMITTED] += 1
    return True


@part
def _commit_at(round_state: Any, open_: Any, data: Any, at: Any, end: Any) -> Any:
    """Return the size of the plain marker at a position; it commits a transaction with data, which ends (``CL-17``).

    Else 0, and nothing is done.
    """
    size = newest_at(data, at, end)
    unusual = bt.CODEC_MASK | HORIZON_MASK
    if size != MARKER_SIZE or be16(data, at + bt.ATTRIBUTES) & (unusual | bt.CONTROL_MASK) != bt.CONTROL_MASK:
        return np.int64(0)
    record = at + bt.HEADER_SIZE
    is_plain = be32(data, at + bt.RECORDS_COUNT) == 1 and data[U(record)] == 0x20 and data[U(record + 2)] < 0x80
    is_plain = is_plain and be32(data, record + 3) == 0x00080000 and be16(data, record + 7) == 1
    last = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
    if not is_plain or data[U(record + 9)] != 12 or data[U(record + 16)] != 0 or last >= round_state[d.NEXT_ABORTED]:
        return np.int64(0)
    found = _has(open_, np.int64(0), round_state[d.COMMITTED], be64(data, at + bt.PRODUCER_ID))
    if found < 0:
        return np.int64(0)
    round_state[d.COMMITTED] -= 1
    open_[U(found)] = open_[U(round_state[d.COMMITTED])]
    return size


@part
def _plain_at(
    round_state: Any, open_: Any, data: Any, at: Any, end: Any, staged: Any, window: Any, table: Any
) -> Any:  # fmt: skip
    """Stage the batch at a position; return how many records it has, or minus the reason why it is not taken.

    Whether they stand in the window, and how large the batch is when it is not compressed, is noted in the round state.
    """
    size = newest_at(data, at, end)
    if size < 0:
        return np.int64(oc.NOT_PLAIN)
    attributes = be16(data, at + bt.ATTRIBUTES)
    if attributes & (bt.CONTROL_MASK | bt.TIMESTAMP_TYPE_MASK):
        return np.int64(oc.NOT_PLAIN)
    source, start, stop = data, at + bt.HEADER_SIZE, at + size
    round_state[d.IN_WINDOW] = attributes & bt.CODEC_MASK != 0
    if round_state[d.IN_WINDOW]:
        place = find_in_window(round_state, table, at)
        if place < 0:
            return np.int64(oc.NEEDS_WINDOW)
        source, start, stop = window, table[place, dp.BEGIN], table[place, dp.END]
        if stop < 0:
            return np.int64(oc.NOT_PLAIN)
    round_state[d.PLAIN_SIZE] = bt.HEADER_SIZE + stop - start
    count = bt.count_of(source, start, stop, data, at)
    base = be64(data, at)
    delta = be32(data, at + bt.LAST_OFFSET_DELTA)
    if base < 0 or delta < 0 or base > bt.INT64_MAX - delta - 1 or count <= 0:
        return np.int64(oc.NOT_PLAIN)
    if count > len(staged):
        return np.int64(oc.NEEDS_RECORDS)
    if bt.records_of(source, start, stop, count, data, at, staged, np.int64(0)) != count:
        return np.int64(oc.NOT_PLAIN)
    is_open = attributes & bt.TRANSACTIONAL_MASK and round_state[d.RULE] == d.BY_KEYS
    is_open = is_open and at != round_state[d.ALLOWED_AT]
    return np.int64(oc.NOT_PLAIN) if is_open and not _is_of_commit(round_state, open_, data, at) else count


@kernel
def enter(
    round_state: Longs, slots: Longs, keys: LongRows, arena: Bytes, open_: Longs, data: Bytes, staged: LongRows,
    window: Bytes, table: LongRows,
) -> int:  # fmt: skip
    """Pass 1: keys of the batches from the position on, and where they stand."""
    at, end = round_state[d.POSITION], round_state[d.END]
    while at < end:
        round_state[d.POSITION] = at
        marker_size = _commit_at(round_state, open_, data, at, end)
        round_state[d.IN_WINDOW] = round_state[d.PLAIN_SIZE] = 0
        count = np.int64(0) if marker_size else _plain_at(round_state, open_, data, at, end, staged, window, table)
        if count < 0:
            return int(count)
        if not has_room(round_state, slots, keys, arena, count, round_state[d.PLAIN_SIZE]):
            return oc.NEEDS_ROOM
        source = window if round_state[d.IN_WINDOW] else data
        _enter_records(round_state, slots, keys, arena, source, staged, count)
        last = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
        if last >= round_state[d.FIRST_DIRTY]:
            round_state[d.LATEST] = last
        at += be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
    round_state[d.POSITION] = at
    return oc.FINISHED


@inlined
def _enter_records(
    round_state: Any, slots: Any, keys: Any, arena: Any, source: Any, staged: Any, count: Any
) -> None:  # fmt: skip
    """The keys of a batch's records, and where they stand."""
    for number in range(count):
        i = U(number)
        if staged[i, a.OFFSET] >= round_state[d.FIRST_DIRTY]:
            key, key_size = staged[i, a.KEY], staged[i, a.KEY_SIZE]
            put(round_state, slots, keys, arena, source, key, key_size, staged[i, a.OFFSET])
            round_state[d.LATEST] = staged[i, a.OFFSET]


@inlined
def _first_at(chosen: Any, offset: Any) -> Any:
    """The index of the first offset that is not below one."""
    low, high = np.int64(0), np.int64(len(chosen))
    while low < high:
        middle = low + high >> 1
        if chosen[U(middle)] < offset:
            low = middle + 1
        else:
            high = middle
    return low


@part
def _is_superseded(round_state: Any, data: Any, producers: Any, chosen: Any, at: Any) -> Any:
    """Whether a batch that pass 1 has entered goes unread: its records lie in the dirty part, and none is the last.

    Offsets of entered records rise, so that the one that stands last of a key is told by its offset.
    """
    if at >= round_state[d.KNOWN_UNTIL] or at == round_state[d.ALLOWED_AT]:
        return False
    if be16(data, at + bt.ATTRIBUTES) & (bt.CONTROL_MASK | bt.TRANSACTIONAL_MASK | HORIZON_MASK):
        return False
    base, last = be64(data, at), be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
    if base < round_state[d.FIRST_DIRTY] or last > round_state[d.LATEST] or not _is_within(round_state, data, at):
        return False
    first = _first_at(chosen, base)
    if first < len(chosen) and chosen[U(first)] <= last:
        return False
    return not _may_stay_empty(round_state, data, at, producers)


@kernel
def sift(
    round_state: Longs, slots: Longs, keys: LongRows, arena: Bytes, open_: Longs, data: Bytes, staged: LongRows,
    window: Bytes, table: LongRows, producers: Longs, chosen: Longs, out: Bytes, packs: LongRows,
) -> int:  # fmt: skip
    """Pass 2: what is kept of the batches from the position on, written behind each other.

    Args:
        chosen: offsets of records, rising: those that stay or go by the rule; if it asks the keys, where these stand
            last.
    """
    at, end = round_state[d.POSITION], round_state[d.END]
    while at < end:
        round_state[d.POSITION] = at
        if round_state[d.OUT_USED] + MARKER_SIZE > len(out) or round_state[d.PACKS] >= len(packs):
            return oc.NEEDS_ROOM
        if _take_marker(round_state, open_, data, out, at, end):
            round_state[d.LAST_AT] = at
            at += MARKER_SIZE
            continue
        if _is_superseded(round_state, data, producers, chosen, at):
            round_state[d.LAST_AT] = at
            round_state[d.CHANGED] += 1
            round_state[d.RECORDS_READ] += be32(data, at + bt.RECORDS_COUNT)
            at += be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
            continue
        count = _plain_at(round_state, open_, data, at, end, staged, window, table)
        if count < 0:
            return int(count)
        size = be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
        room = max(size, round_state[d.PLAIN_SIZE]) + MOST_RECORD_OVERHEAD * count
        if round_state[d.OUT_USED] + room > len(out):
            return oc.NEEDS_ROOM
        source = window if round_state[d.IN_WINDOW] else data
        outcome = _take(
            round_state, slots, keys, arena, open_, data, source, staged, producers, chosen, out, packs, at, size, count
        )  # fmt: skip
        if outcome != oc.FINISHED:
            return int(outcome)
        round_state[d.LAST_AT] = at
        round_state[d.RECORDS_READ] += count
        at += size
    round_state[d.POSITION] = at
    return oc.FINISHED


@inlined
def _is_within(round_state: Any, data: Any, at: Any) -> Any:
    """Return whether the log that is written may hold a batch as it is."""
    last = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
    return last < round_state[d.UNTIL_OFFSET] and fits(round_state, data, at)


@inlined
def _take_marker(round_state: Any, open_: Any, data: Any, out: Any, at: Any, end: Any) -> Any:
    """Copy a marker that commits a transaction with data; False, and nothing is done, if there is none."""
    if (
        end - at < MARKER_SIZE
        or not _is_within(round_state, data, at)
        or _commit_at(round_state, open_, data, at, end) == 0
    ):
        return False
    begin = round_state[d.OUT_USED]
    copy_bytes(data, at, out, begin, np.int64(MARKER_SIZE))
    round_state[d.OUT_USED] = begin + MARKER_SIZE
    round_state[d.LAST_KEPT] = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
    round_state[d.KEPT_MARKERS] += 1
    round_state[d.KEPT_MARKERS + 1] += 1
    round_state[d.KEPT_MARKERS + 2] += MARKER_SIZE
    round_state[d.RECORDS_READ] += 1
    return True


@part
def _take(
    round_state: Any, slots: Any, keys: Any, arena: Any, open_: Any, data: Any, source: Any, staged: Any,
    producers: Any, chosen: Any, out: Any, packs: Any, at: Any, size: Any, count: Any,
) -> Any:  # fmt: skip
    """Take one batch; return SLOW_PATH, with nothing done, if something about it is unusual."""
    has_horizon = be16(data, at + bt.ATTRIBUTES) & HORIZON_MASK
    horizon = be64(data, at + bt.BASE_TIMESTAMP) if has_horizon else np.int64(-1)
    if (has_horizon and horizon < 0) or not _is_within(round_state, data, at):
        return oc.NOT_PLAIN
    by_keys = round_state[d.RULE] == d.BY_KEYS
    if by_keys:
        keeps_tombstones = not has_horizon or round_state[d.NOW] < horizon
        kept, tombstones = _choose(round_state, slots, keys, arena, source, staged, count, keeps_tombstones)
    else:
        kept, tombstones = _choose_among(round_state, chosen, staged, count)
        if round_state[d.RULE] == d.CHOSEN_GO and kept < count:
            return oc.NOT_PLAIN
    if kept == 0:
        round_state[d.CHANGED] += 1
        return oc.NOT_PLAIN if _may_stay_empty(round_state, data, at, producers) else oc.FINISHED
    is_of_producer = be64(data, at + bt.PRODUCER_ID) != b.NO_PRODUCER_ID
    if not by_keys and is_of_producer and not _is_of_commit(round_state, open_, data, at):
        return oc.NOT_PLAIN
    last = be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA)
    begin = round_state[d.OUT_USED]
    if kept == count and (has_horizon or tombstones == 0 or not by_keys):
        copy_bytes(data, at, out, begin, size)
        round_state[d.OUT_USED] = begin + size
    else:
        round_state[d.CHANGED] += 1
        if tombstones and not has_horizon and by_keys:
            horizon = round_state[d.NEW_HORIZON]
        if not can_be_rewritten(data, at, staged, kept):
            return oc.NOT_PLAIN
        rewrite(round_state, data, at, source, staged, kept, horizon, out)
        if round_state[d.IN_WINDOW]:
            pack = U(round_state[d.PACKS])
            packs[pack, d.PACK_BEGIN] = begin
            packs[pack, d.PACK_END] = round_state[d.OUT_USED]
            packs[pack, d.PACK_REASON] = _reason(round_state, tombstones, last)
            round_state[d.PACKS] += 1
    round_state[d.LAST_KEPT] = last
    _tell(round_state, kept, tombstones, round_state[d.OUT_USED] - begin, horizon, last)
    return oc.FINISHED


@inlined
def _choose(
    round_state: Any, slots: Any, keys: Any, arena: Any, data: Any, staged: Any, count: Any, keeps_tombstones: Any
) -> Any:
    """Move the records that are kept to the begin of what is staged: how many, and how many tombstones."""
    kept, tombstones = np.int64(0), np.int64(0)
    for number in range(count):
        i = U(number)
        is_tombstone = staged[i, a.VALUE_SIZE] < 0
        if staged[i, a.OFFSET] <= round_state[d.LATEST]:
            last = last_offset(round_state, slots, keys, arena, data, staged[i, a.KEY], staged[i, a.KEY_SIZE])
            if staged[i, a.OFFSET] < last or (is_tombstone and not keeps_tombstones):
                continue
        _keep(staged, i, kept)
        kept += 1
        tombstones += is_tombstone
    return kept, tombstones


@inlined
def _keep(staged: Any, i: Any, place: Any) -> None:
    """Move what is staged of a record."""
    for column in range(a.RECORD_AT):
        staged[U(place), column] = staged[i, column]


@inlined
def _choose_among(round_state: Any, chosen: Any, staged: Any, count: Any) -> Any:
    """Choose records where single ones are named: those that stay, or those that go."""
    kept, tombstones = np.int64(0), np.int64(0)
    for number in range(count):
        i = U(number)
        low = _first_at(chosen, staged[i, a.OFFSET])
        is_named = low < len(chosen) and chosen[U(low)] == staged[i, a.OFFSET]
        if is_named == (round_state[d.RULE] == d.CHOSEN_STAY):
            _keep(staged, i, kept)
            kept += 1
            tombstones += staged[i, a.VALUE_SIZE] < 0
    return kept, tombstones


@inlined
def _may_stay_empty(round_state: Any, data: Any, at: Any, producers: Any) -> Any:
    """Return whether a batch may have to stay without records."""
    if be64(data, at) + be32(data, at + bt.LAST_OFFSET_DELTA) + 1 == round_state[d.LAST_BATCH_OFFSET]:
        return True
    producer_id = be64(data, at + bt.PRODUCER_ID)
    if producer_id >= 0:
        for i in range(round_state[d.PRODUCERS]):
            if producers[U(i)] == producer_id:
                return True
    return False


@inlined
def _reason(round_state: Any, tombstones: Any, last: Any) -> Any:
    """Return where to count why a batch that ends with an offset stays."""
    if last > round_state[d.LATEST]:
        return np.int64(d.KEPT_BEYOND)
    return np.int64(d.KEPT_TOMBSTONES if tombstones else d.KEPT_LATEST)


@inlined
def _tell(round_state: Any, kept: Any, tombstones: Any, size: Any, horizon: Any, last: Any) -> None:
    """Count a batch that stays."""
    reason = _reason(round_state, tombstones, last)
    round_state[reason] += 1
    round_state[reason + 1] += kept
    round_state[reason + 2] += size
    if tombstones and horizon >= 0:
        round_state[d.FIRST_HORIZON] = min(round_state[d.FIRST_HORIZON], horizon)
