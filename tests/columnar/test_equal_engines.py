"""The columnar engine against the construct path: the same values, errors, positions and counts on any bytes.

Over 400 lines: the logs that are generated here are those of other tests, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.events import EVERYTHING, Until
from offsets_log.log_format.java_text import decode_java_utf8
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.log_format.record import INT64_MAX, INT64_MIN
from offsets_log.replay.profile import PROFILES
from tests.builders import TIME, UNKNOWN, LogBuilder, PartlySlow, member, record_bytes
from tests.columnar.engines import columnar_answer, construct_answer
from tests.conftest import DISTINCT, PACKED, log_directories, read_partitions
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.sizes import examples, so_many

EACH_PROFILE = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


def assert_equal(log: PartitionLog, name: str, until: Until = EVERYTHING, pieces: int = 1) -> None:
    profile = PROFILES[name]
    assert columnar_answer(log, profile, until, pieces=pieces) == construct_answer(log, profile, until)


IN_PIECES = {"modern": 3, "classic": 2}
"""By some rules logs are read in so many pieces too."""


@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Callable[[str], Path]) -> None:
    for directory in log_directories(recording(name)):
        for log in read_partitions(directory).values():
            for rules, profile in PROFILES.items():
                expected = construct_answer(log, profile)
                for pieces in {1, IN_PIECES.get(rules, 1)}:
                    assert columnar_answer(log, profile, pieces=pieces) == expected


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
PRODUCERS = st.sampled_from([-1, -1, 0, 7, 8, -5])
"""−1 is none; no broker gives another below 0, yet a record may say so."""
STEP = st.one_of(
    st.tuples(st.just("commit"), GROUPS, PARTITIONS, PRODUCERS, st.integers(0, 4)),
    st.tuples(st.just("old"), GROUPS, st.integers(0, 7), st.just(-1), st.integers(0, 7)),
    st.tuples(st.just("legacy"), GROUPS, PARTITIONS, PRODUCERS, st.just(0)),
    st.tuples(st.just("tombstone"), GROUPS, PARTITIONS, PRODUCERS, st.just(0)),
    st.tuples(st.just("end"), st.just(""), st.just(0), st.sampled_from([0, 7, 8, -5]), st.integers(0, 1)),
    st.tuples(st.just("group"), GROUPS, st.integers(0, 3), st.just(-1), st.integers(0, 2)),
    st.tuples(st.just("newer"), GROUPS, st.sampled_from([3, 4, 5, 6]), st.just(-1), st.integers(0, 1)),
    st.tuples(st.just("raw"), st.just(""), st.integers(0, 6), st.just(-1), st.just(0)),
    st.tuples(st.just("skip"), st.just(""), st.integers(1, 3), st.just(-1), st.just(0)),
    st.tuples(st.just("times"), GROUPS, st.integers(0, 1), st.just(-1), st.integers(0, 13)),
)
STEPS = st.lists(STEP, max_size=30)
WRAPPED = st.lists(
    st.one_of(STEP, st.tuples(st.just("wrap"), GROUPS, PARTITIONS, st.just(-1), st.integers(0, 7))), max_size=30
)
"""Logs in which the order of records is not that of their offsets."""
SUBSCRIPTIONS = bytes(10), b"\0\0" + b"\xff" * 4  # one that a load gets over, and one that it does not (B-18)
RAW = (
    (b"\x00\x01\x00\x02\xff\xfe\x00\x01t\x00\x00\x00\x00", b"\x00\x00" + bytes(8) + b"\x00\x00" + bytes(8)),
    (b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00trailing", b"\x00\x00" + bytes(8) + b"\x00\x00" + bytes(8) + b"more"),
    (b"\x00\x01\x00\x01g\x00\x01t\x00\x00", None),  # a key cut off
    (b"\x00\x63\x00\x01g", b"\x00\x00"),  # an unknown type
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
                facts = {"group_instance_id": "one" if choice == 1 else None, "subscription": SUBSCRIPTIONS[choice > 1]}
                log.group(*(member(f"m{i}", **facts) for i in range(number)), group=group, gone=number == 3)
            case "newer" | "old" | "wrap" | "times":
                {"newer": newer, "old": old, "wrap": wrap, "times": odd_times}[kind](log, group, number, choice)
            case "raw":
                log.add(RAW[number])
            case "skip":
                log.skip(number)
    return log


ODD_TIMES = (
    (INT64_MAX - 3, INT64_MIN + 96),  # as 100 ms later wraps around, and back
    (INT64_MIN + 3, INT64_MAX - 96),
    (INT64_MAX, INT64_MIN),
    (0, INT64_MIN),
    (-1, INT64_MAX),
    (-2, -1),
    (TIME, -1),
)
"""Times of a batch's records, of which the first is the base of the others."""


