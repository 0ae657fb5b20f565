"""Files that hold nothing of a log, or hardly anything: what is one all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runs import SAMPLE, run


@pytest.mark.parametrize("content", [bytes(range(256)) * 20, bytes(4096)], ids=["noise", "zeros"])
@pytest.mark.parametrize("name", ["00000000000000000000.log", "__consumer_offsets-7/00000000000000000000.log"])
def test_a_segment_by_its_name_is_damaged_whatever_it_holds(name: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    assert run("info", str(file)).exit_code in (0, 3)
    assert run("info", str(file)).stdout


def test_a_log_with_a_broken_begin_is_a_log(tmp_path: Path) -> None:
    segment = (Path(SAMPLE) / "__consumer_offsets-1" / ("0" * 20 + ".log")).read_bytes()
    file = tmp_path / "lone.dat"
    file.write_bytes(b"\xff" * 100 + segment[100:])
    assert run("compact", str(file)).exit_code == 3
