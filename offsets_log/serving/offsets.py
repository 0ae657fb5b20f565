"""Committed offsets of many groups as columns, of which those of one group are a run of neighbours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Longs = npt.NDArray[np.int64]

NO_LEADER_EPOCH = -1
COLUMNS = ("group", "topic", "partition", "committed_offset", "leader_epoch", "metadata")
"""Those of `rows.tables.COMPACT_COLUMNS` that clients are answered."""


CommittedOffset = tuple[int, int, int, str]
"""Partition, committed offset, leader epoch or −1 where none was committed, metadata."""


class CommittedOffsets:
    """The offsets of all groups, by group, topic and partition."""

    def __init__(self, tables: Sequence[tuple[pa.Table, Collection[str]]]) -> None:
        """Args:
        tables: rows with `COLUMNS` of an offsets partition, in any order, and the groups that it has: the offsets of
            others are left out.
        """
        columns = [
            pa.chunked_array([chunk for table, _ in tables for chunk in table[name].chunks], table_type)
            for name, table_type in zip(COLUMNS, _TYPES, strict=True)
        ]
        names, group = _numbered(columns[0])
        self._topics, topic = _numbered(columns[1])
        self._texts, text = _numbered(columns[5])
        partition, committed_offset, leader_epoch = map(_longs, columns[2:5])
        is_served = np.zeros(len(group), np.bool_)
        first = 0
        for table, groups in tables:
            rows = slice(first, first := first + len(table))
            is_served[rows] = np.array([name in groups for name in names], np.bool_)[group[rows]]
        order = np.lexsort((partition, topic, group))
        order = order[is_served[order]]
        self._topic, self._partition, self._committed_offset, self._leader_epoch, self._text = (
            column[order] for column in (topic, partition, committed_offset, leader_epoch, text)
        )
        bounds = np.searchsorted(group[order], np.arange(len(names) + 1)).tolist()
        self._rows = dict(zip(names, pairwise(bounds), strict=True))

    def __len__(self) -> int:
        return len(self._topic)

    def of(self, group: str) -> dict[str, list[CommittedOffset]]:
        """Return topic → its partitions with an offset, both rising; nothing for a group without offsets."""
        first, end = self._rows.get(group, (0, 0))
        begins = [first, *(np.flatnonzero(np.diff(self._topic[first:end])) + first + 1).tolist(), end]
        return {
            self._topics[self._topic[begin]]: self._offsets(begin, behind)
            for begin, behind in pairwise(begins)
            if behind > begin
        }

    def _offsets(self, begin: int, end: int) -> list[CommittedOffset]:
        columns = (self._partition, self._committed_offset, self._leader_epoch)
        texts = map(self._texts.__getitem__, self._text[begin:end].tolist())
        return list(zip(*(column[begin:end].tolist() for column in columns), texts, strict=True))

    def highest(self) -> dict[str, dict[int, int]]:
        """Return topic → partition → the highest offset that any group has committed there."""
        found: dict[str, dict[int, int]] = {}
        places, place_of = np.unique((self._topic << 32) + (self._partition & 0xFFFFFFFF), return_inverse=True)
        highest = np.full(len(places), np.iinfo(np.int64).min)
        np.maximum.at(highest, place_of, self._committed_offset)
        partitions = (places & 0xFFFFFFFF).astype(np.uint32).astype(np.int32)
        for topic, partition, offset in zip(
            (places >> 32).tolist(), partitions.tolist(), highest.tolist(), strict=True
        ):
            found.setdefault(self._topics[topic], {})[partition] = offset
        return found


_TYPES = (pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int32(), pa.string())


def _numbered(column: pa.ChunkedArray) -> tuple[list[str], Longs]:
    """Return the distinct texts of a column, rising, and the number of each row's; a null is an empty text."""
    encoded = column.fill_null("").combine_chunks().dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    return [names[number] for number in order], rank[encoded.indices.to_numpy()]


def _longs(column: pa.ChunkedArray) -> Longs:
    made: Longs = column.fill_null(NO_LEADER_EPOCH).to_numpy().astype(np.int64)
    return made
