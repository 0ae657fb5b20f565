"""The history of keys in bulk: entries by kernels, put in order, and rows of `history.history_row` made of them.

An entry here is a row of numbers (`columnar.history.kernels`). `line_of` and its like make the `Entry` that it stands
for, so that what a row says is told in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.history import kernels as k
from offsets_log.columnar.history import lines as ln
from offsets_log.columnar.history.fold import Growing, HistoryState, ShowsGroup, ShowsKey, read_history
from offsets_log.columnar.scan.reading import Advance, Note
from offsets_log.investigate.history import Entry, history_row
from offsets_log.investigate.holders import NOBODY, Holder, Holders, TopicIds, holders_of
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import MalformedString, Uuid, decode_string
from offsets_log.pipeline import Until
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata
from offsets_log.replay.profile import Profile
from offsets_log.tables import Row

CHUNK = 1 << 15
"""Entries that are made rows at a time."""
ONE_STEP = 1 << 10


@dataclass(frozen=True, slots=True)
class _Read:
    """A log that was read: its place among the logs, and its first entry and key."""

    log: PartitionLog
    first_entry: int
    first_key: int
    topic_names: Mapping[bytes, str]


class BulkHistory:
    """The entries of logs, one after the other.

    Args:
        shows_group, shows_key: as of `history.History`; None shows all keys.
        scratch: (type, shape) → an array that grows.

    Attributes:
        keys: of the entries, by their numbers; None for those without.
        holders: by their numbers.
    """

    def __init__(
        self,
        profile: Profile,
        shows_group: ShowsGroup,
        shows_key: ShowsKey | None,
        scratch: Callable[[Any, tuple[int, ...]], Growing],
    ) -> None:
        self.profile = profile
        self.shows_group, self.shows_key = shows_group, shows_key
        self.entries = scratch(np.int64, (1 << 14, k.ENTRY_SIZE))
        self.texts = scratch(np.uint8, (1 << 18,))
        self.keys: list[GroupTopicPartition | None] = []
        self.logs: list[_Read] = []
        self._scratch = scratch
        self._counts = np.zeros(k.COUNTS, np.int64)
        self.holders: list[Holders] = []
        self._topic_ids: list[bytes] = []
        self._topic_id_numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return int(self._counts[k.ENTRIES])

    # ---------------------------------------------------------------------------------------- reading

    def read(
        self, log: PartitionLog, *, note: Note, until: Until, release: tuple[int, int] | None, advance: Advance
    ) -> int:
        """The entries of one more log; how many there are.

        Raises:
            BeyondError: only `history.History` can read it.
        """
        state = HistoryState(
            self.profile, self.shows_group, self.shows_key, self.entries, self.texts, self._counts, holders_of
        )
        first = len(self)
        read_history(log, state, note=note, until=until, release=release, advance=advance)
        self.logs.append(_Read(log, first, len(self.keys), state.topic_names()))
        self._adopt(state, first)
        return len(self) - first

    def _adopt(self, state: HistoryState[Holders], first: int) -> None:
        """Keys, holders and topic ids by numbers that are good for all logs."""
        entries = self.entries.array[first : len(self)]
        used = np.zeros(int(state.arrays.desk[a.ROWS]), np.int64)
        ln.count_keys(entries, 0, len(entries), used)
        ids = np.full(int(state.arrays.desk[a.GROUPS]) + 1, a.NOTHING, np.int64)
        for begin in range(0, len(entries), CHUNK):
            ids[entries[begin : begin + CHUNK, k.TOPIC_ID]] = 0
        ids[a.NOTHING] = a.NOTHING
        for number in np.flatnonzero(ids >= 0).tolist():
            ids[number] = self._topic_id(state.raw_name(number))
        for begin in range(0, len(entries), CHUNK):
            part = entries[begin : begin + CHUNK]
            part[:, k.KEY] += len(self.keys)
            part[:, k.TOPIC_ID] = ids[part[:, k.TOPIC_ID]]
            part[part[:, k.HOLDERS] >= 0, k.HOLDERS] += len(self.holders)
        self.keys += [state.key(row) if count else None for row, count in enumerate(used.tolist())]
        self.holders += state.holders

    def _topic_id(self, raw: bytes) -> int:
        if raw not in self._topic_id_numbers:
            self._topic_id_numbers[raw] = len(self._topic_ids)
            self._topic_ids.append(raw)
        return self._topic_id_numbers[raw]

    # ---------------------------------------------------------------------------------------- in order

    def ordered(self, *sources: Mapping[bytes, str]) -> OrderedHistory:
        """All entries in the order of `history.history_order`.

        Args:
            sources: topic id → name, before what the logs' own records say.
        """
        ids = TopicIds(*sources, *(read.topic_names for read in self.logs))
        ranked = sorted({key for key in self.keys if key is not None})
        rank_of = {key: rank for rank, key in enumerate(ranked)}
        ranks = np.array([0 if key is None else rank_of[key] for key in self.keys], np.int64)
        counts = np.zeros(len(self.keys), np.int64)
        ln.count_keys(self.entries.array, 0, len(self), counts)
        sums = np.bincount(ranks, weights=counts, minlength=len(ranked)).astype(np.int64)
        order = self._scratch(np.int64, (max(1, len(self)),)).array[: len(self)]
        places, latest = np.cumsum(sums) - sums, np.full(len(ranked), a.NEVER, np.int64)
        if not ln.put_in_order(self.entries.array, len(self), ranks, places, latest, order):
            entries = self.entries.array[: len(self)]
            order[:] = np.lexsort((entries[:, k.RECORD_OFFSET], ranks[entries[:, k.KEY]]))
        return OrderedHistory(self, order, len(ranked), len({group for group, _, _ in ranked}), ids)

    def holder_of(self, entry: Sequence[int], ids: TopicIds) -> Holder | None:
        """Who held the partition of a commit then."""
        if entry[k.HOLDERS] < 0:
            return None
        _, topic, partition = self.key_of(entry)
        own = [self._topic_ids[entry[k.TOPIC_ID]]] if entry[k.TOPIC_ID] >= 0 else []
        is_plain = entry[k.MARKS] // k.OUTCOME & k.MASK == k.PLAIN
        return self.holders[entry[k.HOLDERS]].of(topic, partition, [*own, *ids.of(topic)], is_plain=is_plain)

    def key_of(self, entry: Sequence[int]) -> GroupTopicPartition:
        """The key of an entry."""
        key = self.keys[entry[k.KEY]]
        assert key is not None
        return key

    def entry_of(self, entry: Sequence[int]) -> Entry:
        """What a row of numbers stands for."""
        key, marks = self.key_of(entry), entry[k.MARKS]
        event = marks // k.EVENT & k.MASK
        outcome = marks // k.OUTCOME & k.MASK
        is_commit = event == k.COMMIT
        return entry_with(
            key=key,
            marks=marks,
            record_offset=entry[k.RECORD_OFFSET],
            timestamp_ms=entry[k.TIMESTAMP],
            effective=(entry[k.EFFECTIVE], entry[k.EFFECTIVE_RECORD]) if entry[k.EFFECTIVE_RECORD] != a.NEVER else None,
            value=self._value_of(entry) if is_commit else None,
            producer_id=entry[k.PRODUCER_ID] if outcome != k.PLAIN else None,
            holders=self.holders[entry[k.HOLDERS]] if is_commit else NOBODY,
        )

    def _value_of(self, entry: Sequence[int]) -> OffsetAndMetadata:
        at, size, topic_id = entry[k.METADATA_AT], entry[k.METADATA_SIZE], entry[k.TOPIC_ID]
        return offset_of(
            self.key_of(entry),
            entry[k.COMMITTED],
            entry[k.RECORD_OFFSET],
            leader_epoch=None if entry[k.LEADER_EPOCH] == -1 else entry[k.LEADER_EPOCH],
            metadata=decode_string(self.texts.array[at : at + size].tobytes()),
            commit_timestamp_ms=entry[k.COMMIT_TIMESTAMP],
            topic_id=str(Uuid(self._topic_ids[topic_id])) if topic_id >= 0 else None,
        )


def offset_of(key: GroupTopicPartition, committed_offset: int, record_offset: int, **columns: Any) -> OffsetAndMetadata:
    """An offset with what is asked of it here."""
    group, topic, partition = key
    rest: dict[str, Any] = {
        "leader_epoch": None,
        "metadata": "",
        "commit_timestamp_ms": 0,
        "expire_timestamp_ms": None,
        "topic_id": None,
        "applied_offset": record_offset,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    return OffsetAndMetadata(
        group=group,
        topic=topic,
        partition=partition,
        committed_offset=committed_offset,
        record_offset=record_offset,
        **(rest | columns),
    )


STEPS = {k.ADVANCED: -1, k.REWOUND: 1, k.SAME: 0}
"""A change of the answer → where the one before was, seen from it."""


def entry_with(*, key: GroupTopicPartition, marks: int, effective: tuple[int, int] | None, **columns: Any) -> Entry:
    """An entry with such a change.

    Args:
        effective: the committed offset that is answered, and its record offset.
        columns: more of the entry.
    """
    change = marks // k.CHANGE & k.MASK
    answered = offset_of(key, *effective) if effective is not None else None
    before = answered
    if change == k.NEW:
        before = None
    elif change == k.DELETED:
        before = offset_of(key, 0, 0)
    elif answered is not None and change in STEPS:
        before = replace(answered, committed_offset=answered.committed_offset + STEPS[change])
    return Entry(
        key=key,
        event=k.EVENTS[marks // k.EVENT & k.MASK],
        outcome=k.OUTCOMES[marks // k.OUTCOME & k.MASK],
        before=before,
        effective=answered,
        **columns,
    )


class OrderedHistory:
    """All entries in their order.

    Attributes:
        keys, groups: how many have entries.
    """

    def __init__(self, history: BulkHistory, order: a.Int64s, keys: int, groups: int, ids: TopicIds) -> None:
        self.history = history
        self.ids = ids
        self.keys, self.groups = keys, groups
        self._order = order
        self.first_keys = np.array([read.first_key for read in history.logs], np.int64)

    def count(self, part: int, value: int) -> int:
        """How many entries have such a part of their marks."""
        entries, count = self.history.entries.array, len(self.history)
        begins = range(0, count, CHUNK)
        found = (entries[begin : min(begin + CHUNK, count), k.MARKS] // part & k.MASK == value for begin in begins)
        return sum(int(np.count_nonzero(each)) for each in found)

    def chunks(self, *, only_rewinds: bool) -> Iterator[a.Int64s]:
        """Entries as the first columns of `lines`' values, some at a time; each is good until the next."""
        room = np.zeros((CHUNK, ln.VALUE_SIZE), np.int64)
        for begin in range(0, len(self._order), CHUNK):
            part = self._order[begin : begin + CHUNK]
            values = room[: len(part)]
            ln.take(self.history.entries.array, part, values)
            if only_rewinds:
                values = values[values[:, k.MARKS] // k.CHANGE & k.MASK == k.REWOUND]
            yield values

    def log_of(self, keys: Any) -> Any:
        """The number of the log that keys are of."""
        return np.searchsorted(self.first_keys, keys, "right") - 1

    def row(self, entry: Sequence[int]) -> Row:
        """A row of `history.HISTORY_COLUMNS`."""
        log = self.history.logs[int(self.log_of(entry[k.KEY]))].log
        return history_row(self.history.entry_of(entry), log.offsets_partition, self.ids, log.untold)

    def rows(self, *, only_rewinds: bool) -> Iterator[Row]:
        """All rows, one by one."""
        for values in self.chunks(only_rewinds=only_rewinds):
            for begin in range(0, len(values), ONE_STEP):
                yield from map(self.row, values[begin : begin + ONE_STEP].tolist())


def is_malformed(key: GroupTopicPartition) -> bool:
    """Whether a name in a key is not UTF-8."""
    return isinstance(key[0], MalformedString) or isinstance(key[1], MalformedString)
