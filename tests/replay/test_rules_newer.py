"""Test each rule of consumer, share and streams groups on a small log, under the profiles that differ in it."""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations
from random import Random
from typing import Any

import pytest

from offsets_log.errors import ReplayError
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord
from offsets_log.replay import groups
from offsets_log.replay.group import CONSUMER, Group, Member
from offsets_log.replay.groups import GroupFold
from offsets_log.replay.profile import CLASSIC, MODERN, MODERN_3_7, RELEASES, Profile
from offsets_log.replay.timeline import GroupEvent, Timeline
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.groups import group_row
from tests.builders import LogBuilder, member, record_bytes
from tests.replay.test_rules import K, log, rule_of

CONSUMER_MEMBER = {
    "instance_id": None, "rack_id": None, "client_id": "c", "client_host": "/h", "subscribed_topic_names": ["t"],
    "subscribed_topic_regex": None, "rebalance_timeout_ms": 1, "server_assignor": None, "classic_member_metadata": None,
}  # fmt: skip


def current(epoch: int, *partitions: int, state: int = 0) -> dict[str, Any]:
    rows = [{"topic_id": bytes(16), "partitions": list(partitions), "assignment_epochs": []}] if partitions else []
    return {
        "member_epoch": epoch,
        "previous_member_epoch": epoch - 1,
        "state": state,
        "assigned_partitions": rows,
        "partitions_pending_revocation": [],
    }


def consumer_group() -> LogBuilder:
    """Build a consumer group with one member at epoch 1."""
    return (
        log()
        .newer(5, CONSUMER_MEMBER, member_id="m")
        .newer(3, {"epoch": 1, "metadata_hash": 0})
        .newer(6, {"assignment_epoch": 1, "assignment_timestamp": 0})
        .newer(7, {"topic_partitions": []}, member_id="m")
        .newer(8, current(1), member_id="m")
    )


def test_consumer_group_is_built_and_torn_down_in_order() -> None:
    """Records build a group and tear it down in order (``J-4``, ``J-17``, ``B-15``)."""
    built = consumer_group()
    group = built.load(MODERN).groups["g"]
    assert (group.kind, group.group_epoch, group.assignment_epoch, group.state(MODERN)) == ("consumer", 1, 1, "Stable")
    built.newer(8, None, member_id="m").newer(7, None, member_id="m").newer(6, None).newer(5, None, member_id="m")
    built.newer(4, None).newer(3, None)
    assert built.load(MODERN).groups == {}
    assert rule_of(built) is None


@pytest.mark.parametrize(
    "teardown",
    [
        [(5, "m")],
        [(8, "m"), (5, "m")],
        [(7, "m"), (5, "m")],
        [(3, None)],
        [(7, "m"), (6, None), (3, None)],
        [(6, None)],
        [(8, "m"), (7, "m"), (5, "m"), (3, None)],
    ],
)
def test_tombstones_in_another_order_end_the_load(teardown: list[tuple[int, str | None]]) -> None:
    """Tombstones in any other order end the load (``J-17``, ``C-23``)."""
    built = consumer_group()
    for type_, member_id in teardown:
        built.newer(type_, None, member_id=member_id)
    assert rule_of(built) == "J-17"


def test_a_group_with_targets_alone_is_not_removed() -> None:
    """The group has no members, and the epoch of its targets is gone before them (``J-17``)."""
    built = log().newer(3, {"epoch": 1, "metadata_hash": 0}).newer(6, None)
    built.newer(7, {"topic_partitions": []}, member_id="m").newer(3, None)
    assert rule_of(built) == "J-17"
    assert list(built.load(MODERN).groups) == ["g"]


def test_a_classic_tombstone_behind_a_consumer_group_removes_it() -> None:
    """A classic tombstone removes a consumer group too (``J-22``)."""
    state = consumer_group().group(gone=True).load(MODERN)
    assert (state.groups, state.failure) == ({}, None)


