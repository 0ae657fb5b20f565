"""Times in words, and such as the logs' end decides; what options make of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from offsets_log.asked_time import UNDERSTOOD, OfLog, parse_time
from offsets_log.words import UNITS_MS
from tests.builders import LogBuilder, record_bytes
from tests.cli.runs import run, write_partition
from tests.conftest import json_lines

HOUR, DAY = UNITS_MS["h"], UNITS_MS["d"]


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOW = ms("2026-11-27T03:10:20")


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2h", "2026-11-27T01:10:20"), ("2h ago", "2026-11-27T01:10:20"), ("now", "2026-11-27T03:10:20"),
        ("now-2h", "2026-11-27T01:10:20"), ("now + 30m", "2026-11-27T03:40:20"), ("today", "2026-11-27T00:00"),
        ("yesterday", "2026-11-26T00:00"), ("yesterday 14:00", "2026-11-26T14:00"),
        ("today 5:36:07", "2026-11-27T05:36:07"), ("yesterday 23:59:59.5", "2026-11-26T23:59:59.500"),
        ("2026-11-21", "2026-11-21"), ("2026-11-21T05:36Z", "2026-11-21T05:36"),
        ("2026-11-21T05:36+02:00", "2026-11-21T03:36"),
    ],
)  # fmt: skip
def test_times_that_no_log_decides(text: str, time: str) -> None:
    assert parse_time(text, NOW) == ms(time)


@pytest.mark.parametrize(
    ("text", "end", "time"),
    [
        ("end", "2026-11-21T06:00", "2026-11-21T06:00"), ("end-2h", "2026-11-21T06:00", "2026-11-21T04:00"),
        ("end - 90m", "2026-11-21T06:00", "2026-11-21T04:30"), ("05:36", "2026-11-21T06:00", "2026-11-21T05:36"),
        ("05:36", "2026-11-21T05:36", "2026-11-21T05:36"), ("05:36", "2026-11-21T05:00", "2026-11-20T05:36"),
        ("23:50", "2026-11-21T00:10", "2026-11-20T23:50"), ("5:36:01", "2026-11-21T06:00", "2026-11-21T05:36:01"),
    ],
)  # fmt: skip
def test_times_that_the_logs_end_decides(text: str, end: str, time: str) -> None:
    """A time of day is that of the last day on which they have it, which need not be that of their end."""
    asked = parse_time(text, NOW)
    assert isinstance(asked, OfLog)
    assert asked.at(ms(end)) == ms(time)


@pytest.mark.parametrize(
    "text", ["noon", "25:00", "05:60", "yesterday 24:00", "end-2", "tomorrow", "2 h", "end-", "٢h", ""]
)
def test_what_is_no_time_is_told_with_what_is_understood(text: str) -> None:
    with pytest.raises(ValueError, match="is no time: give epoch ms, "):
        parse_time(text, NOW)
    assert run("compact", ".", "--until-time", "noon").exit_code == 2


def written(folder: Path) -> Path:
    """A commit each hour until 2026-11-21 06:00."""
    log = LogBuilder()
    for hour in range(30):
        time = ms("2026-11-21T06:00") - (29 - hour) * HOUR
        value = {"offset": hour, "leader_epoch": -1, "metadata": "", "commit_timestamp": time, "expire_timestamp": -1}
        log.add(record_bytes(1, {"group": "g", "topic": "t", "partition": 0}, value, 3), times=[time])
    return write_partition(folder, log.batches)


EVERYWHERE = (
    ("compact", "--until-time"), ("groups", "--now"), ("expire", "--now"), ("check", "--now"), ("rebuild", "--now"),
    ("info", "--now"), ("history", "-g", "g", "--from-time"), ("diff", "--from-time"), ("clean", "--dry-run", "--now"),
    ("clean", "--dry-run", "--until-time"), ("rescue", "--to", "TO", "--until-time"),
)  # fmt: skip


@pytest.mark.parametrize("words", EVERYWHERE, ids=" ".join)
def test_every_option_takes_them(words: tuple[str, ...], tmp_path: Path) -> None:
    """With the answer for the time that is meant, which standard error says, unless it is to be quiet."""
    log = written(tmp_path / "log")
    command, *options = (str(tmp_path / "to") if word == "TO" else word for word in words)
    for text in ("05:36", "end-24m"):
        plain, worded = (run(command, log, *options, asked) for asked in ("2026-11-21T05:36Z", text))
        told = f"{text} is read as 2026-11-21T05:36:00.000Z: the logs end at 2026-11-21T06:00:00.000Z\n"
        if "--to" in words:
            assert told in worded.stderr
            continue
        assert (worded.exit_code, worded.stdout) == (plain.exit_code, plain.stdout)
        assert worded.stderr == told + plain.stderr
    assert "is read as" not in run(command, log, *options, "05:36", "-q").stderr


def test_the_answer_is_that_of_the_time(tmp_path: Path) -> None:
    log = written(tmp_path / "log")
    (row,) = json_lines(run("compact", log, "--until-time", "end-2h", "-o", "jsonl").stdout)
    assert row["committed_offset"] == 27
    refused = run("compact", "-", "--until-time", "end-2h", stdin=(log / "__consumer_offsets-0").name.encode())
    assert refused.exit_code == 2
    assert "give files, not standard input" in refused.stderr
    assert UNDERSTOOD in run("compact", log, "--until-time", "noon").stderr.replace("\n", " ")
