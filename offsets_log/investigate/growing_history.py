"""Compute the history of one partition in bulk while its log grows: entries are handed out and then forgotten.

What stays is what later records need: the answers for keys, open transactions with their entries, and who holds what.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.history import entries as k
from offsets_log.columnar.history.fold import HistoryPiece
from offsets_log.columnar.history.state import HistoryState, ShowsGroup, ShowsKey
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.columnar.scan.reading import Cursor, Note, ScanOrder
from offsets_log.investigate.bulk_history import BulkHistory, OrderedHistory, Read
from offsets_log.investigate.history_keys import Keys
from offsets_log.investigate.holders import TopicIds, holders_of
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.partial import GroupTopicPartition
from offsets_log.replay.profile import Profile

MANY_MEMBERS = 1 << 12
"""So many members of the past are kept at least before they are forgotten."""
TEXTS = (k.MEMBER_ID, k.INSTANCE_ID, k.CLIENT_ID, k.HOST)


class _Array:
    """An array in memory that can be made twice as long."""

    def __init__(self, kind: type, shape: tuple[int, ...]) -> None:
        self.array: Any = np.zeros(shape, kind)

    def grow(self) -> None:
        """Make it twice as long."""
        self.array = np.concatenate([self.array, np.zeros_like(self.array)])


class GrowingHistory(BulkHistory):
    """The entries of one partition since they were last let go.

    Attributes:
        told: how many entries there are of earlier pieces, whose transactions are open.
    """

    def __init__(self, profile: Profile, shows_group: ShowsGroup, shows_key: ShowsKey | None) -> None:
        super().__init__(profile, shows_group, shows_key, _Array)
        self.told = 0
        self._members_kept, self._text_kept = self.members_count, 0
        self._members_asked = MANY_MEMBERS
        self._state = HistoryState(
            profile, shows_group, shows_key, self.entries, self.texts, self.members, self._counts, holders_of
        )

    def take(self, order: ScanOrder, cursor: Cursor, scanner: Scanner, note: Note) -> None:
        """Read the records that came since the last call.

        Raises:
            BeyondError: they hold something that only `history.History`, which reads record by record, can take.
        """
        HistoryPiece(order, cursor, scanner, note, self._state).run(order.end, lambda size_bytes: None)

    def new(self, log: PartitionLog, *sources: Mapping[bytes, str]) -> OrderedHistory:
        """Return the entries since `let_go`, in log order.

        Args:
            sources: topic id → name; these come before the names in the log's own records.
        """
        known, names = self.keys, self._state.topic_names()
        self.keys = Keys()
        self.keys.groups, self.keys.topics = known.groups, known.topics
        self.logs, self._asked_later = [Read(log, names)], []
        self._adopt(self._state, self.told)
        ids = TopicIds(*sources, names)
        self._find_members(ids)
        order = self._in_order()
        marks = np.bincount(self.entries.array[self.told : len(self), k.MARKS], minlength=k.ALL_MARKS)
        used = np.flatnonzero(self.keys.counts)
        groups = np.unique(self.keys.columns[used, k.GROUP])
        return OrderedHistory(self, order, marks, len(used), len(groups), ids)

    def _in_order(self) -> a.Int64s:
        """Return the numbers of the new entries in log order; entries of one record are sorted by their keys."""
        order = np.arange(self.told, len(self), dtype=np.int64)
        entries = self.entries.array[self.told : len(self)]
        is_same = np.flatnonzero(entries[1:, k.RECORD_OFFSET] == entries[:-1, k.RECORD_OFFSET])
        for run in np.split(is_same, np.flatnonzero(np.diff(is_same) > 1) + 1) if len(is_same) else ():
            begin, end = int(run[0]), int(run[-1]) + 2
            keys = [self.keys[number] for number in entries[begin:end, k.KEY].tolist()]
            order[begin:end] = [self.told + begin + i for i in sorted(range(end - begin), key=keys.__getitem__)]
        return order

    def new_keys(self) -> set[GroupTopicPartition]:
        """Return the keys of the entries in what `new` returned last."""
        groups, topics = self.keys.groups.texts, self.keys.topics.texts
        used = self.keys.columns[self.keys.counts > 0]
        return {
            (groups[group], topics[topic], partition)
            for group, topic, partition in used[:, [k.GROUP, k.TOPIC, k.KEY_PARTITION]].tolist()
        }

    def let_go(self) -> None:
        """Forget all entries but those of open transactions, which their ends need."""
        self._keep_open()
        if self.members_count > self._members_asked:
            self._keep_members()
            self._members_asked = 2 * self.members_count + MANY_MEMBERS
        self._keep_texts()

    def _keep_open(self) -> None:
        opens, entries = self._state.opens, self.entries.array
        used = np.flatnonzero(opens[:, k.NEWEST])
        kept: list[int] = []
        for entry in (opens[used, k.NEWEST] - 1).tolist():
            while entry >= 0:
                kept.append(entry)
                entry = int(entries[entry, k.OLDER]) - 1
        kept.sort()
        old = np.array([-1, *kept], np.int64)
        rows = entries[kept]
        rows[:, k.OLDER] = np.searchsorted(old, rows[:, k.OLDER] - 1)
        opens[used, k.NEWEST] = np.searchsorted(old, opens[used, k.NEWEST] - 1)
        entries[: len(kept)] = rows
        self._counts[k.ENTRIES] = self.told = len(kept)

    def _keep_members(self) -> None:
        """Forget members that left their groups, and who held a partition where the holder is such a member."""
        state, rows = self._state, self._state.arrays.rows
        first = state.lives[rows.column(a.Row.group), k.FIRST_MEMBER]
        state.held[state.held[:, k.HOLDER] < first, k.HOLDER] = k.NOBODY
        kept = np.unique(np.concatenate([[k.NOBODY], state.held[:, k.HOLDER], state.lives[:, k.ONLY_MEMBER]]))
        self.members.array[: len(kept)] = self.members.array[kept]
        for array, column in (
            (state.held, k.HOLDER),
            (state.lives, k.ONLY_MEMBER),
            (state.lives, k.FIRST_MEMBER),
        ):
            array[:, column] = np.searchsorted(kept, array[:, column])
        self._counts[k.MEMBERS] = len(kept)
        self._member_numbers.clear()
        self._members_kept, self._text_kept = k.NOBODY + 1, 0
        asked, held_by = state.slow_path.asked_later, state.lives[:, k.HELD_BY_NOW]
        used = np.unique(held_by[held_by > 0])
        asked[:] = [asked[number - 1] for number in used.tolist()]
        held_by[held_by > 0] = np.searchsorted(used, held_by[held_by > 0]) + 1

    def _keep_texts(self) -> None:
        """Forget all texts but those of members."""
        texts, members = self.texts.array, self.members.array
        found: list[bytes] = []
        end = self._text_kept
        for number in range(self._members_kept, self.members_count):
            for column in TEXTS:
                at, size = members[number, column : column + 2].tolist()
                if size > 0:
                    found.append(texts[at : at + size].tobytes())
                    members[number, column] = end
                    end += size
        texts[self._text_kept : end] = np.frombuffer(b"".join(found), np.uint8)
        self._counts[k.TEXT_USED] = self._text_kept = end
        self._members_kept = self.members_count
