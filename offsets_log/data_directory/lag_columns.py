"""`LAG_COLUMNS` of a whole table of committed offsets: by partition, not by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsets_log.columnar.materialize.arrow import numbers, schema_of
from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.lag import HIGH_WATERMARK, LAG_COLUMNS, LOG_END, behind_ms

Longs = npt.NDArray[np.int64]

_MOST = np.iinfo(np.int64).max
_FROM = (LOG_END, HIGH_WATERMARK)


def lag_table(logs: CopiedLogs, table: pa.Table, now_ms: int | None) -> pa.Table:
    """Return what `data_directory.lag.with_lag` adds to the rows of a table, in their order.

    Args:
        table: ``topic``, ``partition``, ``topic_id``, ``commit_timestamp_ms`` and ``committed_offset`` of each row.
        now_ms: as there.
    """
    topics = table["topic"].combine_chunks().dictionary_encode()
    names = topics.dictionary.to_pylist()
    committed = _longs(table["committed_offset"])
    places, place_of = np.unique((_longs(topics.indices) << 32) + _longs(table["partition"]), return_inverse=True)
    keys = [(names[place >> 32], place & 0xFFFFFFFF) for place in places.tolist()]
    keys = [(topic, partition - (partition >> 31 << 32)) for topic, partition in keys]  # a hostile one is negative
    order = np.lexsort((committed, place_of))
    offsets, rank, bounds = _distinct(committed[order], place_of[order], len(keys))
    asked = {key: offsets[bounds[i] : bounds[i + 1]] for i, key in enumerate(keys)}
    logs.look_at(asked)
    if now_ms is None:
        now_ms = logs.newest_timestamp_ms
    ends = [logs.ends(*key) for key in keys]
    is_there = np.array([end is not None for end in ends], np.bool_)
    starts = np.array([0 if end is None else end.log_start_offset for end in ends], np.int64)
    stops = np.array([0 if end is None else end.end_offset for end in ends], np.int64)
    sources = np.array([end is not None and end.is_by_high_watermark for end in ends], np.int32)
    ages = [
        None if end is None else behind_ms(end, offset, now_ms)
        for key, end in zip(keys, ends, strict=True)
        for offset in asked[key]
    ]
    age_of_row = np.empty(len(committed), np.int64)
    age_of_row[order] = rank
    here, stop = is_there[place_of] & _is_of_copy(logs, table, keys, place_of), stops[place_of]
    fits = here & (committed >= stop - _MOST)
    age = np.array([0 if age is None else age for age in ages], np.int64)
    is_aged = np.array([age is not None for age in ages], np.bool_)
    told = pa.DictionaryArray.from_arrays(numbers(sources[place_of], here), pa.array(_FROM))
    columns = [
        numbers(starts[place_of], here),
        numbers(stop, here),
        numbers(np.where(fits, stop - np.where(fits, committed, stop), 0), fits),
        numbers(age[age_of_row], is_aged[age_of_row] & here),
        told.cast(pa.string()),
    ]
    return pa.table(columns, schema=schema_of(LAG_COLUMNS))


def _is_of_copy(
    logs: CopiedLogs, table: pa.Table, keys: list[tuple[str, int]], place_of: Longs
) -> npt.NDArray[np.bool_]:
    """Return for each row whether the copy of its partition is of the topic that the offset was committed for."""
    ids = table["topic_id"].combine_chunks().dictionary_encode()
    has_id = ids.is_valid().to_numpy(zero_copy_only=False)
    made = np.ones(len(ids), np.bool_)
    committed_ms = _longs(table["commit_timestamp_ms"].fill_null(-1))
    for row in np.flatnonzero(~has_id & _may_be_former(logs, keys, place_of, committed_ms)).tolist():
        topic, partition = keys[place_of[row]]
        made[row] = logs.ends_for(topic, partition, None, int(committed_ms[row])) is not None
    if not has_id.any():
        return made
    names = ids.dictionary.to_pylist()
    pairs, pair_of = np.unique((place_of << 32) + _longs(ids.indices.fill_null(len(names))), return_inverse=True)
    names.append(None)
    told = [(*keys[pair >> 32], names[pair & 0xFFFFFFFF]) for pair in pairs.tolist()]
    return made & np.array([logs.ends_for(*one) is not None for one in told], np.bool_)[pair_of]


def _may_be_former(
    logs: CopiedLogs, keys: list[tuple[str, int]], place_of: Longs, committed_ms: Longs
) -> npt.NDArray[np.bool_]:
    """Return for each row whether a topic of that name was made after the commit."""
    newest = np.array([logs.newest_made_ms(topic) for topic, _ in keys], np.int64)
    return (committed_ms > 0) & (committed_ms < newest[place_of]) if len(keys) else committed_ms > 0


def _longs(column: pa.ChunkedArray | pa.Array) -> Longs:
    made: Longs = column.to_numpy().astype(np.int64)
    return made


def _distinct(committed: Longs, place: Longs, count: int) -> tuple[list[int], Longs, Longs]:
    """Of offsets in the order of their places the distinct ones, each row's number among these, and places' bounds."""
    if not len(committed):
        return [], np.empty(0, np.int64), np.zeros(count + 1, np.int64)
    is_new = np.concatenate([[True], (committed[1:] != committed[:-1]) | (place[1:] != place[:-1])])
    bounds = np.searchsorted(place[is_new], np.arange(count + 1))
    return committed[is_new].tolist(), np.cumsum(is_new) - 1, bounds.astype(np.int64)
