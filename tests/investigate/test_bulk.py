"""The commands say the same of a log whether kernels read it or not: exit status, rows and words."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from cli.main import main
from tests.replay.test_compact_recordings import Recording

COMMANDS = (
    ("info",),
    ("info", "-o", "table"),
    ("info", "-o", "json", "-g", "*-1*"),
    ("info", "-o", "csv", "-t", "t*"),
    ("info", "-p", "1", "--profile", "classic"),
    ("info", "--until-offset", "40"),
    ("info", "--until-time", "2026-11-20T09:00:00Z"),
    ("groups", "--now", "2027-01-01"),
    ("groups", "--now", "2027-01-01", "--stale", "1d"),
    ("top",),
    ("top", "--per", "partition", "--by", "garbage"),
    ("top", "--per", "hour", "--until-offset", "40"),
    ("diff", "--from-offset", "40", "--why"),
    ("diff", "--from-offset", "40", "--table", "members"),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-live-copy", "random-java"])
def test_both_engines(
    name: str, arguments: tuple[str, ...], recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = str(recording(name) / "log")
    answers = []
    for least_bytes in (1 << 40, 0):
        monkeypatch.setattr("cli.session.BULK_FROM_BYTES", least_bytes)
        done = CliRunner().invoke(main, [arguments[0], log, "-o", "jsonl", *arguments[1:]], catch_exceptions=False)
        words = sorted(line for line in done.stderr.split("\n") if not line.startswith("compiling for this machine"))
        answers.append((done.exit_code, done.stdout, words))
    assert answers[0] == answers[1]
