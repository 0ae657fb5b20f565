"""``translate`` of topics some of whose records are in other partitions of the target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_translate import RECORDS, left_out, run, told, write_log, write_source
from tests.translation.logs import Said

Partitions = list[list[Said]]


def few(of: Partitions) -> None:
    """Move three of a hundred."""
    for at in (5, 55, 80):
        of[1].append(of[0].pop(at))


def behind_the_last(of: Partitions) -> None:
    """Move only what comes behind all that both partitions still have."""
    of[1] += [of[0].pop() for _ in range(4)]


def where_nobody_reads(of: Partitions) -> None:
    """Move to a partition of which no offset is asked for."""
    of[2].insert(7, of[0].pop(50))


@pytest.mark.parametrize("move", [few, behind_the_last, where_nobody_reads])
def test_nothing_is_told_of_a_topic_with_moved_records(tmp_path: Path, move: Callable[[Partitions], None]) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42, ("g", "orders", 1): 3, ("g", "others", 0): 9})
    of = [[Said(one.time_ms, one.key, b"%d %b" % (number, one.value or b"")) for one in RECORDS] for number in range(3)]
    for number, records in enumerate(of):
        write_log(source / f"orders-{number}", records)
        write_log(source / f"others-{number}", records)
        write_log(tmp_path / "target" / f"others-{number}", records)
    move(of)
    for number, records in enumerate(of):
        write_log(tmp_path / "target" / f"orders-{number}", records)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert result.exit_code == 3
    assert told(rows) == {"g": ("others", 9, "exact", 0)}
    assert [("again" in why) for _, why in left_out(tmp_path)] == [True, True]
