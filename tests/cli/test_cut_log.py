"""What a broker serves of a log that was cut off: said beside how much of it is gone, and with the reason."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

from tests.cli.test_missing_log import MIXED, Recording, active_cut, run, segment
from tests.conftest import json_lines


def test_what_a_cut_log_serves_is_not_called_all(recording: Recording, tmp_path: Path) -> None:
    """Beside it stands how much of the log is gone; and why nothing at all is served after a clean stop."""
    shutil.copytree(recording(MIXED) / "log", tmp_path / "data")
    whole = run("check", tmp_path / "data", "-p", "3", "-o", "table").stdout
    assert "of what is left" not in whole
    active_cut(tmp_path / "data")
    table = run("check", tmp_path / "data", "-p", "3", "--loads-on", "4.3.0", "-o", "table").stdout
    (row,) = (line for line in table.splitlines() if "of what is left" in line)
    assert row.split()[-2:] == ["123", "34"]
    index = struct.pack(">ii", 150, 24_000)
    (tmp_path / "data" / segment(3, 0)).with_suffix(".index").write_bytes(index)
    clean = ("-p", "3", "--shutdown", "clean")
    checked = run("check", tmp_path / "data", *clean, "--loads-on", "4.3.0")
    (load, *_) = json_lines(checked.stdout)
    assert (load["ok"], load["served"], load["log_end_offset"]) == (True, "nothing", 0)
    told = "names offset 150, which the segment does not reach"
    assert told in load["problem"]
    assert told in checked.stderr
    answered = run("compact", tmp_path / "data", *clean, "--as-broker").stderr
    assert "a broker of Kafka 4 would serve nothing from offset 0 on: the index of " in answered
