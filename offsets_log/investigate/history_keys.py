"""Number the keys of a history's entries and their names, decode each name once, and order them."""

from __future__ import annotations

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.history import entries as k
from offsets_log.columnar.history.state import HistoryState
from offsets_log.log_format.java_text import MalformedString, decode_string, encode_string
from offsets_log.replay.partial import GroupTopicPartition

BEFORE_GROUP, BEFORE_TOPIC, PARTITION_SIZE = 4, 2, 4
"""Sizes in bytes of parts of a key.

The first comes before the group (type and the group's length), the second before the topic (its length); the third is
the partition.
"""


class Names:
    """Names by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, raw: bytes) -> int:
        """Return the number of a name, new or known."""
        if (number := self._numbers.get(raw)) is None:
            number = self._numbers[raw] = len(self.texts)
            self.texts.append(decode_string(raw))
        return number

    def ranks(self) -> a.Int64s:
        """Return the rank of each name; names that read alike have the same rank."""
        rank_of = {text: rank for rank, text in enumerate(sorted(set(self.texts)))}
        return np.array([rank_of[text] for text in self.texts], np.int64)

    def are_malformed(self) -> a.Int64s:
        """Return for each name whether it is not UTF-8."""
        return np.array([isinstance(text, MalformedString) for text in self.texts], np.int64)


class Keys:
    """The keys of logs, one log after the other.

    Attributes:
        columns: int64 columns as in `entries`; GROUP is NOTHING for keys without entries.
        counts: number of entries of each key.
    """

    def __init__(self) -> None:
        self.groups, self.topics = Names(), Names()
        self.columns = np.zeros((0, k.KEY_COLUMNS), np.int64)
        self.counts = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, number: int) -> GroupTopicPartition:
        group, topic, partition = self.columns[number, [k.GROUP, k.TOPIC, k.KEY_PARTITION]].tolist()
        return self.groups.texts[group], self.topics.texts[topic], partition

    def add(self, state: HistoryState, counts: a.Int64s, log: int) -> None:
        """Add the keys of one more log.

        Args:
            counts: number of entries of each row of raw keys.
            log: the log's number.
        """
        columns = np.zeros((len(counts), k.KEY_COLUMNS), np.int64)
        columns[:, [k.GROUP, k.TOPIC]] = a.NOTHING
        columns[:, k.LOG] = log
        rows = np.flatnonzero(counts)
        is_plain = state.arrays.rows.column(a.Row.target)[rows] == rows
        self._add_plain(state, rows[is_plain], columns)
        for row in rows[~is_plain].tolist():
            group, topic, partition = state.key(row)
            numbers = self.groups.number(encode_string(group)), self.topics.number(encode_string(topic))
            columns[row, [k.GROUP, k.TOPIC, k.KEY_PARTITION]] = *numbers, partition
        is_used = columns[:, k.GROUP] >= 0
        used = columns[is_used]
        columns[is_used, k.IS_MALFORMED] = (
            self.groups.are_malformed()[used[:, k.GROUP]] | self.topics.are_malformed()[used[:, k.TOPIC]]
        )
        self.columns = np.concatenate([self.columns, columns])
        self.counts = np.concatenate([self.counts, counts])

    def _add_plain(self, state: HistoryState, rows: a.Int64s, columns: a.Int64s) -> None:
        """Add keys of type 1 with nothing after them, whose names are UTF-8."""
        s = state.arrays
        arena, at = s.arena, s.rows.column(a.Row.key_at)[rows]
        size = _number(arena, at - a.SIZE_BYTES, (0, 8, 16, 24))
        topic_at = at + BEFORE_GROUP + _number(arena, at + BEFORE_GROUP - 2, (8, 0)) + BEFORE_TOPIC
        partition_at = at + size - PARTITION_SIZE
        columns[rows, k.KEY_PARTITION] = _number(arena, partition_at, (24, 16, 8, 0)).astype(np.int32)
        groups, group = np.unique(s.rows.column(a.Row.group)[rows], return_inverse=True)
        numbers = [self.groups.number(state.raw_name(each)) for each in groups.tolist()]
        columns[rows, k.GROUP] = np.array(numbers, np.int64)[group]
        view, number = arena.data, self.topics.number
        places = zip(topic_at.tolist(), partition_at.tolist(), strict=True)
        columns[rows, k.TOPIC] = [number(bytes(view[begin:end])) for begin, end in places]

    @property
    def are_in_several_logs(self) -> bool:
        """Whether a key has entries in more than one log."""
        return self.ranks()[1] < int((self.columns[:, k.GROUP] >= 0).sum())

    def groups_of_logs(self) -> dict[int, set[str]]:
        """Return the groups with entries, by the number of the log."""
        used = self.columns[self.columns[:, k.GROUP] >= 0]
        found: dict[int, set[str]] = {}
        for log, group in np.unique(used[:, [k.LOG, k.GROUP]], axis=0).tolist():
            found.setdefault(log, set()).add(self.groups.texts[group])
        return found

    def ranks(self) -> tuple[a.Int64s, int, int]:
        """Return the rank of each key (0 without entries), the number of keys and the number of groups."""
        used = self.columns[:, k.GROUP] >= 0
        columns, ranks = self.columns[used], np.zeros(len(self), np.int64)
        groups, topics = self.groups.ranks()[columns[:, k.GROUP]], self.topics.ranks()[columns[:, k.TOPIC]]
        _, names = np.unique(groups * (len(self.topics.texts) + 1) + topics, return_inverse=True)
        keys, ranks[used] = np.unique((names << 32) + columns[:, k.KEY_PARTITION], return_inverse=True)
        return ranks, len(keys), len(np.unique(groups))


def _number(data: a.Bytes, at: a.Int64s, shifts: tuple[int, ...]) -> a.Int64s:
    """Return numbers built from consecutive bytes, each shifted by its number of bits."""
    found = np.zeros(len(at), np.int64)
    for i, shift in enumerate(shifts):
        found |= data[at + i].astype(np.int64) << shift
    return found
