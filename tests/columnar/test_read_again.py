"""Which groups of newer kinds are read again, by the rules that `folds.newer` tells: no other ones, wherever a log is
cut."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache, reduce
from itertools import accumulate, pairwise, product
from typing import Any

import pytest

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds.replay import replay_logs
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.overflow import More, Owned, Told
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.profile import MODERN
from tests.builders import UNKNOWN, LogBuilder, record_bytes
from tests.columnar.engines import columnar_answer, construct_answer
from tests.columnar.test_newer import holds, record
from tests.sizes import so_many

Step = tuple[str, int, str]
"""A record: of whom, its type, and whether it is a value; 1 is an offset, and 2 a tombstone of a classic group."""
STEPS: list[Step] = [
    *(("m", number, sign) for number in (3, 5, 6, 7, 8) for sign in "+-"),
    *(("n", number, sign) for number, sign in ((5, "+"), (8, "+"), (7, "-"))),
    ("m", 8, "0"),  # a value by which it has nothing
    ("m", 16, "+"),
    ("m", 4, "+"),  # with the name of a topic
    ("m", 4, "0"),  # and with another one
    ("m", 11, "+"),  # of a share group
    ("m", 1, "+"),
    ("m", 2, "-"),
]


def is_read_again(steps: Sequence[Step]) -> bool:
    """Whether the rules ask for it: what stands in this order could not be told by the last records of keys."""
    kinds, value_since, last_offset, first = set[bool](), -1, -1, -1
    is_gone = has_no_epoch = is_whole = False
    phase, no_target, owner = {"m": "", "n": ""}, {"m": False, "n": False}, ""
    for offset, (who, number, sign) in enumerate(steps):
        if number < 3:
            last_offset = offset if number == 1 else last_offset
            is_whole |= number == 2 and bool(kinds)
            continue
        is_value = sign != "-"
        if kinds:
            is_whole |= (number == 11) not in kinds
            is_whole |= is_gone or (has_no_epoch and (is_value or number == 7))
            is_whole |= value_since < 0 and last_offset > first
        first = first if kinds else offset
        kinds.add(number == 11)
        value_since = offset if is_value and value_since < 0 else value_since
        is_gone |= number in (3, 11) and not is_value
        has_no_epoch |= number == 6 and not is_value
        before = phase[who]
        if number == 7:
            no_target[who] = not is_value
        if number == 5:
            if is_value:
                is_whole |= before == "leaving"
                phase[who] = "back" if before in ("gone", "back") else "live"
            else:
                is_whole |= before != "gone" and not (before == "leaving" and no_target[who])
                phase[who] = "gone"
        if number == 8:
            is_whole |= before == ("leaving" if is_value else "back")
            phase[who] = "live" if is_value else "gone" if before == "gone" else "leaving"
            is_whole |= sign == "+" and owner not in ("", who)
            owner = who if sign == "+" else "" if owner == who else owner
    return is_whole


@cache
def made(who: str, number: int, sign: str) -> CoordinatorRecord:
    if number == 2:
        return decode_coordinator_record(*record_bytes(2, {"group": "g"}, None, 0))
    raw = holds(who) if (number, sign) == (8, "0") else record(number, "g", who, "-+0".index(sign))
    return decode_coordinator_record(*raw)


def state_of(steps: Sequence[Step], begin: int = 0) -> ColumnarState:
    state = ColumnarState(MODERN, with_newer=True)
    for offset, step in enumerate(steps, begin):
        if step[1] == 1:
            value = OffsetAndMetadata("g", "t", 0, 5, None, "", 1, None, None, offset, offset, -1, -1)
            state.add_offset(value, False)
        else:
            state.add_group_record(made(*step), offset)
    return state


def is_whole(state: ColumnarState) -> bool:
    return bool(state.arrays.groups[state.group_number("g")].newer_flags & newer.WHOLE)


def is_unclear(before: Sequence[Step], behind: Sequence[Step]) -> bool:
    """Whether the later piece cannot tell what goes on in it: an epoch that is gone, or a member that is leaving."""
    has_newer = any(number > 2 for _, number, _ in behind)
    is_leaving = ("m", 8, "-") in before and ("m", 8, "-") in behind
    return (("m", 6, "-") in before and has_newer) or is_leaving or is_read_again(behind)


RUNS = [*product(STEPS, repeat=2), *random.Random(5).choices([*product(STEPS, repeat=3)], k=so_many(2000))]


@pytest.fixture(autouse=True)
def few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a, "LEAST_KEYS", 16)


def test_groups_are_read_again_by_the_rules_only() -> None:
    found = {run: is_whole(state_of(run)) for run in RUNS}
    assert {run for run in RUNS if found[run]} == {run for run in RUNS if is_read_again(run)}


def known(state: ColumnarState) -> dict[str, Any]:
    """All that is known of a group and its keys, its members' partitions, and records with names of topics."""
    s, records = state.arrays, state.group_records
    rows, more = s.rows.up_to(s.scan_state.row_count), s.region(More)
    keys = [s.text_at(at) for at in rows.column(a.Row.key_at).tolist()]
    group = s.groups[state.group_number("g")]
    found: dict[str, Any] = {name: int(getattr(group, name)) for name in OF_GROUP}
    found |= {"had_offset": group.value_before != a.NEVER, "flags": group.newer_flags & ~newer.ANCHOR_IS_CURRENT}
    for number, key in enumerate(keys):
        row, of_member = rows[number], more[number]
        if row.target == a.IS_NEWER:
            assert row.last_offset == a.NEVER or records[row.index].record_offset == row.last_offset
            found[key.hex()] = keys[row.member], int(row.last_offset), int(row.is_removed)
            if key[1] in newer.MEMBER_TYPES:
                found[key.hex()] += int(of_member.state), int(of_member.needed), int(of_member.missed)
            if newer.TYPES[key[1], newer.ACTION] == newer.CURRENT:
                found[key.hex()] += int(of_member.first_turn), int(of_member.given_back)
    for number in range(s.scan_state.owned):
        one = s.region(Owned)[number]
        has_it = one.owner >= 0 and one.owner_turn == more[one.owner].turn
        first = keys[one.first_owner], int(one.first_owned)
        found[f"{one.high} {one.low} {one.partition}"] = keys[one.owner] if has_it else None, first
    return found


