"""What tests of commands share: the command line in this process, and small logs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from offsets_log.log_format.building import build_batch
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.log_format.record import Record
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record
from offsets_log_cli.main import main
from tests.conftest import json_lines

ROOT = Path(__file__).parent.parent.parent
SAMPLE = str(ROOT / "samples" / "kafka-4.3-mixed" / "log")


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False)


def rows(*arguments: str | Path, status: int = 0, stdin: bytes | None = None) -> list[dict[str, Any]]:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == status, result.stderr
    return list(json_lines(result.stdout))


QUOTED = re.compile(r"'[^']*'|\"[^\"$`\\\\]*\"")
FOR_A_SHELL = re.compile(r"[^\w\s.,:/=@%+-]")


def words_of(line: str) -> list[str] | None:
    """The arguments of a line that runs one command of ours and nothing else; None if it needs a shell."""
    name, _, arguments = line.partition(" ")
    return None if name != "offsets-log" or FOR_A_SHELL.search(QUOTED.sub("", arguments)) else shlex.split(arguments)


def commit(
    group: str, topic: str = "t", partition: int = 0, offset: int = 1, metadata: str = ""
) -> tuple[bytes, bytes]:
    key, value = encode_coordinator_record(
        CoordinatorRecord(
            record_type=1,
            key={"group": group, "topic": topic, "partition": partition},
            value_version=4,
            value={
                "offset": offset,
                "leader_epoch": -1,
                "metadata": metadata,
                "commit_timestamp": 1_700_000_000_000,
                "topic_id": ZERO_UUID,
            },
            layout=OFFSET_COMMIT_VALUE,
        )
    )
    assert value is not None
    return key, value


def write_partition(folder: Path, batches: Sequence[bytes], partition: int = 0) -> Path:
    directory = folder / f"__consumer_offsets-{partition}"
    directory.mkdir(parents=True)
    (directory / "00000000000000000000.log").write_bytes(b"".join(batches))
    return folder


def batch_of(*pairs: tuple[bytes | None, bytes | None], first: int = 0, time_ms: int = 1000, **facts: Any) -> bytes:
    records = [
        Record(offset=first + i, timestamp_ms=time_ms, key=key, value=value) for i, (key, value) in enumerate(pairs)
    ]
    return build_batch(records, **facts)
