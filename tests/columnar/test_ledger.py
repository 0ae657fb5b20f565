"""The ledger that kernels write is the one that is written of events, whatever the log; and what its columns say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import holding
from offsets_log.columnar.folds.holding import HeldReplay
from offsets_log.columnar.folds.ledgers import LedgerReplay, LedgerState
from offsets_log.columnar.folds.replay import replay_logs
from offsets_log.columnar.ledger import ledger
from offsets_log.columnar.ledger.by_events import with_ledger
from offsets_log.columnar.ledger.columns import (
    CONTROLS,
    ENDS_TRANSACTION,
    IS_COMMIT,
    IS_CONTROL,
    IS_OF_OFFSET,
    IS_TOMBSTONE,
    KINDS,
    OF_LAYOUT,
    Columns,
    kind_of,
    told_by,
)
from offsets_log.columnar.ledger.kernels import GROUP, PARTITION, TOPIC
from offsets_log.columnar.ledger.ledger import Batch, Keys
from offsets_log.columnar.scan.waiting import Waiting, new_waiting
from offsets_log.events import EVERYTHING, Until
from offsets_log.log_format.batch import decode_batch_header
from offsets_log.log_format.building import empty_batch
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, encode_coordinator_record
from offsets_log.pipeline import iter_events
from offsets_log.replay.profile import MODERN
from tests.builders import TIME, UNKNOWN, LogBuilder, member, record_bytes
from tests.columnar import test_newer
from tests.columnar.test_equal_engines import CRASHERS, SEEDS, STEPS, build
from tests.columnar.test_mutated_records import mutated
from tests.conftest import DISTINCT, PACKED, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many

EVERY_COLUMN = frozenset(Columns._fields) - {"topic_id"}


class Rows:
    """All rows of a log, with keys told by what stands in them and by their first rows."""

    columns, names_topics, takes_records = EVERY_COLUMN, True, False

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.keys: dict[int, tuple[Any, ...]] = {}
        self.empty_bytes = 0
        self.batches = 0

    def take(self, batch: Batch, keys: Keys) -> None:
        assert batch.first == len(self.rows)
        named = keys.named()
        asked = [column for name, column in batch.columns._asdict().items() if name in EVERY_COLUMN]
        for row in zip(*(column.tolist() for column in asked), strict=True):
            key = row[0]
            if key >= 0 and key not in self.keys:
                topic = keys.name(named[key, TOPIC]) if named[key, TOPIC] >= 0 else None
                name = keys.name(named[key, GROUP]), topic, int(named[key, PARTITION])
                self.keys[key] = len(self.rows), *name
            self.rows.append(row)
        self.batches += 1

    def end(self, keys: Keys, empty_bytes: int) -> None:
        self.empty_bytes = empty_bytes

    @property
    def found(self) -> tuple[Any, ...]:
        return [(self.keys.get(key), *row) for key, *row in self.rows], self.empty_bytes


class RowsAndRecords(Rows):
    """And the topic ids of commits, with the records that say who holds what: of each id the first that names it."""

    columns, takes_records = frozenset(Columns._fields), True

    def __init__(self) -> None:
        super().__init__()
        self.own: list[bytes] = []
        self.said: list[tuple[int, CoordinatorRecord]] = []
        self.ids: dict[bytes, int] = {}

    def take(self, batch: Batch, keys: Keys) -> None:
        super().take(batch, keys)
        self.own += [keys.topic_id(number) if number else b"" for number in batch.columns.topic_id.tolist()]
        for row, record in batch.records:
            assert batch.first <= row < len(self.rows)
            if not record.is_offset_commit:
                self.said.append((row, record))
            else:
                self.ids.setdefault(ledger.own_topic_id(record), row)

    @property
    def found(self) -> tuple[Any, ...]:
        return *super().found, self.own, self.said, self.ids


def by_kernel(log: PartitionLog, until: Until = EVERYTHING, release: Any = None, of: type[Rows] = Rows) -> Rows:
    kind = LedgerReplay if of is Rows else HeldReplay
    how: Any = {"note": lambda log: lambda seen: None, "until": lambda log: until, "release": release}
    (replayed,) = replay_logs([log], MODERN, **how, replay=partial(kind, question=of))
    assert isinstance(replayed.state, LedgerState)
    assert isinstance(replayed.state.question, Rows)
    return replayed.state.question


def by_events(log: PartitionLog, until: Until = EVERYTHING, release: Any = None, of: type[Rows] = Rows) -> Rows:
    rows = of()
    for _ in with_ledger(iter_events(log, until=until, release=release), rows):
        pass
    return rows


def assert_equal(log: PartitionLog, until: Until = EVERYTHING) -> None:
    for of in (Rows, RowsAndRecords):
        assert by_kernel(log, until, of=of).found == by_events(log, until, of=of).found


@pytest.fixture(params=[7, ledger.ROWS])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Rows of a batch: also fewer than a batch of the log has records."""
    monkeypatch.setattr(ledger, "ROWS", request.param)
    return int(request.param)


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name)):
        for log in read_partitions(directory).values():
            assert_equal(log)


@examples(150)
@given(steps=STEPS, end=st.integers(0, 40))
def test_generated_logs(steps: Any, end: int) -> None:
    log = build(steps).log
    assert_equal(log)
    assert_equal(log, Until(record_offset=end))


@examples(80)
@given(steps=st.lists(test_newer.STEP, max_size=40))
def test_generated_logs_of_newer_kinds_of_groups(steps: Any) -> None:
    assert_equal(test_newer.build(steps).log)


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("seed", range(3))
def test_hostile_segments(seed: int) -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 140 + seed), so_many(150)):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, data),)))