OF_GROUP = "newer_kind", "newer_since", "newer_last", "value_offset", "metadata_offset", "first_offset"


def anchor(state: ColumnarState) -> int:
    """The offset of the value by which a group is known to exist."""
    group = state.arrays.groups[state.group_number("g")]
    at = int(group.anchor_offset)
    assert at == a.NEVER or state.group_records[group.anchor_index].record_offset == at
    return at


def told(state: ColumnarState) -> list[int]:
    """Offsets of the records with names whose key has a later one."""
    s = state.arrays
    all_told = [s.region(Told)[number] for number in range(s.scan_state.told)]
    assert [state.group_records[one.index].record_offset for one in all_told] == [one.offset for one in all_told]
    return [int(one.offset) for one in all_told]


def test_groups_are_known_as_well_wherever_their_records_are_cut() -> None:
    """Of those that are read again for no reason of their own only such as the later piece begins in the middle of
    what belongs together. The first piece with a value has it for an anchor; names may be told for a second time."""
    for run in RUNS:
        one = state_of(run)
        for cut in range(1, len(run)):
            before, behind = state_of(run[:cut]), state_of(run[cut:], cut)
            first = anchor(behind) if anchor(before) == a.NEVER else anchor(before)
            joined = before.merge(behind)
            is_wanted = is_read_again(run) or is_unclear(run[:cut], run[cut:])
            assert is_whole(joined) is is_wanted, (cut, run)
            if not is_wanted:
                assert known(joined) == known(one), (cut, run)
                assert anchor(joined) == first
                assert {*told(one)} <= {*told(joined)}
                assert len({*told(joined)}) == len(told(joined))


TOPICS = [Uuid(bytes(7) + bytes([high]) + bytes(7) + bytes([low])) for high, low in ((0, 1), (0, 2), (1, 1))]
SHARED = [(topic, number) for topic in range(3) for number in (0, 1, 300)]


def has(who: str, field: str, *partitions: tuple[int, int], epochs: bool = False) -> tuple[bytes, Any]:
    """A member's record of partitions of topics in one of its lists, with epochs or without."""
    rows = []
    for topic in range(3):
        numbers = [number for of, number in partitions if of == topic]
        epoch_of_each = [7] * len(numbers) if epochs else []
        rows.append({"topic_id": TOPICS[topic], "partitions": numbers, "assignment_epochs": epoch_of_each})
    lists = {name: rows if name == field else [] for name in newer.OWNED_NOTES}
    value = {"member_epoch": 1, "previous_member_epoch": 0, "state": 0} | lists
    return record_bytes(8, {"group_id": "g", "member_id": who}, value, 0)


@pytest.mark.parametrize("epochs", [False, True])
@pytest.mark.parametrize("later", newer.OWNED_NOTES)
@pytest.mark.parametrize("earlier", newer.OWNED_NOTES)
def test_a_partition_has_one_owner_in_whichever_list_it_stands(earlier: str, later: str, epochs: bool) -> None:
    """``J-20``: each partition of each topic for itself, whatever stands beside it."""
    owned = SHARED[::2]
    for wanted in SHARED:
        log = LogBuilder()
        for step in (record(5, "g", "m", 1), record(5, "g", "n", 1), has("m", earlier, *owned, epochs=epochs)):
            log.add(step)
        begin = sum(map(len, log.batches))
        log.add(has("n", later, wanted, epochs=epochs))
        expected = construct_answer(log.log, MODERN)
        assert [problem.rule for problem in expected["problems"]] == ["J-20"] * (wanted in owned)
        assert columnar_answer(log.log, MODERN) == columnar_answer(log.log, MODERN, cuts=[begin]) == expected
        for one in (replayed(log), replayed(log, begin)):
            assert is_whole(one) is (wanted in owned)
            assert one.arrays.scan_state.owned == len({*owned, wanted})


