"""Test the rules of expiry one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offsets_log.log_format.java_text import MalformedString
from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION, Embedded, encode_embedded
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.expiry import (
    ERAS,
    GroupExpiry,
    OffsetExpiry,
    Retention,
    cycle_of,
    subscribed_topics,
    tombstones,
)
from offsets_log.replay.partial import EndTransactionMarker, PartialState, offset_and_metadata
from offsets_log.replay.profile import PROFILES

Recording = Callable[[str], Path]
Json = dict[str, Any]

EXPIRED = "kafka-4.3-expired"
DAY_MS = 86_400_000


def expiry_of(state: CoordinatorState, now_ms: int, retention: Retention) -> list[OffsetExpiry]:
    """Return what a cycle does with every committed offset of every existing group, by group, topic and partition."""
    return [offset for group in cycle_of(state, now_ms, retention) for offset in group.offsets]


Step = Callable[[PartialState], None]


def at(*steps: Step, era: str = "modern") -> CoordinatorState:
    state = PartialState(PROFILES[ERAS[era].profile])
    for step in steps:
        step(state)
    return finish(state)


def commit(
    topic: str = "t",
    partition: int = 0,
    *,
    group: str = "g",
    at_ms: int = 1000,
    expire_ms: int = -1,
    record_offset: int = 10,
    producer_id: int = -1,
) -> Step:
    record = CoordinatorRecord(
        record_type=1,
        key={"group": group, "topic": topic, "partition": partition},
        value_version=1,
        value={"offset": 7, "metadata": "", "commit_timestamp": at_ms, "expire_timestamp": expire_ms},
    )
    value = offset_and_metadata(record, record_offset, producer_id, 0)
    return lambda state: state.add_offset(value, producer_id != -1)


def record(record_type: int, value: Json | None, *, group: str = "g", record_offset: int = 1, **key: str) -> Step:
    name = "group" if record_type == 2 else "group_id"
    made = CoordinatorRecord(
        record_type=record_type, key={name: group, **key}, value=value, value_version=None if value is None else 0
    )
    return lambda state: state.add_group_record(made, record_offset)


def subscription(*topics: str, version: int = 0, behind: bytes = b"") -> bytes:
    fields = {"topics": list(topics), "user_data": None}
    body = encode_embedded(Embedded(CONSUMER_PROTOCOL_SUBSCRIPTION, 0, fields))
    return version.to_bytes(2) + body[2:] + behind


def classic_group(
    *subscriptions: bytes,
    protocol_type: str = "consumer",
    protocol: str | None = "range",
    generation: int = 1,
    since_ms: int = -1,
    record_offset: int = 1,
) -> Step:
    members = [
        {"member_id": f"m{i}", "session_timeout": 1, "subscription": data, "assignment": b""}
        for i, data in enumerate(subscriptions)
    ]
    value = {
        "protocol_type": protocol_type,
        "generation": generation,
        "protocol": protocol if members else None,
        "leader": None,
        "current_state_timestamp": since_ms,
        "members": members,
    }
    return record(2, value, record_offset=record_offset)


def only(state: CoordinatorState, now_ms: int = 0, era: str = "modern", keep_ms: int = 100) -> OffsetExpiry:
    (found,) = expiry_of(state, now_ms, ERAS[era].retention(keep_ms))
    return found


def group_of(state: CoordinatorState, now_ms: int = 0, era: str = "modern", keep_ms: int = 100) -> GroupExpiry:
    (found,) = cycle_of(state, now_ms, ERAS[era].retention(keep_ms))
    return found


def assert_goes(state: CoordinatorState, at_ms: int, base: str, rule: str, era: str = "modern") -> None:
    """Check that an offset stays until the millisecond before, and goes in this one."""
    for now_ms, expired in ((at_ms - 1, False), (at_ms, True)):
        found = only(state, now_ms, era)
        assert (found.expired, found.expires_at_ms, found.base, found.rule) == (expired, at_ms, base, rule)


def assert_stays(state: CoordinatorState, base: str, rule: str, era: str = "modern") -> None:
    found = only(state, 1 << 60, era)
    assert (found.expired, found.expires_at_ms, found.base, found.rule) == (False, None, base, rule)


SCALA_BY_STATE = ("2.1", "2.4", "classic")
JAVA = ("modern-3.7", "3.8-java", "modern")
BY_STATE = (*SCALA_BY_STATE, *JAVA)
BY_OWN_TIME = ("0.9", "0.10.1", "2.0")
CONSUMERS = (classic_group(subscription("t")), classic_group(subscription("other")))


def test_default_retention_of_the_eras_e_2() -> None:
    days = {name: era.retention().retention_ms // DAY_MS for name, era in ERAS.items()}
    assert [days[name] for name in ("0.8.2", "0.9", "0.10.1")] == [1, 1, 1]
    assert {days[name] for name in ("2.0", *BY_STATE)} == {7}


def test_every_profile_has_an_era_of_its_name() -> None:
    assert set(PROFILES) <= set(ERAS)
    assert {era.profile for era in ERAS.values()} == set(PROFILES)
    assert all(ERAS[name].profile == name for name in PROFILES)


@pytest.mark.parametrize("group", [(), *((group,) for group in CONSUMERS)])
def test_0_8_2_counts_from_the_commit_only_e_1_table(group: tuple[Step, ...]) -> None:
    """0.8.2 expires offsets of any group when now − timestamp > retention, even if a later release stored an expiry."""
    assert_goes(at(*group, commit(expire_ms=5000), era="0.8.2"), 1101, "commit_timestamp", "E.1", "0.8.2")


@pytest.mark.parametrize("era", BY_OWN_TIME)
@pytest.mark.parametrize("group", [(), *((group,) for group in CONSUMERS)])
def test_0_9_to_2_0_expire_by_their_own_time_even_of_active_groups_e_1_table(era: str, group: tuple[Step, ...]) -> None:
    """Offsets expire when expireTimestamp < now; else at commit time + retention (``L-23``, ``records:W1``)."""
    assert_goes(at(*group, commit(expire_ms=5000), era=era), 5001, "expire_timestamp", "E.1", era)
    assert_goes(at(*group, commit(), era=era), 1101, "commit_timestamp", "E.1", era)


@pytest.mark.parametrize("era", BY_STATE)
def test_explicit_expiry_replaces_commit_time_and_retention_e_4(era: str) -> None:
    assert_goes(at(commit(expire_ms=1050), era=era), 1050, "expire_timestamp", "E-4", era)
    assert_goes(at(commit(expire_ms=5000), era=era), 5000, "expire_timestamp", "E-4", era)


@pytest.mark.parametrize("era", BY_STATE)
def test_offsets_of_an_empty_group_go_by_the_time_it_became_empty_e_5(era: str) -> None:
    since = at(classic_group(since_ms=3000), commit(), era=era)
    assert_goes(since, 3100, "current_state_timestamp", "E-5", era)
    connect = at(classic_group(protocol_type="connect", since_ms=3000), commit(), era=era)
    assert_goes(connect, 3100, "current_state_timestamp", "E-5", era)
    unknown = at(classic_group(), commit(), era=era)
    assert_goes(unknown, 1100, "commit_timestamp", "E-5", era)


@pytest.mark.parametrize("era", ["2.4", "classic", *JAVA])
def test_offsets_of_unsubscribed_topics_go_while_consumers_live_e_6(era: str) -> None:
    assert_stays(at(CONSUMERS[0], commit(), era=era), "subscribed", "E-6", era)
    assert_goes(at(CONSUMERS[1], commit(), era=era), 1100, "commit_timestamp", "E-6", era)


def test_up_to_2_3_nothing_goes_while_a_group_has_members_e_6() -> None:
    for group in CONSUMERS:
        assert_stays(at(group, commit(), era="2.1"), "active", "E-6", "2.1")


@pytest.mark.parametrize("era", BY_STATE)
def test_offsets_of_a_simple_group_go_by_commit_time_e_7(era: str) -> None:
    assert_goes(at(commit(), era=era), 1100, "commit_timestamp", "E-7", era)


def test_the_record_of_a_new_empty_group_leaves_it_simple_e_7() -> None:
    """The currentStateTimestamp of a new empty group does not count (``records:W6``, ``J-16``)."""
    marker = classic_group(protocol_type="", generation=0, since_ms=9000)
    assert_goes(at(marker, commit()), 1100, "commit_timestamp", "E-7")


@pytest.mark.parametrize("era", BY_STATE)
@pytest.mark.parametrize(
    "group",
    [
        classic_group(b"\x00\x01", protocol_type="connect"),
        classic_group(subscription("other"), b"\x00\x00\x00\x00\x00\x01"),
        classic_group(subscription("other"), b""),
        classic_group(subscription("other"), protocol=None),
        classic_group(subscription("other"), protocol_type=""),
    ],
    ids=["connect", "cut subscription", "empty subscription", "no protocol", "empty protocol type"],
)
def test_nothing_else_goes_e_8(era: str, group: Step) -> None:
    """An empty protocol type of a group with members is a protocol type (``L-25``)."""
    assert_stays(at(group, commit(), era=era), "active", "E-8", era)
    assert_stays(at(group, commit(expire_ms=1), era=era), "active", "E-8", era)


@pytest.mark.parametrize("era", ["3.8-java", "modern"])
def test_java_spares_partitions_under_an_open_transaction_e_9(era: str) -> None:
    state = at(commit(), commit(partition=1), commit(record_offset=11, producer_id=5), era=era)
    pending, other = expiry_of(state, 1 << 60, ERAS[era].retention(100))
    assert (pending.base, pending.rule, pending.expires_at_ms, pending.expired) == ("pending", "E-9", None, False)
    assert (other.base, other.expired) == ("commit_timestamp", True)
    decided = at(
        commit(),
        commit(record_offset=11, producer_id=5, at_ms=4000),
        lambda state: state.add_marker(5, EndTransactionMarker(True, 12)),
        era=era,
    )
    assert_goes(decided, 4100, "commit_timestamp", "E-7", era)


@pytest.mark.parametrize("era", [*SCALA_BY_STATE, "modern-3.7"])
def test_scala_and_the_preview_do_not_spare_them_e_9(era: str) -> None:
    assert_goes(at(commit(), commit(record_offset=11, producer_id=5), era=era), 1100, "commit_timestamp", "E-7", era)


@pytest.mark.parametrize("era", BY_STATE)
def test_explicit_expiry_ignores_the_state_timestamp_but_needs_the_state_e_10(era: str) -> None:
    """An explicit expiry needs the group's state, but not its timestamp (``E-10``)."""
    empty = at(classic_group(since_ms=9000), commit(expire_ms=2000), era=era)
    assert_goes(empty, 2000, "expire_timestamp", "E-4", era)
    base = "active" if era == "2.1" else "subscribed"
    assert_stays(at(CONSUMERS[0], commit(expire_ms=2000), era=era), base, "E-6", era)


