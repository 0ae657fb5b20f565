"""The classic group's state machine, rule by rule (``G-4`` … ``G-11``, ``W-11`` … ``W-15``)."""

from __future__ import annotations

from typing import Any

import pytest

from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.config import GroupConfig, OffsetConfig
from offsets_log.coordinator.errors import CoordinatorError, Errors
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.records import OffsetCommit
from offsets_log.coordinator.validation import MemberIdentity
from offsets_log.rebalance.classic_group import ClassicGroup, Joined, Joining, Pending, State
from offsets_log.rebalance.membership import GroupMembership
from tests.coordinator.caches import JAVA_AND_SCALA, Clock, written

DELAY_MS = 3000
SESSION_MS, REBALANCE_MS = 10_000, 60_000


class Bench:
    """A coordinator with its members, over a log in memory."""

    def __init__(self, release: str = "4.3", log: MemoryLog | None = None, **config: int) -> None:
        self.clock = Clock(1_000_000)
        self.log = log or MemoryLog()
        self.numbers = iter(range(1000))
        self.cache = GroupCoordinatorCache(
            self.log,
            self.clock,
            release=release,
            offset_config=OffsetConfig(offsets_topic_num_partitions=1),
            group_config=GroupConfig(group_initial_rebalance_delay_ms=DELAY_MS, **config),
        )
        self.cache.startup()
        self.cache.on_election(0, leader_epoch=0)
        self.groups = GroupMembership(
            self.cache,
            self.clock,
            release=release,
            new_member_id=lambda joining: f"{joining.client_id}-{next(self.numbers)}",
        )

    def pass_ms(self, time_ms: int) -> None:
        self.clock.now_ms += time_ms
        self.groups.tick()

    def join(self, client_id: str, member_id: str = "", **more: Any) -> Pending[Joined]:
        return self.groups.join("g", joining(client_id, **more), member_id)

    def started(self, *client_ids: str, **more: Any) -> list[str]:
        """Members that have joined and synced a generation."""
        pending = [self.join(client_id, **more) for client_id in client_ids]
        self.pass_ms(DELAY_MS)
        self.pass_ms(DELAY_MS)
        return self.synced(pending)

    def synced(self, pending: list[Pending[Joined]]) -> list[str]:
        answers = [answer_of(each) for each in pending]
        for answer in answers:
            assert answer.error is Errors.NONE
            self.groups.sync("g", identity(answer), {each: each.encode() for each in answer.members})
        return [answer.member_id for answer in answers]

    @property
    def group(self) -> ClassicGroup:
        found = self.groups.group("g")
        assert found is not None
        return found

    def values(self) -> list[dict[str, Any]]:
        """The type 2 values in the log."""
        return [event.decoded.value for event in written(self.log, 0) if event.decoded and event.decoded.value]


def subscription(text: str) -> bytes:
    """A consumer's subscription of no topic, with a text as its user data."""
    return bytes(6) + len(text).to_bytes(4) + text.encode()


def joining(client_id: str, *protocols: str, kind: str = "consumer", **more: Any) -> Joining:
    names = more.pop("protocols", protocols or ("range", "sticky"))
    return Joining(
        protocols=tuple((name, subscription(f"{client_id} {name}")) for name in names),
        protocol_type=kind,
        client_id=client_id,
        session_timeout_ms=more.pop("session_timeout_ms", SESSION_MS),
        rebalance_timeout_ms=REBALANCE_MS,
        **more,
    )


def answer_of(pending: Pending[Joined]) -> Joined:
    assert pending.answer is not None
    return pending.answer


