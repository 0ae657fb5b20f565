"""Logs that grow step by step, streamed with deaths at random: the tables are what `compact` and `groups` say."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.streams import Stream, answer, grow, replayed, table

CASES = [
    ("kafka-4.3-mixed", "modern", 1),
    ("kafka-lifetime", "modern", 2),
    ("kafka-3.9-classic", "classic", 3),
    ("kafka-4.3-modern-groups", "modern", 4),
    ("random-java", "modern-3.7", 5),
]


@pytest.mark.parametrize(("name", "profile", "seed"), CASES)
def test_tables_are_those_of_a_replay(
    recording: Callable[[str], Path], tmp_path: Path, name: str, profile: str, seed: int
) -> None:
    rng = random.Random(seed)
    data, to = tmp_path / "data", tmp_path / "to"
    stream = None
    for _ in grow(recording(name) / "log", data, rng, steps=8, rolls=3):
        if stream is None:
            stream = Stream(str(to), rng, paths=str(data), profile=profile)
        stream.step(rng.choice((None, 1, 3000)))
    assert stream is not None
    while stream.step():
        pass
    for kind, command, changes in (("offsets", "compact", "offset_changes"), ("groups", "groups", "group_changes")):
        expected = answer(command, data, profile)
        assert table(to, kind) == expected
        assert replayed(to, changes) == expected
