"""What a state has room for, and that it is the same copied, in another process, and with the slow path's records."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds.replay import replay_logs
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.overflow import REGIONS, SIZES, SLOTS
from offsets_log.columnar.state import State
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.replay.profile import MODERN
from offsets_log.rows.survey import Survey
from tests.builders import TIME, UNKNOWN, LogBuilder, record_bytes
from tests.columnar.engines import columnar_answer, construct_answer
from tests.columnar.test_mixed_logs import log_of
from tests.columnar.test_newer import record

LEAST = 16


@pytest.fixture(autouse=True)
def few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a, "LEAST_KEYS", LEAST)


def state_with(**counts: int) -> ColumnarState:
    """A state whose scan state says that so much of each table is used."""
    state = ColumnarState(MODERN, with_newer=True)
    for name, count in counts.items():
        setattr(state.arrays.scan_state, name, count)
    return state


def sizes(state: ColumnarState) -> dict[str, int]:
    s = state.arrays
    return s.room() | {"rows": len(s.rows), "groups": len(s.groups), "arena": len(s.arena), "slots": len(s.slots)}


HALF = LEAST // 2
USED: list[tuple[str, dict[str, int]]] = [
    ("keys", {"row_count": HALF - 2}),
    ("arena", {"arena_used": 128 * LEAST // 2}),
    ("groups", {"group_count": HALF - 1}),
    ("producers", {"producer_count": HALF - 1}),
    ("opened", {"open_count": HALF - 1}),
    ("cancelled", {"cancelled": HALF}),
    ("cancelled", {"cancelled": 3, "open_count": HALF - 3}),
    ("named", {"named": HALF}),
    ("owned", {"owned": HALF - 1}),
    ("told", {"told": HALF - 1}),
    ("kept", {"kept": HALF - 2}),
]
"""Tables, and what half of them in use looks like, with what is to come next."""


@pytest.mark.parametrize(("name", "counts"), USED)
def test_of_tables_those_are_doubled_that_are_half_full_or_all(
    name: str, counts: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    doubled: list[set[str]] = []
    monkeypatch.setattr(ColumnarState, "_double", lambda state, parts: doubled.append(parts))
    for less in (0, 1):
        state_with(**{of: count - less for of, count in counts.items()}).grow()
    assert doubled == [{name}, {name for name, _ in USED}]


WITH_OTHERS = {
    "keys": {"rows", "slots", "more"},
    "groups": {"groups", "group_slots"},
    "producers": {"producers", "producer_slots", "unended"},
    "owned": {"owned", "owned_slots"},
}
"""Tables, and all that is as large as they are."""


@pytest.mark.parametrize("name", sorted({name for name, _ in USED}))
def test_a_table_is_doubled_with_what_goes_with_it_and_keeps_what_it_holds(name: str) -> None:
    state = state_with()
    before, dice = sizes(state), np.random.default_rng(1)
    s = state.arrays
    for numbers in (*(s.region(of).numbers for of in REGIONS), s.rows.numbers, s.groups.numbers):
        numbers[:] = dice.integers(1 << 60, size=numbers.shape)
    s.arena[:] = dice.integers(256, size=len(s.arena))
    held = {of.region: s.region(of).numbers.copy() for of in REGIONS}
    held |= {"rows": s.rows.numbers.copy(), "groups": s.groups.numbers.copy(), "arena": s.arena.copy()}
    state._double({name})
    after = sizes(state)
    assert {of for of in after if after[of] == 2 * before[of]} == WITH_OTHERS.get(name, {name})
    assert {of for of in after if after[of] == before[of]} == after.keys() - WITH_OTHERS.get(name, {name})
    now = {of.region: s.region(of).numbers for of in REGIONS} | {"rows": s.rows.numbers}
    for of, numbers in (now | {"groups": s.groups.numbers, "arena": s.arena}).items():
        assert (numbers[: len(held[of])] == held[of]).all()
        assert not numbers[len(held[of]) :].any()


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("opened", {"opened": 5}, {"opened": 4, "cancelled": 7}),
        ("cancelled", {"cancelled": 3, "opened": 2}, {"opened": 4, "cancelled": 7}),
        ("named", {"named": 5}, {"named": 4, "row_count": 7}),
        ("told", {"told": 5}, {"told": 4, "row_count": 7}),
        ("owned", {"owned": 5}, {"owned": 11}),
    ],
)
def test_where_pieces_are_joined_there_is_room_for_what_both_have(
    name: str, ours: dict[str, int], theirs: dict[str, int], more: int
) -> None:
    """What fits is left as it is."""
    for with_more in theirs:
        left = state_with(**ours)
        before, overflow = sizes(left), left.arrays.overflow
        left._make_room_for(state_with(**theirs | {with_more: theirs[with_more] + more}))
        after = sizes(left)
        assert after[name] == LEAST + more
        assert (left.arrays.overflow is overflow) is (more == 0)
        also = {"opened": {"cancelled"}, "owned": {"owned_slots"}}.get(name, set())
        assert all(after[of] == before[of] for of in after.keys() - also - {name})


@pytest.mark.parametrize(("owned", "slots"), [(0, 2), (LEAST, 2), (LEAST + 1, 4), (2 * LEAST, 4), (2 * LEAST + 1, 8)])
def test_no_more_than_half_of_the_slots_of_partitions_that_are_owned_are_taken(owned: int, slots: int) -> None:
    left = state_with(owned=owned // 2)
    left._make_room_for(state_with(owned=owned - owned // 2))
    assert left.arrays.room()["owned_slots"] == slots * LEAST


def test_a_state_begins_with_as_much_room_for_all() -> None:
    """And twice as much in tables of hashes; regions follow each other without a gap."""
    state = State(ColumnarState(MODERN).arrays.scan_state)
    assert state.room() == {name: LEAST * (1 + (name in SLOTS)) for name in SIZES}
    assert (len(state.rows), len(state.groups), len(state.slots)) == (LEAST, LEAST, 2 * LEAST)
    assert len(state.arena) == 128 * LEAST
    ends = [(int(getattr(state.scan_state, f"{name}_at")), state.room()[name] * size) for name, size in SIZES.items()]
    assert [at for at, _ in ends] == [sum(size for _, size in ends[:n]) for n in range(len(ends))]
    assert len(state.overflow) == sum(size for _, size in ends)


KEY = {"group": "g", "topic": "t", "partition": 0}


def replayed(log: PartitionLog) -> ColumnarState:
    return next(replay_logs([log], MODERN, note=lambda log: lambda seen: None)).state


def all_of(state: State) -> list[bytes]:
    tables = state.rows.numbers, state.groups.numbers, state.scan_state.numbers
    return [numbers.tobytes() for numbers in (state.slots, state.arena, state.overflow, *tables)]


def test_a_copy_is_the_same_and_shares_nothing() -> None:
    log = log_of(random.Random(4), 60)
    state = replayed(log.log)
    first, expected = state.arrays.copy(), all_of(state.arrays)
    assert all_of(first) == expected
    for numbers in (first.slots, first.arena, first.overflow, first.rows.numbers, first.groups.numbers):
        numbers[:] = 77
    first.scan_state.numbers[:] = 77
    assert all_of(state.arrays) == expected
    assert first.rows.numbers.ctypes.data % a.CACHE_LINE == 0


def test_a_log_without_batches_has_no_offsets() -> None:
    log = PartitionLog(0, ())
    state, found = replayed(log), Survey.of(log)
    state.tell(found)
    assert (state.first_offset, state.records, state.last_activity()) == (None, 0, {})
    assert found == Survey.of(log)


def test_a_group_has_its_first_record_by_whatever_way_it_was_read() -> None:
    """Of the kernel, and of a key that is read on the slow path; a later one changes nothing."""
    state = ColumnarState(MODERN)
    raw_key = b"\0\1\0\1g\0\1t" + bytes(4)
    for offset in (7, 9, 2):
        row = state.register(raw_key, 1, KEY, offset)
        assert row == state.register(raw_key + b"more", 1, KEY, offset)
    group = state.group_number("g")
    assert state.arrays.rows[row].group == group
    assert state.arrays.groups[group].first_offset == 7


def test_keys_of_type_0_are_those_of_type_1_on_the_slow_path_too() -> None:
    """``L-22``: whichever comes first, and with bytes behind them."""
    raw = b"\0\1g\0\1t" + bytes(4)
    for types in ((0, 1), (1, 0), (0, 0)):
        state = ColumnarState(MODERN)
        for number in types:
            state.register(bytes([0, number]) + raw + b"more", number, KEY, 0)
        rows = state.arrays.rows.up_to(state.arrays.scan_state.row_count)
        assert len({*rows.column(a.Row.target).tolist()}) == 1
        state.register(b"\0\2\0\1g", 2, {"group": "g"}, 1)
        assert state.arrays.scan_state.group_count == 1


TIMES = (-1, 0, 1, TIME)


@pytest.mark.parametrize("beside", [[], [UNKNOWN]], ids=["kernels", "slow path"])
@pytest.mark.parametrize("time_ms", TIMES)
def test_a_group_wrote_at_the_time_of_its_record_or_else_of_the_commit_in_it(time_ms: int, beside: list[Any]) -> None:
    """Of a record of a group nothing else tells it; a time before the first of all is none."""
    facts = {"protocol_type": "consumer", "generation": 77, "members": [], "current_state_timestamp": TIME}
    for in_value in TIMES:
        log, expected = LogBuilder(), {}
        value = {"offset": 1, "metadata": "m", "commit_timestamp": in_value, "expire_timestamp": 9, "leader_epoch": 3}
        records = {"old": record_bytes(0, KEY | {"group": "old"}, value, 0), "newer": record(3, "newer", "", 1)}
        for version in range(4):
            group = f"offset {version}"
            records[group] = record_bytes(1, KEY | {"group": group}, value, version)
            records[f"group {version}"] = record_bytes(2, {"group": f"group {version}"}, facts, version)
        for group, one in records.items():
            made = [
                Record(offset=log.offset + number, timestamp_ms=time_ms, key=key, value=raw)
                for number, (key, raw) in enumerate([one, *beside])
            ]
            log.batches.append(build_batch(made))
            log.offset += len(made)
            at = in_value if time_ms == -1 and group.startswith("o") else time_ms
            expected |= {group: at} if at >= 0 else {}
        found = columnar_answer(log.log, MODERN)
        assert found == construct_answer(log.log, MODERN)
        assert found["activity"] == expected


def test_names_that_differ_in_their_case_only_are_different_groups() -> None:
    state = ColumnarState(MODERN)
    numbers = [state.group_number(name) for name in ("g", "G", "g", "gg")]
    assert numbers == [0, 1, 0, 2]


def read_again(state: ColumnarState) -> dict[str, Any]:
    return {name: bool(state.arrays.groups[state.group_number(name)].newer_flags & newer.WHOLE) for name in "gh"}


def test_a_record_in_no_known_layout_has_its_group_alone_read_again() -> None:
    """Whether the group has others or not."""
    for before in (False, True):
        state = ColumnarState(MODERN, with_newer=True)
        if before:
            state.add_group_record(decode_coordinator_record(*record(3, "g", "", 1)), 1)
        state.add_group_record(decode_coordinator_record(*record(3, "h", "", 1)), 2)
        state.add_group_record(decode_coordinator_record(*record(5, "g", "m", 1)), -1)
        assert read_again(state) == {"g": True, "h": False}
