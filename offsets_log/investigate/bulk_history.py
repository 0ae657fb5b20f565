"""Compute the history of keys in bulk: kernels find the entries and sort them; `history_rows.history_row` makes rows.

An entry here is a row of numbers (`columnar.history.kernels`). `BulkHistory.entry_of` and `entry_with` make the `Entry`
that it stands for, so that the contents of a row are defined in one place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.history import entries as k
from offsets_log.columnar.history import order as od
from offsets_log.columnar.history.columns import Run
from offsets_log.columnar.history.fold import read_history
from offsets_log.columnar.history.slow_path import Growing, add_member
from offsets_log.columnar.history.state import HistoryState, ShowsGroup, ShowsKey
from offsets_log.columnar.scan.reading import Advance, Note
from offsets_log.events import Until
from offsets_log.investigate.history import Entry
from offsets_log.investigate.history_keys import Keys
from offsets_log.investigate.history_rows import history_row
from offsets_log.investigate.holders import NOBODY, Holder, Holders, TopicIds, holders_of
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.java_text import decode_string
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import Uuid
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata
from offsets_log.replay.profile import Profile
from offsets_log.rows.tables import Row

Made = TypeVar("Made")

CHUNK = 1 << 12

_Asked = tuple[str, int, list[bytes]]


@dataclass(frozen=True, slots=True)
class Read:
    """A log that was read."""

    log: PartitionLog
    topic_names: Mapping[bytes, str]


class BulkHistory:
    """The entries of logs, one after the other.

    Args:
        shows_group, shows_key: as in `history.History`; None shows all keys.
        scratch: (type, shape) → an array that grows.
        chunk: entries that are looked at in Python at a time.

    Attributes:
        keys: the entries' keys, by number.
        members: members, one row each; see `entries`.
    """

    def __init__(
        self,
        profile: Profile,
        shows_group: ShowsGroup,
        shows_key: ShowsKey | None,
        scratch: Callable[[Any, tuple[int, ...]], Growing],
        chunk: int = CHUNK,
    ) -> None:
        self.profile = profile
        self.chunk = chunk
        self.shows_group, self.shows_key = shows_group, shows_key
        self.entries = scratch(np.int64, (1 << 14, k.ENTRY_SIZE))
        self.texts = scratch(np.uint8, (1 << 18,))
        self.members = scratch(np.int64, (1 << 10, k.MEMBER_SIZE))
        self.keys = Keys()
        self.logs: list[Read] = []
        self._scratch = scratch
        self._counts = np.zeros(k.COUNTS, np.int64)
        self._counts[k.MEMBERS] = k.NOBODY + 1
        self._asked_later: list[Holders] = []
        self._member_numbers: dict[Holder, int] = {}
        self._topic_ids: list[bytes] = []
        self._topic_id_numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return int(self._counts[k.ENTRIES])

    @property
    def members_count(self) -> int:
        """The number of members, including nobody."""
        return int(self._counts[k.MEMBERS])

    # ---------------------------------------------------------------------------------------- reading

    def read(
        self, log: PartitionLog, *, note: Note, until: Until, release: tuple[int, int] | None, advance: Advance
    ) -> int:
        """Read the entries of one more log, and return how many there are.

        Raises:
            BeyondError: only `history.History` can read it.
        """
        state = HistoryState(
            self.profile, self.shows_group, self.shows_key, self.entries, self.texts, self.members, self._counts,
            holders_of,
        )  # fmt: skip
        first = len(self)
        read_history(log, state, note=note, until=until, release=release, advance=advance)
        self.logs.append(Read(log, state.topic_names()))
        self._adopt(state, first)
        return len(self) - first

    def _adopt(self, state: HistoryState, first: int) -> None:
        """Renumber a log's keys, pending questions and topic ids so that the numbers are valid for all logs."""
        entries, end = self.entries.array, len(self)
        counts = np.zeros(int(state.arrays.scan_state.row_count), np.int64)
        topic_ids = np.zeros(int(state.arrays.scan_state.group_count), np.int64)
        od.count(entries, first, end, counts, topic_ids)
        named = np.flatnonzero(topic_ids)
        topic_ids[named] = [self._topic_id(state.raw_name(number)) for number in named.tolist()]
        if len(self.logs) > 1 or len(named):
            od.renumber(entries, first, end, len(self.keys), topic_ids, len(self._asked_later))
        self.keys.add(state, counts, len(self.logs) - 1)
        self._asked_later += cast("list[Holders]", state.slow_path.asked_later)

    def _topic_id(self, raw: bytes) -> int:
        if raw not in self._topic_id_numbers:
            self._topic_id_numbers[raw] = len(self._topic_ids)
            self._topic_ids.append(raw)
        return self._topic_id_numbers[raw]

    # ---------------------------------------------------------------------------------------- in order

    def ordered(self, *sources: Mapping[bytes, str]) -> OrderedHistory:
        """Return all entries in the order of `history.history_order`.

        Args:
            sources: topic id → name; these come before the names in the logs' own records.
        """
        ids = TopicIds(*sources, *(read.topic_names for read in self.logs))
        self._find_members(ids)
        ranks, keys, groups = self.keys.ranks()
        sums = np.bincount(ranks, weights=self.keys.counts, minlength=keys).astype(np.int64)
        order = self._scratch(np.int64, (max(1, len(self)),)).array[: len(self)]
        places, latest = np.cumsum(sums) - sums, np.full(len(sums), a.NEVER, np.int64)
        marks = np.zeros(k.ALL_MARKS, np.int64)
        if not od.put_in_order(self.entries.array, len(self), ranks, places, latest, order, marks):
            entries = self.entries.array[: len(self)]
            order[:] = np.lexsort((entries[:, k.RECORD_OFFSET], ranks[entries[:, k.KEY]]))
        return OrderedHistory(self, order, marks, keys, groups, ids)

    def _find_members(self, ids: TopicIds) -> None:
        """Set the member of each entry whose partition's topic ids had to be known first."""
        columns = (k.HELD_BY, k.KEY, k.TOPIC_ID)
        asked_of: dict[tuple[int, int], _Asked] = {}
        for begin in range(0, len(self), self.chunk):
            part = self.entries.array[begin : min(begin + self.chunk, len(self))]
            asked = np.flatnonzero(part[:, k.HELD_BY] > 0)
            if not len(asked):
                continue
            is_plain = part[asked, k.MARKS] // k.OUTCOME & k.MASK == k.PLAIN
            what, number = np.unique(
                np.column_stack([part[asked][:, columns], is_plain]), axis=0, return_inverse=True
            )  # fmt: skip
            rows = what.tolist()
            for _, key, topic_id, _ in rows:
                if (key, topic_id) not in asked_of:
                    asked_of[key, topic_id] = self._asked(key, topic_id, ids)
            found = np.array([self._member(row[0], *asked_of[row[1], row[2]], row[3]) for row in rows], np.int64)
            part[asked, k.MEMBER] = found[number.reshape(-1)]
            part[asked, k.HELD_BY] = 0

    def _asked(self, number: int, topic_id: int, ids: TopicIds) -> _Asked:
        """Return the topic, partition and topic ids of a commit's key."""
        _, topic, partition = self.keys[number]
        own = [self._topic_ids[topic_id]] if topic_id >= 0 else []
        return topic, partition, [*own, *ids.of(topic)]

    def _member(self, held_by: int, topic: str, partition: int, topic_ids: list[bytes], is_plain: int) -> int:
        """Return the number of the member that held the partition of a commit."""
        holder = self._asked_later[held_by - 1].of(topic, partition, topic_ids, is_plain=bool(is_plain))
        if holder is None:
            return k.NOBODY
        if holder not in self._member_numbers:
            self._member_numbers[holder] = add_member(self.members, self.texts, self._counts, holder)
        return self._member_numbers[holder]

    def member(self, number: int) -> Holder | None:
        """Return a member by its number; None for nobody."""
        if number == k.NOBODY:
            return None
        row = self.members.array[number].tolist()
        member_id, instance_id, client_id, host = (
            self._text(*row[at : at + 2]) for at in (k.MEMBER_ID, k.INSTANCE_ID, k.CLIENT_ID, k.HOST)
        )
        return Holder(member_id or "", instance_id, client_id or "", host or "", row[k.EPOCH])

    def _text(self, at: int, size: int) -> str | None:
        return None if size < 0 else decode_string(self.texts.array[at : at + size].tobytes())

    def entry_of(self, entry: Sequence[int]) -> Entry:
        """Return the entry that a row of numbers stands for."""
        at, size, topic_id = entry[k.METADATA_AT], entry[k.METADATA_SIZE], entry[k.TOPIC_ID]
        return entry_with(
            entry,
            self.keys[entry[k.KEY]],
            metadata=decode_string(self.texts.array[at : at + size].tobytes()),
            topic_id=str(Uuid(self._topic_ids[topic_id])) if topic_id >= 0 else None,
            holder=self.member(entry[k.MEMBER]),
        )


