"""Pass 2 of the cleaner over plain batches: those that stay are written behind each other.

A compressed batch that loses records is written plain, and noted to be compressed again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.cleaning.indexing import fits
from offsets_log.columnar.cleaning.plain import aborted_at, is_of_commit, marker_at, plain_at, reach
from offsets_log.columnar.cleaning.rewriting import HORIZON_MASK, can_be_rewritten, rewrite, rewrite_older
from offsets_log.columnar.cleaning.table import last_offset
from offsets_log.columnar.jit.compiled import U, inlined, kernel, part
from offsets_log.columnar.jit.kinds import Bytes
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.decompress import copy_bytes
from offsets_log.columnar.wire.primitives import be32, be64
from offsets_log.log_format import batch as b

MOST_RECORD_OVERHEAD = 32
"""More bytes than a record takes beside its key and value."""


@inlined
def _first_at(chosen: Any, offset: Any) -> Any:
    """Return the index of the first offset that is not below one."""
    low, high = np.int64(0), np.int64(len(chosen))
    while low < high:
        middle = low + high >> 1
        if chosen[U(middle)] < offset:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _first_from(round_state: Any, chosen: Any, offset: Any) -> Any:
    """Do as `_first_at`, from the last place on: most offsets that are asked for rise."""
    at = round_state.chosen_at
    if at == 0 or chosen[U(at - 1)] >= offset:
        at = _first_at(chosen, offset)
    while at < len(chosen) and chosen[U(at)] < offset:
        at += 1
    round_state.chosen_at = at
    return at


@inlined
def _is_entered(round_state: Any, data: Any, at: Any, base: Any) -> Any:
    """Whether pass 1 has entered all records of a batch, so that those that stand last of a key are told by offsets.

    Offsets of entered records rise. Of transactions pass 1 may know that others abort.

    Args:
        base: the batch's base offset.
    """
    if at >= round_state.known_until or at == round_state.allowed_at:
        return False
    if bt.attributes_of(data, at) & bt.TRANSACTIONAL_MASK:
        return False
    return base >= round_state.first_dirty and bt.last_offset(data, at) <= round_state.latest


@part
def _is_superseded(round_state: Any, data: Any, sieve: d.Sieve, at: Any) -> Any:
    """Whether a batch that pass 1 has entered goes unread: none of its records is the last of its key."""
    chosen = sieve.chosen
    if not _is_entered(round_state, data, at, be64(data, at)) or not _is_within(round_state, data, at):
        return False
    attributes = bt.attributes_of(data, at)
    if attributes & (bt.CONTROL_MASK | HORIZON_MASK):
        return False
    if bt.is_older(data, at) and attributes & bt.CODEC_MASK:  # its header tells no first offset
        return False
    first = _first_from(round_state, chosen, be64(data, at))
    if first < len(chosen) and chosen[U(first)] <= bt.last_offset(data, at):
        return False
    return not _may_stay_empty(round_state, data, at, sieve.producers)


@kernel
def sift(arrays: d.RoundArrays, data: Bytes, buffers: a.Buffers, sieve: d.Sieve) -> int:
    """Pass 2: what is kept of the batches from the position on, written behind each other."""
    round_state, out = arrays.round_state, sieve.out
    at, end = round_state.position, round_state.end
    while at < end:
        round_state.position = at
        if round_state.out_used + bt.MARKER_SIZE > len(out) or round_state.packs >= len(sieve.packs):
            return oc.NEEDS_ROOM
        is_of_one = reach(arrays, data, at, end)
        if is_of_one and _take_marker(arrays, data, out, at, end):
            round_state.last_at = at
            at += bt.MARKER_SIZE
            continue
        if (
            _is_discarded(arrays, data, sieve.producers, at, end)
            if is_of_one
            else _is_superseded(round_state, data, sieve, at)
        ):
            round_state.last_at = at
            round_state.changed += 1
            round_state.records_read += np.int64(1) if bt.is_older(data, at) else be32(data, at + bt.RECORDS_COUNT)
            at += be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
            continue
        count = plain_at(arrays, data, at, end, buffers, np.int64(0))
        if count < 0:
            return int(count)
        size = be32(data, at + bt.LENGTH) + bt.LOG_OVERHEAD
        room = max(size, round_state.plain_size) + MOST_RECORD_OVERHEAD * count
        if round_state.out_used + room > len(out):
            return oc.NEEDS_ROOM
        source = buffers.window if round_state.in_window else data
        outcome = _take(arrays, data, source, buffers.staged, sieve, at, size, count)
        if outcome != oc.FINISHED:
            return int(outcome)
        round_state.last_at = at
        round_state.records_read += count
        at += size
    round_state.position = at
    return oc.FINISHED


@inlined
def _is_within(round_state: Any, data: Any, at: Any) -> Any:
    """Return whether the log that is written may hold a batch as it is."""
    last = bt.last_offset(data, at)
    return last < round_state.until_offset and fits(round_state, data, at)


@part
def _is_discarded(arrays: d.RoundArrays, data: Any, producers: Any, at: Any, end: Any) -> Any:
    """Return whether a batch goes as data of an aborted transaction, and note that this has data."""
    aborted = aborted_at(arrays, data, at, end)
    if aborted < 0 or _may_stay_empty(arrays.round_state, data, at, producers):
        return False
    arrays.aborting[U(aborted)].is_seen = 1
    return True


@inlined
def _take_marker(arrays: d.RoundArrays, data: Any, out: Any, at: Any, end: Any) -> Any:
    """Copy a marker that ends a transaction with data; False, and nothing is done, if there is none."""
    round_state = arrays.round_state
    if end - at < bt.MARKER_SIZE or not _is_within(round_state, data, at) or marker_at(arrays, data, at, end) == 0:
        return False
    begin = round_state.out_used
    copy_bytes(data, at, out, begin, np.int64(bt.MARKER_SIZE))
    if begin == 0:
        round_state.first_kept = be64(data, at)
    round_state.out_used = begin + bt.MARKER_SIZE
    round_state.last_kept = bt.last_offset(data, at)
    round_state.kept[d.KEPT_MARKERS, 0] += 1
    round_state.kept[d.KEPT_MARKERS, 1] += 1
    round_state.kept[d.KEPT_MARKERS, 2] += bt.MARKER_SIZE
    round_state.records_read += 1
    return True


@part
def _take(
    arrays: d.RoundArrays,
    data: Any,
    source: Any,
    staged: Table[a.Staged],
    sieve: d.Sieve,
    at: Any,
    size: Any,
    count: Any,
) -> Any:
    """Take one batch; return NOT_PLAIN, with nothing done, if something about it is unusual."""
    round_state = arrays.round_state
    is_older = bt.is_older(data, at)
    has_horizon = bt.attributes_of(data, at) & HORIZON_MASK
    horizon = be64(data, at + bt.BASE_TIMESTAMP) if has_horizon else np.int64(-1)
    if (has_horizon and horizon < 0) or not _is_within(round_state, data, at):
        return oc.NOT_PLAIN
    by_keys = round_state.rule == d.BY_KEYS
    kept, tombstones = _chosen(arrays, data, source, staged, sieve.chosen, at, count, horizon)
    if round_state.rule == d.CHOSEN_GO and kept < count:
        return oc.NOT_PLAIN
    if kept == 0:
        round_state.changed += 1
        return oc.NOT_PLAIN if _may_stay_empty(round_state, data, at, sieve.producers) else oc.FINISHED
    is_of_producer = bt.producer_of(data, at) != b.NO_PRODUCER_ID
    if not by_keys and is_of_producer and not is_of_commit(arrays, data, at):
        return oc.NOT_PLAIN
    last = bt.last_offset(data, at)
    begin = round_state.out_used
    if begin == 0:
        round_state.first_kept = bt.base_offset(data, at, staged, np.int64(0))
    becomes_newest = is_older and round_state.makes_newest != 0
    gets_horizon = by_keys and tombstones > 0 and not has_horizon and (becomes_newest or not is_older)
    if kept == count and not gets_horizon and not becomes_newest:
        copy_bytes(data, at, sieve.out, begin, size)
        round_state.out_used = begin + size
        round_state.last_kept = last
    else:
        round_state.changed += 1
        horizon = round_state.new_horizon if gets_horizon else horizon
        if not can_be_rewritten(round_state, data, at, staged, kept):
            return oc.NOT_PLAIN
        if becomes_newest or not is_older:
            rewrite(round_state, data, at, source, staged, kept, horizon, sieve.out)
        else:
            rewrite_older(round_state, data, at, source, staged, kept, sieve.out)
        round_state.last_kept = staged[U(kept - 1)].offset if is_older else last
        if round_state.in_window:
            _note_pack(round_state, sieve.packs, begin, _reason(round_state, tombstones, last))
    _tell(round_state, kept, tombstones, round_state.out_used - begin, horizon, last)
    return oc.FINISHED


@inlined
def _note_pack(round_state: Any, packs: Table[d.Pack], begin: Any, reason: Any) -> None:
    """Note that what was written from a position on is to be compressed again."""
    pack = packs[U(round_state.packs)]
    pack.begin = begin
    pack.end = round_state.out_used
    pack.reason = reason
    round_state.packs += 1


@inlined
def _chosen(
    arrays: d.RoundArrays,
    data: Any,
    source: Any,
    staged: Table[a.Staged],
    chosen: Any,
    at: Any,
    count: Any,
    horizon: Any,
) -> Any:
    """Move the records that are kept to the begin of what is staged: how many, and how many tombstones."""
    round_state = arrays.round_state
    if round_state.rule != d.BY_KEYS:
        return _choose_among(round_state, chosen, staged, count)
    keeps_tombstones = _keeps_tombstones(round_state, bt.is_older(data, at), horizon)
    is_entered = _is_entered(round_state, data, at, bt.base_offset(data, at, staged, np.int64(0)))
    return _choose(arrays, source, staged, chosen, count, keeps_tombstones, is_entered)


@inlined
def _keeps_tombstones(round_state: Any, is_older: Any, horizon: Any) -> Any:
    """Return whether a batch with that horizon, if it has one, keeps its tombstones (``CL-23``)."""
    if is_older:
        return round_state.keeps_old_tombstones != 0
    return horizon < 0 or round_state.now < horizon


@inlined
def _choose(
    arrays: d.RoundArrays,
    data: Any,
    staged: Table[a.Staged],
    chosen: Any,
    count: Any,
    keeps_tombstones: Any,
    is_entered: Any,
) -> Any:
    """Do as `_chosen` by the keys."""
    kept, tombstones = np.int64(0), np.int64(0)
    for number in range(count):
        i = U(number)
        is_tombstone = staged[i].value_size < 0
        if staged[i].offset <= arrays.round_state.latest:
            if is_entered:
                first = _first_from(arrays.round_state, chosen, staged[i].offset)
                is_superseded = first >= len(chosen) or chosen[U(first)] != staged[i].offset
            else:
                last = last_offset(arrays, data, staged[i].key_at, staged[i].key_size)
                is_superseded = staged[i].offset < last
            if is_superseded or (is_tombstone and not keeps_tombstones):
                continue
        _keep(staged, i, kept)
        kept += 1
        tombstones += is_tombstone
    return kept, tombstones


@inlined
def _keep(staged: Table[a.Staged], i: Any, place: Any) -> None:
    """Move what is staged of a record."""
    one, kept = staged[i], staged[U(place)]
    kept.key_at, kept.key_size = one.key_at, one.key_size
    kept.value_at, kept.value_size = one.value_at, one.value_size
    kept.offset, kept.timestamp_delta = one.offset, one.timestamp_delta


@inlined
def _choose_among(round_state: Any, chosen: Any, staged: Table[a.Staged], count: Any) -> Any:
    """Choose records where single ones are named: those that stay, or those that go."""
    kept, tombstones = np.int64(0), np.int64(0)
    for number in range(count):
        i = U(number)
        low = _first_at(chosen, staged[i].offset)
        is_named = low < len(chosen) and chosen[U(low)] == staged[i].offset
        if is_named == (round_state.rule == d.CHOSEN_STAY):
            _keep(staged, i, kept)
            kept += 1
            tombstones += staged[i].value_size < 0
    return kept, tombstones


@inlined
def _may_stay_empty(round_state: Any, data: Any, at: Any, producers: Any) -> Any:
    """Return whether a batch of data stays empty: a producer's last one, or the last of the round (``CL-21``)."""
    if bt.last_offset(data, at) + 1 == round_state.last_batch_offset:
        return True
    producer_id, low, high = bt.producer_of(data, at), np.int64(0), np.int64(len(producers))
    while low < high:
        middle = low + high >> 1
        if producers[U(middle)].producer_id < producer_id:
            low = middle + 1
        else:
            high = middle
    if producer_id < 0 or low >= len(producers) or producers[U(low)].producer_id != producer_id:
        return False
    return producers[U(low)].last_offset == bt.last_offset(data, at)


@inlined
def _reason(round_state: Any, tombstones: Any, last: Any) -> Any:
    """Return where to count why a batch that ends with an offset stays."""
    if last > round_state.latest:
        return np.int64(d.KEPT_BEYOND)
    return np.int64(d.KEPT_TOMBSTONES if tombstones else d.KEPT_LATEST)


@inlined
def _tell(round_state: Any, kept: Any, tombstones: Any, size: Any, horizon: Any, last: Any) -> None:
    """Count a batch that stays."""
    reason = _reason(round_state, tombstones, last)
    round_state.kept[reason, 0] += 1
    round_state.kept[reason, 1] += kept
    round_state.kept[reason, 2] += size
    if tombstones and horizon >= 0:
        round_state.first_horizon = min(round_state.first_horizon, horizon)
