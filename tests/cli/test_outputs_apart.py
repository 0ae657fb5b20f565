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


@pytest.mark.parametrize(("words", "is_told"), [(("--to", "x.csv"), True), (("-o", "csv", "--to", "x.csv"), False)])
def test_a_name_that_promises_another_format(
    words: tuple[str, ...], is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Path("samples/kafka-4.3-mixed/log").resolve()
    monkeypatch.chdir(tmp_path)
    result = run("compact", log, *words)
    assert ("x.csv holds JSON all the same, for no -o csv was given" in result.stderr) is is_told
    assert (tmp_path / "x.csv").exists()