def replayed(log: LogBuilder, *cuts: int) -> ColumnarState:
    """The log in one piece, or cut there."""
    parts = [0, *cuts, sum(map(len, log.batches))]
    states = []
    for begin, end in pairwise(parts):
        piece = PartitionLog(0, (Segment("f", None, b"".join(log.batches)[begin:end]),))
        states.append(next(replay_logs([piece], MODERN, note=lambda log: lambda seen: None)).state)
    return reduce(lambda whole, later: whole.merge(later), states)


@pytest.mark.parametrize("beside", [(), (UNKNOWN,)], ids=["kernels", "slow path"])
def test_there_is_room_for_all_partitions_of_a_member(beside: tuple[tuple[bytes, Any], ...]) -> None:
    for count in (15, 16, 17, 33, 65, 75, 140):
        log = LogBuilder().add(record(5, "g", "m", 1)).add(record(5, "g", "n", 1))
        log.add(has("m", newer.OWNED_NOTES[0], *((0, number) for number in range(count))), *beside)
        begin = sum(map(len, log.batches))
        log.add(has("n", newer.OWNED_NOTES[1], *((1, number) for number in range(count + 1))), *beside)
        expected = construct_answer(log.log, MODERN)
        assert columnar_answer(log.log, MODERN) == columnar_answer(log.log, MODERN, cuts=[begin]) == expected
        assert replayed(log).arrays.scan_state.owned == 2 * count + 1


@pytest.mark.parametrize("beside", [(), (UNKNOWN,)], ids=["kernels", "slow path"])
def test_there_is_room_for_all_records_with_names(beside: tuple[tuple[bytes, Any], ...]) -> None:
    for count in (16, 17, 18, 33, 34):
        log = LogBuilder()
        for number in range(count):
            topic = {"topic_id": Uuid(bytes([number + 1] * 16)), "topic_name": f"t{number}", "num_partitions": 1}
            log.add(record_bytes(4, {"group_id": "g"}, {"topics": [topic | {"partition_metadata": []}]}, 0), *beside)
        expected = construct_answer(log.log, MODERN)
        cut = len(b"".join(log.batches[:3]))
        assert columnar_answer(log.log, MODERN) == columnar_answer(log.log, MODERN, cuts=[cut]) == expected
        assert replayed(log).arrays.scan_state.told == count - 1


@pytest.mark.parametrize(("later", "is_wanted"), [(4, True), (5, True), (6, False)])
def test_a_group_whose_records_are_in_no_order_is_read_again(later: int, is_wanted: bool) -> None:
    """As those of magic 0 and 1 may be; one of the offset of the one before is no later one."""
    for number in (3, 5, 7):
        records = [(made("m", 3, "+"), 5), (made("m", number, "+"), later)]
        one, before, behind = (ColumnarState(MODERN, with_newer=True) for _ in range(3))
        for state, record_ in ((before, records[0]), (behind, records[1]), (one, records[0]), (one, records[1])):
            state.add_group_record(*record_)
        assert is_whole(one) is is_whole(before.merge(behind)) is is_wanted


def test_records_with_names_are_told_once_for_each_name() -> None:
    """Read by kernels or not, in one piece or cut before any: names of all records are known, and few records kept."""
    for slow in ((), (UNKNOWN,)):
        log = LogBuilder().add((b"\0\1\0\1h\0\1t" + bytes(4), None), *slow)
        for number in (1, 1, 2, 3, 3, 4):
            topics = [{"topic_id": Uuid(bytes([number] * 16)), "topic_name": f"t{number}", "num_partitions": 1}]
            value = {"topics": [topics[0] | {"partition_metadata": []}]}
            log.add(*slow, record_bytes(4, {"group_id": "g"}, value, 0))
        begins = [*accumulate(map(len, log.batches[:-1]))]
        expected = construct_answer(log.log, MODERN)
        assert len(expected["topic_names"]) == 4
        assert replayed(log).arrays.scan_state.told == 3
        for cuts in ([], begins, *([begin] for begin in begins)):
            for from_last in (False, True):
                assert columnar_answer(log.log, MODERN, cuts=cuts, from_last=from_last) == expected


def test_a_group_of_classic_records_alone_is_not_read_again() -> None:
    """Wherever its log is cut; with one of a newer kind before them it is."""
    log = LogBuilder().group().commit(1).group(gone=True).group(generation=2).group(generation=3)
    for begin in accumulate(map(len, log.batches[:-1])):
        assert not is_whole(replayed(log, begin))
    mixed = LogBuilder().add(record(3, "g", "", 1)).group().group()
    assert all(is_whole(replayed(mixed, *cuts)) for cuts in ([], [len(mixed.batches[0])]))


def test_bytes_behind_a_value_do_not_make_its_names_others() -> None:
    """Of records that are read on the slow path: what is kept for their names is by names."""
    state = ColumnarState(MODERN, with_newer=True)
    key, value = record(4, "g", "", 1)
    for offset, more in enumerate((b"", b"more", b"more again", b"")):
        state.add_group_record(decode_coordinator_record(key, value + more), offset)
    assert told(state) == []
    assert not is_whole(state)
