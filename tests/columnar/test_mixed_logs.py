"""Logs of everything, cut before any batches: what is joined is what one piece and the construct path make of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest

from offsets_log.columnar import arrays as a
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, encode_coordinator_record
from offsets_log.replay.profile import PROFILES, RELEASES
from tests.builders import TIME, LogBuilder, PartlySlow, member, record_bytes
from tests.columnar.engines import columnar_answer, construct_answer
from tests.columnar.test_checks import assert_equal as check_equal
from tests.columnar.test_equal_engines import RAW, SUBSCRIPTIONS, old, wrap
from tests.columnar.test_newer import KINDS, leaving, record
from tests.columnar.test_read_again import replayed

GROUPS = ("g", "\u00fc", "long" * 30)
TOPICS = ("t", "t" * 70)
"""Keys that take one cache line, and more of them."""
PRODUCERS = (-1, -1, 7, 8)
VALUE = {"offset": 1, "metadata": "", "commit_timestamp": TIME, "expire_timestamp": -1, "leader_epoch": -1}
PLAIN = [record_bytes(1, {"group": "g", "topic": topic, "partition": 0}, VALUE, 1) for topic in TOPICS]


def commit(log: LogBuilder, dice: random.Random, group: str) -> None:
    version, producer, is_value = dice.randrange(5), dice.choice(PRODUCERS), dice.random() < 0.8
    facts: dict[str, Any] = {"commit_timestamp": TIME + dice.randrange(99), "metadata": "m" * dice.choice((0, 3, 200))}
    if dice.random() < 0.4:
        facts["topic_id"] = bytes(dice.choice((0, 1)) for _ in range(2)) + bytes(13) + bytes([dice.randrange(3)])
    where = {"topic": dice.choice(TOPICS), "partition": dice.randrange(2), "group": group, "producer": producer}
    type_ = 0 if dice.random() < 0.1 else 1
    log.commit(log.offset if is_value else None, version=0 if type_ == 0 else version, type_=type_, **where, **facts)


def end(log: LogBuilder, dice: random.Random, group: str) -> None:
    log.end(dice.choice(PRODUCERS[1:]), commit=dice.random() < 0.6)


def classic(log: LogBuilder, dice: random.Random, group: str) -> None:
    count = dice.randrange(3)
    facts = {"subscription": SUBSCRIPTIONS[dice.random() < 0.1], "group_instance_id": dice.choice((None, None, "one"))}
    members = [member(f"m{number}", **facts) for number in range(count)]
    log.group(*members, group=group, version=dice.randrange(5), gone=dice.random() < 0.3, generation=log.offset)


def newer(log: LogBuilder, dice: random.Random, group: str) -> None:
    """Of a group most records are of one kind."""
    kind = [*KINDS][GROUPS.index(group) if dice.random() < 0.97 else dice.randrange(3)]
    if dice.random() < 0.15:
        log.add(*leaving(kind, "n" + group, dice.choice("mn")))
        return
    key, value = record(dice.choice(KINDS[kind]), "n" + group, dice.choice("mn"), dice.randrange(5))
    odd = dice.random()
    if value is not None and odd < 0.02:
        value = b"\0\x07" + value[2:]  # a version that nobody knows
    elif value is not None and odd < 0.1:
        value += b"\0more"
    log.add((key, value))


def in_another_layout(log: LogBuilder, dice: random.Random, group: str) -> None:
    """A record as other releases write it under the same version."""
    number = dice.choice((4, 5, 7, 8))
    layout = [*RECORD_TYPES[number].layouts(0)][-1]
    names = dict(zip(("group_id", "member_id"), ("ng", dice.choice("mn")), strict=True))
    key = {row.name: names[row.name] for row in RECORD_TYPES[number].key.fields}
    value = layout.zeros(0) | {row.name: None for row in layout.fields if row.nullable and row.tag is None}
    log.add(
        encode_coordinator_record(
            CoordinatorRecord(record_type=number, key=key, value=value, value_version=0, layout=layout)
        )
    )


def timeless(log: LogBuilder, dice: random.Random, group: str) -> None:
    """Records without a time, as cleaners write those of magic 0 again; of the commits one may have none either."""
    times = dice.choice((-1, TIME + dice.randrange(200)))
    key = {"group": group, "topic": dice.choice(TOPICS), "partition": 0}
    commits = record_bytes(1, key, VALUE | {"commit_timestamp": times}, dice.randrange(4))
    records = commits, record_bytes(2, {"group": group}, {"protocol_type": "c", "generation": 1, "members": []}, 0)
    for raw_key, value in records[: dice.randrange(1, 3)]:
        log.batches.append(build_batch([Record(offset=log.offset, timestamp_ms=-1, key=raw_key, value=value)]))
        log.offset += 1


def raw(log: LogBuilder, dice: random.Random, group: str) -> None:
    log.add(PLAIN[0], dice.choice(RAW), PLAIN[1])


Steps = dict[Callable[[LogBuilder, random.Random, str], object], int]
STEPS: Steps = {
    commit: 12,
    end: 4,
    classic: 3,
    newer: 12,
    timeless: 2,
    in_another_layout: 1,
    raw: 1,
    lambda log, dice, group: old(log, group, dice.randrange(8), dice.randrange(8)): 1,
    lambda log, dice, group: log.skip(dice.randrange(3)): 1,
}


OUT_OF_PLACE: Steps = {
    lambda log, dice, group: wrap(log, "g", 0, dice.randrange(8)): 3,
    lambda log, dice, group: commit(log, dice, "g"): 4,
    end: 2,
    lambda log, dice, group: log.add(wrapped(dice), magic=0): 1,
}
"""Messages with offsets of batches before and behind them, among commits of the same keys."""


def wrapped(dice: random.Random) -> tuple[bytes, Any]:
    """A record that `wrap` writes, too."""
    key = {"group": "g", "topic": "t", "partition": dice.randrange(3)}
    return record_bytes(1, key, dice.choice((None, VALUE)), 0)


def log_of(dice: random.Random, count: int, steps: Steps = STEPS) -> LogBuilder:
    """A log of so many steps, with every few batches read on the slow path, or none."""
    log = PartlySlow(dice.choice((0, 0, 2, 5)))
    for step in dice.choices([*steps], [*steps.values()], k=count):
        step(log, dice, dice.choice(GROUPS))
    return log


@pytest.mark.parametrize("profile", ["classic", "modern", "modern-3.7", "3.9-java", "4.0", "4.2"])
def test_a_log_of_everything_says_the_same_wherever_it_is_cut(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all tables begin as small as can be, and in whichever order pieces are joined."""
    rules, dice = (PROFILES | RELEASES)[profile], random.Random(profile)
    for keys in (4, 64, 4, 64, 4):
        monkeypatch.setattr(a, "LEAST_KEYS", keys)
        built = log_of(dice, dice.randrange(5, 60))
        expected = construct_answer(built.log, rules)
        begins = [*accumulate(map(len, built.batches[:-1]))]
        assert columnar_answer(built.log, rules) == expected
        for count in (2, len(begins)):
            cuts = sorted(dice.sample(begins, min(count, len(begins))))
            for from_last in (False, True):
                assert columnar_answer(built.log, rules, cuts=cuts, from_last=from_last) == expected


