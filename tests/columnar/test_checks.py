"""`check` in bulk against the check record by record: the same loads and findings of any log, cut anywhere."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.checking.bulk import check_logs, profiles_of
from offsets_log.checking.bulk_answers import partition_check
from offsets_log.checking.bulk_loads import replay_loads
from offsets_log.checking.partition_check import PartitionCheck
from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import merge, offsets
from offsets_log.columnar.folds.inspected import InspectedPiece
from offsets_log.columnar.jit.modes import IS_PYTHON
from offsets_log.columnar.materialize import timelines
from offsets_log.columnar.scan import interner
from offsets_log.columnar.scan.reading import Threads
from offsets_log.errors import Damage
from offsets_log.events import EVERYTHING, Until
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.profile import MODERN
from offsets_log.replay.releases import Release, known_releases, release_named
from tests.builders import LogBuilder, record_bytes
from tests.columnar import test_newer
from tests.columnar.engines import columnar_answer, construct_answer, what
from tests.columnar.test_cuts import log_of_many_names
from tests.columnar.test_equal_engines import CRASHERS, GROUPS, PARTITIONS, PRODUCERS, SEEDS, STEPS, build
from tests.conftest import DISTINCT, PACKED, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many

ALL = known_releases()
FEW = tuple(map(release_named, ("3.9.1", "3.7.2-java", "4.3.0")))
NOW_MS = 1_800_000_000_000


def answer(check: PartitionCheck) -> dict[str, Any]:
    """All that `report` asks of a check."""
    rows = [
        finding.row(check.log.offsets_partition)
        for partitions in (PartitionCount(50, "option"), PartitionCount(7, "guess"))
        for finding in check.findings(partitions, NOW_MS)
    ]
    return {
        "loads": [load.row(check.log.offsets_partition) for load in check.loads],
        "findings": rows,
        "groups": [(group, type(group)) for group in check.groups],
        "newest_ms": check.newest_ms,
    }


Answer = tuple[dict[str, Any], list[OffsetAndMetadata] | None]
"""What `answer` returns, and the offsets that the last release serves; None where its load was not read to its end."""


def served(check: PartitionCheck) -> list[OffsetAndMetadata] | None:
    values = check.served(check.releases[-1])
    return None if values is None else sorted(values, key=attrgetter("key"))


def by_construct(log: PartitionLog, releases: Sequence[Release], until: Until) -> Answer:
    seen: list[Any] = []
    check = PartitionCheck(log, releases)
    events = list(iter_events(log, until=until))
    check.read(events, seen.append, until=until)
    return answer(check) | {"seen": list(map(what, seen))}, served(check)


def in_bulk(log: PartitionLog, releases: Sequence[Release], until: Until, pieces: int) -> Answer:
    seen: list[Any] = []
    checked = check_logs(
        [log],
        profiles_of(releases),
        note=lambda log: seen.append,
        until=lambda log: until,
        threads=Threads(pieces=pieces),
    )
    ((replayed, state),) = checked
    check = partition_check(replayed, state, releases, until=until, in_bulk=replay_loads)
    return answer(check) | {"seen": [what(item) for item in seen if isinstance(item, Damage)]}, served(check)


def assert_equal(
    log: PartitionLog,
    releases: Sequence[Release] = ALL,
    until: Until = EVERYTHING,
    pieces: Sequence[int] = (1,),
) -> None:
    expected, values = by_construct(log, releases, until)
    for count in pieces:
        found, also = in_bulk(log, releases, until, count)
        assert found == expected
        assert values is None or also == values


def test_arrays_grow_while_records_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a, "LEAST_KEYS", 4)
    assert_equal(log_of_many_names(), FEW, pieces=(1, 4))


@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name)):
        for turn, log in enumerate(read_partitions(directory).values(), DISTINCT.index(name)):
            assert_equal(log, pieces=[(1, 3)[turn % 2]])


@pytest.mark.parametrize("release", ["0.8.2", "2.0", "3.9.1", "3.7.2-java", "4.3.0"])
def test_one_release(release: str, recording: Callable[[str], Path]) -> None:
    for log in read_partitions(recording("load-fails") / "log").values():
        assert_equal(log, [release_named(release)], pieces=(2,))


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "random-java", "load-fails"])
def test_bounds_of_recordings(name: str, recording: Callable[[str], Path]) -> None:
    dice = random.Random(name)
    for log in read_partitions(log_directories(recording(name))[0]).values():
        assert_equal(log, FEW, Until(record_offset=dice.randrange(60)), (1, 3))
        assert_equal(log, FEW, Until(time_ms=1_795_239_000_000 + dice.randrange(600_000)), (1, 3))


MORE_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), GROUPS, PARTITIONS, PRODUCERS, st.integers(0, 4)),
        st.tuples(st.just("tombstone"), GROUPS, PARTITIONS, PRODUCERS, st.just(0)),
        st.tuples(st.just("end"), st.just(""), st.just(0), st.sampled_from([7, 8]), st.integers(0, 1)),
        st.tuples(st.just("group"), GROUPS, st.integers(0, 3), st.just(-1), st.just(0)),
    ),
    max_size=30,
)
"""Steps that kernels read all of."""


@examples(150)
@given(steps=STEPS, pieces=st.integers(1, 4))
def test_generated_logs(steps: list[Any], pieces: int) -> None:
    assert_equal(build(steps).log, pieces=(pieces,))


@examples(150)
@given(steps=MORE_STEPS, pieces=st.integers(1, 4), end=st.one_of(st.none(), st.integers(0, 30)))
def test_generated_plain_logs(steps: list[Any], pieces: int, end: int | None) -> None:
    assert_equal(build(steps).log, FEW, Until(record_offset=end), (pieces,))


@examples(150)
@given(steps=st.lists(test_newer.STEP, max_size=40), pieces=st.integers(1, 4))
def test_generated_newer_groups(steps: list[Any], pieces: int) -> None:
    """``J-18``, ``J-19``: also in groups of which only the last records of keys are known."""
    assert_equal(test_newer.build(steps).log, pieces=(pieces,))


@pytest.mark.parametrize("joins_behind", [False, True])
@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize(("number", "choice"), [(5, 0), (7, 0), (7, 1), (8, 0), (8, 1)])
def test_what_needs_its_member_is_told_whatever_comes_behind(
    number: int, choice: int, was_there: bool, joins_behind: bool
) -> None:
    """``J-18``: up to 3.9, of what a member is and has; one that joins behind it makes the last records look right."""
    left = [*((of_n, "n", 1) for of_n in (5, 7, 8)), *((of_n, "n", 0) for of_n in (8, 7, 5))]
    steps = [(3, "", 1), (5, "m", 1)] + left * was_there
    steps += [(number, "n", choice)] + [(5, "n", 1)] * joins_behind
    log = LogBuilder()
    for record_type, member, value in steps:
        log.add(test_newer.record(record_type, "g", member, value))
    assert_equal(log.log, [release_named("3.9-java"), release_named("4.3.0")], pieces=(1, 2))


@pytest.mark.parametrize(("skipped", "other"), [(16, 7), (16, 5), (16, 6), (9, 10), (9, 13)])
@pytest.mark.parametrize("comes", ["a tombstone", "an offset"])
def test_a_group_may_begin_with_a_record_that_some_releases_skip(skipped: int, other: int, comes: str) -> None:
    """``J-18``, ``J-19``: for those it is not there yet when the next record comes."""
    log = LogBuilder().add(test_newer.record(skipped, "g", "r", 1))
    if comes == "an offset":
        log.commit(5)
    else:
        log.add(test_newer.record(other, "g", "n", 0))
    log.add(test_newer.record(other, "g", "n", 1)).add(test_newer.record(skipped, "g", "r", 2))
    assert_equal(log.log, [release_named(name) for name in ("3.9-java", "4.0", "4.3.0")], pieces=(1, 2))


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_plain_newer_groups_need_no_hand(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = test_newer.plain_log()
    releases = [release_named("4.3.0")]
    expected, _ = by_construct(log, releases, EVERYTHING)
    monkeypatch.setattr(InspectedPiece, "take", None)
    monkeypatch.setattr(timelines, "read_again", lambda layout, state, scanner, names: dict(names))
    assert in_bulk(log, releases, EVERYTHING, pieces)[0] == expected


def test_hostile_segments() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 15), so_many(200)):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, data),)), FEW, pieces=(1,))


def test_hostile_segments_in_a_row() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    segments = list(islice(hostile_segments(seeds, 16), so_many(120)))
    for i in range(0, len(segments), 3):
        row = segments[i : i + 3]
        bases = [int.from_bytes(data[:8]) if data[:1] == b"\0" else None for data in row]
        files = tuple(Segment(f"{n}.log", base, data) for n, (base, data) in enumerate(zip(bases, row, strict=True)))
        assert_equal(PartitionLog(0, files), ALL, pieces=(3,))


@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.stem)
def test_inputs_that_once_broke_something(path: Path) -> None:
    assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, path.read_bytes()),)))


@pytest.mark.skipif(not IS_PYTHON, reason="machine code has the hash in it")
@pytest.mark.parametrize("pieces", [1, 2])
def test_keys_are_told_apart_where_one_hash_is_used_for_all(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than a block of records has, and each written in several."""
    for module in (offsets, merge, interner):
        monkeypatch.setattr(module, "hash_bytes", lambda *_: np.int64(5))
    log = LogBuilder()
    for turn in range(5):
        value = {"offset": turn, "metadata": "", "commit_timestamp": turn}
        for group in ("g", "h", "gh"):
            keys = [{"group": group, "topic": "t", "partition": number} for number in range(turn, 8)]
            log.add(*(record_bytes(1, key, value, 1) for key in keys))
    log.commit(None, partition=3).commit(7, partition=4, producer=9).end(9)
    assert columnar_answer(log.log, MODERN, pieces=pieces) == construct_answer(log.log, MODERN)