def odd_times(log: LogBuilder, group: str, number: int, choice: int) -> None:
    """Records of a group's offsets, of a transaction or beside one of the group; all may be left to the slow path."""
    value = {"offset": log.offset, "leader_epoch": -1, "metadata": "", "commit_timestamp": TIME, "topic_id": ZERO_UUID}
    keys = [{"group": group, "topic": "t", "partition": n} for n in (0, 1, 0)]
    records = [record_bytes(1, key, None if n == 2 else value, 4) for n, key in enumerate(keys)]
    is_slow, times = divmod(choice, len(ODD_TIMES))
    if not number:
        records.insert(1, record_bytes(2, {"group": group}, GROUP | {"members": [member("m")]}, 3))
    facts = LogBuilder.transaction(7 if number else -1)
    log.add(*records, *[UNKNOWN] * is_slow, times=ODD_TIMES[times], **facts)


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


def wrap(log: LogBuilder, group: str, number: int, choice: int) -> None:
    """A compressed message around others, some of which have offsets of batches before and behind it."""
    key = {"group": group, "topic": "t", "partition": number}
    record = record_bytes(1, key, None if choice % 2 else OLD_VALUE, 0)
    magic = 1 if log.offset == 0 else 0  # with offset 0, those inside count from 0 too
    log.wrap((2 * choice, record), (2 * choice + 1, record_bytes(1, key | {"partition": 2}, OLD_VALUE, 0)), magic=magic)


OLD_VALUE = {"offset": 5, "metadata": "m", "commit_timestamp": 1_700_000_000_000}


def newer(log: LogBuilder, group: str, record_type: int, choice: int) -> None:
    values = {3: {"epoch": 2}, 4: {"topics": []}, 5: {}, 6: {"assignment_epoch": 3}}
    member_id = "m" if record_type == 5 else None
    strings = {"client_id": "c", "client_host": "h", "rack_id": None, "subscribed_topic_names": []}
    value = values[record_type] | (strings if record_type == 5 else {})
    log.newer(record_type, value if choice else None, group=group, member_id=member_id)


@EACH_PROFILE
@examples(60)
@given(steps=st.one_of(STEPS, WRAPPED), pieces=st.integers(1, 4))
def test_generated_logs(profile, steps, pieces) -> None:  # type: ignore[no-untyped-def]
    assert_equal(build(steps).log, profile.name, pieces=pieces)


# ---------------------------------------------------------------------------- what random logs seldom meet

OFFSET_VALUE = b"\0\0" + bytes(8) + b"\0\0" + bytes(8)


def a_name_and_what_java_makes_of_it(raw: bytes) -> LogBuilder:
    """Commits of a group whose name is not UTF-8, and of the one whose name it reads as (``B-7``)."""
    key = b"\0\1" + len(raw).to_bytes(2) + raw + b"\0\1t" + bytes(4)
    return LogBuilder().add((key, OFFSET_VALUE)).commit(7, group=decode_java_utf8(raw))


def a_batch_twice() -> LogBuilder:
    log = LogBuilder().commit(5)
    log.batches *= 2
    return log


def a_batch_of_two_offsets_before_one_of_the_last() -> LogBuilder:
    log = LogBuilder().commit(1).skip(9).add(RAW[0], RAW[0])
    log.offset -= 1
    return log.commit(2)


def a_member_with_a_byte_too_few() -> LogBuilder:
    key, value = record_bytes(2, {"group": "g"}, GROUP | {"members": [member("m", assignment=b"abc")]}, 3)
    return LogBuilder().add((key, value[:-1]))


def compressed_batches_of_which_some_are_of_no_use() -> LogBuilder:
    log = LogBuilder()
    for group, codec in ((b"g", "gzip"), (b"h", "lz4"), (b"h", "snappy"), (b"i", "zstd"), (b"h", "lz4")):
        log.add((b"\0\1\0\1" + group + b"\0\1t" + bytes(4), OFFSET_VALUE), compression=codec)
    return log


def a_list_that_is_null() -> LogBuilder:
    key, value = record_bytes(2, {"group": "g"}, GROUP | {"members": []}, 3)
    return LogBuilder().add((key, value[:-4] + b"\xff" * 4))


def a_tag_with_a_byte_too_many() -> LogBuilder:
    """Tag 0 of type 3 is an int64; what is left over of its bytes would pass for a tag around the real one."""
    key, _ = record_bytes(3, {"group_id": "g"}, None, 0)
    metadata_hash, left_over, another_tag = bytes(8), b"\x05\x02", b"\x06\x00"
    tags = b"\x02" + b"\x00\x0a" + metadata_hash + left_over + another_tag
    return LogBuilder().add((key, b"\0\0" + bytes(4) + tags))