def identity(answer: Joined, group_instance_id: str | None = None) -> MemberIdentity:
    return MemberIdentity(answer.member_id, group_instance_id, answer.generation)


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_the_first_generation_waits_for_members_and_is_written_before_it_is_stable(release: str) -> None:
    """``G-5``, ``G-6``, ``W-11``, ``W-12``."""
    bench = Bench(release)
    one, two = bench.join("a"), bench.join("b")
    assert bench.group.state is State.PREPARING_REBALANCE
    bench.pass_ms(DELAY_MS)
    assert one.answer is None  # another member came in that time: some more is waited for
    bench.pass_ms(DELAY_MS)
    leader, follower = answer_of(one), answer_of(two)
    assert (leader.generation, leader.protocol, leader.leader) == (1, "range", leader.member_id)
    assert leader.members.keys() == {"a-0", "b-1"}
    assert leader.members["b-1"] == (None, subscription("b range"))
    assert follower.members == {}
    joined_ms = bench.clock.now_ms
    assert bench.group.state is State.COMPLETING_REBALANCE
    waiting = bench.groups.sync("g", identity(follower))
    assert waiting.answer is None
    bench.clock.now_ms += 5
    synced = bench.groups.sync("g", identity(leader), {"a-0": b"all of it"})
    assert synced.answer is not None
    assert synced.answer.assignment == b"all of it"
    assert waiting.answer is not None
    assert waiting.answer.assignment == b""  # left out by the leader: W-13
    assert bench.group.state is State.STABLE
    value = bench.values()[-1]
    assert (value["generation"], value["protocol"], value["leader"]) == (1, "range", "a-0")
    assert value["current_state_timestamp"] == joined_ms
    assert {row["member_id"]: row["assignment"] for row in value["members"]} == {"a-0": b"all of it", "b-1": b""}


def test_the_java_coordinator_writes_a_new_group_before_its_first_generation() -> None:
    """``records:W6``; 3.9 does not."""
    for release, expected in (("4.3", [0, 1]), ("3.9", [1])):
        bench = Bench(release)
        bench.started("a")
        assert [value["generation"] for value in bench.values()] == expected


def test_a_generation_that_is_never_synced_is_not_in_the_log() -> None:
    """``W-14``: the leader joins again before it has synced."""
    bench = Bench()
    (leader,) = bench.started("a")
    again = bench.join("a", leader)
    assert answer_of(again).generation == 2
    last = bench.join("a", leader, protocols=("range",))
    bench.synced([last])
    assert [value["generation"] for value in bench.values()] == [0, 1, 3]


def test_a_write_that_fails_brings_the_group_back_to_rebalancing() -> None:
    """``W-15``: the log keeps the older generation."""
    bench = Bench()
    (leader,) = bench.started("a")
    answer = answer_of(bench.join("a", leader))
    bench.log.fail_with = CoordinatorError(Errors.NOT_ENOUGH_REPLICAS, "one is missing")
    synced = bench.groups.sync("g", identity(answer), {})
    assert synced.answer is not None
    assert synced.answer.error is Errors.COORDINATOR_NOT_AVAILABLE
    assert bench.group.state is State.PREPARING_REBALANCE
    bench.log.fail_with = None
    assert bench.values()[-1]["generation"] == 1
    bench.synced([bench.join("a", leader)])
    assert bench.values()[-1]["generation"] == 3


