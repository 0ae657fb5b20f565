"""Find the entries that are due in a segment's indexes: of batches that are written, and of those that stand in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.cleaning import producers as pr
from offsets_log.columnar.cleaning import round_state as d
from offsets_log.columnar.jit.compiled import U, inlined, kernel
from offsets_log.columnar.jit.kinds import Bytes, Number
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire.primitives import be32, be64

UNCHECKED, CHECKED, BY_LAST_OFFSET = range(3)
"""What is followed: batches of any magic, whatever their checksums; those with right ones, but for compressed ones of
magic 0 and 1, whose headers tell no first offset; these, too."""


@inlined
def newest_at(data: Any, at: Any, end: Any) -> Any:
    """Return the size of the batch of magic 2 that a position seems to hold, or NOT_PLAIN."""
    if end - at < bt.HEADER_SIZE or bt.is_older(data, at):
        return np.int64(oc.NOT_PLAIN)
    return bt.size_at(data, at, end)


@inlined
def fits(round_state: Any, data: Any, at: Any) -> Any:
    """Return whether a batch's last offset can be in the segment that is written."""
    return 0 <= bt.last_offset(data, at) - round_state.base_offset < bt.MAX_OFFSETS_IN_SEGMENT


@inlined
def _checked_at(data: Any, at: Any, end: Any, takes: Any) -> Any:
    """Return the size of a batch that `follow` takes by its size, form and checksum, or NOT_PLAIN."""
    if takes == UNCHECKED:
        return bt.size_at(data, at, end)
    size = bt.batch_at(data, at, end)
    is_compressed = size >= 0 and bt.is_older(data, at) and bt.attributes_of(data, at) & bt.CODEC_MASK != 0
    return np.int64(oc.NOT_PLAIN) if is_compressed and takes == CHECKED else size


@inlined
def _index(round_state: Any, due: Any, size: Any, last: Any, latest: Any) -> None:
    """Note the entries that are due in the indexes before a batch of that size (``CL-41``, ``CL-42``)."""
    if latest > round_state.latest_time:
        round_state.latest_time = latest
        round_state.latest_time_offset = last
    position = round_state.size
    if position - round_state.indexed_at > round_state.interval:
        entry = due[U(round_state.due)]
        entry.offset = last
        entry.position = position
        entry.time = round_state.latest_time
        entry.time_offset = round_state.latest_time_offset
        round_state.due += 1
        round_state.indexed_at = position
    round_state.size = position + size


@kernel
def index(round_state: d.RoundState, data: Bytes, due: Table[d.Due], begin: Number) -> Any:
    """Note which entries are due for batches that were written, the first of them behind the state's size.

    Args:
        data: whole batches.
        begin: where the first of them is.

    Returns:
        Where to go on when the entries were taken; at the end of the data nothing is left to do.
    """
    at = np.int64(begin)
    while at < len(data) and round_state.due < len(due):
        size = bt.size_of(data, at)
        _index(round_state, due, size, bt.last_offset(data, at), bt.max_timestamp(data, at))
        at += size
    return at


@kernel
def follow(
    round_state: d.RoundState, data: Bytes, due: Table[d.Due], told: pr.Told, producers: Table[pr.Producer],
    ended: Table[pr.Ended], takes: Number,
) -> int:  # fmt: skip
    """Count and index unchanged batches from a position on that have no new epoch.

    Each begins after the last offset of the one before, and ends below the round state's bound; those of producers are
    as plain as `producers.take` asks for.

    Args:
        takes: UNCHECKED, CHECKED or BY_LAST_OFFSET.
    """
    at, end = round_state.position, round_state.end
    while at < end:
        round_state.position = at
        size = _checked_at(data, at, end, takes)
        if size < 0 or bt.leader_epoch(data, at) > round_state.epoch:
            return oc.NOT_PLAIN
        last = bt.last_offset(data, at)
        if not round_state.latest < be64(data, at) <= last < round_state.until_offset:
            return oc.NOT_PLAIN
        if not fits(round_state, data, at):
            return oc.NOT_PLAIN
        if round_state.due >= len(due) or told.ended >= len(ended):
            return oc.NEEDS_ROOM
        if bt.producer_of(data, at) >= 0 and not pr.take(told, producers, ended, data, at):
            return oc.NOT_PLAIN
        _index(round_state, due, size, last, bt.max_timestamp(data, at))
        round_state.latest = last
        round_state.last_at = at
        is_older = bt.is_older(data, at)
        round_state.last_newest = round_state.last_newest if is_older else last
        round_state.records_read += np.int64(1) if is_older else be32(data, at + bt.RECORDS_COUNT)
        at += size
    round_state.position = at
    return oc.FINISHED