GROUP: dict[str, Any] = {
    "protocol_type": "consumer",
    "generation": 1,
    "protocol": "range",
    "leader": "m",
    "current_state_timestamp": TIME,
}
LARGE = 1 << 31

SELDOM = {
    "a batch twice": a_batch_twice(),
    "the last offset of a segment": LogBuilder().commit(1).skip(LARGE - 2).commit(2),
    "an offset beyond its segment": LogBuilder().commit(1).skip(LARGE - 1).commit(2),
    "the last offset of a batch once more": a_batch_of_two_offsets_before_one_of_the_last(),
    "a control type that nobody knows": LogBuilder().commit(5, producer=7).control(7, 9).end(7),
    "an overlong name": a_name_and_what_java_makes_of_it(b"\xe0\x80\x80"),
    "a surrogate in a name": a_name_and_what_java_makes_of_it(b"\xed\xa0\x80"),
    "topic ids that change in their second half": LogBuilder()
    .commit(1, topic_id=bytes(15) + b"\1")
    .commit(2, topic_id=bytes(15) + b"\2")
    .commit(3, topic_id=b"\1" + bytes(15)),
    **{
        f"topic ids {ids}": LogBuilder()
        .commit(1, topic_id=bytes(15) + ids[:1])
        .commit(2, topic_id=bytes(15) + ids[1:2])
        .commit(3, topic_id=ids[2:] + bytes(15))
        .commit(None, topic="other")
        for ids in (b"\1\0\0", b"\0\1\0", b"\0\0\1", b"\1\0\1", b"\1\0\2")
    },
    "topic ids that change behind a cut": LogBuilder()
    .commit(1, metadata="m" * 500)
    .commit(2, topic_id=bytes(15) + b"\1")
    .commit(3, topic_id=bytes(15) + b"\2")
    .commit(4, topic_id=bytes(15) + b"\3"),
    "an offset of its wrapper's for the second time": LogBuilder()
    .wrap((0, RAW[0]), (6, (b"\0\1\0\1g\0\1t" + bytes(4), OFFSET_VALUE)))
    .skip(5)
    .commit(5, producer=7)
    .end(7),
    "a member with a byte too few": a_member_with_a_byte_too_few(),
    "compressed batches, some of no use": compressed_batches_of_which_some_are_of_no_use(),
    "members that are null": a_list_that_is_null(),
    "a tag with a byte too many": a_tag_with_a_byte_too_many(),
} | {
    f"odd record {number} among others, {codec}": LogBuilder()
    .commit(1)
    .add((b"\0\1\0\1h\0\1t" + bytes(4), OFFSET_VALUE), odd, (b"\0\1\0\1i\0\1t" + bytes(4), None), compression=codec)
    .commit(2)
    for number, odd in enumerate(RAW)
    for codec in ("none", "gzip", "zstd")
}


@EACH_PROFILE
@pytest.mark.parametrize("case", SELDOM)
def test_logs_that_are_seldom_generated(case: str, profile) -> None:  # type: ignore[no-untyped-def]
    for pieces in (1, 2):
        assert_equal(SELDOM[case].log, profile.name, pieces=pieces)


@EACH_PROFILE
def test_a_key_of_type_0_stays_that_of_type_1_behind_a_join(profile) -> None:  # type: ignore[no-untyped-def]
    """``L-22``: the second piece brings type 0; the third begins with damage, so the joined ones are read on with.

    The batch behind the damage is read on the slow path, the tombstone by a kernel.
    """
    log = LogBuilder()
    for type_ in (1, 1, 1, 0, 0, 0, 0, 0):
        log.commit(log.offset, type_=type_, version=0)
    log.commit(None, type_=0)
    damaged = bytearray(log.batches[6])
    damaged[-1] ^= 1
    log.batches[6] = bytes(damaged)
    assert_equal(log.log, profile.name, pieces=3)
    assert columnar_answer(log.log, profile, pieces=3)["committed"] == []


def take_step(log: LogBuilder, step: str, name: str, producer: int) -> None:
    match step:
        case "commit":
            log.commit(log.offset, group=name)
        case "pending":
            log.commit(log.offset, group=name, producer=producer)
        case "tombstone":
            log.commit(None, group=name)
        case "cancelled":
            log.commit(None, group=name, producer=producer)
        case "committed" | "aborted":
            log.end(producer, commit=step == "committed")
        case "classic" | "removed":
            log.group(group=name, gone=step == "removed")
        case _:
            member_id, number, is_value = step[:-2] or "m", int(step[-2]), step.endswith("+")
            value = {5: STRINGS, 7: {"topic_partitions": []}, 3: {"epoch": 2}, 6: {"assignment_epoch": 2}, 8: CURRENT}
            of_member = {"member_id": member_id} if number in (5, 7, 8) else {}
            log.newer(number, value[number] if is_value else None, group=name, **of_member)