def consumer_group(*topics: str, regex_topics: tuple[str, ...] = (), is_empty: bool = False) -> tuple[Step, ...]:
    steps = [record(3, {"epoch": 2})]
    if not is_empty:
        steps.append(
            record(5, {"subscribed_topic_names": list(topics), "subscribed_topic_regex": "u.*"}, member_id="m")
        )
    if regex_topics:
        steps.append(record(16, {"topics": list(regex_topics), "version": 1, "timestamp": 1}, regular_expression="u.*"))
    return tuple(steps)


def test_consumer_groups_go_by_commit_time_but_for_subscribed_topics_e_11() -> None:
    assert_goes(at(*consumer_group("other"), commit()), 1100, "commit_timestamp", "E-11")
    assert_goes(at(*consumer_group(is_empty=True), commit()), 1100, "commit_timestamp", "E-11")
    assert_stays(at(*consumer_group("t", "other"), commit()), "subscribed", "E-11")
    assert_stays(at(*consumer_group("other", regex_topics=("u", "t")), commit()), "subscribed", "E-11")
    assert_goes(at(*consumer_group("t"), commit("u")), 1100, "commit_timestamp", "E-11")


def topology(*sources: str, repartition: tuple[str, ...] = ()) -> Step:
    row = {"source_topics": list(sources), "repartition_source_topics": [{"name": name} for name in repartition]}
    return record(23, {"epoch": 1, "subtopologies": [row]})


