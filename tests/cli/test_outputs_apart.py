"""Nothing is written where a broker would meet it: into a partition's directory, or the data directory around it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.runs import run

DATA = "samples/kafka-4.3-data-directory"
COMMANDS = {
    "rescue": ("rescue", "--to"),
    "compact": ("compact", "-o", "csv", "--to"),
    "decode": ("decode", "-o", "parquet", "--to"),
    "report": ("report", "--to"),
    "quarantine": ("compact", "--quarantine"),
}


@pytest.mark.parametrize("place", ["__consumer_offsets-0/new", "new"])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_output_inside_of_a_data_directory(name: str, place: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(DATA, data)
    before = sorted(data.rglob("*"))
    command, *words = COMMANDS[name]
    result = run(command, data, *words, data / place)
    assert result.exit_code == 1
    assert "which is an input: write elsewhere" in result.stderr
    assert sorted(data.rglob("*")) == before


def test_no_folder_inside_of_a_folder_that_is_read(tmp_path: Path) -> None:
    shutil.copytree("samples/kafka-4.3-mixed/log", tmp_path / "copy")
    result = run("rescue", tmp_path / "copy", "--to", tmp_path / "copy" / "rescued")
    assert result.exit_code == 1
    assert "which is an input: write elsewhere" in result.stderr