@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.stem)
def test_inputs_that_once_broke_something(path: Path) -> None:
    assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, path.read_bytes()),)))


@pytest.mark.parametrize("seed", range(2))
def test_hostile_records(seed: int) -> None:
    """Batches that are whole, and whose records are not."""
    for raw in mutated(seed, so_many(200)):
        whole = LogBuilder().commit(1).commit(2)
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, b"".join(whole.batches) + raw),)))


@pytest.mark.parametrize(("release", "layout"), [(None, 0), ((3, 7), 1), ((3, 8), 0)])
def test_layouts_are_those_that_a_release_wrote(release: tuple[int, int] | None, layout: int) -> None:
    """Of one version number there may be two."""
    of = [*RECORD_TYPES[7].layouts(0)][layout]
    key = {"group_id": "g", "member_id": "m"}
    record = CoordinatorRecord(record_type=7, key=key, value_version=0, value=of.zeros(0), layout=of)
    log = test_newer.plain_log()
    built = LogBuilder().add(encode_coordinator_record(record)).add(UNKNOWN, encode_coordinator_record(record)).log
    for one in (log, built):
        assert by_kernel(one, release=release).found == by_events(one, release=release).found
    kinds = [kind for kind in column(by_kernel(built, release=release), "kind") if kind < CONTROLS]
    assert kinds == [kind_of(7, 0, of)] * 2
    assert kinds[0] // OF_LAYOUT == layout


# ------------------------------------------------------------------------------------------- what columns say


def column(rows: Rows, name: str) -> list[int]:
    names = [each for each in Columns._fields if each in EVERY_COLUMN]
    return [row[names.index(name)] for row in rows.rows]


@pytest.mark.parametrize("read", [by_kernel, by_events])
def test_a_row_says_what_the_keys_record_before_it_was(read: Callable[[PartitionLog], Rows]) -> None:
    log = LogBuilder().commit(5).commit(6, partition=1).commit(5).commit(None).end(7).commit(8)
    rows = read(log.log)
    assert column(rows, "before") == [-1, -1, 0, 2, -1, 3]
    assert column(rows, "committed_offset") == [5, 6, 5, 0, 0, 8]
    assert column(rows, "before_committed_offset") == [0, 0, 5, 5, 0, 0]
    assert IS_COMMIT[column(rows, "kind")].tolist() == [True, True, True, False, False, True]
    assert IS_COMMIT[column(rows, "before_kind")].tolist() == [False, False, True, True, False, False]
    assert IS_TOMBSTONE[column(rows, "before_kind")].tolist() == [False] * 5 + [True]
    sizes = column(rows, "bytes")
    assert column(rows, "before_bytes") == [0, 0, sizes[0], sizes[2], 0, sizes[3]]
    assert column(rows, "timestamp_ms") == [TIME + number for number in range(6)]
    assert rows.keys[column(rows, "key")[0]] == (0, "g", "t", 0)


@pytest.mark.parametrize("read", [by_kernel, by_events])
def test_batches_are_taken_when_they_are_full(
    read: Callable[[PartitionLog], Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "ROWS", 200)
    log = LogBuilder()
    for number in range(1000):
        log.commit(number, partition=number % 3)
    rows = read(log.log)
    assert 5 <= rows.batches <= 12
    assert column(rows, "before") == [-1] * 3 + [*range(997)]


def test_records_that_say_who_holds_what_wait_in_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is larger than all room there is."""
    monkeypatch.setattr(holding, "new_waiting", lambda: Waiting(*(each[:70].copy() for each in new_waiting())))
    log = LogBuilder()
    for number in range(200):
        log.group(member("m", client_id="c" * number), group=f"g{number % 3}")
        log.commit(number, group=f"g{number % 3}", version=4, topic_id=bytes(15) + bytes([1 + number % 7]))
    assert_equal(log.log)
    assert len(by_events(log.log, of=RowsAndRecords).found[3]) == 200


@pytest.mark.parametrize("read", [by_kernel, by_events])
def test_bytes_are_those_of_the_log(read: Callable[[PartitionLog], Rows]) -> None:
    """Also those of batches without records, and of records that nobody can read."""
    log = LogBuilder().commit(1).add(UNKNOWN, record_bytes(2, {"group": "k"}, None, 3))
    log.commit(2)
    log.batches[-1] = empty_batch(decode_batch_header(log.batches[-1]))
    rows = read(log.log)
    assert sum(column(rows, "bytes")) + rows.empty_bytes == log.log.bytes_to_read
    assert rows.empty_bytes > 0


def test_every_kind_of_record_has_a_number() -> None:
    """No two have the same, nothing that is read is beyond them, and a number tells what it stands for."""
    found = list[int]()
    for row in RECORD_TYPES.values():
        assert row.number < a.RECORD_TYPES
        assert all(not [*row.layouts(version)] for version in range(a.VERSIONS, 2 * a.VERSIONS))
        told = [(row.number, version, each) for version in range(a.VERSIONS) for each in row.layouts(version)]
        for one in (*told, (row.number, None, None)):
            kind = kind_of(*one)
            found.append(kind)
            number, version, layout = told_by(kind)
            assert (number, version) == one[:2]
            assert layout is one[2]
    assert len(found) == sum(
        1 + sum(len([*row.layouts(v)]) for v in range(a.VERSIONS)) for row in RECORD_TYPES.values()
    )
    assert max(found) < CONTROLS
    assert len(IS_COMMIT) == KINDS + 1
    assert not any(flags[a.NOTHING] for flags in (IS_COMMIT, IS_TOMBSTONE, IS_CONTROL, IS_OF_OFFSET, ENDS_TRANSACTION))