def test_streams_groups_are_subscribed_to_what_their_topology_reads_e_11() -> None:
    metadata = record(17, {"epoch": 2, "validated_topology_epoch": 1})
    member = record(19, {"topology_epoch": 1}, member_id="m")
    assert_stays(at(metadata, topology("t"), member, commit()), "subscribed", "E-11")
    assert_stays(at(metadata, topology("s", repartition=("t",)), member, commit()), "subscribed", "E-11")
    assert_goes(at(metadata, topology("s"), member, commit()), 1100, "commit_timestamp", "E-11")
    assert_goes(at(metadata, topology("t"), commit()), 1100, "commit_timestamp", "E-11")  # Empty
    assert_goes(at(metadata, member, commit()), 1100, "commit_timestamp", "E-11")  # no topology


def test_share_groups_never_go_e_11() -> None:
    state = at(record(11, {"epoch": 1}), commit())
    assert_stays(state, "active", "E-11")
    assert not group_of(state, 1 << 60).removed
    assert not group_of(at(record(11, {"epoch": 1}))).removed
    assert tombstones(state, 1 << 60, ERAS["modern"].retention(0)) == []


@pytest.mark.parametrize(
    ("group", "topics"),
    [
        (classic_group(), set()),
        (classic_group(subscription("a"), subscription("b", "a")), {"a", "b"}),
        (classic_group(subscription("a", version=3)), {"a"}),
        (classic_group(subscription("a", version=9, behind=b"\xff\xff")), {"a"}),
        (classic_group(subscription("a"), b"\x00"), None),
        (classic_group(subscription("a"), protocol_type="connect"), None),
        (classic_group(protocol_type="connect"), None),
    ],
    ids=["empty", "union", "version 3 cut behind 0", "unknown version", "one broken", "connect", "empty connect"],
)
def test_subscribed_topics_are_those_of_the_version_0_prefix_e_12(group: Step, topics: set[str] | None) -> None:
    assert subscribed_topics(at(group).groups["g"]) == topics


