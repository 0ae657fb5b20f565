"""Files of a broker that is not Kafka are told by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runs import batch_of, commit, run, write_partition


@pytest.mark.parametrize("given", ["", "kafka", "kafka/__consumer_offsets", "kafka/__consumer_offsets/3_12", "file"])
def test_redpanda_is_named(given: str, tmp_path: Path) -> None:
    folder = tmp_path / "kafka" / "__consumer_offsets" / "3_12"
    folder.mkdir(parents=True)
    file = folder / "2041-7-v1.log"
    file.write_bytes(bytes(range(256)))
    result = run("compact", file if given == "file" else tmp_path / given)
    assert result.exit_code == 1
    assert "this is a segment of Redpanda by its name" in result.stderr
    assert "offsets-log pull --from-admin" in result.stderr


def test_what_is_kafkas_is_read_beside_it(tmp_path: Path) -> None:
    log = write_partition(tmp_path, [batch_of(commit("g"))])
    (log / "0-1-v1.log").write_bytes(b"x")
    assert run("compact", log).exit_code == 0
