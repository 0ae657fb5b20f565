"""What `tests/conftest.py` says of tests by their places is true of tests that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from offsets_log.columnar.jit.sources import place_of
from offsets_log.columnar.warm import kernels
from tests.conftest import APART, FAST_RECORDINGS, FIRST, LAST, RECORDINGS, SLOW
from tests.kernels import NOT_IN_MODES

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("place", [*APART, *FIRST, *LAST, *SLOW])
def test_a_place_is_that_of_tests(place: str) -> None:
    path, _, name = place.partition("::")
    assert (ROOT / path).exists()
    assert f"\ndef {name}" in (ROOT / path).read_text() if name else not (ROOT / path).is_dir() or path.endswith("/")


@pytest.mark.parametrize("place", NOT_IN_MODES)
def test_kernels_that_no_test_of_modes_runs_are_kernels(place: str) -> None:
    assert any(place_of(of.function).startswith(place) for of in kernels())


def test_recordings_that_are_fast_are_recordings() -> None:
    assert set(RECORDINGS) > FAST_RECORDINGS