STRINGS = {"client_id": "c", "client_host": "h", "rack_id": None, "subscribed_topic_names": []}
CURRENT = {
    "member_epoch": 1,
    "previous_member_epoch": 0,
    "state": 0,
    "assigned_partitions": [{"topic_id": bytes(15) + b"\1", "partitions": [0], "assignment_epochs": []}],
    "partitions_pending_revocation": [],
}
OF_ONE_KEY = ("commit", "pending", "tombstone", "cancelled", "committed", "aborted")
OF_MEMBERS = ("6-", "5+", "5-", "7+", "7-", "8+", "8-", "n8+")
"""And another member that takes the same partition."""
OF_ONE_GROUP = ("commit", "pending", "classic", "removed", *(f"{n}{sign}" for n in (3, 5, 6, 7, 8) for sign in "+-"))


def all_runs(steps: tuple[str, ...], length: int, before: tuple[str, ...] = ()) -> PartitionLog:
    """All runs of so many steps."""
    return log_of_runs([(*before, *run) for run in product(steps, repeat=length)], LogBuilder())


def log_of_runs(runs: Sequence[Sequence[str]], log: LogBuilder) -> PartitionLog:
    """Runs, each of a group and a producer of its own: first the first step of each, and so on."""
    for turn in range(len(runs[0])):
        for number, run in enumerate(runs):
            take_step(log, run[turn], f"g{number}", number)
    return log.log


@EACH_PROFILE
def test_every_short_run_of_one_key_and_producer(profile) -> None:  # type: ignore[no-untyped-def]
    """Cut between the steps too, and of more groups and producers than there is room for at first."""
    log = all_runs(OF_ONE_KEY, 3)
    expected = construct_answer(log, profile)
    for pieces in (1, 2, 3):
        assert columnar_answer(log, profile, pieces=pieces) == expected


@pytest.mark.parametrize("before", [(), ("5+", "8+")], ids=["of none", "of a member"])
def test_every_short_run_of_records_of_one_group(before: tuple[str, ...]) -> None:
    log = all_runs(OF_ONE_GROUP, 2, before)
    expected = construct_answer(log, PROFILES["modern"])
    for pieces in (2, 3):
        assert columnar_answer(log, PROFILES["modern"], pieces=pieces) == expected


def test_every_run_of_three_records_of_members() -> None:
    log = all_runs(OF_MEMBERS, 3, ("5+", "8+"))
    expected = construct_answer(log, PROFILES["modern"])
    for pieces in (1, 4):
        assert columnar_answer(log, PROFILES["modern"], pieces=pieces) == expected


@pytest.mark.parametrize(("count", "every"), [(500, 0), (100, 3)])
def test_many_longer_runs_of_records_of_one_group(count: int, every: int) -> None:
    """Most are of members as coordinators write them, for a group with anything else in it is read again."""
    dice, leaving = random.Random(7), ("8-", "7-", "5-")
    steps = [*[("3+",), ("6+",), ("7+",), ("8+",)] * 2, ("5+", "8+"), ("n5+", "n8+"), leaving, ("n8-", "n7-", "n5-")]
    steps += [(step,) for step in (*OF_ONE_GROUP, "n5-", "n7+", "n8+")]
    runs = [list(chain.from_iterable(dice.choices(steps, k=9)))[:9] for _ in range(so_many(count))]
    log = log_of_runs(runs, PartlySlow(every))
    expected = construct_answer(log, PROFILES["modern"])
    for pieces in (1, 3, 7):
        assert columnar_answer(log, PROFILES["modern"], pieces=pieces) == expected


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_a_bound_in_any_piece_ends_the_log(pieces: int) -> None:
    """What lies behind it counts nowhere, whichever piece holds it."""
    log = LogBuilder()
    for number in range(12):
        log.commit(number, partition=number % 3)
    for offset in range(14):
        assert_equal(log.log, "modern", Until(record_offset=offset), pieces)
        assert_equal(log.log, "modern", Until(time_ms=TIME + offset - 1), pieces)


def test_a_time_bound_takes_the_batch_of_that_time() -> None:
    log = LogBuilder().commit(1).commit(2).commit(3).log
    until = Until(time_ms=TIME + 1)
    assert_equal(log, "modern", until)
    assert columnar_answer(log, PROFILES["modern"], until)["counts"][0] == 2


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
    for data in islice(hostile_segments(seeds, 50 + [*PROFILES].index(profile.name)), so_many(150)):
        assert_equal(PartitionLog(0, (Segment("fuzz.log", 0, data),)), profile.name)


def test_hostile_segments_in_a_row() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    segments = list(islice(hostile_segments(seeds, 6), so_many(300)))
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
