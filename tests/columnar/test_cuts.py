"""Where the parts of a log begin, and whether they fit; logs of several segments; more than there is room for."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate, combinations, pairwise, product

import pytest

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.replay import Replay, replay_logs
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.scan.reading import Cursor, ScanOrder, ScanPlace
from offsets_log.columnar.state import State
from offsets_log.events import EVERYTHING
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.replay.profile import MODERN, PROFILES, Profile
from tests.builders import LogBuilder, PartlySlow, record_bytes
from tests.columnar.engines import columnar_answer, construct_answer
from tests.columnar.test_equal_engines import CURRENT, STRINGS

BUILT = (
    LogBuilder().commit(1).commit(2, metadata="m" * 90).skip(7).commit(3, producer=7).end(7)
    .add(*[(b"\0\1\0\1g\0\1t" + bytes(4), None)] * 3, magic=1, compression="gzip").commit(4)
)  # fmt: skip
BATCHES = BUILT.batches
FIRST_OFFSETS = [0, 1, 9, 10, 11, 14]


def order_of(*segments: bytes) -> ScanOrder:
    log = PartitionLog(0, tuple(Segment(f"{i}.log", None, data) for i, data in enumerate(segments)))
    return ScanOrder(log, EVERYTHING, None)


def begins_of(batches: list[bytes], at: int = 0) -> list[int]:
    return [*accumulate(map(len, batches[:-1]), initial=at)]


@pytest.mark.parametrize("before", [b"", b"\xff", b"\xff" * 30, bytes(61), BATCHES[0][:-1]], ids=len)
@pytest.mark.parametrize("index", [0, 1])
def test_a_part_begins_with_the_first_batch_at_or_behind_its_cut(index: int, before: bytes) -> None:
    """Also behind what is no batch, in whatever order cuts are asked for."""
    places = list(zip(begins_of(BATCHES, len(before)), FIRST_OFFSETS, strict=True))
    segments = [b"other"] * index + [before + b"".join(BATCHES)]
    kept = order_of(*segments)
    for at in range(len(segments[-1]) - 1, 0, -11):
        expected = next(
            (Cursor(ScanPlace(index, place), first - 1, first) for place, first in places if place >= at), None
        )
        assert order_of(*segments).begin(ScanPlace(index, at)) == expected
        assert kept.begin(ScanPlace(index, at)) == expected


def test_the_first_part_begins_with_the_log() -> None:
    log = PartitionLog(0, (Segment("7.log", 7, b"no batch"),))
    start = ScanPlace(0, 0)
    assert ScanOrder(log, EVERYTHING, None).begin(start) == Cursor(start, -1, 7, entered=0)
    assert order_of(b"no batch").begin(start) == order_of().begin(start) == Cursor(start, -1, 0, entered=0)


def test_no_part_begins_where_the_first_offset_cannot_be_told() -> None:
    """A compressed message of magic 1 stands for the offsets in it; this one has its checksum, and is not gzip."""
    odd = bytearray(BATCHES[4])
    odd[-9] ^= 0xFF
    odd[12:16] = zlib.crc32(odd[16:]).to_bytes(4)
    data = BATCHES[0] + bytes(odd) + BATCHES[5]
    assert order_of(data).begin(ScanPlace(0, 1)) is None
    assert order_of(data).begin(ScanPlace(0, len(BATCHES[0]) + 1)) is not None


def test_a_part_fits_where_the_one_before_it_ended() -> None:
    order, second = order_of(b"".join(BATCHES)), ScanPlace(0, len(BATCHES[0]))
    before = Cursor(second, 0, 1)
    assert order.fits(before, second)
    assert not order.fits(before, None)
    assert not order.fits(before, ScanPlace(0, begins_of(BATCHES)[2]))
    assert not order.fits(replace(before, is_stopped=True), second)
    assert not order.fits(replace(before, last_offset=1), second), "offsets would not go up"
    nothing_there = ScanPlace(0, second.position + 1)
    assert not order.fits(replace(before, place=nothing_there), nothing_there)
    end = ScanPlace(0, len(b"".join(BATCHES)))
    assert not order.fits(replace(before, place=end), end)


def test_behind_a_bound_nothing_is_missing() -> None:
    order = ScanOrder(BUILT.log, EVERYTHING, None)
    reach = Cursor(order.end, 14, 15)
    assert len(list(order.note_end(reach, lambda seen: None))) == 1
    assert list(order.note_end(replace(reach, is_stopped=True), lambda seen: None)) == []
    assert list(order_of().note_end(reach, lambda seen: None)) == []


@pytest.mark.parametrize(
    ("sizes", "pieces", "cuts"),
    [
        ([100], 1, []),
        ([100], 4, [(0, 25), (0, 50), (0, 75)]),
        ([100, 100], 2, [(1, 0)]),
        ([105, 95], 2, [(1, 0)]),
        ([106, 94], 2, [(0, 100)]),
        ([95, 105], 2, [(1, 0)]),
        ([94, 106], 2, [(1, 6)]),
        ([98, 4, 98], 2, [(2, 0)]),
        ([98, 5, 97], 2, [(1, 0)]),
        ([4], 8, [(0, 1), (0, 2), (0, 3)]),
        ([100, 0], 2, [(0, 50)]),
        ([0], 3, []),
        ([], 3, []),
    ],
)
def test_cuts_are_a_piece_apart_or_where_a_segment_begins_nearby(
    sizes: list[int], pieces: int, cuts: list[tuple[int, int]]
) -> None:
    """Near is a twentieth of a piece."""
    log = PartitionLog(0, tuple(Segment(f"{i}.log", None, b"\1" * size) for i, size in enumerate(sizes)))
    found = Replay(log, MODERN, pieces=pieces).cuts
    assert [(cut.segment_index, cut.position) for cut in found] == [(0, 0), *cuts]


# ------------------------------------------------------------------------------------------ logs of several segments

BEHIND = {
    "nothing": b"",
    "zeros": bytes(70),
    "a torn batch": BATCHES[1][:-1],
    "junk": b"\xee" * 40,
}


def logs_of_segments(behind: bytes) -> Iterator[PartitionLog]:
    """The batches in every way in three segments, the first two with something behind them; named, or the last not."""
    for one, two in combinations(range(len(BATCHES) + 1), 2):
        runs = [[*zip(FIRST_OFFSETS, BATCHES, strict=True)][slice(*bounds)] for bounds in pairwise((0, one, two, 6))]
        segments: list[Segment] = []
        for number, run in enumerate(runs):
            base = run[0][0] if run else (0, FIRST_OFFSETS[one] if one < 6 else 15, 15)[number]
            data = b"".join(batch for _, batch in run) + (behind if number < 2 else b"")
            segments.append(Segment(f"{number}.log", None if number == 2 and one % 2 else base, data))
        yield PartitionLog(0, tuple(segments))


@pytest.mark.parametrize("behind", BEHIND)
def test_a_log_in_segments_says_the_same_however_it_is_cut(behind: str) -> None:
    for log in logs_of_segments(BEHIND[behind]):
        expected = construct_answer(log, MODERN)
        for pieces in (1, 2, 5):
            assert columnar_answer(log, MODERN, pieces=pieces) == expected


SHORT_RUNS: tuple[Callable[[LogBuilder, int], LogBuilder], ...] = (
    lambda log, run: log.commit(log.offset, topic=f"t{run}"),
    lambda log, run: log.commit(log.offset, topic=f"t{run}", producer=run),
    lambda log, run: log.commit(None, topic=f"t{run}"),
    lambda log, run: log.commit(None, topic=f"t{run}", producer=run),
    lambda log, run: log.end(run),
    lambda log, run: log.end(run, commit=False),
)


@pytest.mark.parametrize("every", [0, 1, 2, 3])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_short_run_of_one_key_and_producer_says_the_same_however_it_is_cut(profile: Profile, every: int) -> None:
    """All runs of three steps that begin with a value, side by side: step by step, so that cuts fall between them."""
    log = PartlySlow(every)
    for steps in zip(*product(SHORT_RUNS[:2], SHORT_RUNS, SHORT_RUNS), strict=True):
        for run, step in enumerate(steps):
            step(log, run)
    expected = construct_answer(log.log, profile)
    for pieces in (1, 2, 3):
        assert columnar_answer(log.log, profile, pieces=pieces) == expected


# ----------------------------------------------------------------------------------------------------------- growth


def state_of(log: LogBuilder) -> ColumnarState:
    return next(replay_logs([log.log], MODERN, note=lambda log: lambda seen: None)).state


@pytest.mark.parametrize(("keys", "room"), [(1, 4), (2, 8), (3, 8)])
def test_of_what_is_open_the_last_of_a_key_stays(keys: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for twice as many, and no more is taken however often they are committed."""
    monkeypatch.setattr(a, "LEAST_KEYS", 4)
    log = LogBuilder()
    for number in range(40):
        log.commit(number, partition=number % keys, producer=7)
    state = state_of(log)
    assert state.arrays.room()["opened"] == room
    assert state.arrays.scan_state.open_count <= room
    assert columnar_answer(log.log, MODERN) == construct_answer(log.log, MODERN)
    log.commit(3, producer=8).end(7)
    for number in range(40):
        log.commit(number, partition=number % 5, producer=8 + number % 2)
    log.end(8)
    for pieces in (1, 2, 3):
        assert columnar_answer(log.log, MODERN, pieces=pieces) == construct_answer(log.log, MODERN)