@pytest.mark.parametrize("release", [(3, 7), (4, 3)])
def test_a_log_that_is_known_to_be_of_a_release_says_the_same_wherever_it_is_cut(release: tuple[int, int]) -> None:
    dice = random.Random(f"{release}")
    for profile in (PROFILES["modern"], RELEASES["4.0"]):
        for _ in range(3):
            built = log_of(dice, 40)
            expected = construct_answer(built.log, profile, release=release)
            cuts = [*accumulate(map(len, built.batches[:-1]))][:: dice.randrange(1, 9)]
            for found in ([], cuts):
                assert columnar_answer(built.log, profile, cuts=found, release=release) == expected


@pytest.mark.parametrize("profile", PROFILES)
def test_records_out_of_their_place_are_replayed_in_the_order_of_the_log(profile: str) -> None:
    """``records:M5``: whichever piece has them."""
    dice = random.Random(profile)
    for _ in range(20):
        built = log_of(dice, dice.randrange(2, 8), OUT_OF_PLACE)
        expected = construct_answer(built.log, PROFILES[profile])
        for begin in accumulate(map(len, built.batches[:-1])):
            assert columnar_answer(built.log, PROFILES[profile], cuts=[begin]) == expected


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("value", [None, VALUE])
@pytest.mark.parametrize("before", [0, 1])
def test_nothing_is_joined_behind_a_record_with_an_offset_of_later_ones(before: int, value: Any, profile: str) -> None:
    """``records:M5``: a transaction behind it comes too late for it, whichever piece has the record."""
    key = {"group": "g", "topic": "t", "partition": 0}
    log = LogBuilder()
    for _ in range(before):
        log.commit(8, partition=1)
    log.wrap(*((50 + number, record_bytes(1, key, value, 0)) for number in range(2)), magic=0)
    log.commit(9, producer=7).end(7)
    expected = construct_answer(log.log, PROFILES[profile])
    begins = [*accumulate(map(len, log.batches[: before + 1]))]
    for cuts in ([], begins, begins[-1:], begins[:1]):
        assert columnar_answer(log.log, PROFILES[profile], cuts=cuts) == expected


def test_topic_ids_are_kept_once_for_each_that_followed_another() -> None:
    """Commits without one, as older versions are, change nothing; wherever the log is cut."""
    one, other = (bytes(15) + bytes([number]) for number in (1, 2))
    log = LogBuilder()
    for topic_id in (None, one, one, None, other, None, None):
        log.commit(log.offset, **({"version": 3} if topic_id is None else {"topic_id": topic_id}))
    expected = construct_answer(log.log, PROFILES["modern"])
    assert replayed(log).arrays.scan_state.named == 1
    for begin in accumulate(map(len, log.batches[:-1])):
        assert replayed(log, begin).arrays.scan_state.named == 1
        assert columnar_answer(log.log, PROFILES["modern"], cuts=[begin]) == expected


@pytest.mark.parametrize("odd", [(number, other) for number in range(len(RAW)) for other in range(len(RAW))])
def test_two_odd_records_side_by_side_are_told_once_each(odd: tuple[int, int]) -> None:
    log = LogBuilder().add(PLAIN[0], *(RAW[number] for number in odd), PLAIN[1])
    assert columnar_answer(log.log, PROFILES["modern"]) == construct_answer(log.log, PROFILES["modern"])


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_that_producers_cancelled_has_room(count: int, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``L-18``: a transaction more ends as all others do."""
    monkeypatch.setattr(a, "LEAST_KEYS", 16)
    log = LogBuilder()
    for producer in range(9):
        log.commit(producer, producer=producer)
        for partition in range(count):
            log.commit(None, partition=partition + 1, producer=producer)
        log.end(producer)
    begins = [*accumulate(map(len, log.batches[:-1]))]
    expected = construct_answer(log.log, PROFILES[profile])
    assert not expected["pending"]
    for cuts in ([], begins[::4]):
        assert columnar_answer(log.log, PROFILES[profile], cuts=cuts) == expected


def test_a_log_of_everything_is_checked_by_kernels_as_record_by_record() -> None:
    dice = random.Random(5)
    for _ in range(6):
        check_equal(log_of(dice, dice.randrange(5, 40)).log, pieces=(1, 2, 5))
