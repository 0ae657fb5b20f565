"""The columnar engine against the construct path: the same values, errors, positions and counts on any bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsets_log.columnar.folds import replay as columnar
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import EVERYTHING, Until
from offsets_log.replay.profile import PROFILES
from tests.builders import LogBuilder, member, record_bytes
from tests.columnar.engines import columnar_answer, construct_answer
from tests.conftest import PACKED, RECORDINGS, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of

EACH_PROFILE = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


@pytest.fixture(autouse=True)
def pieces_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar, "LEAST_PIECE", 1)


def assert_equal(log: PartitionLog, profile: str, until: Until = EVERYTHING, pieces: int = 1) -> None:
    expected = construct_answer(log, PROFILES[profile], until)
    assert columnar_answer(log, PROFILES[profile], until, pieces=pieces) == expected


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings(name: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name)):
        for log in read_partitions(directory).values():
            for profile in PROFILES:
                assert_equal(log, profile)
            assert_equal(log, "modern", pieces=3)
            assert_equal(log, "classic", pieces=2)


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "random-java"])
def test_bounds_of_recordings(name: str, recording: Callable[[str], Path]) -> None:
    dice = random.Random(name)
    for log in read_partitions(log_directories(recording(name))[0]).values():
        end = construct_answer(log, PROFILES["modern"])["end_offset"]
        for pieces in (1, 3):
            assert_equal(log, "modern", Until(record_offset=dice.randrange(end + 2)), pieces)
            assert_equal(log, "modern", Until(time_ms=1_795_239_000_000 + dice.randrange(600_000)), pieces)


# ------------------------------------------------------------------------------------------ generated logs

GROUPS = st.sampled_from(["g", "h", "ünï", "g\ufffd"])
PARTITIONS = st.integers(0, 1)
PRODUCERS = st.sampled_from([-1, -1, 7, 8])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), GROUPS, PARTITIONS, PRODUCERS, st.integers(0, 4)),
        st.tuples(st.just("old"), GROUPS, st.integers(0, 7), st.just(-1), st.integers(0, 7)),
        st.tuples(st.just("legacy"), GROUPS, PARTITIONS, PRODUCERS, st.just(0)),
        st.tuples(st.just("tombstone"), GROUPS, PARTITIONS, PRODUCERS, st.just(0)),
        st.tuples(st.just("end"), st.just(""), st.just(0), st.sampled_from([7, 8]), st.integers(0, 1)),
        st.tuples(st.just("group"), GROUPS, st.integers(0, 3), st.just(-1), st.integers(0, 1)),
        st.tuples(st.just("newer"), GROUPS, st.sampled_from([3, 4, 5, 6]), st.just(-1), st.integers(0, 1)),
        st.tuples(st.just("raw"), st.just(""), st.integers(0, 6), st.just(-1), st.just(0)),
        st.tuples(st.just("skip"), st.just(""), st.integers(1, 3), st.just(-1), st.just(0)),
    ),
    max_size=30,
)

RAW = (
    (b"\x00\x01\x00\x02\xff\xfe\x00\x01t\x00\x00\x00\x00", b"\x00\x00" + bytes(8) + b"\x00\x00" + bytes(8)),
    (b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00trailing", b"\x00\x00" + bytes(8) + b"\x00\x00" + bytes(8) + b"more"),
    (b"\x00\x01\x00\x01g\x00\x01t\x00\x00", None),  # a key cut off
    (b"\x00\x63\x00\x01g", b"\x00\x00"),  # a type no release writes
    (b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", b"\x00\x09" + bytes(30)),
    (b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x01", b""),
    (b"\x00\x02\x00\x01g", b"\x00\x03\x00"),
)


def build(steps: list[tuple[str, str, int, int, int]]) -> LogBuilder:
    """A log of these steps: kind, group, partition or type, producer, version or choice."""
    log = LogBuilder()
    for kind, group, number, producer, choice in steps:
        match kind:
            case "commit":
                topic_id = {"topic_id": bytes(15) + bytes([number + 1])} if choice == 4 else {}
                log.commit(
                    log.offset, group=group, partition=number, producer=producer, version=choice,
                    metadata="m" * choice, **topic_id,
                )  # fmt: skip
            case "legacy":
                log.commit(log.offset, group=group, partition=number, producer=producer, type_=0)
            case "tombstone":
                log.commit(None, group=group, partition=number, producer=producer)
            case "end":
                log.end(producer, commit=bool(choice))
            case "group":
                same = [member(f"m{i}", group_instance_id="one" if choice else None) for i in range(number)]
                log.group(*same, group=group, gone=number == 3)
            case "newer" | "old":
                (newer if kind == "newer" else old)(log, group, number, choice)
            case "raw":
                log.add(RAW[number])
            case "skip":
                log.skip(number)
    return log


def old(log: LogBuilder, group: str, form: int, choice: int) -> None:
    """Messages of magic 0 or 1, plain or in one that is compressed."""
    values = [OLD_VALUE, None, OLD_VALUE][: 1 + choice % 4]
    keys = ({"group": group, "topic": "t", "partition": n} for n in range(3))
    records = [record_bytes(n % 2, key, value, 0) for n, (key, value) in enumerate(zip(keys, values, strict=False))]
    log.add(
        *records,
        magic=form % 2,
        compression=("none", "gzip", "snappy", "lz4")[form // 2],
        timestamp_type="log_append" if choice > 3 else "create",
    )


OLD_VALUE = {"offset": 5, "metadata": "m", "commit_timestamp": 1_700_000_000_000}


def newer(log: LogBuilder, group: str, record_type: int, choice: int) -> None:
    values = {3: {"epoch": 2}, 4: {"topics": []}, 5: {}, 6: {"assignment_epoch": 3}}
    member_id = "m" if record_type == 5 else None
    strings = {"client_id": "c", "client_host": "h", "rack_id": None, "subscribed_topic_names": []}
    value = values[record_type] | (strings if record_type == 5 else {})
    log.newer(record_type, value if choice else None, group=group, member_id=member_id)


@EACH_PROFILE
@settings(max_examples=60, deadline=None)
@given(steps=STEPS, pieces=st.integers(1, 4))
def test_generated_logs(profile, steps, pieces) -> None:  # type: ignore[no-untyped-def]
    assert_equal(build(steps).log, profile.name, pieces=pieces)


# ------------------------------------------------------------------------------------------- mutated bytes


SEEDS = (
    "kafka-0.8.2",
    "kafka-0.10.2",
    "kafka-0.11-compacted",
    "kafka-lifetime",
    "kafka-4.3-mixed",
    "kafka-4.3-modern-groups",
    "kafka-4.3-cleaned",
)


@EACH_PROFILE
def test_hostile_segments(profile) -> None:  # type: ignore[no-untyped-def]
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for data in islice(hostile_segments(seeds, 5), 300):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, data),)), profile.name)


def test_hostile_segments_in_a_row() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    segments = list(islice(hostile_segments(seeds, 6), 300))
    for i in range(0, len(segments), 3):
        row = segments[i : i + 3]
        bases = [int.from_bytes(data[:8]) if data[:1] == b"\0" else None for data in row]
        files = tuple(Segment(f"{n}.log", base, data) for n, (base, data) in enumerate(zip(bases, row, strict=True)))
        assert_equal(PartitionLog(0, files), "modern", pieces=3)


CRASHERS = sorted((PACKED.parent / "fuzz" / "crashers").glob("*.log"))


@EACH_PROFILE
@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.stem)
def test_inputs_that_once_broke_something(path: Path, profile) -> None:  # type: ignore[no-untyped-def]
    assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, path.read_bytes()),)), profile.name)