def test_only_what_is_half_full_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a, "LEAST_KEYS", 32)
    log = LogBuilder()
    for number in range(a.LEAST_KEYS + 1):
        log.commit(number, partition=number)
    state = state_of(log)
    grown = {name for name, room in state.arrays.room().items() if room > State(state.arrays.scan_state).room()[name]}
    assert (len(state.arrays.rows), len(state.arrays.groups)) == (2 * a.LEAST_KEYS, a.LEAST_KEYS)
    assert grown == {"more"}


@pytest.mark.parametrize("pieces", [1, 2])
def test_a_member_may_take_more_partitions_than_there_is_room_for(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``J-20``: each of them is its own."""
    monkeypatch.setattr(a, "LEAST_KEYS", 8)
    partitions = [*range(5 * a.LEAST_KEYS)]
    for last in (partitions[-1], len(partitions)):
        log = LogBuilder().newer(5, STRINGS, member_id="m").newer(5, STRINGS, member_id="n")
        for member_id, taken in (("m", partitions), ("n", [last])):
            assigned = [CURRENT["assigned_partitions"][0] | {"partitions": taken}]
            log.newer(8, CURRENT | {"assigned_partitions": assigned}, member_id=member_id)
        expected = construct_answer(log.log, MODERN)
        assert bool(expected["problems"]) is (last in partitions)
        assert columnar_answer(log.log, MODERN, pieces=pieces) == expected


NO_MEMBERS = {"protocol_type": "consumer", "generation": 1, "protocol": None, "leader": None, "members": []}


def log_of_many_names() -> PartitionLog:
    """Of everything that arrays have a row for more than 32, read by kernels and on the slow path."""
    log = LogBuilder()
    for turn in range(2):
        for number in range(40):
            group, producer = f"g{number % 30}", 100 + number
            log.commit(number, group=group, topic=f"t{number}", partition=turn, producer=producer)
            log.commit(None, group=group, topic=f"t{number - 1}", partition=turn, producer=producer)
            named = {"topic_id": bytes(14) + bytes([turn, number]), "topic_name": f"t{number}", "num_partitions": 1}
            log.newer(4, {"topics": [named | {"partition_metadata": []}]}, group="n0")
            log.commit(number, group="g0", topic="made again", topic_id=named["topic_id"])
            log.newer(3, {"epoch": turn + 1}, group=f"n{number}")
            log.newer(5, STRINGS, group=f"n{number}", member_id="m")
            taken = [CURRENT["assigned_partitions"][0] | {"partitions": [number, number + 40]}]
            log.newer(8, CURRENT | {"assigned_partitions": taken}, group=f"n{number}", member_id="m")
            key, value = record_bytes(2, {"group": f"s{number}"}, NO_MEMBERS, 0)
            log.add((key, value[:-4] + b"\xff" * 4))  # a list of members that is null
            if (number + turn) % 3:
                log.end(producer, commit=number % 2 == 0)
    return log.log


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_arrays_grow_while_records_are_read_and_pieces_joined(
    profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(a, "LEAST_KEYS", 4)
    log = log_of_many_names()
    expected = construct_answer(log, profile)
    for pieces in (1, 4):
        assert columnar_answer(log, profile, pieces=pieces) == expected


@pytest.mark.parametrize("count", [50, 1100])
def test_batches_of_any_size_decompressed(count: int) -> None:
    """One and a half megabytes, for which the window grows; more than it may ever hold."""
    key = {"group": "g", "topic": "t", "partition": 0}
    value = {"offset": 5, "metadata": "m" * 32000, "commit_timestamp": 1, "expire_timestamp": -1, "leader_epoch": 3}
    log = LogBuilder().commit(1).add(*[record_bytes(1, key, value, 3)] * count, compression="gzip").commit(2, group="h")
    assert columnar_answer(log.log, MODERN) == construct_answer(log.log, MODERN)
