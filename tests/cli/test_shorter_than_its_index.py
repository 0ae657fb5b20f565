"""A last segment that its own indexes say was longer, where nothing else beside it tells that."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.segment import iter_batches
from tests.cli.test_missing_log import CLEANED, run, told
from tests.conftest import json_lines

Recording = Callable[[str], Path]


@pytest.mark.parametrize("left", [0, 1])
def test_a_segment_that_is_shorter_than_its_own_indexes_say(left: int, recording: Recording, tmp_path: Path) -> None:
    """Neither snapshots nor checkpoints are here, and the file ends with a whole batch, or before its first one."""
    source = recording(CLEANED) / "log-before" / "__consumer_offsets-1"
    folder = tmp_path / "copy" / source.name
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.snapshot"))
    assert not told(run("compact", tmp_path / "copy"))
    path = max(one for one in folder.glob("*.log") if any(one.with_suffix(".timeindex").read_bytes()))
    for later in folder.iterdir():
        if later.name[:20].isdecimal() and later.name[:20] > path.stem:
            later.unlink()
    batches = [item for item in iter_batches(path.read_bytes()) if isinstance(item, RecordBatch)]
    assert len(batches) > 1
    path.write_bytes(b"".join(batch.raw for batch in batches[:left]))
    end = batches[left - 1].next_offset if left else int(path.stem)
    for command in ("compact", "info", "groups", "rescue"):
        result = run(command, tmp_path / "copy", to=tmp_path / command)
        (words,) = told(result)
        assert result.exit_code == 3
        assert f"offsets {end} to {batches[-1].next_offset - 1} are missing" in words
        assert f"as {path.stem}." in words
    checked = run("check", tmp_path / "copy", "--release", "4.3.0", "--shutdown", "clean", "-o", "jsonl")
    (load,) = [row for row in json_lines(checked.stdout) if row["kind"] == "load"]
    assert load["log_end_offset"] == int(path.stem), "a broker that trusts the index takes the segment for empty"