def test_tombstones_of_what_is_not_there_are_ignored_since_4_0() -> None:
    """Since 4.0, tombstones of missing groups and members are ignored (``J-18``)."""
    for built in (log().newer(8, None, member_id="m"), log().newer(3, None), log().newer(5, None, member_id="m")):
        assert rule_of(built) is None
        assert built.load(MODERN).groups == {}
        assert rule_of(built, RELEASES["3.9-java"]) == "J-18"
    assert rule_of(log().newer(8, current(1), member_id="m")) is None
    assert rule_of(consumer_group(), RELEASES["3.9-java"]) is None
    assert rule_of(log().newer(3, {"epoch": 1}).newer(8, current(1), member_id="m"), RELEASES["3.9-java"]) == "J-18"


@pytest.mark.parametrize("record_type", [5, 8])
def test_before_4_0_a_tombstone_of_a_member_needs_that_member_in_its_group(record_type: int) -> None:
    """Another member is not enough, and since 4.0 such a tombstone is ignored (``J-18``)."""
    java_3_9 = RELEASES["3.9-java"]
    built = (
        log().newer(3, {"epoch": 1}).newer(5, CONSUMER_MEMBER, member_id="m").newer(record_type, None, member_id="n")
    )
    assert (rule_of(built, java_3_9), rule_of(built)) == ("J-18", None)
    there = log().newer(3, {"epoch": 1}).newer(5, CONSUMER_MEMBER, member_id="m").newer(8, None, member_id="m")
    assert rule_of(there, java_3_9) is None
    assert rule_of(there.newer(5, None, member_id="m"), java_3_9) is None


@pytest.mark.parametrize(("first", "second"), [*permutations((3, 11, 17), 2)])
def test_a_group_of_a_newer_kind_gives_way_to_no_other(first: int, second: int) -> None:
    """Without members or offsets it is no simple group (``J-19``)."""
    built = log().newer(first, {"epoch": 5, "metadata_hash": 0})
    before = built.load(MODERN).groups["g"]
    assert rule_of(built.newer(second, {"epoch": 6, "metadata_hash": 0})) == "J-19"
    after = built.load(MODERN).groups["g"]
    assert (after.kind, after.group_epoch) == (before.kind, 5)


def test_simple_groups_give_way_to_newer_kinds_by_release() -> None:
    """Each release decides which newer kinds replace a simple group (``J-19``, ``B-1``)."""
    consumer = log().commit(5).newer(3, {"epoch": 1, "metadata_hash": 0})
    streams = log().commit(5).newer(17, {"epoch": 1, "metadata_hash": 0})
    share = log().commit(5).newer(11, {"epoch": 1, "metadata_hash": 0})
    assert [rule_of(built) for built in (consumer, streams, share)] == [None, None, "J-19"]
    for release, of_streams in {"4.1": "J-19", "4.2": "J-19", "4.2.1": None}.items():
        assert [rule_of(built, RELEASES[release]) for built in (consumer, streams, share)] == [None, of_streams, "J-19"]
    assert rule_of(consumer, RELEASES["3.9-java"]) == "J-19"
    assert rule_of(log().group().newer(3, {"epoch": 1, "metadata_hash": 0})) == "J-19"
    assert consumer.served(MODERN) == {K: 5}
    assert [built.load(MODERN).groups["g"].kind for built in (consumer, streams, share)] == [
        "consumer", "streams", "classic"
    ]  # fmt: skip


def test_a_partition_has_one_owner_or_the_one_of_the_higher_epoch() -> None:
    """A partition has one owner, or goes to the one of the higher epoch (``J-20``)."""
    same = consumer_group().newer(8, current(1, 0), member_id="m").newer(8, current(1, 0), member_id="n")
    higher = consumer_group().newer(8, current(1, 0), member_id="m").newer(8, current(2, 0), member_id="n")
    moved = higher.newer(8, current(2), member_id="m")
    assert (rule_of(same), rule_of(same, RELEASES["4.1"])) == ("J-20", "J-20")
    assert (rule_of(moved), rule_of(moved, RELEASES["4.1"])) == (None, "J-20")
    third = moved.newer(8, current(2, 0), member_id="o")
    assert rule_of(third) == "J-20", "what m gave back was n's already"


