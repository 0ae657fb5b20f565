"""How logs are shared out among threads, in which order they are replayed and told, and what ends when nobody waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from offsets_log.columnar.folds import replay as columnar
from offsets_log.columnar.folds.replay import Replay, Replayed, replay_logs
from offsets_log.columnar.scan.reading import Threads
from offsets_log.events import Until
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.replay.profile import MODERN
from tests.builders import LogBuilder

LEAST = 100
SMALL = LogBuilder().commit(1)


def log_of(number: int, size_bytes: int) -> PartitionLog:
    """A log of so many bytes that are no batch."""
    return PartitionLog(number, (Segment(f"{number}.log", None, b"\1" * size_bytes),))


class Noting:
    """Makes replays, and keeps them with what they were asked for."""

    def __init__(self) -> None:
        self.made: list[Replay] = []
        self.pieces: list[int] = []
        self.how: list[dict[str, Any]] = []

    def __call__(self, log: PartitionLog, profile: Any, *, pieces: int, **how: Any) -> Replay:
        self.made.append(Replay(log, profile, pieces=pieces, **how))
        self.pieces.append(pieces)
        self.how.append(how)
        return self.made[-1]


def numbers_of(replayed: Any) -> list[int]:
    return [one.log.offsets_partition for one in replayed]


@pytest.mark.parametrize(
    ("threads", "sizes", "pieces"),
    [
        (Threads(4), [4 * LEAST], [4]),
        (Threads(4), [4 * LEAST - 1], [3]),
        (Threads(4), [40 * LEAST], [4]),
        (Threads(1), [40 * LEAST], [1]),
        (Threads(4), [LEAST - 1], [1]),
        (Threads(4), [2 * LEAST, 6 * LEAST], [1, 3]),
        (Threads(4), [3 * LEAST, 5 * LEAST], [2, 2]),
        (Threads(4), [60 * LEAST, LEAST, 0], [4, 1, 1]),
        (Threads(2, pieces=5), [LEAST, 90], [5, 5]),
        (Threads(2, pieces=1), [9 * LEAST], [1]),
        (Threads(3), [0], [1]),
        (Threads(3), [], []),
    ],
)
def test_a_log_has_pieces_by_its_share_of_all_bytes_and_none_is_short(
    threads: Threads, sizes: list[int], pieces: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columnar, "LEAST_PIECE", LEAST)
    noting = Noting()
    logs = [log_of(number, size) for number, size in enumerate(sizes)]
    found = replay_logs(logs, MODERN, note=lambda log: lambda seen: None, threads=threads, replay=noting)
    assert numbers_of(found) == [*range(len(sizes))]
    assert noting.pieces == pieces


@pytest.mark.parametrize(
    ("threads", "begun"),
    [
        (Threads(1, pieces=1), [2, 3, 4, 5, 6, 6, 6]),
        (Threads(2, pieces=1), [3, 4, 5, 6, 6, 6, 6]),
        (Threads(2, pieces=2), [2, 3, 4, 5, 6, 6, 6]),
        (Threads(2, pieces=3), [1, 2, 3, 4, 5, 6, 6]),
    ],
)
def test_the_work_begins_at_once_with_as_many_logs_as_keep_all_threads_busy(threads: Threads, begun: list[int]) -> None:
    """Whenever one is told the next ones begin."""
    noting, log = Noting(), SMALL.commit(2).commit(3).log
    logs = [PartitionLog(number, log.segments) for number in range(6)]
    found = replay_logs(logs, MODERN, note=lambda log: lambda seen: None, threads=threads, replay=noting)
    counts = [len(noting.made)]
    for number, one in enumerate(found):
        assert one.log.offsets_partition == number
        counts.append(len(noting.made))
    assert counts == begun


def is_ended(noting: Noting) -> list[bool]:
    return [one.order.is_cancelled.is_set() for one in noting.made]


def test_what_nobody_waits_for_any_more_is_ended() -> None:
    """One that is told is at its end, too."""
    noting = Noting()
    logs = [PartitionLog(number, SMALL.log.segments) for number in range(6)]
    threads = Threads(2, pieces=1)
    found = replay_logs(logs, MODERN, note=lambda log: lambda seen: None, threads=threads, replay=noting)
    first = next(found)
    assert isinstance(first, Replayed)
    assert is_ended(noting) == [True, False, False, False]
    found.close()  # type: ignore[attr-defined]
    assert is_ended(noting) == [True] * 4


@pytest.mark.parametrize("failing", [0, 2])
def test_an_error_where_damage_is_told_ends_all(failing: int) -> None:
    noting, told = Noting(), []

    def note_of(log: PartitionLog) -> Callable[[Any], None]:
        def note(seen: Any) -> None:
            told.append(log.offsets_partition)
            if log.offsets_partition == failing:
                raise RuntimeError("enough")

        return note

    logs = [log_of(number, 30) for number in range(6)]
    found = replay_logs(logs, MODERN, note=note_of, threads=Threads(1, pieces=1), replay=noting)
    with pytest.raises(RuntimeError, match="enough"):
        list(found)
    assert set(told) == {*range(failing + 1)}
    assert all(is_ended(noting))
    assert len(noting.made) == failing + 2


def test_each_log_has_its_own_bound_and_all_have_one_release() -> None:
    noting = Noting()
    logs = [PartitionLog(number, SMALL.log.segments) for number in range(3)]
    bounds = [Until(record_offset=number) for number in range(3)]
    found = replay_logs(
        logs,
        MODERN,
        note=lambda log: lambda seen: None,
        until=lambda log: bounds[log.offsets_partition],
        release=(3, 7),
        replay=noting,
    )
    assert [one.state.until for one in found] == bounds
    assert [how["until"] for how in noting.how] == bounds
    for one in noting.made:
        state = one.new_state()
        assert (state.release, state.profile, state.until) == ((3, 7), MODERN, one.order.until)
        assert state.newer
        assert not one.new_state(with_newer=False).newer


def test_all_bytes_are_told_to_who_asks_how_far_it_is() -> None:
    """But those of a piece that is read again, for they were told before."""
    log = LogBuilder().commit(1, metadata="m" * 600).commit(2).commit(3, metadata="m" * 600).commit(4)
    for pieces in (1, 2, 3):
        advanced: list[int] = []
        threads = Threads(2, pieces=pieces, advance=advanced.append)
        for _ in replay_logs([log.log], MODERN, note=lambda log: lambda seen: None, threads=threads):
            pass
        assert sum(advanced) == sum(map(len, log.batches))
