"""Test each rule on a small log, under the profiles that differ in it; random and recorded logs test all at once.

Over 400 lines: one table with a row for each rule.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from typing import Any

import pytest

from offsets_log.columnar.folds import known
from offsets_log.log_format.batch import decode_batch_header
from offsets_log.log_format.building import build_batch, empty_batch
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import Record, iter_records
from offsets_log.messages.embedded import expand_subscription
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record
from offsets_log.replay import fold, partial
from offsets_log.replay.expiry import subscribed_topics
from offsets_log.replay.profile import CLASSIC, MODERN, MODERN_3_7, PROFILES, RELEASES, WAYS, Profile
from offsets_log.replay.topic_names import TopicNames, is_named_in, topic_id_mark, topic_names_in
from offsets_log.rows.groups import group_row
from tests.builders import TIME, LogBuilder, member, record_bytes

ALL = (MODERN, MODERN_3_7, CLASSIC)


def log() -> LogBuilder:
    return LogBuilder()


def commit(offset: int | None) -> tuple[bytes, Any]:
    """A commit that old messages can hold, or its tombstone."""
    value = None if offset is None else {"offset": offset, "metadata": "", "commit_timestamp": TIME}
    return record_bytes(1, {"group": "g", "topic": "t", "partition": 0}, value, 1)


K = "g/t/0"
LAST_KEY = "g/t/1"
LAST = record_bytes(
    1, {"group": "g", "topic": "t", "partition": 1}, {"offset": 1, "metadata": "", "commit_timestamp": TIME}, 1
)
"""A commit of another key, for messages that only give a wrapper its place."""

CASES: list[tuple[str, LogBuilder, dict[str, int], dict[str, int], dict[str, int]]] = [
    # rules, log, then what modern, modern-3.7 and classic serve
    ("L-17 J-7: of plain values the last counts", log().commit(5).commit(3), {K: 3}, {K: 3}, {K: 3}),
    ("L-18 J-12: a tombstone ends a plain value", log().commit(5).commit(None), {}, {}, {}),
    ("L-22 records:Y2: type 0 and type 1 name the same", log().commit(5).commit(6, type_=0), {K: 6}, {K: 6}, {K: 6}),
    ("B-7: a type 0 tombstone ends a type 1 value", log().commit(5).commit(None, type_=0), {}, {}, {}),
    ("J-8 L-17: a value of an open transaction is pending", log().commit(5, producer=7), {}, {}, {}),
    ("J-11 L-13: a commit marker applies it", log().commit(5, producer=7).end(7), {K: 5}, {K: 5}, {K: 5}),
    ("J-10 L-12: an abort drops it", log().commit(5, producer=7).end(7, commit=False), {}, {}, {}),
    ("L-14 J-10: a marker without data is nothing", log().commit(5).end(7), {K: 5}, {K: 5}, {K: 5}),
    (
        "L-15: the next transaction starts with nothing",
        log().commit(5, producer=7).end(7, commit=False).end(7),
        {}, {}, {},
    ),
    (
        "J-9 L-13 B-8: a plain value between data and marker stays, but not in 3.7",
        log().commit(5, producer=7).commit(9).end(7),
        {K: 9}, {K: 5}, {K: 9},
    ),
    (
        "L-9 J-11: of two transactions the record offset decides, not the marker",
        log().commit(5, producer=7).commit(9, producer=8).end(8).end(7),
        {K: 9}, {K: 5}, {K: 9},
    ),
    (
        "L-19 J-12: a plain tombstone over a pending value",
        log().commit(5, producer=7).commit(None).end(7),
        {}, {K: 5}, {K: 5},
    ),
    (
        "L-18 J-12: a transactional tombstone over a committed value",
        log().commit(5).commit(None, producer=7).end(7),
        {}, {}, {K: 5},
    ),
    (
        "L-18 J-12: a transactional tombstone over its own pending value",
        log().commit(5, producer=7).commit(None, producer=7).end(7),
        {}, {K: 5}, {},
    ),
    (
        "L-18: it spares another producer's",
        log().commit(5, producer=7).commit(None, producer=8).end(7),
        {}, {K: 5}, {K: 5},
    ),
    (
        "J-13 L-13 B-10: markers match by producer id, whatever the epoch",
        log().commit(5, producer=7).end(7, epoch=32),
        {K: 5}, {K: 5}, {K: 5},
    ),
    (
        "J-15 L-36: offsets of a removed group",
        log().group().commit(5).group(gone=True),
        {}, {}, {K: 5},
    ),
    (
        "J-6 B-17: a later value makes the group exist again, an aborted one too",
        log().commit(5).group(gone=True).commit(9, partition=1, producer=7).end(7, commit=False),
        {K: 5}, {K: 5}, {K: 5},
    ),
    (
        "L-12 J-2: an unknown control type discards what is pending, or is ignored",
        log().commit(5, producer=7).control(7, 9).end(7),
        {K: 5}, {K: 5}, {},
    ),
    (
        "L-12 J-2: of several control records the first counts, or all",
        log().commit(5, producer=7).control(7, 0, 1),
        {}, {}, {},
    ),
    (
        "L-12 J-2: the other way round",
        log().commit(5, producer=7).control(7, 9, 1),
        {K: 5}, {K: 5}, {},
    ),
    ("L-21 J-3: unknown record types are skipped", log().add((b"\0\x63x", b"y")).commit(5), {K: 5}, {K: 5}, {K: 5}),
    ("L-8 records:X8: gaps between offsets are nothing", log().commit(5).skip(100).commit(6), {K: 6}, {K: 6}, {K: 6}),
    (
        "L-17 J-7 records:M5: the order of the file counts, also behind a wrapper that counts beyond its offset",
        log().wrap((0, LAST), (6, commit(60))).commit(5),
        {K: 5, LAST_KEY: 1}, {K: 5, LAST_KEY: 1}, {K: 5, LAST_KEY: 1},
    ),
    (
        "L-9 J-9 records:M5: a transaction is compared with the wrapper's number, or the message's",
        log().wrap((0, LAST), (6, commit(60))).commit(5, producer=7).end(7),
        {K: 60, LAST_KEY: 1}, {K: 5, LAST_KEY: 1}, {K: 5, LAST_KEY: 1},
    ),
    (
        "L-9 records:M5: the wrapper's number is that of its first message",
        log().wrap((3, LAST), (6, commit(60))).skip(1).commit(5, producer=7).end(7),
        {K: 60, LAST_KEY: 1}, {K: 5, LAST_KEY: 1}, {K: 60, LAST_KEY: 1},
    ),
    (
        "L-9 J-9 records:M5: of two records with one offset the later one is no later",
        log().wrap((0, LAST), (6, commit(60))).skip(5).commit(5, producer=7).end(7),
        {K: 60, LAST_KEY: 1}, {K: 5, LAST_KEY: 1}, {K: 5, LAST_KEY: 1},
    ),
    (
        "L-18 J-12 records:M5: a tombstone beyond its wrapper's offset ends nothing behind it",
        log().wrap((0, commit(60)), (6, commit(None))).commit(5, producer=7).end(7),
        {K: 5}, {K: 5}, {K: 5},
    ),
    (
        "L-17 J-7 records:M5: a message with an offset of batches before it replaces theirs",
        log().skip(10).commit(5, producer=7).end(7).skip(8).wrap((5, commit(60)), (20, LAST), magic=0),
        {K: 60, LAST_KEY: 1}, {K: 60, LAST_KEY: 1}, {K: 60, LAST_KEY: 1},
    ),
    (
        "L-19 J-12 records:M5: a tombstone with an offset of batches before it, over what is pending there",
        log().skip(10).commit(5, producer=7).skip(9).wrap((5, commit(None)), (20, LAST), magic=0).end(7),
        {LAST_KEY: 1}, {K: 5, LAST_KEY: 1}, {K: 5, LAST_KEY: 1},
    ),
    (
        "J-6 J-15 L-36 records:M5: a group's tombstone behind a wrapper that counts beyond its offset",
        log().wrap((0, record_bytes(2, {"group": "g"}, None, 0)), (6, commit(60))).group(gone=True),
        {}, {}, {K: 60},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0].replace(" ", "-") for case in CASES])
def test_rule(case: tuple[Any, ...]) -> None:
    _, built, *expected = case
    assert [built.served(profile) for profile in ALL] == expected


def test_every_switch_of_offsets_is_a_way() -> None:
    """Releases whose ways are the same share a state: a rule that another switch decided would be the wrong one."""
    switches = {switch.name for switch in fields(Profile)}
    for code in (partial, fold, known.rules_of):
        asked = set(re.findall(r"profile\.(\w+)", inspect.getsource(code))) & switches
        assert asked
        assert asked <= set(WAYS), code


def test_transactional_is_the_bit_or_the_producer_id() -> None:
    """A plain idempotent batch, which no broker writes here, is read differently (``L-11``, ``J-5``)."""
    (record,) = iter_records(decode_batch_header(log().commit(5).batches[0]))
    assert isinstance(record, Record)
    built = log().add((record.key, record.value), producer_id=7, producer_epoch=0)
    assert built.served(CLASSIC) == {K: 5}
    assert built.served(MODERN) == {}
    assert [value.committed_offset for value in built.load(MODERN).pending] == [5]


def test_a_value_cancelled_in_its_transaction_leaves_a_group_in_java_only() -> None:
    """A pending map that was emptied contributes nothing (``B-3``, ``L-40``)."""
    built = log().commit(5, producer=7).commit(None, producer=7).end(7)
    assert list(built.load(MODERN).groups) == ["g"]
    assert list(built.load(CLASSIC).groups) == []


def test_pending_offsets_alone_make_a_group() -> None:
    """A group exists by its pending offsets alone (``L-36``, ``J-6``)."""
    for profile in ALL:
        state = log().commit(5, producer=7).load(profile)
        assert [value.committed_offset for value in state.pending] == [5]
        (group,) = state.groups.values()
        assert (group.is_simple, group.has_record, group.generation) == (True, False, 0)


def test_a_group_of_a_record_has_its_committed_and_pending_offsets() -> None:
    """A group with a record has its committed and pending offsets (``L-35``)."""
    built = log().commit(4).commit(5, partition=1, producer=7).group(member("m")).commit(6, partition=2, producer=8)
    for profile in ALL:
        state = built.load(profile)
        assert [(group.group_id, group.has_record) for group in state.groups.values()] == [("g", True)]
        assert [value.committed_offset for value in state.iter_served()] == [4]
        assert sorted((value.producer_id, value.committed_offset) for value in state.pending) == [(7, 5), (8, 6)]


def test_pending_offsets_of_a_removed_group_stay_unstable() -> None:
    """Pending offsets of a removed group stay unstable (``B-2``)."""
    state = log().commit(5, producer=7).group(gone=True).load(MODERN)
    assert state.groups == {}
    assert len(state.pending) == 1


def test_the_last_group_record_counts_and_offsets_stay() -> None:
    """A type 2 value replaces any group, even a simple one; offsets stay (``L-20``, ``L-34``, ``J-14``)."""
    for profile in ALL:
        state = log().commit(5).group(member("m")).load(profile)
        assert state.groups["g"].kind == "classic"
        assert state.groups["g"].has_record
        assert [value.committed_offset for value in state.iter_served()] == [5]
        assert [*log().group(member("m")).group(member("n")).load(profile).groups["g"].members] == ["n"]


@pytest.mark.parametrize("profile", ALL, ids=lambda profile: profile.name)
def test_state_of_a_loaded_classic_group_is_stable_or_empty(profile: Profile) -> None:
    """A loaded classic group is Stable or Empty (``L-24``, ``L-29``, ``J-14``)."""
    assert log().group().load(profile).groups["g"].state(profile) == "Empty"
    group = log().group(member("m")).load(profile).groups["g"]
    assert group.state(profile) == "Stable"
    assert group.current_state_timestamp_ms == TIME
    assert log().group(current_state_timestamp=-1).load(profile).groups["g"].current_state_timestamp_ms is None
    assert log().group(version=1).load(profile).groups["g"].current_state_timestamp_ms is None


def test_a_missing_leader_is_the_first_member_and_an_unknown_one_is_kept() -> None:
    """The first member replaces a missing leader; an unknown leader is kept (``L-26``, ``B-6``)."""
    assert log().group(member("a"), member("b"), leader=None).load(MODERN).groups["g"].leader == "a"
    assert log().group(member("a"), leader="who").load(MODERN).groups["g"].leader == "who"
    assert log().group(member("a"), protocol=None).load(CLASSIC).groups["g"].protocol is None


def test_an_empty_protocol_type_is_none_but_not_simple_with_members() -> None:
    """The record that 4.x writes for a new group has an empty protocol type (``L-25``, ``J-16``)."""
    for profile in (MODERN, CLASSIC):
        group = log().group(protocol_type="", generation=0).load(profile).groups["g"]
        assert (group.protocol_type, group.is_simple, group.has_record) == (None, True, True)
        peopled = log().group(member("a"), protocol_type="").load(profile).groups["g"]
        assert (peopled.is_simple, subscribed_topics(peopled)) == (False, None)


def test_members_with_one_instance_id_end_the_load_and_with_one_member_id_do_not() -> None:
    """One instance id twice ends the load, one member id twice does not (``L-31``, ``J-14``, ``L-32``, ``B-6``)."""
    twins = log().group(member("a", group_instance_id="s"), member("b", group_instance_id="s"))
    for profile in (MODERN, CLASSIC):
        failure = twins.load(profile).failure
        assert failure is not None
        assert failure.rule == "L-31"
    assert twins.load(RELEASES["2.3"]).failure is None
    dynamic = log().group(member("a"), member("b"))  # L-30: no instance id is none that two could share
    assert [dynamic.load(profile).failure for profile in (MODERN, CLASSIC, RELEASES["2.3"])] == [None, None, None]
    same = log().group(member("a", client_id="one"), member("a", client_id="two"), protocol_type="")
    (kept,) = same.load(MODERN).groups["g"].members.values()
    assert kept.metadata["client_id"] == "two"
    assert same.load(MODERN).failure is None
    static = log().group(member("a", group_instance_id="s"), member("a", group_instance_id="s"))
    assert [rule_of(static, profile) for profile in (MODERN, CLASSIC)] == ["L-31", "L-31"]


def test_rebalance_timeouts_that_are_not_there_are_the_session_timeout() -> None:
    """A missing timeout is the session timeout: before version 1, and in Java where −1 is stored (``L-27``)."""

    def timeout(built: LogBuilder, profile: Profile) -> int:
        group = built.load(profile).groups["g"]
        value: int = group_row(group, profile, TopicNames(), 0)["members"][0]["rebalance_timeout_ms"]
        return value

    assert timeout(log().group(member("m"), version=0), CLASSIC) == 2000
    negative = log().group(member("m", rebalance_timeout=-1))
    assert timeout(negative, MODERN) == 2000
    assert timeout(negative, CLASSIC) == -1


def test_values_say_minus_one_where_there_is_nothing() -> None:
    """Leader epoch and expiry are −1 where there is nothing (``L-23``)."""
    (plain,) = log().commit(5).load(MODERN).committed
    assert (plain.leader_epoch, plain.expire_timestamp_ms, plain.topic_id) == (None, None, None)
    (expiring,) = log().commit(5, version=1, expire_timestamp=TIME + 9).load(MODERN).committed
    assert (expiring.expire_timestamp_ms, expiring.leader_epoch) == (TIME + 9, None)
    (epoch,) = log().commit(5, version=3, leader_epoch=4).load(MODERN).committed
    assert epoch.leader_epoch == 4


@pytest.mark.parametrize("at", [0, 7, 15])
def test_a_topic_id_is_none_only_if_all_its_bytes_are_zero(at: int) -> None:
    """Values have topic ids from 4.1 on, zero where the broker knew none (``L-23``)."""
    topic_id = Uuid(bytes(at) + b"\1" + bytes(15 - at))
    (named,) = log().commit(5, topic_id=topic_id).load(MODERN).committed
    assert named.topic_id == str(topic_id)


def test_a_null_key_ends_the_load_of_either() -> None:
    """After a null key both answer nothing: Scala serves nothing, Java is unavailable (``L-16``, ``J-3``, ``L-42``)."""
    built = log().commit(5).add((None, b"x")).commit(6)
    for profile in PROFILES.values():
        state = built.load(profile)
        assert state.failure is not None
        assert (state.failure.rule, state.failure.record_offset) == ("L-16", 1)
        assert state.as_broker().committed == ()
        assert built.served(profile) == {K: 6}


def test_unexpected_unload_is_an_error_that_is_served() -> None:
    """A removed group that only a pending offset keeps alive is an error, but is served (``L-39``, ``B-4``)."""
    state = log().group().group(gone=True).commit(5, producer=7).load(CLASSIC)
    assert state.failure is not None
    assert state.failure.rule == "L-39"
    assert state.as_broker() is state
    assert log().group().group(gone=True).commit(5).load(CLASSIC).failure is None
    assert log().group().group(gone=True).load(CLASSIC).failure is None, "there is no group that could be active"
    another_tombstone = log().group().newer(5, None, member_id="m").load(RELEASES["3.0"])
    assert {problem.rule for problem in another_tombstone.problems} == {"L-21", "J-19"}, "it removes no group"


def test_unknown_types_end_a_load_before_3_4_1() -> None:
    """Unknown types end a load before 3.4.1 (``L-21``)."""
    built = log().commit(5, version=3).add((b"\0\x05\0\x01g\0\x01m", None))
    assert built.load(RELEASES["3.0"]).failure.rule == "L-21"  # type: ignore[union-attr]
    assert built.load(CLASSIC).failure is None


def test_a_type_0_key_has_values_of_version_0_only_from_4_1_on() -> None:
    """From 4.1 on, type 0 keys have values of version 0 only (``records:Y6``)."""
    built = log().commit(5).commit(6, type_=0, version=1)
    for release in ("4.1", "4.2", "4.3"):
        assert built.load(RELEASES[release]).failure.rule == "records:Y6"  # type: ignore[union-attr]
        assert rule_of(log().commit(5, type_=0, version=0), RELEASES[release]) is None
    assert built.load(RELEASES["4.0"]).failure is None
    assert built.served(CLASSIC) == {K: 6}


@pytest.mark.parametrize(("version", "rule"), [(1, None), (0x7FFF, None), (-1, "records:Y4"), (-0x8000, "records:Y4")])
def test_a_value_of_a_later_version_is_read_as_the_newest_by_the_previews_and_a_negative_one_is_not(
    version: int, rule: str | None
) -> None:
    """The Java previews of 3.7 to 3.9 read a later version as the newest, but no negative one (``records:Y4``)."""
    key, value = record_bytes(3, {"group_id": "g"}, {"epoch": 1, "metadata_hash": 0}, 0)
    built = log().add((key, version.to_bytes(2, signed=True) + value[2:]))
    assert rule_of(built, RELEASES["3.9-java"]) == rule
    assert rule_of(built) == "records:Y4"
    assert rule_of(log().add((key, version.to_bytes(2, signed=True))), RELEASES["3.9-java"]) == "records:Y4", (
        "too short"
    )


def test_a_control_batch_in_the_middle_is_no_data() -> None:
    """A control record with a key like any other is a marker and no coordinator record (``records:C1``)."""
    built = log().commit(1).commit(5, producer=7).end(7).commit(2, partition=1)
    for profile in ALL:
        state = built.load(profile)
        assert state.failure is None
        assert sorted(value.committed_offset for value in state.committed) == [2, 5]
        assert state.end_offset == 4


def test_what_is_cut_off_names_no_topic_and_a_zero_id_is_none() -> None:
    """A record without a type or a version of its value is no commit; an id of zeros says nothing (``L-23``)."""
    fields = {"offset": 1, "metadata": "", "commit_timestamp": TIME, "topic_id": bytes(15) + b"\1"}
    key, value = record_bytes(1, {"group": "g", "topic": "t", "partition": 0}, fields, 4)
    assert value is not None
    assert is_named_in(key, value, {})
    for cut in ((None, value), (b"\0", value), (key, None), (key, b"\0")):
        assert not is_named_in(*cut, {})
    for topic_id, named in ((bytes(15) + b"\1", ["t"]), (bytes(16), [])):
        key, value = record_bytes(1, decode_coordinator_record(key, None).key, fields | {"topic_id": topic_id}, 4)
        record = decode_coordinator_record(key, value)
        assert record.value is not None
        record.value["topic_id"] = Uuid(topic_id)
        assert [name for _, name in topic_names_in(record)] == named


def test_topics_are_named_by_rows_that_have_both() -> None:
    """Of share groups some lists have ids alone, in rows or without."""
    rows = {
        "topics": [{"topic_id": b"a"}],
        "initialized_topics": [{"topic_id": b"b", "topic_name": "t"}, {"topic_id": b"c", "topic_name": "u"}],
        "deleting_topics": [b"d"],
    }
    record = CoordinatorRecord(record_type=15, key={"group_id": "g"}, value=rows, value_version=0)
    assert list(topic_names_in(record)) == [(b"b", "t"), (b"c", "u")]
    assert list(topic_names_in(CoordinatorRecord(record_type=15, key={"group_id": "g"}))) == []


def test_empty_control_batches_mean_nothing() -> None:
    """An empty control batch means nothing (``L-12``, ``records:C5``)."""
    built = log().commit(5, producer=7)
    batch = decode_batch_header(
        build_batch([Record(offset=built.offset, key=b"", value=b"")], producer_id=7, is_control=True)
    )
    built.batches.append(empty_batch(batch))
    built.offset += 1
    for profile in ALL:
        assert built.served(profile) == {}
        assert len(built.load(profile).pending) == 1


def rule_of(built: LogBuilder, profile: Profile = MODERN) -> str | None:
    failure = built.load(profile).failure
    return failure.rule if failure else None


def test_odd_values_are_stored_and_answered() -> None:
    """A committed offset of −1 and the empty group are stored and answered (``B-13``)."""
    assert log().commit(-1, group="").served(MODERN) == {"/t/0": -1}


def test_subscribed_topics_need_a_subscription_that_parses() -> None:
    """A subscription that does not parse is reported and ends nothing (``L-33``, ``E-12``, ``records:E2``)."""
    assert expand_subscription("consumer", "range", b"\x00") is not None
    assert "error" in (expand_subscription("consumer", "range", b"\x00") or {})


@pytest.mark.parametrize(("known", "more", "may_name"), [(1, b"", False), (2, b"", True), (1, b"more", True)])
def test_a_commit_of_a_topic_id_that_is_known_names_nothing_new(known: int, more: bytes, may_name: bool) -> None:
    """Whatever stands behind its last field is not told without decoding it."""
    fields = {"offset": 1, "leader_epoch": -1, "metadata": "", "commit_timestamp": TIME, "expire_timestamp": -1}
    topic_id = bytes(15) + b"\1"
    key, value = record_bytes(1, {"group": "g", "topic": "t", "partition": 0}, fields | {"topic_id": topic_id}, 4)
    assert value is not None
    assert is_named_in(key, value + more, {bytes(15) + bytes([known]): "t"}) == may_name


def test_where_a_topic_id_stands_in_an_undecoded_commit() -> None:
    """Behind its tag and its size since version 4; in a version that nobody knows anywhere."""
    assert [topic_id_mark(1, version) for version in (0, 3, 4, 5)] == [None, None, b"\0\x10", b""]