@pytest.mark.parametrize("profile", [MODERN, RELEASES["4.1"]], ids=["modern", "4.1"])
@pytest.mark.parametrize("given_back", [None, current(1)], ids=["tombstone", "nothing held"])
def test_what_a_member_gives_back_another_takes(given_back: dict[str, Any] | None, profile: Profile) -> None:
    """At once, by a tombstone or by an assignment without it (``J-20``)."""
    held = consumer_group().newer(8, current(1, 0), member_id="m").newer(8, given_back, member_id="m")
    assert held.load(profile).groups["g"].partition_epochs == {}
    assert rule_of(held.newer(8, current(1, 0), member_id="n"), profile) is None


@pytest.mark.parametrize(("taken", "gives_way"), [(1, False), (2, False), (3, True)])
def test_a_holder_gives_way_to_a_higher_epoch_only(taken: int, gives_way: bool) -> None:
    """A partition that is held at epoch 2 goes to a member at epoch 3, and up to 4.1 to nobody (``J-20``)."""
    built = consumer_group().newer(8, current(2, 0), member_id="m").newer(8, current(taken, 0), member_id="n")
    assert rule_of(built) == (None if gives_way else "J-20")
    assert rule_of(built, RELEASES["4.1"]) == "J-20"


@pytest.mark.parametrize(("profile", "is_refused"), [(MODERN, False), (RELEASES["4.1"], True)], ids=["modern", "4.1"])
@pytest.mark.parametrize("value", [None, current(2, 1)], ids=["tombstone", "another partition"])
def test_a_partition_that_is_held_at_another_epoch_is_not_given_back(
    value: dict[str, Any] | None, profile: Profile, is_refused: bool
) -> None:
    """Whoever holds it keeps it, and up to 4.1 the load ends (``J-20``)."""
    partition = (bytes(16), 0)
    fold = GroupFold("g", profile)
    members = {"m": Member("m", member_epoch=1, owned=[partition])}
    fold.group = Group("g", CONSUMER, members=members, partition_epochs={partition: 2})
    key = {"group_id": "g", "member_id": "m"}
    timeline = Timeline([GroupEvent(5, CoordinatorRecord(record_type=8, key=key, value_version=0, value=value))])
    assert [problem.rule for problem in fold.go_on(timeline)] == (["J-20"] if is_refused else [])
    assert fold.group.partition_epochs[partition] == 2


def test_members_of_a_share_group_share_their_partitions() -> None:
    """Only those of a consumer group own them (``J-20``)."""
    rows = [{"topic_id": bytes(16), "partitions": [0]}]
    built = log().newer(11, {"epoch": 1, "metadata_hash": 0})
    for member_id in "mn":
        facts = {"member_epoch": 1, "previous_member_epoch": 0, "state": 0, "assigned_partitions": rows}
        built.newer(14, facts, member_id=member_id)
    assert rule_of(built) is None
    assert [
        len(member.current["assigned_partitions"]) for member in built.load(MODERN).groups["g"].members.values()
    ] == [1, 1]


def test_upgrade_and_downgrade_between_classic_and_consumer() -> None:
    """A group may change between classic and consumer in both directions (``J-21``)."""
    built = log().group(member("m")).group(gone=True).newer(5, CONSUMER_MEMBER, member_id="m")
    built.newer(3, {"epoch": 1, "metadata_hash": 0})
    assert built.load(MODERN).groups["g"].kind == "consumer"
    built.newer(8, None, member_id="m").newer(6, None).newer(5, None, member_id="m").newer(3, None).group(member("m"))
    assert built.load(MODERN).groups["g"].kind == "classic"
    assert rule_of(built) is None