@pytest.mark.parametrize("era", ["0.8.2", "0.9"])
def test_before_0_10_1_no_cycle_removes_a_group_e_13(era: str) -> None:
    found = group_of(at(classic_group(), era=era), 1 << 60, era)
    assert (found.removed, found.removed_at_ms, found.rule) == (False, None, "E-13")


def keys(state: CoordinatorState, era: str, now_ms: int = 1 << 60) -> list[tuple[int, Json]]:
    """Return type and key of every tombstone of the cycle."""
    found = [decode_coordinator_record(*pair) for pair in tombstones(state, now_ms, ERAS[era].retention(100))]
    return [(record.record_type, record.key) for record in found]


SCALA_REMOVING = ("0.10.1", "2.0", *SCALA_BY_STATE)


@pytest.mark.parametrize("era", SCALA_REMOVING)
def test_scala_writes_a_group_tombstone_only_behind_a_generation_e_14(era: str) -> None:
    offset = (1, {"group": "g", "topic": "t", "partition": 0})
    simple = at(commit(), era=era)
    assert group_of(simple, 1 << 60, era).removed
    assert keys(simple, era) == [offset]
    assert keys(at(classic_group(generation=0), commit(), era=era), era) == [offset]
    assert keys(at(classic_group(generation=2), commit(), era=era), era) == [offset, (2, {"group": "g"})]


@pytest.mark.parametrize("era", ["2.0", "classic", "modern"])
def test_a_group_goes_with_its_last_offset_e_14_e_15(era: str) -> None:
    state = at(classic_group(), commit(at_ms=1000), commit(partition=1, at_ms=3000), era=era)
    last_ms = 3100 + ERAS[era].grace_ms
    early, late = group_of(state, last_ms - 1, era), group_of(state, last_ms, era)
    assert [offset.expired for offset in early.offsets] == [True, False]
    assert (early.removed, early.removed_at_ms) == (False, last_ms)
    assert (late.removed, late.removed_at_ms) == (True, last_ms)
    assert late.rule == {"modern": "E-15"}.get(era, "E-14")


@pytest.mark.parametrize("era", ["2.0", *SCALA_BY_STATE, "3.8-java", "modern"])
def test_an_open_transaction_keeps_its_group_e_14_e_15(era: str) -> None:
    state = at(commit(), commit("u", record_offset=11, producer_id=5), era=era)
    found = group_of(state, 1 << 60, era)
    assert (found.removed, found.removed_at_ms, found.offsets[0].expired) == (False, None, True)


@pytest.mark.parametrize("era", ["2.0", "classic", "modern"])
def test_an_open_transaction_keeps_a_group_without_offsets_e_14_e_15(era: str) -> None:
    assert not group_of(at(commit(producer_id=5), era=era), era=era).removed


