"""What is there as a table: the rows of `info` and `info --card`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import offsets_log as ol
from offsets_log.data_directory.transactions import OUTCOME_COLUMNS
from tests.conftest import BulkFrom, log_directories
from tests.data_directories.copies import Recorded, data_directories, recorded
from tests.library.answers import PLAIN_FIRST, Row, as_told, told

__all__ = ["recorded"]

OUTCOME = [column.name for column in OUTCOME_COLUMNS]


def transactions(cells: list[Row]) -> list[Row]:
    """Open transactions in the form of JSON, which has nothing of their outcomes where nothing tells it."""
    return [{name: cell[name] for name in cell if cell["outcome"] is not None or name not in OUTCOME} for cell in cells]


@pytest.mark.parametrize(("name", "least_bytes"), PLAIN_FIRST)
def test_rows_are_those_of_the_command(
    name: str, least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    bulk_from(least_bytes)
    for log in log_directories(recording(name))[:1]:
        with ol.open(log) as copy:
            assert as_told(copy.info(), open_transactions=transactions) == told("info", log)
            assert as_told(copy.cards()) == told("info", log, "--card")


def test_cards_and_outcomes_are_told(recorded: Recorded) -> None:
    paths = data_directories(recorded("kafka-4.3-one"), "stopped")
    with ol.open(*paths) as copy:
        cards, info = copy.cards(), copy.info(now_ms=1_800_000_000_000)
        assert as_told(cards) == told("info", paths[0], *map(str, paths[1:]), "--card")
        assert [row["left"] for row in cards.rows()] == ["stopped in order"] * len(paths)
        assert isinstance(cards.rows()[0]["newest_timestamp_ms"], dict)
        told_rows = told("info", paths[0], *map(str, paths[1:]), "--now", "1800000000000")
        assert as_told(info, open_transactions=transactions) == told_rows
        assert any(one["outcome"] == "hanging" for row in info.rows() for one in row["open_transactions"])


def test_counts_are_maps(recording: Callable[[str], Path]) -> None:
    with ol.open(recording("kafka-4.3-mixed") / "log") as copy:
        info = copy.info()
        assert pa.types.is_map(info.schema.field("record_names").type)
        assert info.rows()[0]["record_names"]["OffsetCommit"] == 94