def test_epochs_begin_at_one_in_4_3_and_at_zero_before() -> None:
    """Real brokers answered so: 4.3.0 for hand-made logs of these records, 4.0.0 to 4.2.0 in `load-fails`."""
    share_member = {"rack_id": None, "client_id": "c", "client_host": "/h", "subscribed_topic_names": ["t"]}
    answers = (
        (log().newer(3, {"epoch": 5, "metadata_hash": 0}), 5, 1),
        (log().newer(3, {"epoch": 5, "metadata_hash": 0}).newer(6, None), 5, -1),
        (log().newer(11, {"epoch": 5, "metadata_hash": 0}), 5, 1),
        (log().newer(10, share_member, member_id="m"), 1, 1),
        (log().newer(17, {"epoch": 5, "metadata_hash": 0}), 5, 1),
    )
    for built, group_epoch, assignment_epoch in answers:
        group = built.load(MODERN).groups["g"]
        assert (group.group_epoch, group.assignment_epoch) == (group_epoch, assignment_epoch)
        assert all(member.member_epoch == 0 for member in group.members.values())
    before = answers[0][0].load(RELEASES["4.2"]).groups["g"]
    assert (before.group_epoch, before.assignment_epoch) == (5, 0)
    of_members_only = log().newer(5, CONSUMER_MEMBER, member_id="m").load(RELEASES["4.2"]).groups["g"]
    assert (of_members_only.group_epoch, of_members_only.assignment_epoch) == (0, 0)


def test_a_member_is_removed_only_after_its_current_assignment_even_if_it_had_none() -> None:
    """A member's epoch is 0 until the tombstone of type 8 (``J-17``)."""
    built = log().newer(5, CONSUMER_MEMBER, member_id="m").newer(5, None, member_id="m")
    assert rule_of(built) == "J-17"


@pytest.mark.parametrize("state", [1, 2, 3])
def test_a_streams_member_without_a_record_of_its_own_ends_the_load_where_it_has_tasks_to_give_back(state: int) -> None:
    """``J-25``: at its current assignment, the last of those that it had; a type 19 record or a tombstone mends it."""
    value = {"member_epoch": 1, "previous_member_epoch": 0, "state": state} | NO_TASKS
    own = RECORD_TYPES[19].values[0].zeros(0) | {"user_endpoint": None}
    built = log().newer(17, {"epoch": 1, "metadata_hash": 0}).newer(22, value, member_id="m")
    built.newer(22, value, member_id="m").newer(22, value | {"state": 1}, member_id="other").commit(5)
    for release, knows in {"4.0": False, "4.1": True, "4.2": True, "4.3": True}.items():
        failure = built.load(RELEASES[release]).failure
        assert (failure and (failure.rule, failure.record_offset)) == (("J-25", 2) if knows and state == 2 else None)
    assert rule_of(deepcopy(built).newer(22, None, member_id="m")) is None
    assert rule_of(built.newer(19, own, member_id="m")) is None