def test_up_to_4_0_0_it_does_not_and_in_3_7_never_e_15() -> None:
    assert group_of(at(commit(producer_id=5), era="3.8-java"), era="3.8-java").removed
    assert group_of(at(commit(producer_id=5), era="modern-3.7"), era="modern-3.7").removed
    both = at(commit(), commit("u", record_offset=11, producer_id=5), era="modern-3.7")
    assert group_of(both, 1 << 60, "modern-3.7").removed


@pytest.mark.parametrize("era", BY_STATE)
def test_members_and_subscribed_topics_keep_a_group_e_14_e_15(era: str) -> None:
    assert group_of(at(CONSUMERS[0], commit(), era=era), 1 << 60, era).removed_at_ms is None
    assert group_of(at(CONSUMERS[1], era=era), 1 << 60, era).removed_at_ms is None


@pytest.mark.parametrize("era", JAVA)
def test_java_writes_one_for_every_classic_group_e_15(era: str) -> None:
    assert [number for number, _ in keys(at(commit(), era=era), era)] == [1, 2]
    assert [number for number, _ in keys(at(classic_group(generation=0), era=era), era)] == [2]


def test_tombstones_of_the_newer_kinds_have_their_order_e_15() -> None:
    """Tombstones of the newer kinds have an order (``J-17``); members are gone before."""
    regex = record(16, {"topics": ["t"], "version": 1, "timestamp": 1}, regular_expression="u.*")
    consumer = at(record(3, {"epoch": 2}), regex)
    assert keys(consumer, "modern") == [
        (6, {"group_id": "g"}),
        (16, {"group_id": "g", "regular_expression": "u.*"}),
        (4, {"group_id": "g"}),
        (3, {"group_id": "g"}),
    ]
    streams = at(record(17, {"epoch": 2}), topology("t"))
    assert [number for number, _ in keys(streams, "modern")] == [20, 17, 23]


@pytest.mark.parametrize("era", [*SCALA_REMOVING, *JAVA])
def test_an_empty_group_without_offsets_goes_at_once_e_16(era: str) -> None:
    """The group goes at once, whenever it became empty."""
    found = group_of(at(classic_group(since_ms=4000), era=era), 4000, era)
    assert (found.removed, found.removed_at_ms, found.rule) == (True, 4000, "E-16")


def test_offsets_go_before_their_group_one_group_after_the_other_e_17() -> None:
    steps = (commit(topic, group=group) for group in ("b", "a") for topic in ("u", "t"))
    assert [(number, *key.values()) for number, key in keys(at(*steps), "modern")] == [
        (1, "a", "t", 0), (1, "a", "u", 0), (2, "a"), (1, "b", "t", 0), (1, "b", "u", 0), (2, "b"),
    ]  # fmt: skip


@pytest.mark.parametrize("era", ERAS)
def test_offset_tombstones_have_type_1_whatever_the_live_record_e_18(era: str) -> None:
    """Only 0.8.2 writes type 0: it knows no other type."""
    (number, _), *_ = keys(at(commit(), era=era), era)
    assert number == (0 if era == "0.8.2" else 1)


def test_tombstones_name_a_malformed_group_as_the_broker_reads_it() -> None:
    """The broker has lost the bytes that a malformed name was written with (``B-7``)."""
    state = at(commit(MalformedString(b"t\xff"), group=MalformedString(b"g\xff")))
    assert [key for key, _ in tombstones(state, 1 << 60, ERAS["modern"].retention(0))] == [
        b"\x00\x01" + b"\x00\x04g\xef\xbf\xbd" + b"\x00\x04t\xef\xbf\xbd" + bytes(4),
        b"\x00\x02" + b"\x00\x04g\xef\xbf\xbd",
    ]


def test_orphans_are_not_visited_j_15() -> None:
    state = at(commit(record_offset=1), record(2, None, record_offset=2))
    assert len(state.committed) == 1
    assert cycle_of(state, 1 << 60, ERAS["modern"].retention(0)) == []


def test_only_the_records_fields_count_e_22() -> None:
    """Equal fields mean the same in a batch of any time: a state holds no Kafka timestamps."""
    names = {
        name for offset in expiry_of(at(commit()), 0, ERAS["modern"].retention()) for name in offset.value.__slots__
    }
    assert {name for name in names if "timestamp" in name} == {"commit_timestamp_ms", "expire_timestamp_ms"}
