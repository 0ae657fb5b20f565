"""``--follow`` as a user has it: lines as records come, alerts, signals, refusals, exit statuses."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from rich.live import Live

from offsets_log.actions import follow
from offsets_log.columnar.history.slow_path import BeyondError
from offsets_log.following import pieces
from offsets_log.following.alerts import alert_row
from offsets_log.investigate.growing_history import GrowingHistory
from offsets_log_cli.follow_output import LiveTable
from offsets_log_cli.main import main
from tests.builders import LogBuilder, member
from tests.conftest import json_lines
from tests.waiting import PATIENCE_S

MOST_TRIES = 30
"""One line of these at least comes within a second, however busy the machine is."""

COMMANDS = (["compact"], ["groups"], ["history", "-g", "*"], ["rebalances"])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data" / "__consumer_offsets-0").mkdir(parents=True)
    return tmp_path / "data"


def append(data: Path, *batches: bytes, partition: int = 0) -> None:
    directory = data / f"__consumer_offsets-{partition}"
    directory.mkdir(exist_ok=True)
    with (directory / f"{0:020}.log").open("ab") as file:
        file.write(b"".join(batches))


def run(*arguments: object, idle: str = "0ms") -> Result:
    command = [*map(str, arguments), "--follow", "--until-idle", idle]
    return CliRunner().invoke(main, command, catch_exceptions=False)


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", "from offsets_log_cli.main import run; run()", *map(str, arguments), "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def next_row(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    row: dict[str, Any] = json.loads(process.stdout.readline())
    return row


def test_what_there_is_comes_first_as_without_it(recording: Any) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    plain = CliRunner().invoke(main, ["compact", str(log), "-o", "jsonl", "--no-lag"], catch_exceptions=False)
    followed = run("compact", log)
    assert followed.stdout == plain.stdout
    assert followed.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1] == "129 offsets of 30 groups, 4 partitions"


def test_lines_come_within_a_second_and_a_signal_ends_it_whole(data: Path) -> None:
    log = LogBuilder().commit(1)
    append(data, *log.batches)
    with started("compact", data) as process:
        assert next_row(process)["committed_offset"] == 1
        for number in range(2, MOST_TRIES):
            batch = log.commit(number).batches[-1]
            began = time.monotonic()
            append(data, batch)
            assert next_row(process)["committed_offset"] == number
            if time.monotonic() - began <= 1:
                break
        assert number < MOST_TRIES - 1, "no line came within a second"
        append(data, *LogBuilder().commit(5, group="later").batches, partition=3)
        assert next_row(process)["group"] == "later"
        process.send_signal(signal.SIGTERM)
        rest, words = process.communicate(timeout=PATIENCE_S)
    assert rest == b""
    assert words.decode().splitlines()[-1] == "2 offsets of 2 groups, 2 partitions"
    assert process.returncode == 0


def test_a_signal_in_the_middle_leaves_whole_lines(data: Path) -> None:
    log = LogBuilder()
    for number in range(2000):
        log.commit(number, topic=f"t{number % 50}")
    append(data, *log.batches)
    with started("history", data, "-g", "*") as process:
        assert next_row(process)["committed_offset"] == 0
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        rest = process.stdout.read()
        process.wait(timeout=PATIENCE_S)
    assert rest.endswith(b"\n")
    assert all(json.loads(line)["group"] == "g" for line in rest.splitlines())
    assert process.returncode == 0


def test_a_log_that_is_cut_is_told_and_the_exit_status_says_so(data: Path) -> None:
    log = LogBuilder().commit(1).commit(2).commit(7, topic="gone")
    append(data, *log.batches)
    with started("compact", data) as process:
        assert {next_row(process)["topic"] for _ in range(2)} == {"gone", "t"}
        (data / "__consumer_offsets-0" / f"{0:020}.log").write_bytes(log.batches[0])
        rows = [next_row(process) for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate(timeout=PATIENCE_S)
    assert [(row["topic"], row["committed_offset"]) for row in rows] == [("gone", None), ("t", 1)]
    assert set(rows[0]) == set(rows[1])
    assert b"is another log than the one that was read up to record offset 3" in words
    assert process.returncode == 3


def test_a_torn_batch_is_told_at_the_end(data: Path) -> None:
    log = LogBuilder().commit(1).commit(2)
    append(data, log.batches[0], log.batches[1][:-3])
    found = run("compact", data)
    assert [row["committed_offset"] for row in json_lines(found.stdout)] == [1]
    assert found.stderr.startswith(f"{data}/__consumer_offsets-0/{0:020}.log: ")
    assert found.exit_code == 0


def test_pending_offsets_are_seen_when_their_marker_comes(data: Path) -> None:
    log = LogBuilder().commit(1).commit(9, producer=5)
    append(data, *log.batches)
    with started("compact", data, "--unstable") as process:
        assert [next_row(process)[name] for name in ("committed_offset",)] == [1]
        append(data, log.end(5).batches[-1])
        row = next_row(process)
        assert (row["committed_offset"], row["unstable"]) == (9, False)


@pytest.mark.parametrize("topic", ["t", "u"])
def test_an_open_transaction_on_any_topic_keeps_a_group_from_being_called_empty(data: Path, topic: str) -> None:
    append(data, *LogBuilder().commit(5, topic="t").commit(6, topic="u", producer=9).batches)
    found = run("groups", data, "-t", topic, "--alert", "group-empty:1d")
    assert found.exit_code == 0, found.stdout


@pytest.mark.parametrize(
    ("command", "rule", "is_raised"),
    [
        ("groups", "group-empty:1h", True),
        ("groups", "group-empty:5000d", False),
        ("compact", "transaction-open:1h", True),
        ("groups", "transaction-open:9000d", False),
        ("compact", "load-fails", True),
        ("compact", "rewound", False),
    ],
)
def test_alerts_about_what_lasts_are_raised_once(data: Path, command: str, rule: str, is_raised: bool) -> None:
    log = LogBuilder().commit(5).commit(3).commit(1, group="open", producer=8)
    log.newer(3, None, group="open") if rule == "load-fails" else log.group(group="e")
    append(data, *log.batches)
    if rule == "load-fails":
        append(data, *LogBuilder().group(member("m", group_instance_id="i"), member("n", group_instance_id="i"))
               .batches, partition=1)  # fmt: skip
    found = run(
        command, data, "--alert", rule, "--profile", "classic" if rule == "load-fails" else "modern", idle="500ms"
    )
    alerts = [row for row in json_lines(found.stdout) if row.get("event") == "alert"]
    assert {row["rule"] for row in alerts} == ({rule.partition(":")[0]} if is_raised else set())
    assert len(alerts) == len({json.dumps(row) for row in alerts})
    assert found.exit_code == (4 if is_raised else 0), found.stderr


@pytest.mark.parametrize("command", ["compact", "history"])
def test_a_rewind_while_it_follows_is_an_alert(data: Path, command: str) -> None:
    log = LogBuilder().commit(5).commit(3)
    append(data, *log.batches)
    with started(command, data, *(["-g", "*"] if command == "history" else []), "--alert", "rewound") as process:
        rows = [next_row(process) for _ in range(1 if command == "compact" else 2)]
        assert rows[-1]["record_offset"] == 1
        append(data, log.commit(2).batches[-1])
        assert next_row(process)["record_offset"] == 2
        alert = next_row(process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert alert == {
        "event": "alert", "rule": "rewound", "group": "g", "topic": "t", "partition": 0, "offsets_partition": 0,
        "record_offset": 2, "what": "the committed offset went back from 3 to 2",
    }  # fmt: skip
    assert process.returncode == 4


def test_what_began_lower_while_it_follows_is_an_alert(data: Path) -> None:
    log = LogBuilder().commit(5).commit(None)
    append(data, *log.batches)
    with started("history", data, "-g", "*", "--alert", "rewound") as process:
        assert [next_row(process)["change"] for _ in range(2)] == ["new", "deleted"]
        append(data, log.commit(2).batches[-1])
        assert next_row(process)["change"] == "new"
        assert next_row(process)["what"] == "the committed offset went back from 5 to 2, deleted in between"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 4


def told_ends(data: Path, asked_ms: int, end: int) -> None:
    rows = [{"topic": "t", "topic_id": None, "partitions": [[0, 0, end]]}]
    (data / "log-ends.json").write_text(json.dumps({"version": 1, "asked_ms": asked_ms, "topics": rows}))


@pytest.mark.parametrize("command", ["compact", "groups"])
@pytest.mark.parametrize(
    ("end", "asked_ms", "words"),
    [
        (4, 1 << 45, {"beyond-end": "the committed offset 5 is beyond the end of the log, 4"}),
        (4, 1, {}),
        (15, 1 << 45, {"lag": "the committed offset 5 is 10 behind the end of the log, 15"}),
        (14, 1 << 45, {}),
    ],
)
def test_offsets_are_compared_with_the_ends_of_logs(
    data: Path, command: str, end: int, asked_ms: int, words: dict[str, str]
) -> None:
    """An end from before the commit proves nothing."""
    append(data, *LogBuilder().commit(5).commit(99, topic="of-unknown-end").batches)
    told_ends(data, asked_ms, end)
    found = run(command, data, "--alert", "beyond-end", "--alert", "lag:10")
    alerts = [row for row in json_lines(found.stdout) if row.get("event") == "alert"]
    assert {row["rule"]: row["what"] for row in alerts} == words
    assert found.exit_code == (4 if words else 0)
    hidden = run(command, data, "--alert", "beyond-end", "--alert", "lag:10", "-t", "other")
    assert hidden.exit_code == 0


def test_ends_come_from_the_logs_of_a_data_directory_too(data: Path) -> None:
    append(data, *LogBuilder().commit(5).batches)
    (data / "t-0").mkdir()
    (data / "t-0" / f"{0:020}.log").write_bytes(LogBuilder().commit(1).commit(2).batches[0])
    found = run("compact", data, "--alert", "beyond-end", "--alert", "lag:1")
    (alert,) = [row for row in json_lines(found.stdout) if row.get("event") == "alert"]
    assert alert["what"] == "the committed offset 5 is beyond the end of the log, 1"


def test_a_truncation_that_takes_an_offset_back_is_an_alert(data: Path) -> None:
    first, second = LogBuilder().commit(3).commit(5).batches
    append(data, first, second)
    with started("compact", data, "--alert", "rewound") as process:
        assert next_row(process)["committed_offset"] == 5
        with (data / "__consumer_offsets-0" / f"{0:020}.log").open("r+b") as file:
            file.truncate(len(first))
        assert next_row(process)["committed_offset"] == 3
        alert = next_row(process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert (alert["rule"], alert["what"]) == ("rewound", "the committed offset went back from 5 to 3")
    assert process.returncode == 4


def test_a_storm_while_it_follows_is_an_alert(data: Path) -> None:
    log = LogBuilder().group(member("m"), generation=1)
    append(data, *log.batches)
    with started("rebalances", data, "--storm", "3/1h", "--alert", "rebalance-storm") as process:
        assert next_row(process)["generation"] == 1
        append(data, *log.group(member("m"), generation=2).group(member("m"), generation=3).batches[1:])
        rows = [next_row(process) for _ in range(6)]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    told = [(row["generation"], row["is_storm"]) for row in rows if "generation" in row]
    assert told == [(1, True), (2, True), (3, True)]
    assert [row["rule"] for row in rows if "rule" in row] == ["rebalance-storm"] * 3
    assert process.returncode == 4


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "more",
    [["--until-time", "2h"], ["--until-offset", "1"], ["--to", "x"], ["-o", "json"]],
)
def test_what_is_of_the_end_is_refused(data: Path, command: list[str], more: list[str]) -> None:
    append(data, *LogBuilder().commit(1).batches)
    found = run(*command, data, *more)
    assert found.exit_code == 2
    reason = "writes JSON Lines" if more[0] in ("--to", "-o") else "goes on with records as they come"
    assert f"does not go with --follow, which {reason}" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compact", "--alert", "group-empty:1h", "--follow"], "is no rule of this command: beyond-end"),
        (["compact", "--alert", "transaction-open", "--follow"], "is no rule of this command"),
        (["compact", "--alert", "rewound:1h", "--follow"], "is no rule of this command"),
        (["groups", "--alert", "lag:1h", "--follow"], "'1h' is not a valid integer"),
        (["compact", "--lag", "--follow"], "--lag does not go with"),
        (["groups", "--stale", "3d", "--follow"], "--stale does not go with"),
        (["rebalances", "--verify", "--follow"], "--verify does not go with"),
        (["compact", "--until-idle", "1s"], "are of --follow"),
    ],
)
def test_usage_that_makes_no_sense_is_refused(data: Path, arguments: list[str], words: str) -> None:
    append(data, *LogBuilder().commit(1).batches)
    found = CliRunner().invoke(main, [arguments[0], str(data), *arguments[1:]])
    assert found.exit_code == 2
    assert words in found.stderr


def test_what_kernels_cannot_read_is_read_again_and_nothing_told_twice(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogBuilder().commit(1).commit(2, producer=5).commit(3)
    for number in range(4, 30):
        log.commit(number)
    append(data, *log.end(5).commit(40).batches)
    monkeypatch.setattr(follow, "PIECE_OF_ROWS_BYTES", 300)
    monkeypatch.setattr(pieces, "is_kept", lambda kernel: False)
    expected = run("history", data, "-g", "*")
    monkeypatch.setattr(pieces.PieceReader, "has_kernels", lambda self, piece, *largest: True)
    by_kernels = run("history", data, "-g", "*")
    read = GrowingHistory.take

    def take(self: GrowingHistory, order: Any, cursor: Any, *more: Any) -> None:
        if cursor.next_offset > 9:
            raise BeyondError
        read(self, order, cursor, *more)

    monkeypatch.setattr(GrowingHistory, "take", take)
    again = run("history", data, "-g", "*", idle="700ms")
    assert expected.stdout == by_kernels.stdout == again.stdout
    assert len([*json_lines(again.stdout)]) == 31
    assert again.exit_code == 0


def test_the_table_on_a_terminal_shows_what_fits_and_alerts_above_it() -> None:
    rows = [{"group": f"g{number}\x1b", "last_commit_timestamp_ms": 0, "offsets": None} for number in range(9)]
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=8)
    with Live(console=console, auto_refresh=False) as live:
        table = LiveTable(live, ["group", "last_commit_timestamp_ms", "offsets"], lambda: rows)
        table.look()
        table.alert(alert_row("group-empty", "it is Empty", group="g1\x1b"))
        rows[:] = rows[:1]
        table.look()
    assert isinstance(console.file, io.StringIO)
    first, _, second = console.file.getvalue().partition("group-empty: g1\\x1b: it is Empty")
    assert "g2\\x1b" in first
    assert "1970-01-01 00:00:00.000Z" in first
    assert "g3" not in first
    assert "6 more" in first
    assert "g0" in second
    assert "more" not in second.rpartition("g0")[2]


def test_only_directories_are_followed(data: Path) -> None:
    append(data, *LogBuilder().commit(1).batches)
    (data / "__consumer_offsets-0" / f"{1:020}.log").touch()
    found = run("compact", data / "__consumer_offsets-0" / f"{0:020}.log")
    assert found.exit_code == 2
    assert "only directories are followed" in found.stderr


def test_a_reader_that_goes_away_ends_it_though_no_line_comes(data: Path) -> None:
    append(data, *LogBuilder().commit(1).batches)
    with started("compact", data) as process:
        next_row(process)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=PATIENCE_S) == 0
