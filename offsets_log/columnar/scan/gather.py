"""Go from places back to records: read as columns what a replay has found at places.

A place is a batch and a record's index in it. `gather` visits places in log order and copies keys and values;
`read_columns` runs column programs over the copies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar import outcomes as oc
from offsets_log.columnar.jit.compiled import U, inlined, kernel
from offsets_log.columnar.jit.kinds import Bytes, LongRows, Longs, Number
from offsets_log.columnar.wire import batches as bt
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.columnar.wire.primitives import be16, be32, be64, uvarint, walk

# Columns of the table that `gather` fills.
(
    KEY,  # position of its bytes in the copy
    KEY_SIZE,
    VALUE,
    VALUE_SIZE,
    PRODUCER_ID,
    PRODUCER_EPOCH,
    COLUMNS,
) = range(7)


@inlined
def _copy(source: Any, start: Any, size: Any, target: Any, at: Any) -> None:
    for i in range(size):
        target[U(at + i)] = source[U(start + i)]


@inlined
def _find_in_window(batches: Any, at: Any, progress: Any) -> Any:
    while progress[3] < progress[2] and batches[progress[3], dp.BATCH_AT] < at:
        progress[3] += 1
    return progress[3] < progress[2]


@kernel
def gather(
    data: Bytes,
    segment_at: Number,
    places: LongRows,
    progress: Longs,
    buffers: a.Buffers,
    copied: Bytes,
    table: LongRows,
) -> Any:
    """Copy the records at ascending places of one segment.

    Args:
        segment_at: where the segment begins in the log.
        places: int64[n, 2]: batch, index.
        progress: int64[4]: places done, bytes of ``copied`` used, batches in the window, the next of them.
        buffers: with the remaining compressed batches among the places.
        table: int64[n, COLUMNS].
    """
    staged, batches = buffers.staged, buffers.table
    begin = np.int64(-1)
    count = np.int64(0)
    source, start, end = data, np.int64(0), np.int64(0)
    for i in range(progress[0], len(places)):
        at = places[i, 0] - segment_at
        if at != begin:
            size = bt.batch_at(data, at, np.int64(len(data)))
            if size < 0:
                return oc.LOST
            source, start, end = data, bt.records_begin(data, at), at + size
            if bt.attributes_of(data, at) & bt.CODEC_MASK:
                if not _find_in_window(batches, at, progress):
                    return oc.NEEDS_WINDOW
                source = buffers.window
                start, end = batches[progress[3], dp.BEGIN], batches[progress[3], dp.END]
                if end < 0:
                    return oc.LOST
            declared = bt.count_of(source, start, end, data, at)
            if declared > len(staged):
                return oc.NEEDS_RECORDS
            count = bt.records_of(source, start, end, declared, data, at, staged, np.int64(0))
            begin = at
        if places[i, 1] >= count:
            return oc.LOST
        record = places[i, 1]
        key_size, value_size = staged[record].key_size, max(staged[record].value_size, np.int64(0))
        used = progress[1]
        value = used + key_size
        if value + value_size > len(copied):
            return oc.NEEDS_ROOM
        _copy(source, staged[record].key_at, key_size, copied, used)
        _copy(source, staged[record].value_at, value_size, copied, value)
        table[i, KEY] = used
        table[i, KEY_SIZE] = key_size
        table[i, VALUE] = value
        table[i, VALUE_SIZE] = staged[record].value_size
        table[i, PRODUCER_ID] = bt.producer_of(data, at)
        table[i, PRODUCER_EPOCH] = bt.producer_epoch(data, at)
        progress[0] = i + 1
        progress[1] = value + value_size
    return np.int64(oc.FINISHED)


class ColumnPrograms(NamedTuple):
    """The programs that read all versions of a message.

    Attributes:
        begins, flexible: for each version where its program begins, and whether its lengths are compact.
        sizes: size of each noted field in bytes; 0 for a string.
    """

    begins: Longs
    flexible: Longs
    sizes: Longs


@kernel
def read_columns(
    scan_state: a.ScanState, programs: ColumnPrograms, copied: Bytes, table: LongRows, at: Number, numbers: LongRows,
    texts: LongRows,
) -> None:  # fmt: skip
    """Run column programs over copied keys or values, each chosen by their leading int16.

    Args:
        scan_state: holds the programs; see `arrays`.
        at: the column of ``table`` with the position; the next column holds the size.
        numbers: int64[n, fields], receives numbers, and positions of strings and uuids; missing fields are left
            unchanged.
        texts: int64[n, fields], receives sizes of the strings.
    """
    flexible, sizes = programs.flexible, programs.sizes
    for i in range(len(table)):
        start = table[i, at]
        end = start + table[i, at + 1]
        if end - start < 2:
            continue
        version = be16(copied, start)
        walk(scan_state, programs.begins[version], copied, start + 2, end)
        for field in range(len(sizes)):
            place = scan_state.notes[field]
            if place < 0:
                continue
            if sizes[field] == 8:
                numbers[i, field] = be64(copied, place)
            elif sizes[field] == 4:
                numbers[i, field] = be32(copied, place)
            elif sizes[field] == 0 and flexible[version]:
                size, numbers[i, field] = uvarint(copied, place, end)
                texts[i, field] = size - 1
            elif sizes[field] == 0:
                numbers[i, field] = place + 2
                texts[i, field] = be16(copied, place)
            else:
                numbers[i, field] = place