def test_states_of_consumer_share_and_streams_groups() -> None:
    """Consumer, share and streams groups have their own states (``B-15``); of a streams group see also ``K44-11``."""
    assert log().newer(3, {"epoch": 2, "metadata_hash": 0}).load(MODERN).groups["g"].state(MODERN) == "Empty"
    behind = consumer_group().newer(3, {"epoch": 2, "metadata_hash": 0})
    assert behind.load(MODERN).groups["g"].state(MODERN) == "Assigning"
    waiting = consumer_group().newer(8, current(1, state=1), member_id="m")
    assert waiting.load(MODERN).groups["g"].state(MODERN) == "Reconciling"
    assert waiting.newer(5, CONSUMER_MEMBER, member_id="n").load(MODERN).groups["g"].state(MODERN) == "Reconciling"
    one_of_two = consumer_group().newer(8, current(1, state=1), member_id="n")
    assert one_of_two.load(MODERN).groups["g"].state(MODERN) == "Reconciling"
    late = consumer_group().newer(3, {"epoch": 2}).newer(6, {"assignment_epoch": 2})
    assert late.load(MODERN).groups["g"].state(MODERN) == "Reconciling", "the member is at an earlier epoch"
    share_member = {"rack_id": None, "client_id": "c", "client_host": "/h", "subscribed_topic_names": []}
    share = log().newer(10, share_member, member_id="m").newer(11, {"epoch": 9, "metadata_hash": 0})
    assert share.load(MODERN).groups["g"].state(MODERN) == "Stable"
    streams = log().newer(
        17, {"epoch": 1, "metadata_hash": 0, "validated_topology_epoch": 0, "last_assignment_configs": []}
    )
    streams.newer(22, {"member_epoch": 1, "previous_member_epoch": 0, "state": 1} | NO_TASKS, member_id="m")
    streams.newer(20, {"assignment_epoch": 1, "assignment_timestamp": 0})
    assert streams.load(MODERN).groups["g"].state(MODERN) == "NotReady"
    for other in (1, -1):
        streams.newer(23, {"epoch": other, "subtopologies": []})
        assert streams.load(MODERN).groups["g"].state(MODERN) == "NotReady", "another epoch was validated"
    streams.newer(23, {"epoch": 0, "subtopologies": []})
    assert streams.load(MODERN).groups["g"].state(MODERN) == "Stable"
    lost = log().newer(23, {"epoch": 0, "subtopologies": []}).newer(20, {"assignment_epoch": 1})
    lost.newer(22, {"member_epoch": 1, "previous_member_epoch": 0, "state": 1} | NO_TASKS, member_id="m")
    states = [lost.load(RELEASES[name]).groups["g"].state(RELEASES[name]) for name in ("4.3", "4.4")]
    assert states == ["Stable", "NotReady"], "without a record of type 17"


@pytest.mark.parametrize(
    ("revoking", "waiting", "target", "group_epoch", "state"),
    [
        ([], [], 4, 4, "stable"),
        ([1], [], 4, 4, "reconciling"),
        ([], [1], 4, 4, "reconciling"),
        ([], [], 3, 4, "reconciling"),
        ([], [], 4, 5, "assigning"),
        ([1], [], 4, 5, "assigning"),
    ],
)
def test_states_of_groups_of_3_7_follow_from_what_their_members_have_left_to_do(
    revoking: list[int], waiting: list[int], target: int, group_epoch: int, state: str
) -> None:
    """3.7 records no state of a member, and says states in lower case (``B-15``)."""
    left = {"partitions_pending_revocation": revoking, "partitions_pending_assignment": waiting}
    joined = Member("m", current={"target_member_epoch": target} | left, member_epoch=9)
    group = Group("g", CONSUMER, members={"m": joined}, group_epoch=group_epoch, assignment_epoch=4)
    assert group.state(MODERN_3_7) == state
    assert group.state(MODERN) == state.capitalize()


NO_TASKS: dict[str, Any] = {
    f"{kind}_tasks{suffix}": [] for kind in ("active", "standby", "warmup") for suffix in ("", "_pending_revocation")
}


def test_regular_expressions_and_topologies_come_and_go() -> None:
    """Types 16 and 23 add and remove regular expressions and topologies (``J-4``)."""
    resolved = {"topics": ["t"], "version": 1, "timestamp": 2}
    key = {"group_id": "g", "regular_expression": "t.*"}
    built = log().add(record_bytes(16, key, resolved, 0))
    assert built.load(MODERN).groups["g"].regular_expressions == {"t.*": resolved}
    built.add(record_bytes(16, key, None, 0))
    assert built.load(MODERN).groups["g"].regular_expressions == {}


