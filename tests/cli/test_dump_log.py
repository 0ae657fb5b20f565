"""``decode --as dump-log`` against the lines that Kafka's own tool printed for the same files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offsets_log.pipeline import iter_events
from offsets_log.rows import dump_log
from tests.conftest import RECORDINGS, log_directories, read_partitions


def parts(line: str) -> tuple[Any, ...]:
    """A line with its JSON parsed: Kafka orders the fields of some records in its own way."""
    head, key_found, rest = line.partition(" key: ")
    key, payload_found, payload = rest.partition(" payload: ")
    return head, *(_json(text) for text in (key, payload) if key_found or payload_found)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name.startswith("kafka-4")])
def test_lines_equal_those_of_the_tool(name: str, recording: Callable[[str], Path]) -> None:
    folder = recording(name)
    compared = 0
    for log_directory in log_directories(folder):
        dumps = folder / "answers" / f"dump-log{log_directory.name.removeprefix('log')}"
        for partition, log in read_partitions(log_directory).items():
            expected = gzip.decompress((dumps / f"{partition}.txt.gz").read_bytes()).decode().split("\n")[:-1]
            lines = [line for text in dump_log.iter_lines(iter_events(log)) for line in text.split("\n")]
            assert [parts(line) for line in lines] == [parts(line) for line in expected]
            compared += len(lines)
    assert compared > 100
