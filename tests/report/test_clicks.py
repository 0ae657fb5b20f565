"""The page as somebody uses it, in Chromium: what stands first, search, sort, choose a group, CSV, a narrow window."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import LogBuilder, member
from tests.investigate.test_groups import folder_of
from tests.replay.test_compact_recordings import Recording, answered
from tests.report.browser import Tab
from tests.report.test_report import made, rows
from tests.waiting import wait_for

DIRECTORY = Path(__file__).parents[2] / "samples" / "kafka-4.3-data-directory"
NAMES = "#groups tbody td:first-child"


@pytest.fixture
def mixed(recording: Recording, tmp_path: Path) -> Path:
    page = tmp_path / "mixed.html"
    made(recording("kafka-4.3-mixed") / "log", page)
    return page


@pytest.fixture
def tab(mixed: Path) -> Iterator[Tab]:
    with Tab(mixed) as tab:
        yield tab


def test_a_group_is_searched_for_and_chosen_and_all_its_offsets_are_there(
    tab: Tab, recording: Recording, tmp_path: Path
) -> None:
    tab.type("#groups input[type=search]", "METRICS-range")
    assert tab.texts(NAMES) == ["metrics-range-31"]
    tab.click("#groups tbody tr", "metrics-range-31")
    assert tab.run("document.getElementById('chosen').dataset.group") == "metrics-range-31"
    assert tab.run("location.hash") == "#group=metrics-range-31"
    tab.downloads_to(tmp_path)
    tab.click("#chosen button", "CSV")
    file = tmp_path / "offsets.csv"
    wait_for("the file that the browser writes", file.exists)
    found = list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))
    answer = json.loads((recording("kafka-4.3-mixed") / "answers" / "restart.json").read_text())
    assert {(row["topic"], int(row["partition"])): int(row["committed_offset"]) for row in found} == {
        key[1:3]: key[3] for key in answered(answer) if key[0] == "metrics-range-31"
    }


def test_a_column_sorts_both_ways_and_pages_turn(tab: Tab) -> None:
    tab.click("#writers th button", "records")
    assert tab.texts("#writers th[aria-sort=descending]") == ["records"]
    most = tab.texts("#writers tbody td:nth-child(6)")
    tab.click("#writers th button", "records")
    least = tab.texts("#writers tbody td:nth-child(6)")
    as_numbers = [[int(text.replace(",", "")) for text in column] for column in (most, least)]
    assert as_numbers == [sorted(as_numbers[0], reverse=True), sorted(as_numbers[1])]
    assert as_numbers[0][0] > as_numbers[1][0]
    before = tab.texts(NAMES)
    tab.click("#groups button", "more")
    assert len(before) == 20
    assert not {*before} & {*tab.texts(NAMES)}


def test_deleted_groups_and_ages_of_transactions_are_there(tab: Tab) -> None:
    tab.type("#groups input[type=search]", "deleted")
    states = dict(zip(tab.texts(NAMES), tab.texts("#groups tbody td:nth-child(2)"), strict=True))
    assert states["deleted-metrics"] == "deleted"
    assert tab.texts("#transactions thead th")[:3] == ["groups", "first commit", "age"]
    assert all(text.endswith(("s", "min")) for text in tab.texts("#transactions tbody td:nth-child(3)"))


def test_a_whole_data_directory_tells_its_broker_first_and_the_lag_of_each_offset(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    document = made(DIRECTORY, page)
    with Tab(page) as tab:
        (whose,), (when,), (trust,) = (tab.texts(f"#{name}") for name in ("whose", "when", "trust"))
        assert whose == "Of broker 1 of cluster MkU3OEVBNTcwNTJENDM2Qk."
        assert when.startswith("Records from 2026-11-22 16:41:09Z to 2026-11-22 16:41:29Z: 19.771s. The last one is ")
        assert trust == "Everything was read. No damage was found."
        tab.click("#groups tbody tr", "g-behind")
        lags = [int(text) for text in tab.texts("#chosen tbody td:nth-child(4)")]
    of_group = {row["group"]: row["lag"] for row in rows(document, "groups")}
    assert sum(lags) == of_group["g-behind"] > 0


def test_damage_stands_first_in_red_with_its_place(recording: Recording, tmp_path: Path) -> None:
    log = tmp_path / "log"
    shutil.copytree(recording("kafka-4.3-mixed") / "log", log)
    file = log / "__consumer_offsets-3" / f"{0:020}.log"
    file.write_bytes(file.read_bytes()[:9000] + bytes([255] * 40) + file.read_bytes()[9040:])
    page = tmp_path / "page.html"
    made(log, page, status=3)
    with Tab(page, height=500) as tab:
        assert tab.texts("#trust.damage")[0].startswith("A part of the log is damaged or missing.")
        assert tab.run("document.getElementById('trust').getBoundingClientRect().bottom") < 250
        assert "position 8,624" in " ".join(tab.texts("#problems li"))
        assert tab.texts("#problems li .severity")[0] == "damage"


def flattened() -> LogBuilder:
    """A group whose offsets rise slowly, but for one; a second in which many more commits come than in others."""
    log = LogBuilder().group(member("m"))
    for i in range(60):
        log.commit(1000 + 10 * i)
    return log.commit(10**12).commit(1700)


@pytest.mark.parametrize("width", [420, 1200])
def test_one_value_that_is_far_off_does_not_flatten_the_plot(width: int, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    made(folder_of(flattened(), tmp_path / "log"), page)
    heights = """(() => { const box = document.querySelector('#chosen svg').getBoundingClientRect();
        const dots = [...document.querySelectorAll('#chosen svg path.line')].map(e => e.getBBox().height);
        return [box.width, Math.max(...dots), document.querySelectorAll('#chosen .beyond').length]; })()"""
    with Tab(page, width=width) as tab:
        across, high, beyond = tab.run(heights)
        assert (high > 150, beyond > 0) == (True, True)
        assert tab.run("document.documentElement.scrollWidth") <= width, "nothing is wider than the window"
        assert across <= width
        tick: dict[str, Any] = tab.run("""(() => { const text = document.querySelector('#chosen svg text');
            return {size: text.getBoundingClientRect().height, said: text.textContent}; })()""")
        assert tick["size"] > 9, "letters in plots can be read in any window"
        assert tick["said"] == "1,000"
        tab.click("#chosen label", "all values")
        assert tab.run(heights)[2] == 0
