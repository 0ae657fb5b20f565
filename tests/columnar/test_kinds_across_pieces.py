"""A group whose records are of one kind in a piece and of another in the next is what one piece makes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from offsets_log.replay.profile import MODERN
from tests.builders import LogBuilder
from tests.columnar.engines import columnar_answer, construct_answer

EPOCHS: dict[str, Callable[[LogBuilder], LogBuilder]] = {
    "consumer": lambda log: log.newer(3, {"epoch": 2, "metadata_hash": 0}),
    "share": lambda log: log.newer(11, {"epoch": 2, "metadata_hash": 0}),
    "streams": lambda log: log.newer(
        17, {"epoch": 2, "metadata_hash": 0, "validated_topology_epoch": 0, "last_assignment_configs": []}
    ),
    "classic": lambda log: log.group(),
}


@pytest.mark.parametrize("later", EPOCHS)
@pytest.mark.parametrize("earlier", EPOCHS)
@pytest.mark.parametrize(("pieces", "times"), [(2, 1), (2, 2), (3, 1)])
def test_kinds_across_pieces(earlier: str, later: str, pieces: int, times: int) -> None:
    """``J-19`` and ``J-22`` act across the cut as they do within a piece, on each record of a key."""
    log = LogBuilder()
    EPOCHS[earlier](log)
    for offset in range(4):
        log.commit(offset, group="other", partition=offset)
    for _ in range(times):
        EPOCHS[later](log)
    expected = construct_answer(log.log, MODERN)
    assert columnar_answer(log.log, MODERN, pieces=pieces) == expected
    is_refused = later not in ("classic", earlier)
    assert [problem.rule for problem in expected["problems"]] == (["J-19"] * times if is_refused else [])
