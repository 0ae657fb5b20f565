"""Offsets and generations over time, sampled from tables of records (`columnar.events.rows`).

Of each group, topic and partition the last commit within a bucket of time is kept, and of each group the last record
with its generation. Buckets are as wide as it takes to keep few enough; a sample has its own time, not the bucket's.

A transactional commit counts if its transaction committed, at its own record offset (``J-11``); one that aborted or is
open does not. So a run of records is its samples, its commits that wait for a marker, and each producer's first
marker, which decides what waits in earlier runs: two runs join in the manner of `replay.partial`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from offsets_log.columnar.events.rows import ROWS_IN_TABLE, SCHEMA, event_row, table_of_events
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.pipeline import Event, LogEvent
from offsets_log.replay.profile import Profile
from offsets_log.tables import Row

MOST_COMMITS = 1_500_000
MOST_GENERATIONS = 20_000
"""Samples held of all lines together, or one for each line where there are more lines."""
FIRST_WIDTH_MS = 1 << 12
"""Narrower ones leave out next to nothing."""
WIDEST_MS = 1 << 40
MOST_CHUNKS = 64
"""Tables that the samples of a part may stand in."""
DAY_MS = 86_400_000
OFFSET_TYPES = (0, 1)
GENERATION_TYPES = (2, 3, 11, 17)
"""Records with the generation of a classic group, or the epoch of a newer one."""

COMMIT_LINE = ("group", "topic", "partition", "offsets_partition")
GENERATION_LINE = ("group", "offsets_partition")
COMMIT_COLUMNS = (*COMMIT_LINE, "record_offset", "time_ms", "committed_offset", "records")
GENERATION_COLUMNS = (*GENERATION_LINE, "record_offset", "time_ms", "key", "value", "records")

Numbers = npt.NDArray[Any]
Shows = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class _Widths:
    """Of the buckets."""

    commits_ms: int = 1
    generations_ms: int = 1


@dataclass(frozen=True, slots=True)
class _Run:
    """What a run of records of one offsets partition adds.

    Attributes:
        commits: `COMMIT_COLUMNS`, tombstones among them; those of committed transactions behind the others.
        generations: `GENERATION_COLUMNS`.
        waiting: like ``commits``, with ``producer_id``: behind the last marker of their producers.
        first_markers: producer id → whether its first transaction to end in this run commits.
        untimed: commits of which nothing tells the time.
    """

    commits: pa.Table
    generations: pa.Table
    waiting: pa.Table
    first_markers: dict[int, bool]
    untimed: int

    def joined(self, right: _Run) -> _Run:
        """This run and the one behind it."""
        producers = self.waiting["producer_id"]
        committed = [producer for producer, commits in right.first_markers.items() if commits]
        came_through = self.waiting.filter(pa.array(_is_any(producers, committed)))
        still = self.waiting.filter(pa.array(~_is_any(producers, right.first_markers)))
        return _Run(
            pa.concat_tables([self.commits, came_through.select(COMMIT_COLUMNS), right.commits]),
            pa.concat_tables([self.generations, right.generations]),
            pa.concat_tables([still, right.waiting]),
            right.first_markers | self.first_markers,
            self.untimed + right.untimed,
        )

    def thinned(self, widths: _Widths) -> _Run:
        """With the last of each line in each bucket."""
        return _Run(
            last_in_buckets(self.commits, COMMIT_LINE, widths.commits_ms),
            last_in_buckets(self.generations, GENERATION_LINE, widths.generations_ms),
            last_in_buckets(self.waiting, (*COMMIT_LINE, "producer_id"), widths.commits_ms),
            self.first_markers,
            self.untimed,
        )


@dataclass(frozen=True, slots=True)
class Sampled:
    """Samples of all logs, of each line in the order of its records.

    Attributes:
        commits: `COMMIT_COLUMNS`; a tombstone has no committed offset.
        generations: `GENERATION_COLUMNS`, raw; a tombstone has no value.
        untimed: commits of which nothing tells the time, and which are not among the samples.
    """

    commits: pa.Table
    generations: pa.Table
    untimed: int


class Samples:
    """What is sampled of all logs. `write` the tables of their parts, or `watch` events; then `finish`.

    Args:
        shows_group, shows_topic: what is asked for.
    """

    def __init__(
        self, profile: Profile, *, shows_group: Shows = lambda name: True, shows_topic: Shows = lambda name: True
    ) -> None:
        self.profile = profile
        self.shows = {"group": shows_group, "topic": shows_topic}
        self.widths = _Widths()
        self._runs: dict[int, tuple[PartitionLog, _Run]] = {}
        self._lock = Lock()

    def write(self, log: PartitionLog, number: int, tables: Iterable[pa.Table]) -> int:
        """Sample one part of a log, instead of what it was before; parts are numbered in log order.

        How many rows it had, as `columnar.events.export.Write` wants it.
        """
        rows = 0
        run = self._run_of(SCHEMA.empty_table())
        for table in tables:
            rows += len(table)
            run = run.joined(self._run_of(table))
            if run.commits["group"].num_chunks > MOST_CHUNKS:
                run = run.thinned(self.widths)
            run = self._keep(log, number, run)
        self._keep(log, number, run)
        return rows

    def elsewhere(self) -> Callable[[PartitionLog, Iterable[pa.Table]], Part]:
        """What samples one part of a log in another process, to be given to `add` here."""
        return partial(
            _part, partial(Samples, self.profile, shows_group=self.shows["group"], shows_topic=self.shows["topic"])
        )

    def add(self, log: PartitionLog, number: int, part: Part) -> None:
        """As `write`, of a part that was sampled elsewhere."""
        wider = max(self.widths.commits_ms, part.widths.commits_ms)
        self.widths = _Widths(wider, max(self.widths.generations_ms, part.widths.generations_ms))
        self._keep(log, number, part.run.thinned(self.widths))

    def watch(self, log: PartitionLog, number: int, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Sample a log whose events pass by."""
        run = self._run_of(SCHEMA.empty_table())
        held: list[Row] = []
        for event in events:
            if isinstance(event, Event):
                held.append(event_row(event))
                if len(held) == ROWS_IN_TABLE:
                    run = run.joined(self._run_of(table_of_events(held))).thinned(self.widths)
                    held = []
            yield event
        self._keep(log, number, run.joined(self._run_of(table_of_events(held))))

    def _keep(self, log: PartitionLog, number: int, run: _Run) -> _Run:
        """The run as it is kept: thinned where all that is kept is too much, which is costly before; and if that is
        not enough, the buckets are widened as long as wider ones make it less."""
        with self._lock:
            self._runs[number] = log, run
            if self._wider() != self.widths:
                self._thin(self.widths)
            while (widths := self._wider()) != self.widths:
                self.widths = widths
                before = self._kept()
                self._thin(widths)
                if self._kept() == before and widths.commits_ms > DAY_MS:
                    break
            return self._runs[number][1]

    def _thin(self, widths: _Widths) -> None:
        self._runs = {i: (at, kept.thinned(widths)) for i, (at, kept) in self._runs.items()}

    def _wider(self) -> _Widths:
        commits, generations = self._kept()
        return _Widths(
            _wider(self.widths.commits_ms) if commits > MOST_COMMITS else self.widths.commits_ms,
            _wider(self.widths.generations_ms) if generations > MOST_GENERATIONS else self.widths.generations_ms,
        )

    def _kept(self) -> tuple[int, int]:
        runs = [run for _, run in self._runs.values()]
        return sum(len(run.commits) for run in runs), sum(len(run.generations) for run in runs)

    def finish(self) -> Sampled:
        """All that was sampled."""
        whole: dict[int, _Run] = {}
        for _, (log, run) in sorted(self._runs.items(), key=lambda item: item[0]):
            before = whole.get(id(log))
            whole[id(log)] = run if before is None else before.joined(run)
        runs = [self._run_of(SCHEMA.empty_table()), *whole.values()]
        commits = pa.concat_tables([run.commits for run in runs])
        generations = pa.concat_tables([run.generations for run in runs])
        return Sampled(
            last_in_buckets(commits, COMMIT_LINE, self.widths.commits_ms),
            last_in_buckets(generations, GENERATION_LINE, self.widths.generations_ms),
            sum(run.untimed for run in runs),
        )

    # -------------------------------------------------------------------------------------- one table

    def _run_of(self, table: pa.Table) -> _Run:
        table = table.append_column("time_ms", _times(table))
        table = table.append_column("records", pa.array(np.ones(len(table), np.int64)))
        is_commit = _is_any(table["record_type"], OFFSET_TYPES) & _is_null(table["error"])
        is_commit &= self._is_shown(table, "group") & self._is_shown(table, "topic")
        ends, first_markers = self._ends(table)
        waits = is_commit & (ends == WAITS)
        counts = is_commit & (ends == COUNTS)
        has_time = _numbers(table["time_ms"]) > NO_TIMESTAMP
        is_generation = _is_any(table["record_type"], GENERATION_TYPES) & _is_null(table["error"])
        is_generation &= self._is_shown(table, "group") & has_time
        return _Run(
            _rows(table, counts & has_time, COMMIT_COLUMNS),
            _rows(table, is_generation, GENERATION_COLUMNS),
            _rows(table, waits & has_time, (*COMMIT_COLUMNS, "producer_id")),
            first_markers,
            int(np.count_nonzero((counts | waits) & ~has_time)),
        )

    def _is_shown(self, table: pa.Table, name: str) -> Numbers:
        column = table[name].combine_chunks()
        names = column.dictionary.to_pylist()
        is_shown: Numbers = np.array([*map(self.shows[name], names), False], bool)
        places: Numbers = column.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        found: Numbers = is_shown[places]
        return found

    def _ends(self, table: pa.Table) -> tuple[Numbers, dict[int, bool]]:
        """Of each row whether it counts, waits for a marker or is void; and each producer's first marker."""
        producers = _numbers(table["producer_id"])
        control = table["control_type"].combine_chunks().cast(pa.string()).fill_null("")
        is_marker = _is_any(control, ("COMMIT", "ABORT"))
        is_control = _numbers(table["is_control"])
        in_transaction = self.profile.is_in_transaction(_numbers(table["is_transactional"]), producers) & ~is_control
        ends = np.where(in_transaction, WAITS, COUNTS)
        ends[is_control] = VOID
        markers = np.flatnonzero(is_marker)
        if not len(markers):
            return ends, {}
        commits = pc.equal(control, "COMMIT").to_numpy(zero_copy_only=False)
        known, place = np.unique(producers[markers], return_inverse=True)
        keys = np.sort(place * len(table) + markers)
        waiting = np.flatnonzero(in_transaction)
        own = np.minimum(np.searchsorted(known, producers[waiting]), len(known) - 1)
        at = np.minimum(np.searchsorted(keys, own * len(table) + waiting), len(keys) - 1)
        is_ended = (known[own] == producers[waiting]) & (keys[at] // len(table) == own)
        is_ended &= keys[at] > own * len(table) + waiting
        decided = waiting[is_ended]
        ends[decided] = np.where(commits[keys[at[is_ended]] % len(table)], COUNTS, VOID)
        first = keys[np.searchsorted(keys, np.arange(len(known)) * len(table))] % len(table)
        return ends, dict(zip(known.tolist(), commits[first].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a log, sampled: its buckets are as wide as it needs for itself."""

    widths: _Widths
    run: _Run


def _part(samples: Callable[[], Samples], log: PartitionLog, tables: Iterable[pa.Table]) -> Part:
    found = samples()
    found.write(log, 0, tables)
    return Part(found.widths, found._runs[0][1])


COUNTS, WAITS, VOID = 0, 1, 2
"""What becomes of a commit."""


def _wider(width_ms: int) -> int:
    return min(max(FIRST_WIDTH_MS, 2 * width_ms), WIDEST_MS)


def _times(table: pa.Table) -> pa.Array:
    """Of the record; of the commit where a record has none (magic 0)."""
    times, commit_times = _numbers(table["timestamp_ms"]), _numbers(table["commit_timestamp_ms"], NO_TIMESTAMP)
    return pa.array(np.where(times == NO_TIMESTAMP, commit_times, times))


def _numbers(column: pa.ChunkedArray, default: int | None = None) -> Numbers:
    filled = column if default is None else pc.fill_null(column, default)
    found: Numbers = filled.to_numpy()
    return found


def _is_any(column: Any, values: Iterable[Any]) -> Numbers:
    found: Numbers = pc.is_in(column, value_set=pa.array(values, column.type)).to_numpy(zero_copy_only=False)
    return found


def _is_null(column: pa.ChunkedArray) -> Numbers:
    found: Numbers = pc.is_null(column).to_numpy()
    return found


def _rows(table: pa.Table, mask: Numbers, columns: Iterable[str]) -> pa.Table:
    """A copy: the table's own memory is written anew."""
    return table.select(list(columns)).take(pa.array(np.flatnonzero(mask)))


# ------------------------------------------------------------------------------------------- thinning


def last_in_buckets(samples: pa.Table, line: tuple[str, ...], width_ms: int) -> pa.Table:
    """Of each line the sample with the highest record offset in each bucket; ``records`` are summed up.

    Args:
        line: columns that name a line.
        width_ms: of a bucket.
    """
    samples = samples.unify_dictionaries().combine_chunks()
    if not len(samples):
        return samples
    keys = {name: _codes(samples[name]) for name in line}
    keys["bucket"] = pa.array(_numbers(samples["time_ms"]) // width_ms)
    order = np.argsort(_numbers(samples["record_offset"]), kind="stable")
    numbered = pa.table(keys | {"records": samples["records"]}).take(pa.array(order))
    numbered = numbered.append_column("row", pa.array(np.arange(len(samples))))
    last = numbered.group_by([*keys], use_threads=False).aggregate([("row", "max"), ("records", "sum")])
    rows = _numbers(last["row_max"])
    by_row = np.argsort(rows)
    kept = samples.take(pa.array(order[rows[by_row]]))
    at = kept.schema.get_field_index("records")
    return kept.set_column(at, "records", pa.array(_numbers(last["records_sum"])[by_row]))


def line_numbers(samples: pa.Table, line: Iterable[str]) -> tuple[Numbers, Numbers]:
    """Of each sample the number of its line, by name; and of each line its first sample."""
    samples = samples.unify_dictionaries()
    keys = [_ordered(samples[name].combine_chunks()) for name in line]
    order = np.lexsort(keys[::-1])
    is_new = np.ones(len(order), bool)
    if len(order):
        is_new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    return numbers, order[is_new]


def _ordered(column: Any) -> Numbers:
    """Names as numbers that have their order; null comes first."""
    codes: Numbers
    if not pa.types.is_dictionary(column.type):
        codes = column.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    ranks = np.full(len(column.dictionary) + 1, -1)
    ranks[:-1][np.argsort(np.array(column.dictionary.to_pylist(), object))] = np.arange(len(column.dictionary))
    return ranks[codes]


def _codes(column: pa.ChunkedArray) -> Any:
    """Names as their numbers."""
    whole = column.combine_chunks()
    return whole.indices if pa.types.is_dictionary(whole.type) else whole