def test_a_consumer_groups_protocol_is_its_most_chosen_assignor_or_the_brokers() -> None:
    """The protocol is the assignor that most members chose, or the broker's (``B-16``)."""

    def protocol(*chosen: str | None) -> str:
        built = log()
        for i, name in enumerate(chosen):
            built.newer(5, CONSUMER_MEMBER | {"server_assignor": name}, member_id=f"m{i}")
        group = built.load(MODERN).groups["g"]
        value: str = group_row(group, MODERN, TopicNames(), 0)["protocol"]
        return value

    assert protocol(None) == "uniform"
    assert protocol("range", "uniform", "range") == "range"


def test_newer_kinds_are_nothing_to_the_scala_coordinator() -> None:
    """The Scala coordinator ignores the newer kinds (``L-21``)."""
    assert consumer_group().load(CLASSIC).groups == {}


@pytest.mark.parametrize("profile", [MODERN, RELEASES["4.1"]], ids=["modern", "4.1"])
@pytest.mark.parametrize("seed", range(100))
def test_partitions_kept_at_once_are_those_given_back_and_taken(
    seed: int, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``J-20``, with members that hold the same again, twice, or what another holds."""
    random = Random(seed)

    def rows() -> list[dict[str, Any]]:
        numbers = [random.randrange(3) for _ in range(random.randrange(3))]
        return [{"topic_id": Uuid(bytes([random.randrange(2)] * 16)), "partitions": numbers}]

    held = [(rows(), rows()) for _ in range(3)]
    records = []
    for _ in range(30):
        assigned, pending = random.choice(held)
        value = {
            "member_epoch": random.randrange(4), "previous_member_epoch": 0, "state": 0,
            "assigned_partitions": assigned, "partitions_pending_revocation": pending,
        }  # fmt: skip
        key = {"group_id": "g", "member_id": random.choice("mn")}
        records.append(CoordinatorRecord(record_type=8, key=key, value_version=0, value=value))

    def told() -> list[Any]:
        fold, found = GroupFold("g", profile), list[Any]()
        fold.group = Group("g", "consumer", members={name: Member(name) for name in "mn"})
        for record in records:
            try:
                fold.replay(record)
            except ReplayError as error:
                found.append(str(error))
            found.append(deepcopy(fold.group))
        return found

    at_once = told()
    monkeypatch.setattr(groups, "_keeps_partitions", lambda *what: False)
    assert at_once == told()


def test_a_topology_is_told_in_the_order_of_names() -> None:
    """As StreamsGroupDescribe does, in whatever order the record has its lists; only configurations keep that."""
    configs = [{"key": key, "value": "v"} for key in "ba"]
    topics = [{"name": name, "partitions": 1, "replication_factor": 1, "topic_configs": configs} for name in "ba"]
    lists = {
        "source_topics": ["b", "a"], "repartition_sink_topics": ["b", "a"], "source_topic_regex": [],
        "state_changelog_topics": topics, "repartition_source_topics": topics, "copartition_groups": [],
    }  # fmt: skip
    value = {"epoch": 1, "subtopologies": [{"subtopology_id": each} | lists for each in "10"]}
    group = log().newer(17, {"epoch": 1, "metadata_hash": 0}).newer(23, value).load(MODERN).groups["g"]
    found = group_row(group, MODERN, TopicNames(), 0)["topology"]["subtopologies"]
    assert [each["subtopologyId"] for each in found] == ["0", "1"]
    for each in found:
        assert (each["sourceTopics"], each["repartitionSinkTopics"]) == (["a", "b"], ["a", "b"])
        for kind in ("stateChangelogTopics", "repartitionSourceTopics"):
            assert [topic["name"] for topic in each[kind]] == ["a", "b"]
            assert [[config["key"] for config in topic["topicConfigs"]] for topic in each[kind]] == [["b", "a"]] * 2
