"""Test one by one the rules of what a cycle of expiry writes: which tombstones, of which groups, in which order."""

from __future__ import annotations

import pytest

from offsets_log.log_format.java_text import MalformedString
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.expiry import (
    ERAS,
    cycle_of,
    tombstones,
)
from tests.replay.expiring import (
    BY_STATE,
    JAVA,
    SCALA_BY_STATE,
    Json,
    at,
    classic_group,
    commit,
    expiry_of,
    group_of,
    record,
    topology,
)
from tests.replay.test_expiry import CONSUMERS


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
    for generation in (1, 2):
        state = at(classic_group(generation=generation), commit(), era=era)
        assert keys(state, era) == [offset, (2, {"group": "g"})]


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
    names = {name for offset in expiry_of(at(commit()), 0, ERAS["modern"].retention()) for name in offset.value._fields}
    assert {name for name in names if "timestamp" in name} == {"commit_timestamp_ms", "expire_timestamp_ms"}