def offset_of(key: GroupTopicPartition, committed_offset: int, record_offset: int, **columns: Any) -> OffsetAndMetadata:
    """Return an offset with the given columns, and defaults for those that matter to no row."""
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
"""A change of the answer → difference of the answer before it from the one after."""


def entry_with(
    entry: Sequence[int], key: GroupTopicPartition, *, metadata: str, topic_id: str | None, holder: Holder | None
) -> Entry:
    """Return an entry with the numbers of a row, and what else it names; ``metadata`` matters to commits alone."""
    event, outcome, change = (entry[k.MARKS] // part & k.MASK for part in (k.EVENT, k.OUTCOME, k.CHANGE))
    value = before = answered = None
    if event == k.COMMIT:
        value = offset_of(
            key,
            entry[k.COMMITTED],
            entry[k.RECORD_OFFSET],
            leader_epoch=None if entry[k.LEADER_EPOCH] == -1 else entry[k.LEADER_EPOCH],
            metadata=metadata,
            commit_timestamp_ms=entry[k.COMMIT_TIMESTAMP],
            topic_id=topic_id,
        )
    if entry[k.EFFECTIVE_RECORD] != a.NEVER:
        before = answered = offset_of(key, entry[k.EFFECTIVE], entry[k.EFFECTIVE_RECORD])
    if change in (k.NEW, k.NEW_BELOW):
        before = None
    elif change == k.DELETED:
        before = offset_of(key, 0, 0)
    elif answered is not None and change in STEPS:
        before = answered._replace(committed_offset=answered.committed_offset + STEPS[change])
    return Entry(
        key=key,
        event=k.EVENTS[event],
        record_offset=entry[k.RECORD_OFFSET],
        timestamp_ms=entry[k.TIMESTAMP],
        before=before,
        effective=answered,
        value=value,
        producer_id=entry[k.PRODUCER_ID] if outcome != k.PLAIN else None,
        outcome=k.OUTCOMES[outcome],
        holders=NOBODY if holder is None else Holders({key[1:]: holder}),
        rewound_by=entry[k.REWOUND_BY] if change in k.GOES_BACK else None,
    )


class OrderedHistory:
    """All entries of the history in order.

    Attributes:
        keys, groups: how many of them have entries.
        order: the entries' numbers, in order.
    """

    def __init__(
        self, history: BulkHistory, order: a.Int64s, marks: a.Int64s, keys: int, groups: int, ids: TopicIds
    ) -> None:  # fmt: skip
        self.history = history
        self.ids = ids
        self.keys, self.groups = keys, groups
        self.order = order
        self._marks = marks

    def count(self, part: int, value: int) -> int:
        """Return how many entries have a value in such a part of their marks."""
        return int(self._marks[np.arange(len(self._marks)) // part & k.MASK == value].sum())

    def since(self, time_ms: int) -> OrderedHistory:
        """Return the entries of that time and later, and those without a time."""
        entries = self.history.entries.array
        times = entries[self.order, k.TIMESTAMP]
        order = self.order[(times >= time_ms) | (times == NO_TIMESTAMP)]
        keys = {self.history.keys[number] for number in np.unique(entries[order, k.KEY]).tolist()}
        marks = np.bincount(entries[order, k.MARKS], minlength=len(self._marks))
        return OrderedHistory(self.history, order, marks, len(keys), len({key[0] for key in keys}), self.ids)

    def row(self, entry: Sequence[int]) -> Row:
        """Return a row of `history.HISTORY_COLUMNS`."""
        log = self.history.logs[int(self.history.keys.columns[entry[k.KEY], k.LOG])].log
        return history_row(self.history.entry_of(entry), log.offsets_partition, self.ids, log.missing_columns)

    def side_by_side(self, make: Callable[[int, int], Made], *, step: int, threads: int) -> Iterator[Made]:
        """Make something of runs of that many entries, by threads, and yield the results in order.

        Args:
            make: called with the places where a run begins and ends.
        """
        waiting: deque[Future[Made]] = deque()
        begins = iter(range(0, len(self.order), step))
        with ThreadPoolExecutor(threads) as pool:
            try:
                while True:
                    while len(waiting) <= threads and (begin := next(begins, None)) is not None:
                        waiting.append(pool.submit(make, begin, min(begin + step, len(self.order))))
                    if not waiting:
                        return
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def run(self, begin: int, end: int, *, only_rewinds: bool) -> Run:
        """Return the entries at some places in the order, of them perhaps only those at which less is answered."""
        history, numbers = self.history, self.order[begin:end]
        if only_rewinds:
            changes = history.entries.array[numbers, k.MARKS] // k.CHANGE & k.MASK
            numbers = numbers[np.isin(changes, k.GOES_BACK)]
        return Run(numbers, history.entries.array, history.keys.columns, history.members.array)

    def rows(self, *, only_rewinds: bool) -> Iterator[Row]:
        """Yield all rows one by one."""
        chunk = self.history.chunk
        for begin in range(0, len(self.order), chunk):
            run = self.run(begin, begin + chunk, only_rewinds=only_rewinds)
            yield from (self.row(run.entry(place)) for place in range(len(run)))