def test_members_that_do_not_come_back_are_removed_and_the_leader_with_them() -> None:
    """``G-7``."""
    bench = Bench()
    first, second, third = bench.started("a", "b", "c")
    again = [bench.join("b", second, protocols=("sticky",)), bench.join("c", third)]
    assert bench.groups.heartbeat("g", MemberIdentity(first, None, 1)) is Errors.REBALANCE_IN_PROGRESS
    while again[0].answer is None:  # until the leader's session is over
        bench.pass_ms(SESSION_MS // 2)
    bench.synced(again)
    assert bench.group.leader in (second, third)
    assert set(bench.group.members) == {second, third}
    assert bench.group.protocol == "sticky"


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_another_leads_when_the_leader_leaves_or_does_not_come_back(release: str) -> None:
    """``G-6``: a static leader stays a member."""
    bench = Bench(release)
    first, second = bench.started("a", "b")
    assert bench.group.leader == first
    bench.groups.leave("g", MemberIdentity(first))
    bench.synced([bench.join("b", second)])
    assert bench.group.leader == second
    static = Bench(release)
    (leader,) = static.started("a", group_instance_id="node")
    pending = static.join("b")
    while pending.answer is None:
        static.groups.heartbeat("g", MemberIdentity(leader, "node", 1))
        static.pass_ms(SESSION_MS // 2)
    (other,) = static.synced([pending])
    assert (static.group.leader, set(static.group.members)) == (other, {leader, other})


def test_who_leaves_or_falls_silent_makes_the_others_rebalance() -> None:
    """``G-5``: also an empty group gets a generation, written with its type and without protocol (``G-11``)."""
    bench = Bench()
    first, second = bench.started("a", "b")
    assert bench.groups.leave("g", MemberIdentity(first)) is Errors.NONE
    bench.synced([bench.join("b", second)])
    assert (bench.group.generation, bench.group.leader) == (2, second)
    bench.pass_ms(SESSION_MS)
    assert bench.group.state is State.EMPTY
    value = bench.values()[-1]
    assert (value["generation"], value["protocol_type"], value["protocol"], value["leader"]) == (
        3,
        "consumer",
        None,
        None,
    )
    assert value["members"] == []


def test_a_member_that_joins_and_does_not_sync_is_removed() -> None:
    bench = Bench()
    first, second = bench.started("a", "b")
    again = [bench.join("a", first), bench.join("b", second)]
    answer = answer_of(again[0])
    for _ in range(REBALANCE_MS // 5000):
        bench.groups.heartbeat("g", MemberIdentity(second, None, 2))
        bench.groups.heartbeat("g", identity(answer))
        bench.groups.sync("g", identity(answer), {})
        bench.pass_ms(5000)
    assert set(bench.group.members) == {first}


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_a_static_member_comes_back_without_a_rebalance(release: str) -> None:
    """``G-8``, ``W-11``: a new id, the old assignment, the old client id; the old id is fenced."""
    bench = Bench(release)
    (old,) = bench.started("a", group_instance_id="node")
    back = answer_of(bench.join("other-client", group_instance_id="node"))
    assert (back.generation, back.leader, back.skip_assignment) == (1, back.member_id, True)
    assert back.member_id != old
    assert bench.group.state is State.STABLE
    value = bench.values()[-1]
    assert (value["generation"], value["leader"]) == (1, back.member_id)
    (row,) = value["members"]
    assert (row["client_id"], row["assignment"]) == ("a", old.encode())
    assert row["subscription"] == subscription("other-client range")
    assert bench.groups.heartbeat("g", MemberIdentity(old, "node", 1)) is Errors.FENCED_INSTANCE_ID
    synced = bench.groups.sync("g", MemberIdentity(back.member_id, "node", 1)).answer
    assert synced is not None
    assert synced.assignment == old.encode()


def test_a_static_member_that_changes_the_vote_makes_a_rebalance() -> None:
    """``G-8``: and while a rebalance goes on it is waited for like any other."""
    bench = Bench()
    bench.started("a", group_instance_id="node")
    bench.synced([bench.join("a", group_instance_id="node", protocols=("sticky", "range"))])
    assert (bench.group.generation, bench.group.protocol) == (2, "sticky")


def test_an_administrator_removes_a_static_member_by_its_instance() -> None:
    bench = Bench()
    bench.started("a", group_instance_id="node")
    assert bench.groups.leave("g", MemberIdentity("", "nobody")) is Errors.UNKNOWN_MEMBER_ID
    assert bench.groups.leave("g", MemberIdentity("", "node")) is Errors.NONE
    assert bench.group.state is State.EMPTY


def test_a_new_member_may_have_to_join_with_its_id() -> None:
    """JoinGroup 4 and later; an id that is not used in time is forgotten."""
    bench = Bench()
    first = answer_of(bench.groups.join("g", joining("a"), knows_id_first=True))
    assert first.error is Errors.MEMBER_ID_REQUIRED
    assert bench.group.state is State.EMPTY
    pending = bench.join("a", first.member_id)
    bench.pass_ms(DELAY_MS)
    bench.synced([pending])
    unused = answer_of(bench.groups.join("g", joining("b"), knows_id_first=True))
    bench.pass_ms(SESSION_MS - 1)
    bench.groups.heartbeat("g", MemberIdentity(first.member_id, None, 1))
    bench.pass_ms(1)
    assert answer_of(bench.join("b", unused.member_id)).error is Errors.UNKNOWN_MEMBER_ID


def test_who_is_refused() -> None:
    """``G-4``; sizes and timeouts by the broker's configuration."""
    bench = Bench(group_max_size=2)
    first, second = bench.started("a", "b")
    refused = {
        "stranger": bench.join("x", member_id="unknown"),
        "protocol": bench.join("x", protocols=("roundrobin",)),
        "type": bench.join("x", kind="connect"),
        "session": bench.join("x", session_timeout_ms=1),
    }
    assert {name: answer_of(pending).error for name, pending in refused.items()} == {
        "stranger": Errors.GROUP_MAX_SIZE_REACHED,
        "protocol": Errors.GROUP_MAX_SIZE_REACHED,
        "type": Errors.GROUP_MAX_SIZE_REACHED,
        "session": Errors.INVALID_SESSION_TIMEOUT,
    }
    bench.groups.leave("g", MemberIdentity(second))
    bench.synced([bench.join("a", first)])
    assert answer_of(bench.join("x", member_id="unknown")).error is Errors.UNKNOWN_MEMBER_ID
    assert answer_of(bench.join("x", protocols=("roundrobin",))).error is Errors.INCONSISTENT_GROUP_PROTOCOL
    assert answer_of(bench.join("x", kind="connect")).error is Errors.INCONSISTENT_GROUP_PROTOCOL
    assert bench.groups.heartbeat("g", MemberIdentity(first, None, 1)) is Errors.ILLEGAL_GENERATION
    assert bench.groups.heartbeat("nowhere", MemberIdentity(first, None, 1)) is Errors.UNKNOWN_MEMBER_ID
    assert bench.groups.leave("nowhere", MemberIdentity(first)) is Errors.UNKNOWN_MEMBER_ID
    answer = bench.groups.sync("g", MemberIdentity(first, None, 9)).answer
    assert answer is not None
    assert answer.error is Errors.ILLEGAL_GENERATION


def test_a_follower_that_joins_again_with_the_same_is_told_what_there_is() -> None:
    bench = Bench()
    first, second = bench.started("a", "b")
    answer = answer_of(bench.join("b", second))
    assert (answer.generation, answer.members) == (1, {})
    assert bench.group.state is State.STABLE
    bench.join("a", first)  # the leader: all join again
    assert bench.group.state is State.PREPARING_REBALANCE


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_members_go_on_after_a_load(release: str) -> None:
    """``L-24``, ``L-28``, ``L-41``: another broker takes over the group as it is in the log."""
    bench = Bench(release)
    first, second = bench.started("a", "b")
    later = Bench(release, bench.log)
    assert later.groups.heartbeat("g", MemberIdentity(second, None, 1)) is Errors.NONE
    assert later.group.members[first].protocols == ["range"]
    again = [later.join("a", first), later.join("b", second)]
    later.synced(again)
    assert (later.group.generation, later.group.leader) == (2, first)


def test_a_deleted_group_is_forgotten() -> None:
    bench = Bench()
    (member_id,) = bench.started("a")
    bench.cache.commit_offsets("g", {("t", 0): OffsetCommit(1)}, who=MemberIdentity(member_id, None, 1))
    bench.groups.leave("g", MemberIdentity(member_id))
    bench.cache.delete_group("g")
    assert bench.groups.group("g") is None
    bench.started("b")
    assert bench.group.generation == 1


def test_opaque_protocols_join_and_sync_like_any_other() -> None:
    """As the recorder did with ``workers-…``: 1, then 2 without a sync, then 3 and 4, and 5 when all is empty."""
    bench = Bench()
    (member_id,) = bench.started("raw", kind="kennel", protocols=("first", "second"))
    bench.join("raw", member_id, kind="kennel", protocols=("first", "second"))
    for turn in range(2):
        protocols = (("first", b"round %d" % turn), ("second", b""))
        again = Joining(protocols=protocols, protocol_type="kennel", client_id="raw", session_timeout_ms=SESSION_MS)
        answer = answer_of(bench.groups.join("g", again, member_id))
        bench.groups.sync("g", identity(answer), {member_id: b"work"})
    bench.groups.leave("g", MemberIdentity(member_id))
    assert [value["generation"] for value in bench.values()] == [0, 1, 3, 4, 5]
    assert {value["protocol"] for value in bench.values()[1:4]} == {"first"}
