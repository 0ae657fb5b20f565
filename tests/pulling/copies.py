"""What tests of `pull` share: the command against brokers of a test, and what it copied."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

from click.testing import CliRunner, Result

from offsets_log.protocol.api import Header
from offsets_log.pulling import run
from offsets_log_cli.main import main
from tests.pulling.brokers import OFFSETS, Brokers, Log

FETCH, METADATA, EPOCHS = 1, 3, 23
READS = {18, 3, 2, 1, 23}


IMPATIENT = "default.api.timeout.ms=1500\nrequest.timeout.ms=3000\n"


def pull(brokers: Brokers, path: Path, *more: str) -> Result:
    """Copy into ``path / "copy"``, by the properties in ``path``; an impatient client's where there are none."""
    properties = path / "client.properties"
    if not properties.exists():
        properties.write_text(IMPATIENT)
    words = ["pull", "--bootstrap-server", brokers.address, "--to", str(path / "copy"), *more]
    return CliRunner().invoke(main, [*words, "--command-config", str(properties)])


def pull_beside(write: Callable[[], None], brokers: Brokers, path: Path) -> Result:
    """Follow while another thread writes, and end by a signal when it has."""

    has_ended = Event()

    def write_and_end() -> None:
        try:
            write()
        finally:
            if not has_ended.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_and_end)
        result = pull(brokers, path, "--follow")
        has_ended.set()
        writing.result()
    return result


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return [json.loads(line) for line in result.stdout.splitlines()]


def copied(path: Path, partition: int = 0, topic: str = OFFSETS) -> bytes:
    """All batches of a copy."""
    return b"".join(file.read_bytes() for file in sorted((path / "copy" / f"{topic}-{partition}").glob("*.log")))


def offsets_log(**logs: Log) -> dict[tuple[str, int], Log]:
    return {(OFFSETS, int(name[1:])): log for name, log in logs.items()}


def stop(self: run.Pulling, words: str) -> None:
    raise KeyboardInterrupt


def cutting_after(count: int) -> Any:
    """Fetches are answered so many times, and then cut."""
    left = [count]

    def fault(node: int, header: Header, body: dict[str, Any]) -> bytes | None:
        left[0] -= header.api_key == FETCH
        return b"" if left[0] < 0 else None

    return fault


def refusing_ends(code: int, times: int) -> Any:
    """Answers ListOffsets: partition 1 is refused so many times, others are at offset 7."""
    left = [times]

    def answer(node: int, body: dict[str, Any]) -> dict[str, Any]:
        def row(number: int) -> dict[str, Any]:
            is_refused = number == 1 and left[0] > 0
            left[0] -= number == 1
            error, offset = (code, -1) if is_refused else (0, 7)
            return {
                "partition_index": number, "error_code": error, "timestamp": -1, "offset": offset, "leader_epoch": 0,
            }  # fmt: skip

        topics = [
            {"name": topic["name"], "partitions": [row(one["partition_index"]) for one in topic["partitions"]]}
            for topic in body["topics"]
        ]
        return {"throttle_time_ms": 0, "topics": topics}

    return answer


def problem(result: Result) -> str:
    assert result.exit_code == 3, (result.stdout, result.stderr)
    (row,) = [row for row in rows(result) if row["problem"]]
    assert not row["whole"]
    assert row["problem"] in result.stderr
    return str(row["problem"])


def first_pull(brokers: Brokers, path: Path) -> bytes:
    assert pull(brokers, path).exit_code == 0
    return copied(path)
