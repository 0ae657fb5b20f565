"""Records of the newer kinds of groups in kernels: last records of keys fold to what all records fold to."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds import replay as columnar
from offsets_log.columnar.folds.known import newer_layouts
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.materialize import timelines
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import Uuid
from offsets_log.log_format.record import INT64_MAX, INT64_MIN
from offsets_log.messages.registry import RECORD_TYPES, decode_coordinator_record
from offsets_log.messages.schema import INT32, UUID, ArrayOf, Field, Struct
from offsets_log.replay.profile import MODERN, PROFILES, RELEASES
from tests.builders import UNKNOWN, LogBuilder, record_bytes
from tests.builders import member as classic_member
from tests.columnar.engines import columnar_answer, construct_answer
from tests.sizes import examples

IDS = [Uuid(bytes(15) + bytes([i])) for i in (1, 2)]
KINDS = {"consumer": (3, 4, 5, 6, 7, 8, 16), "share": (10, 11, 12, 13, 14, 15), "streams": (17, 19, 20, 21, 22, 23)}
LIFE = {"consumer": (5, 7, 8), "share": (10, 13, 14), "streams": (19, 21, 22)}


def record(number: int, group: str, member: str, choice: int, topic_id: Uuid | None = None) -> tuple[bytes, Any]:
    """A record of a newer kind; choice 0 is a tombstone, others are epochs, states, partitions and their topic id."""
    key = {field.name: value for field, value in zip(RECORD_TYPES[number].key.fields, (group, member), strict=False)}
    if not choice:
        return record_bytes(number, key, None, 0)
    layout = next(RECORD_TYPES[number].layouts(0))
    value = layout.zeros(0) | {row.name: None for row in layout.fields if row.nullable and row.tag is None}
    facts: dict[str, Any] = dict.fromkeys(("epoch", "assignment_epoch", "member_epoch"), choice)
    lists = [{"topic_id": topic_id or IDS[choice % 2], "partitions": [choice], "assignment_epochs": []}]
    facts |= {"assigned_partitions": lists, "topic_partitions": lists}
    facts["state"] = 1 + choice % 3
    facts["initialized_topics"] = [{"topic_id": IDS[choice % 2], "topic_name": f"t{choice % 3}", "partitions": []}]
    if number == 4:
        facts["topics"] = [
            {"topic_id": IDS[choice % 2], "topic_name": f"t{choice}", "num_partitions": 1, "partition_metadata": []}
        ]
    return record_bytes(number, key, value | {name: facts[name] for name in value if name in facts}, 0)


def leaving(kind: str, group: str, member: str) -> list[tuple[bytes, Any]]:
    """The records by which a member leaves."""
    member_type, target, current = LIFE[kind]
    return [record(number, group, member, 0) for number in (current, target, member_type)]


TAKE, LEAVE = [record(8, "g", "n", 1)], leaving("consumer", "g", "m")


@pytest.mark.parametrize(
    ("second", "rules"), [(TAKE, ["J-20"]), (TAKE + LEAVE, ["J-20"]), (LEAVE + TAKE, [])], ids=range(3)
)
def test_what_a_member_took_in_the_piece_before_is_its_own_until_given_back(second: Any, rules: list[str]) -> None:
    """``J-20``: also where the last records of all keys alone would not tell."""
    log = LogBuilder()
    joined = [record(5, "g", "m", 1), record(7, "g", "m", 1), record(8, "g", "m", 1), record(5, "g", "n", 1)]
    for step in (*joined, *second):
        log.add(step)
    expected = construct_answer(log.log, MODERN)
    assert [problem.rule for problem in expected["problems"]] == rules
    assert columnar_answer(log.log, MODERN, pieces=2) == expected


@pytest.mark.parametrize("pieces", range(1, 8))
def test_what_a_member_took_again_is_its_own_in_all_pieces_behind(pieces: int) -> None:
    """``J-20``: the last records alone would not tell, for it leaves afterwards."""
    log = LogBuilder()
    joined = [record(5, "g", "m", 1), record(7, "g", "m", 1), record(8, "g", "m", 1), record(5, "g", "n", 1)]
    for step in (*joined, *[record(8, "g", "m", 1)] * 3, *TAKE, *LEAVE):
        log.add(step)
    expected = construct_answer(log.log, MODERN)
    assert [problem.rule for problem in expected["problems"]] == ["J-20"]
    assert columnar_answer(log.log, MODERN, pieces=pieces) == expected


def holds(member: str, *partitions: int) -> tuple[bytes, Any]:
    """A member's record of what it has, each partition of a topic of its own or of one with others."""
    layout = next(RECORD_TYPES[8].layouts(0))
    value = layout.zeros(0) | {row.name: None for row in layout.fields if row.nullable and row.tag is None}
    lists = [{"topic_id": IDS[n % 2], "partitions": [n], "assignment_epochs": []} for n in partitions]
    return record_bytes(8, {"group_id": "g", "member_id": member}, value | {"assigned_partitions": lists}, 0)


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("which", range(5))
def test_of_many_partitions_each_has_an_owner_of_its_own(
    which: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``J-20``: one that is held is refused though all others were given back, and one given back is taken though all
    others are held; the last records of keys would not tell the former."""
    joined = [record(5, "g", member, 1) for member in "01234n"] + [holds(str(n), n) for n in range(5)]
    others = [holds(str(n)) for n in range(5) if n != which]
    held, free = LogBuilder(), LogBuilder()
    for step in (*joined, *others, holds("n", which), holds(str(which)), holds("n", which)):
        held.add(step)
    for step in (*joined, holds(str(which)), holds("n", which)):
        free.add(step)
    expected = construct_answer(held.log, MODERN)
    assert [problem.rule for problem in expected["problems"]] == ["J-20"]
    assert columnar_answer(held.log, MODERN, pieces=pieces) == expected

    def none_again(layout: object, state: object, scanner: object, names: list[str]) -> dict[str, Any]:
        assert not names
        return {}

    expected = construct_answer(free.log, MODERN)
    assert not expected["problems"]
    monkeypatch.setattr(timelines, "read_again", none_again)
    assert columnar_answer(free.log, MODERN, pieces=pieces) == expected


def cut_into(*parts: list[tuple[bytes, Any]]) -> PartitionLog:
    """A log with parts that are as long as each other, so that its pieces begin where they do."""
    log, part_bytes = LogBuilder(), 4000
    for number, part in enumerate(parts, 1):
        for step in part:
            log.add(step)
        left = number * part_bytes - sum(map(len, log.batches))
        for more in range(left):
            filled = deepcopy(log).commit(number, group="filler", metadata="x" * (left - 100 - more))
            if sum(map(len, filled.batches)) == number * part_bytes:
                break
        log = filled
    assert sum(map(len, log.batches)) == len(parts) * part_bytes
    return log.log


@pytest.mark.parametrize("again", [0, 1, 2])
@pytest.mark.parametrize("is_given_back", [False, True])
def test_what_a_member_has_is_known_in_pieces_that_say_nothing_of_it(again: int, is_given_back: bool) -> None:
    """``J-20``: another takes it, and then the member leaves."""
    joined = [record(5, "g", "m", 1), record(7, "g", "m", 1), record(8, "g", "m", 1), record(5, "g", "n", 1)]
    parts = [joined, *[[record(8, "g", "m", 1)]] * again, [holds("m")] if is_given_back else [], TAKE, LEAVE]
    log = cut_into(*parts)
    expected = construct_answer(log, MODERN)
    assert [problem.rule for problem in expected["problems"]] == ([] if is_given_back else ["J-20"])
    assert columnar_answer(log, MODERN, pieces=len(parts)) == expected


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_group_is_read_again_where_the_next_piece_has_a_record_of_a_classic_one(is_removed: bool) -> None:
    """``J-22``: in a batch that is read on the slow path, for it has a record of an unknown type; both pieces are as
    long."""
    log = LogBuilder()
    for step in (record(5, "g", "m", 1), record(8, "g", "m", 1), record(8, "g", "m", 2)):
        log.add(step)
    size = sum(map(len, log.batches))
    value = {"protocol_type": "consumer", "generation": 1, "protocol": None, "leader": None, "members": []}
    value |= {"current_state_timestamp": -1}
    classic = record_bytes(2, {"group": "g"}, None if is_removed else value, 3)
    second = ((classic, (b"\0\x63x", bytes(more))) for more in range(size))
    log.add(*next(records for records in second if len(LogBuilder().skip(3).add(*records).batches[0]) == size))
    expected = construct_answer(log.log, MODERN)
    assert [group.kind for group in expected["groups"].values()] == ([] if is_removed else ["classic"])
    assert columnar_answer(log.log, MODERN, pieces=2) == expected


@pytest.mark.parametrize("pieces", [1, 2, 3])
@pytest.mark.parametrize("kind", ["share", "streams"])
def test_what_a_classic_group_refused_is_told_though_it_ends_behind(kind: str, pieces: int) -> None:
    """``J-19``: by then a later record stands for those of its key that were refused."""
    current = LIFE[kind][2]
    log = LogBuilder().group().add(record(current, "g", "m", 2)).add(record(current, "g", "m", 3)).group(gone=True)
    log.add(*leaving(kind, "g", "m"))
    expected = construct_answer(log.log, MODERN)
    assert [problem.rule for problem in expected["problems"]] == ["J-19", "J-19"]
    assert columnar_answer(log.log, MODERN, pieces=pieces) == expected


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_records_read_on_the_slow_path_are_kept_in_their_places_where_a_group_is_read_again(pieces: int) -> None:
    """``J-22``: a classic record among those of a consumer group."""
    classic = record_bytes(2, {"group": "g"}, {"protocol_type": "consumer", "generation": 4, "members": []}, 3)
    for steps in ([record(3, "g", "", 1), record(3, "g", "", 2), classic], [classic, record(3, "g", "", 3)]):
        log = LogBuilder().add(record(3, "g", "", 1)).add(record(3, "h", "", 1), UNKNOWN)
        for step in steps:
            log.add(step, UNKNOWN)
        assert columnar_answer(log.log, MODERN, pieces=pieces) == construct_answer(log.log, MODERN)


@pytest.mark.parametrize("pieces", [2, 3, 4])
def test_a_group_of_which_the_piece_before_has_tombstones_only(pieces: int) -> None:
    """Its first value is read on the slow path, as one of another group was before it."""
    for first in KINDS["consumer"]:
        for begin in (first, 7, 8):
            log = LogBuilder().add(record(begin, "g", "m", 0)).add(record(5, "h", "n", 1), UNKNOWN)
            for step in (record(first, "g", "m", 2), record(5, "g", "m", 1)):
                log.add(step, UNKNOWN)
            assert columnar_answer(log.log, MODERN, pieces=pieces) == construct_answer(log.log, MODERN)


STEP = st.tuples(
    st.sampled_from(["record", "record", "record", "record", "leave", "commit", "classic", "times"]),
    st.sampled_from(["consumer", "consumer", "share", "streams"]),
    st.integers(0, 6),
    st.sampled_from(["m", "n", "\u00fc"]),
    st.integers(0, 3),
    st.integers(0, 9),
)


def build(steps: list[tuple[str, str, int, str, int, int]]) -> LogBuilder:
    """A log; most groups have records of one kind."""
    log = LogBuilder()
    for what, kind, number, member, choice, other in steps:
        group = kind if other else "any"
        match what:
            case "record":
                types = KINDS[kind]
                log.add(record(types[number % len(types)], group, member, choice or int(other > 2)))
            case "leave":
                log.add(*leaving(kind, group, member))
            case "commit":
                log.commit(number, group=group)
            case "times":
                types = KINDS[kind]
                made = (record(types[(number + i) % len(types)], group, member, choice) for i in range(3))
                log.add(*made, times=(INT64_MAX - number, INT64_MIN + other, -1)[: 1 + choice])
            case "classic" if other < 2:
                log.group(group=group, gone=bool(choice))
    return log


@pytest.mark.parametrize("profile", ["modern", "modern-3.7", "classic", "4.0", "4.1", "4.2"])
@examples(60)
@given(steps=st.lists(STEP, max_size=40), pieces=st.integers(1, 4))
def test_generated_logs(profile: str, steps: list[Any], pieces: int) -> None:
    rules = (PROFILES | RELEASES)[profile]
    log = build(steps).log
    assert columnar_answer(log, rules, pieces=pieces) == construct_answer(log, rules)


def plain_log() -> PartitionLog:
    """Groups of all kinds whose members come, go and give partitions to each other, and one of classic members.

    What ``m`` gives back ``n`` takes, again and again.
    """
    log = LogBuilder()
    for kind, types in KINDS.items():
        head = [number for number in types if number not in LIFE[kind]]
        for turn in range(1, 6):
            log.add(*(record(number, kind, "r", turn) for number in head))
            for member, choice in (("m", turn + 1), ("n", turn)):
                log.add(*(record(number, kind, member, choice) for number in LIFE[kind]))
            log.commit(turn, group=kind)
        log.add(*leaving(kind, kind, "n"))
        log.add(*(record(number, kind, "o", 5) for number in LIFE[kind]))
    for version in range(5):
        members = classic_member("m"), classic_member("n", group_instance_id="one")
        log.group(*members, group="classic", version=version)
    return log.log


@pytest.mark.parametrize("pieces", range(1, 9))
def test_plain_records_need_no_hand(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What coordinators write is taken by the kernel, and no group is read again."""

    def slow_path(*_: object) -> None:
        raise AssertionError("read on the slow path")

    def none_again(layout: object, state: object, scanner: object, names: list[str]) -> dict[str, Any]:
        assert not names
        return {}

    log = plain_log()
    expected = construct_answer(log, MODERN)
    assert not expected["problems"]
    monkeypatch.setattr(columnar.Piece, "take", slow_path)
    monkeypatch.setattr(timelines, "read_again", none_again)
    assert columnar_answer(log, MODERN, pieces=pieces) == expected


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_a_classic_group_is_not_read_again_for_being_read_on_the_slow_path(
    pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogBuilder()
    for generation in range(6):
        value = {"protocol_type": "consumer", "generation": generation, "members": []}
        log.add(record_bytes(2, {"group": f"g{generation % 2}"}, value, 3), UNKNOWN)
    expected = construct_answer(log.log, MODERN)

    def none_again(layout: object, state: object, scanner: object, names: list[str]) -> dict[str, Any]:
        assert not names
        return {}

    monkeypatch.setattr(timelines, "read_again", none_again)
    assert columnar_answer(log.log, MODERN, pieces=pieces) == expected


def test_all_types_are_known() -> None:
    """Those of 4.3 that it replays, under the layouts that it writes."""
    assert set(newer_layouts(MODERN, None)) == MODERN.known_types - {0, 1, 2}
    assert (newer.TYPES[sorted(newer_layouts(MODERN, None)), newer.ACTION] >= 0).all()


@pytest.mark.parametrize("choice", [0, 1], ids=["tombstone", "value"])
@pytest.mark.parametrize("release", [None, (3, 7), (4, 3)])
def test_of_a_record_in_another_layout_or_behind_no_offset_the_group_is_read_again(
    release: tuple[int, int] | None, choice: int
) -> None:
    """Whatever its type: those of 3.7 are in layouts that 4.3 does not write."""
    for number in sorted(MODERN.known_types - {0, 1, 2}):
        made = decode_coordinator_record(*record(number, "g", "m", choice), release)
        for offset in (-1, 0, 5):
            state = ColumnarState(MODERN, release=release, with_newer=True)
            state.add_group_record(made, offset)
            layout = state.newer.get(number)
            is_taken = offset >= 0 and layout is not None and made.layout in (None, layout)
            assert len(state.group_records) == is_taken
            if not is_taken:
                assert state.arrays.groups[state.group_number("g")].newer_flags & newer.WHOLE


ASSIGNED, PENDING = newer.OWNED_NOTES
NUMBER = Field("more", INT32)
ROWS = Field("topic_id", UUID), Field("partitions", ArrayOf(INT32))
OWNED = ArrayOf(Struct(ROWS))


@pytest.mark.parametrize(
    ("second", "is_taken"),
    [
        ([Field(PENDING, OWNED)], True),
        ([Field(PENDING, OWNED), NUMBER], True),
        ([Field(PENDING, ArrayOf(Struct((*ROWS, replace(NUMBER, tag=0, default=0)))))], True),
        ([], False),
        ([Field(PENDING, OWNED, nullable=True)], False),
        ([Field(PENDING, OWNED, tag=0, default=())], False),
        ([Field(PENDING, ArrayOf(INT32))], False),
        ([Field(PENDING, ArrayOf(Struct((*ROWS, NUMBER))))], False),
        ([Field(PENDING, ArrayOf(Struct(ROWS[::-1])))], False),
        ([Field(PENDING, ArrayOf(Struct((ROWS[0], replace(ROWS[1], nullable=True)))))], False),
    ],
)
def test_what_members_have_is_taken_in_the_layout_that_kernels_read_only(
    second: list[Field], is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another one the records are read one by one; a field beside the lists is none of theirs."""
    plain = next(RECORD_TYPES[8].layouts(0))
    for flexible in (plain.flexible, None):
        layout = replace(plain, fields=(Field(ASSIGNED, OWNED), *second), flexible=flexible)
        monkeypatch.setitem(RECORD_TYPES, 8, replace(RECORD_TYPES[8], values=(layout,)))
        assert (8 in newer_layouts.__wrapped__(MODERN, None)) is (is_taken and flexible is not None)


def test_memory_is_by_keys() -> None:
    """Rows and everything else stay, however often the same is written."""
    sizes = []
    for turns in (3, 60):
        log = LogBuilder()
        for turn in range(1, turns):
            log.add(*(record(number, "g", "m", turn % 3 + 1) for number in KINDS["consumer"] if number != 4))
        state = next(columnar.replay_logs([log.log], MODERN, note=lambda log: lambda seen: None)).state
        found = state.arrays.scan_state
        sizes.append([int(n) for n in (found.row_count, found.group_count, found.told, found.kept, found.arena_used)])
        assert state.arrays.scan_state.owned <= 3
    assert sizes[0] == sizes[1]


def test_names_of_all_records_are_told() -> None:
    """Also of those that gave way to later ones of their key."""
    log = LogBuilder()
    for choice in (1, 2, 2, 3, 1, 0):
        log.add(record(4, "g", "", choice))
    assert columnar_answer(log.log, MODERN)["topic_names"] == construct_answer(log.log, MODERN)["topic_names"]


def test_states_of_other_commands_take_none() -> None:
    assert not ColumnarState(MODERN).newer
