"""Test the rules of which offsets expire one by one."""

from __future__ import annotations

import pytest

from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.expiry import (
    ERAS,
    subscribed_topics,
    tombstones,
)
from offsets_log.replay.partial import EndTransactionMarker
from offsets_log.replay.profile import PROFILES
from tests.replay.expiring import (
    BY_STATE,
    DAY_MS,
    JAVA,
    SCALA_BY_STATE,
    Step,
    at,
    classic_group,
    commit,
    consumer_group,
    expiry_of,
    group_of,
    only,
    record,
    subscription,
    topology,
)


def assert_goes(state: CoordinatorState, at_ms: int, base: str, rule: str, era: str = "modern") -> None:
    """Check that an offset stays until the millisecond before, and goes in this one."""
    for now_ms, expired in ((at_ms - 1, False), (at_ms, True)):
        found = only(state, now_ms, era)
        assert (found.expired, found.expires_at_ms, found.base, found.rule) == (expired, at_ms, base, rule)


def assert_stays(state: CoordinatorState, base: str, rule: str, era: str = "modern") -> None:
    found = only(state, 1 << 60, era)
    assert (found.expired, found.expires_at_ms, found.base, found.rule) == (False, None, base, rule)


BY_OWN_TIME = ("0.9", "0.10.1", "2.0")
CONSUMERS = (classic_group(subscription("t")), classic_group(subscription("other")))


def test_default_retention_of_the_eras_e_2() -> None:
    days = {name: era.retention().retention_ms / DAY_MS for name, era in ERAS.items()}
    assert [days[name] for name in ("0.8.2", "0.9", "0.10.1")] == [1, 1, 1]
    assert {days[name] for name in ("2.0", *BY_STATE)} == {7}


def test_every_profile_has_an_era_of_its_name() -> None:
    assert set(PROFILES) <= set(ERAS)
    assert {era.profile for era in ERAS.values()} == set(PROFILES)
    assert len({era.releases for era in ERAS.values()}) == len(ERAS)
    assert all(ERAS[name].profile == name for name in PROFILES)


@pytest.mark.parametrize("group", [(), *((group,) for group in CONSUMERS)])
def test_0_8_2_counts_from_the_commit_only_e_23(group: tuple[Step, ...]) -> None:
    """0.8.2 expires offsets of any group when now − timestamp > retention, even if a later release stored an expiry."""
    assert_goes(at(*group, commit(expire_ms=5000), era="0.8.2"), 1101, "commit_timestamp", "E-23", "0.8.2")


@pytest.mark.parametrize("era", BY_OWN_TIME)
@pytest.mark.parametrize("group", [(), *((group,) for group in CONSUMERS)])
def test_0_9_to_2_0_expire_by_their_own_time_even_of_active_groups_e_23(era: str, group: tuple[Step, ...]) -> None:
    """Offsets expire when expireTimestamp < now; else at commit time + retention (``L-23``, ``records:W1``)."""
    assert_goes(at(*group, commit(expire_ms=5000), era=era), 5001, "expire_timestamp", "E-23", era)
    assert_goes(at(*group, commit(), era=era), 1101, "commit_timestamp", "E-23", era)


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
        classic_group(subscription("other"), b"\x00\x00\x00\x00\x00\x01\x00"),
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


def test_consumer_groups_go_by_commit_time_but_for_subscribed_topics_e_11() -> None:
    assert_goes(at(*consumer_group("other"), commit()), 1100, "commit_timestamp", "E-11")
    assert_goes(at(*consumer_group(is_empty=True), commit()), 1100, "commit_timestamp", "E-11")
    assert_stays(at(*consumer_group("t", "other"), commit()), "subscribed", "E-11")
    assert_stays(at(*consumer_group("other", regex_topics=("u", "t")), commit()), "subscribed", "E-11")
    assert_goes(at(*consumer_group("t"), commit("u")), 1100, "commit_timestamp", "E-11")


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
    """``E-12``."""
    assert subscribed_topics(at(group).groups["g"]) == topics
