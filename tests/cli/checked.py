"""Run ``check`` on logs that are made for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import (
    RECORD_TYPES,
    CoordinatorRecord,
    encode_coordinator_record,
)
from offsets_log.replay.partition_for import partition_for
from offsets_log_cli.main import main

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "samples" / "kafka-4.3-mixed" / "log"
FIRST_FILE = "00000000000000000000.log"

Json = dict[str, Any]
Recording = Callable[[str], Path]

ANSWERS = {
    "3.9.1": "load-3.9.1.json",
    "4.0.0": "load-4.0.0.json",
    "4.1.1": "load-4.1.1.json",
    "4.2.0": "load-4.2.0.json",
    "4.3.0": "load.json",
}
"""Release → what it did with every partition of load-fails."""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)], catch_exceptions=False)


def check(*arguments: str | Path, status: int) -> Json:
    result = run(*arguments, "-o", "json")
    assert result.exit_code == status, result.stderr
    document: Json = json.loads(result.stdout)
    return document


def findings(document: Json, *, severity: str | None = None, rule: str | None = None) -> list[Json]:
    return [
        row
        for row in document["findings"]
        if (severity is None or row["severity"] == severity) and (rule is None or row["rule"] == rule)
    ]


def pair(record_type: int, key: Json, version: int | None = None, value: Json | None = None) -> tuple[bytes, Any]:
    layout = None if version is None else next(RECORD_TYPES[record_type].layouts(version))
    return encode_coordinator_record(
        CoordinatorRecord(record_type=record_type, key=key, value_version=version, value=value, layout=layout)
    )


def commit(group: str, topic: str = "t", *, record_type: int = 1, offset: int = 1) -> tuple[bytes, Any]:
    value = {"offset": offset, "metadata": "", "commit_timestamp": 1000}
    if record_type == 1:
        value |= {"leader_epoch": -1}
    return pair(record_type, {"group": group, "topic": topic, "partition": 0}, 3 if record_type else 0, value)


def deletion(group: str, topic: str = "t", *, record_type: int = 1) -> tuple[bytes, Any]:
    return pair(record_type, {"group": group, "topic": topic, "partition": 0})


def batch(*pairs: tuple[bytes | None, bytes | None], first: int = 0, time_ms: int = 1000, **facts: Any) -> bytes:
    records = [Record(offset=first + i, timestamp_ms=time_ms, key=k, value=v) for i, (k, v) in enumerate(pairs)]
    return build_batch(records, **facts)


def transaction(*pairs: tuple[bytes, Any], first: int, time_ms: int = 1000, producer_id: int = 5) -> bytes:
    facts = {"producer_id": producer_id, "producer_epoch": 0, "is_transactional": True, "base_sequence": 0}
    return batch(*pairs, first=first, time_ms=time_ms, **facts)


def write(folder: Path, batches: Sequence[bytes], partition: int = 0, file: str = FIRST_FILE) -> Path:
    directory = folder / f"__consumer_offsets-{partition}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / file).write_bytes(b"".join(batches))
    return folder


def group_in(partition: int, partitions: int = 50, prefix: str = "g") -> str:
    return next(name for i in range(100_000) if partition_for(name := f"{prefix}{i}", partitions) == partition)


G = group_in(0)
OTHER = group_in(0, prefix="other")
