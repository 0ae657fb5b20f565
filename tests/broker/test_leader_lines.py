"""Truncation by leader epochs, against replicas that really elect, fetch, truncate, and clean."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import permutations

import pytest

from offsets_log.broker.leader_lines import NOTHING, EpochEntry, Line, Truncation, line_of, truncation
from tests.sizes import so_many


def line(*entries: tuple[int, int, int]) -> Line:
    return [EpochEntry(*entry) for entry in entries]


@pytest.mark.parametrize(
    ("copy", "leader", "found"),
    [
        (line((3, 0, 9)), line((3, 0, 5), (5, 6, 8)), Truncation(6, 3, 5)),
        (line((3, 0, 5)), line((3, 0, 5), (5, 6, 8)), None),
        (line((3, 0, 9)), line((3, 0, 9), (5, 10, NOTHING)), None),
        (line((3, 0, 10)), line((3, 0, 9), (5, 10, NOTHING)), Truncation(10, 3, 5)),
        (line((3, 0, 5), (4, 6, 9)), line((3, 0, 7), (5, 8, 8)), Truncation(6, 4, 3)),
        (line((3, 0, 9)), line((3, 0, 5), (3, 6, 8)), None),
        (line((3, 0, 5), (5, 6, 8)), line((3, 0, 9)), None),
        (line((3, 0, 9)), line((5, 0, 9)), Truncation(0, 3, 5)),
        (line((3, 0, 0), (4, 1, NOTHING)), line((3, 0, 5), (5, 6, NOTHING)), None),
        (line((3, 2, 9)), line((4, 0, NOTHING), (5, 3, 9)), Truncation(2, 3, 4)),
        (line((3, 0, 5), (4, 6, 9), (5, 10, 11)), line((3, 0, 7), (5, 8, 12)), None),
        ([], line((5, 0, 9)), None),
        (line((5, 0, 9)), [], None),
    ],
)
def test_truncation(copy: Line, leader: Line, found: Truncation | None) -> None:
    assert truncation(copy, leader) == found


@pytest.mark.parametrize(
    ("runs", "noted", "end", "expected"),
    [
        ([(3, 0, 4), (3, 5, 6), (5, 7, 9)], {}, 10, [(3, 0, 6), (5, 7, 9)]),
        ([(3, 0, 4), (7, 5, 5), (3, 6, 9)], {}, 10, [(3, 0, 9)]),
        ([(-1, 0, 4), (2, 5, 9)], {}, 10, [(2, 5, 9)]),
        ([(2, 0, 4), (-1, 5, 9)], {}, 10, []),
        ([(3, 2, 4), (5, 7, 9)], {3: 0, 4: 5, 5: 6, 6: 10, 7: 11}, 10, [(3, 0, 4), (4, 5, -1), (5, 6, 9), (6, 10, -1)]),
        ([(3, 2, 4), (5, 7, 9)], {5: 8}, 10, [(3, 2, 4), (5, 7, 9)]),
        ([(3, 2, 4), (5, 7, 9)], {5: 1}, 10, [(3, 2, 4), (5, 7, 9)]),
        ([], {}, 0, []),
    ],
)
def test_epochs_of_a_log(
    runs: list[tuple[int, int, int]], noted: dict[int, int], end: int, expected: list[tuple[int, int, int]]
) -> None:
    assert line_of([EpochEntry(*run) for run in runs], noted, end) == line(*expected)


@dataclass
class Replica:
    """Batches of one record each as (offset, epoch, what was written), and the checkpoint of its epochs."""

    batches: list[tuple[int, int, int]] = field(default_factory=list)
    noted: dict[int, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.batches[-1][0] + 1 if self.batches else 0

    def append(self, batch: tuple[int, int, int]) -> None:
        self.noted.setdefault(batch[1], batch[0])
        self.batches.append(batch)

    def truncate(self, end: int) -> None:
        self.batches = [batch for batch in self.batches if batch[0] < end]
        self.noted = {epoch: start for epoch, start in self.noted.items() if start < end}

    def follow(self, leader: Replica, most: int) -> None:
        """Truncate to where both are the same, and fetch some batches."""
        same = [one == other for one, other in zip(self.batches, leader.batches, strict=False)]
        self.truncate(same.index(False) if False in same else min(self.end, leader.end))
        for batch in leader.batches[self.end : self.end + most]:
            self.append(batch)

    def line(self, chance: random.Random, *, cleaned: float, with_checkpoint: bool) -> Line:
        """The epochs of what a cleaner leaves; the last batch stays."""
        left = [batch for batch in self.batches[:-1] if chance.random() >= cleaned] + self.batches[-1:]
        runs = [EpochEntry(epoch, offset, offset) for offset, epoch, _ in left]
        return line_of(runs, self.noted if with_checkpoint else {}, self.end)


def replicas_of(chance: random.Random) -> list[Replica]:
    """Three replicas behind some elections, each of any replica."""
    replicas = [Replica() for _ in range(3)]
    written = 0
    for epoch in range(chance.randint(1, 6)):
        leader, *others = chance.sample(replicas, 3)
        leader.noted.setdefault(epoch, leader.end)
        for _ in range(chance.randint(0, 6)):
            leader.append((leader.end, epoch, written := written + 1))
            if chance.random() < 0.5:
                chance.choice(others).follow(leader, chance.randint(0, 3))
    return replicas


@pytest.mark.parametrize("cleaned", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("checkpoint", ["with a checkpoint", "without"])
def test_truncation_is_where_replicas_diverge(cleaned: float, checkpoint: str) -> None:
    """Whole logs tell it exactly; what cleaners left tells none that is not, nor too much of one."""
    told = 0
    for seed in range(so_many(400)):
        chance = random.Random(seed)
        lines = [
            (one, one.line(chance, cleaned=cleaned, with_checkpoint=checkpoint != "without"))
            for one in replicas_of(chance)
        ]
        for (one, own), (other, theirs) in permutations(lines, 2):
            same = [mine == its for mine, its in zip(one.batches, other.batches, strict=False)]
            found = truncation(own, theirs)
            if False not in same:  # where nothing diverges, the other one led and wrote nothing yet
                assert found is None or (checkpoint != "without" and found.offset >= other.end)
                continue
            at, is_older = same.index(False), own[-1].epoch < theirs[-1].epoch
            told += found is not None
            assert found is None or (is_older and found.offset >= at)
            if not cleaned:
                assert (None if found is None else found.offset) == (at if is_older else None)
    assert told > so_many(400) // 20
