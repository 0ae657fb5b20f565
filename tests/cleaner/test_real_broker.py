"""A real broker over folders that `clean` wrote: Kafka's own clients get the answers of `compact` on the inputs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record
from offsets_log.replay.profile import MODERN
from offsets_log_cli.main import main
from tests.builders import TIME
from tests.cleaner.deep import load
from tests.conftest import read_partitions
from tests.coordinator import broker

PARTITIONS = 4
DEAD = 2
"""The partition whose load a record ends."""


def with_unreadable_record(folder: Path) -> int:
    """Put a record without a key behind a partition's log (``J-3``); its offset."""
    log = read_partitions(folder)[DEAD]
    last = folder / f"__consumer_offsets-{DEAD}" / f"{log.segments[-1].base_offset:020}.log"
    offset = load(log, MODERN).end_offset
    record = Record(offset=offset, timestamp_ms=TIME, key=None, value=b"x")
    last.write_bytes(last.read_bytes() + build_batch([record]))
    return offset


def clean(*words: str | Path) -> None:
    result = CliRunner().invoke(main, ["clean", *map(str, words), "-o", "jsonl"])
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["problem"] for line in result.stdout.splitlines()] == [None] * len(
        result.stdout.splitlines()
    )


def place(real: broker.Broker, folder: Path) -> None:
    """A partition's files in the place of the broker's, but the topic's id is its own."""
    real.place(int(folder.name.rpartition("-")[2]), b"")
    for path in folder.iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, real.data / folder.name / path.name)


def expected(folder: Path) -> dict[str, list[Any]]:
    """What the log says, as the clients show it."""
    states = [load(log, MODERN) for log in read_partitions(folder).values()]
    return {
        "groups": [group for state in states for group in state.groups],
        "offsets": [
            [value.group, value.topic, value.partition, value.committed_offset, value.metadata, value.leader_epoch]
            for state in states
            for value in state.iter_served()
            if value.committed_offset >= 0
        ],
        "unstable": [[*value.key] for state in states for value in state.pending],
    }


@pytest.mark.kafka
def test_a_broker_loads_what_was_cleaned(tmp_path: Path, recording: Callable[[str], Path]) -> None:
    try:
        libs = broker.jars()
    except broker.NotAvailableError as reason:
        pytest.skip(f"no real broker: {reason}")
    data = tmp_path / "given"
    shutil.copytree(recording("kafka-4.3-mixed") / "log", data)
    asked = expected(data)
    offset = with_unreadable_record(data)
    clean(data, "--drop-record", f"{DEAD}:{offset}", "-p", DEAD, "--to", tmp_path / "mended")
    others = [word for partition in range(PARTITIONS) if partition != DEAD for word in ("-p", str(partition))]
    clean(data, "--deep", *others, "--to", tmp_path / "deep")
    real = broker.Broker(libs, tmp_path, PARTITIONS)
    with real.running():
        real.ask({"nobody": []})
    for folder in (*(tmp_path / "mended").glob("__*"), *(tmp_path / "deep").glob("__*")):
        place(real, folder)
    keys: dict[str, list[tuple[str, int]]] = {group: [] for group in asked["groups"]}
    for group, topic, partition, *_ in (*asked["offsets"], *asked["unstable"]):
        if (topic, partition) not in keys.setdefault(group, []):
            keys[group].append((topic, partition))
    with real.running():
        answered = real.ask(keys)
    answered["groups"] = [row[0] for row in answered["groups"]]
    assert {name: sorted(rows, key=repr) for name, rows in answered.items()} == {
        name: sorted(rows, key=repr) for name, rows in asked.items()
    }
