"""Count what writers wrote: sums over a log's ledger (`top`, see `writers`), whichever way the log was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from offsets_log.columnar.folds.holding import HeldReplay
from offsets_log.columnar.folds.ledgers import LedgerReplay
from offsets_log.columnar.jit.kinds import LongRows, Longs
from offsets_log.columnar.ledger.by_events import with_ledger
from offsets_log.columnar.ledger.columns import IS_COMMIT, IS_TOMBSTONE, Columns
from offsets_log.columnar.ledger.kernels import GROUP, PARTITION, TOPIC
from offsets_log.columnar.ledger.ledger import Batch, Keys
from offsets_log.columnar.ledger.numbers import NOBODY, Numbers, grown
from offsets_log.events import LogEvent
from offsets_log.investigate.clients import Clients
from offsets_log.investigate.writers import HELD, HOUR_MS, MINUTE_MS, Tally, Writer, begin_ms, nobody
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.record import INT64_MAX, INT64_MIN
from offsets_log.rows.shown import ALL, Shown

NOBODYS_CODE = INT64_MIN
"""What stands for the writer without a name."""

COLUMNS = frozenset(
    {"bytes", "timestamp_ms", "committed_offset", "before", "before_kind", "before_bytes", "before_committed_offset"}
)

Flags = npt.NDArray[np.bool_]

CODES: dict[str, Callable[[LongRows], Longs]] = {
    "group": lambda named: named[:, GROUP],
    "topic": lambda named: np.where(named[:, TOPIC] < 0, NOBODYS_CODE, named[:, TOPIC]),
    "partition": lambda named: np.where(
        named[:, TOPIC] < 0, NOBODYS_CODE, named[:, TOPIC] << 32 | named[:, PARTITION] & 0xFFFFFFFF
    ),
}
"""``--per`` → what stands for the writer of each key, where a key has one."""

SUMS = ("records", "commits", "tombstones", "noop_commits", "bytes", "garbage_bytes")
"""Of a `Tally`."""
DENSE = 1 << 18
"""Sums are added up all together up to so many; of more, one by one."""
MOST_CELLS, MOST_RUNS = 1 << 20, 1 << 18


class WriterCounts:
    """What each writer of one log wrote, as `ledger.Question`.

    Args:
        per: a key of `writers.WRITER_COLUMNS`.
        shown: which records count.
        topic_ids: topic id → name, known from elsewhere.
    """

    def __init__(self, per: str, shown: Shown = ALL, topic_ids: Mapping[bytes, str] | None = None) -> None:
        self.per, self._shown = per, shown
        self._clients = Clients(per, topic_ids or {}) if per in HELD else None
        self._numbers = Numbers(NOBODYS_CODE)
        self._sums = np.zeros((len(SUMS) + 1, 1), np.int64)
        self._first_ms, self._last_ms = np.full(1, INT64_MAX), np.full(1, INT64_MIN)
        self._of_key = np.zeros(1, np.int64)  # the first is that of no key
        self._latest = np.zeros(0, np.int64)
        self._is_shown = np.zeros(0, bool)
        self._verdicts: dict[int, dict[int, bool]] = {GROUP: {}, TOPIC: {}}
        self._runs: list[LongRows] = []
        self._runs_held, self._most_runs = 0, MOST_RUNS
        self._names: list[Writer | None] = []

    @property
    def columns(self) -> frozenset[str]:
        """Implement `Question.columns`."""
        return COLUMNS if self._clients is None else COLUMNS | {"producer_id", "topic_id"}

    @property
    def takes_records(self) -> bool:
        """Implement `Question.takes_records`."""
        return self._clients is not None

    @property
    def names_topics(self) -> bool:
        """Implement `Question.names_topics`."""
        return self.per in ("topic", "partition", *HELD) or self._shown.topic is not None

    # ------------------------------------------------------------------------------------------ of whom

    def _writers(self, batch: Batch, keys: Keys) -> Longs:
        """Return the writer of each row."""
        columns = batch.columns
        if self.per == "offsets_partition":
            return np.zeros(len(columns.key), np.int64)
        if self.per == "hour":
            times = columns.timestamp_ms
            return self._numbers.of(np.where(times == NO_TIMESTAMP, NOBODYS_CODE, times // HOUR_MS))
        if self._clients is not None:
            numbers = self._clients.of(batch, keys)
            return self._numbers.of(np.where(numbers == NOBODY, NOBODYS_CODE, numbers))
        new = keys.named()[len(self._of_key) - 1 :]
        if len(new):
            self._of_key = np.concatenate([self._of_key, self._numbers.of(CODES[self.per](new))])
        return self._of_key[columns.key + 1]

    def _superseded(self, batch: Batch, writers: Longs) -> Longs:
        """Return the writer of the record before each row's, nobody without one."""
        if self.per not in HELD and self.per != "hour":
            return writers  # the same: it has the same key
        columns, first = batch.columns, batch.first
        self._latest = grown(self._latest, int(columns.key.max(initial=0)) + 1, NOBODY)
        before = np.where(columns.before >= 0, self._latest[columns.key], NOBODY)
        is_here = columns.before >= first
        before[is_here] = writers[columns.before[is_here] - first]
        has_key = columns.key >= 0
        self._latest[columns.key[has_key]] = writers[has_key]
        return before

    def _rows_shown(self, columns: Columns, keys: Keys) -> Flags:
        """Return which rows count."""
        new = keys.named()[len(self._is_shown) :]
        is_shown = self._shows(GROUP, new[:, GROUP], self._shown.group, keys)
        if self._shown.topic is not None:
            is_shown = self._shows(TOPIC, np.where(is_shown, new[:, TOPIC], -1), self._shown.topic, keys)
        self._is_shown = np.concatenate([self._is_shown, is_shown])
        found: Flags = columns.key >= 0
        found[found] = self._is_shown[columns.key[found]]
        return found

    def _shows(self, of: int, numbers: Longs, shows: Callable[[str], bool] | None, keys: Keys) -> Flags:
        if shows is None:
            return np.ones(len(numbers), bool)
        known = self._verdicts[of]
        distinct = np.unique(numbers)
        for number in distinct.tolist():
            if number not in known:
                known[number] = number >= 0 and shows(keys.name(number))
        found: Flags = np.array([known[number] for number in distinct.tolist()], bool)[
            np.searchsorted(distinct, numbers)
        ]
        return found

    # ----------------------------------------------------------------------------------------- counting

    def take(self, batch: Batch, keys: Keys) -> None:
        """Implement `Question.take`."""
        columns, writers = batch.columns, self._writers(batch, keys)
        superseded = self._superseded(batch, writers)
        if not self._shown.is_all:
            is_shown = self._rows_shown(columns, keys)
            columns = Columns(*(column[is_shown] if len(column) else column for column in columns))
            writers, superseded = writers[is_shown], superseded[is_shown]
        is_commit, is_timed = IS_COMMIT[columns.kind], columns.timestamp_ms != NO_TIMESTAMP
        is_same = columns.before_committed_offset == columns.committed_offset
        is_noop = is_commit & IS_COMMIT[columns.before_kind] & is_same
        self._make_room()
        records, commits, tombstones, noop, size, garbage, timed = self._sums
        _add(records, writers)
        _add(commits, writers[is_commit])
        _add(tombstones, writers[IS_TOMBSTONE[columns.kind]])
        _add(noop, writers[is_noop])
        _add(size, writers, columns.bytes)
        _add(garbage, superseded, columns.before_bytes)
        _add(timed, writers[is_timed])
        self._add_times(writers[is_timed], columns.timestamp_ms[is_timed])
        is_rated = is_commit & is_timed
        self._add_minutes(writers[is_rated], columns.timestamp_ms[is_rated] // MINUTE_MS)

    def _make_room(self) -> None:
        count = len(self._numbers.known)
        if count > len(self._first_ms):
            self._first_ms = grown(self._first_ms, count, INT64_MAX)
            self._last_ms = grown(self._last_ms, count, INT64_MIN)
            sums = np.zeros((len(self._sums), len(self._first_ms)), np.int64)
            sums[:, : self._sums.shape[1]] = self._sums
            self._sums = sums

    def _add_times(self, writers: Longs, times: Longs) -> None:
        np.minimum.at(self._first_ms, writers, times)
        np.maximum.at(self._last_ms, writers, times)

    def _add_minutes(self, writers: Longs, minutes: Longs) -> None:
        """Count commits by writer and minute."""
        if not len(writers):
            return
        low = int(minutes.min())
        span = int(minutes.max()) - low + 1
        if span * len(self._first_ms) <= MOST_CELLS:
            counts = np.bincount(writers * span + (minutes - low))
            cells = np.flatnonzero(counts)
            runs = np.column_stack([cells // span, cells % span + low, counts[cells]])
        else:
            runs = summed(np.column_stack([writers, minutes, np.ones_like(writers)]))
        self._runs.append(runs)
        self._runs_held += len(runs)
        if self._runs_held > self._most_runs:
            self._runs_held = len(self.runs)
            self._most_runs = max(self._most_runs, 2 * self._runs_held)

    @property
    def runs(self) -> LongRows:
        """(Writer, minute, commits) of all, in this order."""
        self._runs = [summed(np.concatenate([np.zeros((0, 3), np.int64), *self._runs]))]
        return self._runs[0]

    def end(self, keys: Keys, empty_bytes: int) -> None:
        """Implement `Question.end`."""
        self._make_room()
        if self._shown.is_all:
            self._sums[SUMS.index("bytes"), NOBODY] += empty_bytes
        self._names = [None, *(self._name(code, keys) for code in [*self._numbers.known][1:])]

    def _name(self, code: int, keys: Keys) -> Writer:
        if self._clients is not None:
            return self._clients.writers[code]
        if self.per == "hour":
            return (begin_ms(code, HOUR_MS),)
        if self.per == "partition":
            return keys.name(code >> 32), (code & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)
        return (keys.name(code),)

    @property
    def tallies(self) -> Iterator[tuple[int, Writer | None, Tally]]:
        """The number, name and tally of each writer; nobody has no name."""
        records, *_, size, _, _ = self._sums
        counted = np.flatnonzero((records | size)[: len(self._names)])
        times = np.column_stack([self._first_ms, self._last_ms])[counted].tolist()
        for number, (first_ms, last_ms), (*sums, timed) in zip(
            counted.tolist(), times, self._sums[:, counted].T.tolist(), strict=True
        ):
            tally = Tally(*sums, *((first_ms, last_ms) if timed else ()))
            yield number, self._names[number], tally


def _add(sums: Longs, places: Longs, amounts: Longs | None = None) -> None:
    """Add amounts, or 1 each, to the sums at places."""
    if len(sums) > DENSE:
        np.add.at(sums, places, 1 if amounts is None else amounts)
    else:
        sums += np.bincount(places, amounts, len(sums)).astype(np.int64)


def summed(runs: LongRows) -> LongRows:
    """Return runs of commits, joined to one for each writer and minute, in their order."""
    if not len(runs):
        return runs
    writers, minutes, commits = runs.T
    low, high = writers.astype(np.uint16), (writers >> 16).astype(np.uint16)  # NumPy sorts these by digits
    order = np.lexsort((minutes, low, high))
    writers, minutes, commits = writers[order], minutes[order], commits[order]
    is_first = (np.diff(writers, prepend=-1) != 0) | (np.diff(minutes, prepend=0) != 0)
    begins = np.flatnonzero(is_first)
    found = runs[order[begins]]
    found[:, 2] = np.add.reduceat(commits, begins)
    return found


class Writers:
    """The writers of some offsets partitions.

    Attributes:
        per: a key of `writers.WRITER_COLUMNS`.
        tallies: what each wrote; `finish` adds the busiest minutes.
    """

    def __init__(self, per: str) -> None:
        self.per = per
        self.tallies: dict[Writer, Tally] = {}
        self._runs = [np.zeros((0, 3), np.int64)]

    def add(self, counts: WriterCounts, offsets_partition: int | None) -> None:
        """Add what was counted in one offsets partition."""
        numbers: dict[int, int] = {}
        places = {writer: place for place, writer in enumerate(self.tallies)}
        for number, name, tally in counts.tallies:
            writer = nobody(self.per, offsets_partition) if name is None else name
            numbers[number] = places.setdefault(writer, len(places))
            self.tallies.setdefault(writer, Tally()).add(tally)
        runs = counts.runs
        of_number = np.zeros(max(numbers, default=0) + 1, np.int64)
        of_number[[*numbers]] = [*numbers.values()]
        runs[:, 0] = of_number[runs[:, 0]]
        self._runs.append(runs)

    def finish(self) -> Writers:
        """Find each writer's busiest minute: the first of several."""
        runs = summed(np.concatenate(self._runs))
        begins = np.flatnonzero(np.diff(runs[:, 0], prepend=-1))
        most = np.maximum.reduceat(runs[:, 2], begins) if len(begins) else begins
        busiest = runs[runs[:, 2] == np.repeat(most, np.diff(begins, append=len(runs)))]
        _, first = np.unique(busiest[:, 0], return_index=True)
        tallies = [*self.tallies.values()]
        for number, minute, commits in busiest[first].tolist():
            tallies[number].peak = commits, begin_ms(minute, MINUTE_MS)
        return self


# ---------------------------------------------------------------------------------------------- by logs


def counting(per: str, shown: Shown, topic_ids: Mapping[bytes, str]) -> Callable[..., LedgerReplay]:
    """Return what makes replays that count writers: their states have `WriterCounts` as question."""
    return partial(HeldReplay if per in HELD else LedgerReplay, question=partial(WriterCounts, per, shown, topic_ids))


def count_writers(
    events: Iterable[LogEvent],
    writers: Writers,
    offsets_partition: int | None,
    topic_ids: Mapping[bytes, str],
    *,
    shown: Shown = ALL,
) -> Iterator[LogEvent]:
    """Count the records of one offsets partition while passing its events on.

    Args:
        topic_ids: topic id → name, known from elsewhere.
        shown: which records count; of some only, undecodable records, markers and empty batches do not.
    """
    counts = WriterCounts(writers.per, shown, topic_ids)
    yield from with_ledger(events, counts)
    writers.add(counts, offsets_partition)
