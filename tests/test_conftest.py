"""What `tests/conftest.py` says of tests by their places is true of tests that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import APART, FAST_RECORDINGS, FIRST, LAST, RECORDINGS, SLOW

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("place", [*APART, *FIRST, *LAST, *SLOW])
def test_a_place_is_that_of_tests(place: str) -> None:
    path, _, name = place.partition("::")
    assert (ROOT / path).exists()
    assert f"\ndef {name}" in (ROOT / path).read_text() if name else not (ROOT / path).is_dir() or path.endswith("/")


def test_recordings_that_are_fast_are_recordings() -> None:
    assert set(RECORDINGS) > FAST_RECORDINGS
