"""Put entries in order, in kernels, once their logs are read."""

from __future__ import annotations

from typing import Any

from offsets_log.columnar.history import entries as e
from offsets_log.columnar.jit.compiled import U, kernel
from offsets_log.columnar.jit.kinds import LongRows, Longs, Number


@kernel
def count(entries: LongRows, begin: Number, end: Number, keys: Longs, topic_ids: Longs) -> None:
    """Count the entries of each key, and those that name each topic id."""
    for i in range(begin, end):
        n = U(i)
        keys[U(entries[n, e.KEY])] += 1
        if entries[n, e.TOPIC_ID] >= 0:
            topic_ids[U(entries[n, e.TOPIC_ID])] += 1


@kernel
def renumber(entries: LongRows, begin: Number, end: Number, keys: Number, topic_ids: Longs, asked: Number) -> None:
    """Give entries of one log numbers that are valid for all logs.

    Args:
        keys, asked: how many keys and holders other logs have.
        topic_ids: the new number of each topic id.
    """
    for i in range(begin, end):
        n = U(i)
        entries[n, e.KEY] += keys
        if entries[n, e.TOPIC_ID] >= 0:
            entries[n, e.TOPIC_ID] = topic_ids[U(entries[n, e.TOPIC_ID])]
        if entries[n, e.HELD_BY] > 0:
            entries[n, e.HELD_BY] += asked


@kernel
def put_in_order(
    entries: LongRows, number: Number, ranks: Longs, places: Longs, latest: Longs, order: Longs, marks: Longs
) -> Any:
    """Order entries by the rank of their key, and within a key as they come; return whether their offsets ascend then.

    Args:
        ranks: the rank of each key.
        places: for each rank, where its entries begin.
        latest: for each rank, NEVER.
        marks: receives how many entries have each value of MARKS.
    """
    rises = True
    for i in range(number):
        n = U(i)
        rank = U(ranks[U(entries[n, e.KEY])])
        order[U(places[rank])] = i
        places[rank] += 1
        if entries[n, e.RECORD_OFFSET] < latest[rank]:
            rises = False
        latest[rank] = entries[n, e.RECORD_OFFSET]
        marks[U(entries[n, e.MARKS])] += 1
    return rises
