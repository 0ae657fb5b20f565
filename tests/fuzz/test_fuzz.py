"""A short run of the fuzzer, the same each time, and every input that once broke something."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.fuzz.cleaned import check_cleaned, hostile_logs
from tests.fuzz.data_directory import check_data_directory, hostile_directories
from tests.fuzz.mutation import RECORDINGS, check_segment, hostile_segments, recorded_segments, seeds_of
from tests.fuzz.requests import check_request, hostile_requests
from tests.repairing.repaired import check_repaired

KEPT = Path(__file__).parent / "crashers"
CRASHERS = sorted(KEPT.glob("*.log"))
NAMES = ("kafka-lifetime", "kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-4.3-cleaned")


@pytest.mark.parametrize("seed", range(4))
def test_hostile_segments_give_events_or_located_damage(seed: int) -> None:
    seeds = seeds_of(recorded_segments([RECORDINGS / f"{name}.tar.xz" for name in NAMES]))
    damaged = events = 0
    for data in islice(hostile_segments(seeds, seed), 500):
        found = check_segment(data)
        events, damaged = events + found[0], damaged + found[1]
    assert events > 500
    assert damaged > 100


@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.stem)
def test_inputs_that_once_broke_something_do_not_any_more(path: Path) -> None:
    check_segment(path.read_bytes())
    check_cleaned(path.read_bytes())


def test_hostile_data_directories_give_answers_or_problems() -> None:
    """And those that once broke something."""
    kept = [path.read_bytes() for path in sorted(KEPT.glob("*.json"))]
    found = [check_data_directory(data) for data in (*kept, *islice(hostile_directories(1), 40))]
    assert 0 < sum(told for _, told in found) < sum(asked for asked, _ in found)


def test_hostile_logs_are_cleaned_alike_on_all_paths() -> None:
    """And repaired: what is left is whole."""
    seeds = seeds_of(recorded_segments([RECORDINGS / f"{name}.tar.xz" for name in NAMES]))
    logs = [*islice(hostile_logs(seeds, 1), 60)]
    failed = sum(check_cleaned(data)[1] for data in logs)
    assert 10 < failed < 50
    assert sum(check_repaired(data)[0] for data in logs[:10]) > 20


def test_hostile_requests_are_answered_or_refused() -> None:
    """And those that once broke something."""
    kept = [path.read_bytes() for path in sorted(KEPT.glob("*.request"))]
    found = [check_request(data) for data in (*kept, *islice(hostile_requests(1), 1500))]
    assert sum(answered for answered, _ in found) > 300
    assert sum(refused for _, refused in found) > 300
