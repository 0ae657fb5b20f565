"""Times that wrap around in 64 bits, as Java's longs do: every command answers, by kernels as without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from offsets_log.investigate.writers import WRITER_COLUMNS
from offsets_log_cli.main import main
from tests.builders import TIME, LogBuilder, member
from tests.cli.runs import write_partition
from tests.columnar.test_equal_engines import ODD_TIMES, odd_times
from tests.conftest import NEVER, BulkFrom

FORMATS = ("table", "jsonl", "csv")


def odd_log() -> LogBuilder:
    """All odd times: of batches that kernels take, and of batches that they leave to the slow path."""
    log = LogBuilder().group(member("m")).commit(1)
    for choice in range(2 * len(ODD_TIMES)):
        odd_times(log, f"g{choice % 3}", 0, choice)
        odd_times(log, "g", 1, choice)
        if choice % 3:
            log.end(7, commit=choice % 3 == 1)
    newer = {"client_id": "c", "client_host": "h", "rack_id": None, "subscribed_topic_names": []}
    log.newer(3, {"epoch": 2}, group="newer").newer(5, newer, group="newer", member_id="m")
    odd_times(log, "pending", 1, len(ODD_TIMES))
    return log


QUESTIONS: Sequence[tuple[str, ...]] = (
    *((command, "-o", form) for command in ("compact", "groups", "decode", "info") for form in FORMATS),
    *(("history", "-g", "*", "-o", form) for form in FORMATS),
    *((command, "-g", "*", "-o", "parquet", "--to", "FILE") for command in ("compact", "history", "decode")),
    *(("top", "--per", per, "-o", "csv") for per in WRITER_COLUMNS),
    ("top", "--per", "hour", "-g", "g*", "-o", "jsonl"),
    ("top", "--per", "member", "-o", "table"),
    ("compact", "--profile", "classic", "-o", "csv"),
    ("decode", "--expand", "-o", "jsonl"),
    ("decode", "--as", "dump-log"),
    ("decode", "-g", "g*", "-o", "jsonl"),
    ("rebalances", "-o", "jsonl"),
    ("rebalances", "-g", "g1", "-o", "table"),
    ("check", "-o", "jsonl"),
    ("check", "-o", "table"),
    ("expire", "--now", "1800000000000", "-o", "jsonl"),
    ("rebuild",),
    ("report", "--to", "FILE"),
)
"""Commands and options; FILE is one to be written."""


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_answers(
    question: tuple[str, ...], tmp_path: Path, bulk_from: BulkFrom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: TIME / 1000)
    write_partition(tmp_path, odd_log().batches)
    found = []
    for least_bytes in (NEVER, 0):
        bulk_from(least_bytes)
        file = tmp_path / f"made-{least_bytes}"
        arguments = [question[0], str(tmp_path / "__consumer_offsets-0"), *question[1:]]
        arguments = [str(file) if one == "FILE" else one for one in arguments]
        done = CliRunner().invoke(main, arguments, catch_exceptions=False)
        words = [line for line in done.stderr.split("\n") if not line.startswith("compiling for this machine")]
        written = ""
        if file.exists():
            written = str(pq.read_table(file).to_pylist()) if "parquet" in question else file.read_text()
        found.append((done.exit_code, done.stdout, [line.replace(file.name, "FILE") for line in words], written))
    assert found[0] == found[1]
    assert found[0][0] != 1
    assert found[0][1] or found[0][3]
