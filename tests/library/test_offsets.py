"""Offsets as a table: the rows of `compact`, for everything that reads Arrow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import offsets_log as ol
from tests.broker.test_damaged import FOLDERS, HERE
from tests.cli.runs import run
from tests.conftest import NEVER, BulkFrom, log_directories, read_json_lines, unpack_once
from tests.library.answers import BULK_FIRST, as_told, told


@pytest.mark.parametrize(("name", "least_bytes"), BULK_FIRST)
def test_rows_are_those_of_the_command(
    name: str, least_bytes: int, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    bulk_from(least_bytes)
    for log in log_directories(recording(name))[:1]:
        with ol.open(log) as copy:
            assert as_told(copy.offsets()) == told("compact", log)
            assert as_told(copy.offsets(topic="*o*", orphans=True, unstable=True)) == told(
                "compact", log, "-t", "*o*", "--orphans", "--unstable"
            )


def test_moments_are_timestamps_and_numbers_stay_numbers(recording: Callable[[str], Path]) -> None:
    with ol.open(recording("kafka-4.3-mixed") / "log") as copy:
        offsets = copy.offsets()
        table = offsets.to_arrow()
        assert table.schema.field("commit_timestamp").type == pa.timestamp("ms", "UTC")
        assert table["commit_timestamp"].cast(pa.int64()).equals(table["commit_timestamp_ms"])
        frame = offsets.to_pandas()
        assert "float" not in {str(kind) for kind in frame.dtypes}
        assert duckdb.sql("select count(*) from offsets").fetchall() == [(len(table),)]


def test_an_answer_says_what_is_to_be_known_of_it(recording: Callable[[str], Path]) -> None:
    with ol.open(recording("kafka-4.3-mixed") / "log") as copy:
        offsets = copy.offsets(group="metrics-*")
        assert offsets.notes == ["42 offsets of 4 groups, 4 partitions"]
        assert offsets.is_complete
        before = copy.at("2026-11-20T00:00Z").offsets()
        assert before.rows() == []
        assert any("before the logs begin" in words for words in before.notes)


def test_moments_are_those_of_the_command_line(recording: Callable[[str], Path]) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    with ol.open(log) as copy:
        for moment in ("end-30s", "05:37", "2026-11-21 05:37"):
            expected = told("compact", log, "--until-time", moment)
            assert as_told(copy.at(moment).offsets()) == expected
            with ol.open(log, until=moment) as bounded:
                assert as_told(bounded.offsets()) == expected
        assert copy.at(datetime(2026, 11, 21, 5, 37, tzinfo=UTC)).offsets().rows() == copy.at("05:37").offsets().rows()
        with pytest.raises(ValueError, match="no time"):
            copy.at("soon")


def test_what_is_wrong_is_an_error_that_a_program_can_catch(tmp_path: Path) -> None:
    with ol.open(tmp_path / "none") as copy, pytest.raises(ol.OffsetsLogError, match="none"):
        copy.offsets().to_arrow()
    with pytest.raises(ValueError, match="path"):
        ol.open()
    for moment in (1.5, None, "soon"):
        with pytest.raises(ValueError, match="no time"):
            ol.open(tmp_path).at(moment)  # type: ignore[arg-type]
    with ol.open(tmp_path) as copy:
        offsets = copy.at("end-1h").offsets()
    with pytest.raises(ol.OffsetsLogError, match="closed"):
        offsets.to_arrow()


@pytest.mark.parametrize(("name", "least_bytes"), [*zip(FOLDERS[::4], (0, NEVER, 0), strict=True)])
def test_doubtful_offsets_are_those_of_a_rescue(
    name: str,
    least_bytes: int,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
    bulk_from: BulkFrom,
) -> None:
    bulk_from(least_bytes)
    folder = unpack_once(HERE / "damaged.tar.xz", tmp_path_factory, request) / name
    to = tmp_path / "rescued"
    run("rescue", folder, "--to", to)
    file = to / "doubtful.jsonl"
    expected = read_json_lines(file) if file.exists() else []
    with ol.open(folder) as copy:
        rows = copy.offsets().rows()
    why = "a later record, up to offset {}, may be lost"
    key = ("group", "topic", "partition")
    assert [(*map(row.get, key), why.format(row["missing_until"])) for row in expected] == [
        (*map(row.get, key), row["doubtful"]) for row in rows if row["doubtful"]
    ]
