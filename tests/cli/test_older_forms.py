"""New forms of commands and options beside older ones, which go on: both give the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsets_log_cli.clean_settings import SETTINGS
from offsets_log_cli.main import main
from tests.builders import LogBuilder, member
from tests.cli.runs import SAMPLE, rows, run

VALUES = {
    "delete.retention.ms": "1h", "min.compaction.lag.ms": "1000", "segment.bytes": "9000", "segment.index.bytes": "600",
    "index.interval.bytes": "100", "max.message.bytes": "5000", "message.max.bytes": "6000",
    "producer.id.expiration.ms": "1h", "log.cleaner.io.buffer.size": "70000",
    "log.cleaner.dedupe.buffer.size": "90000", "log.cleaner.io.buffer.load.factor": "0.5",
    "offsets.retention.minutes": "60",
}  # fmt: skip
OLDER = {"log.cleaner.io.buffer.load.factor": "50", "offsets.retention.minutes": "60m"}
"""What the older option of a setting is given for the same."""


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (["offsets", SAMPLE], ["compact", SAMPLE]),
        (["records", SAMPLE, "-p", "1"], ["decode", SAMPLE, "-p", "1"]),
        (["state", SAMPLE], ["rebuild", SAMPLE]),
        (["members", SAMPLE], ["rebuild", SAMPLE, "--table", "members"]),
        (["members", SAMPLE, "-o", "table"], ["rebuild", SAMPLE, "--table", "members", "-o", "table"]),
        (["expire", SAMPLE, "--release", "2.0", "--now", "end"], ["expire", SAMPLE, "--era", "2.0", "--now", "end"]),
        (["expire", SAMPLE, "--release", "3.9", "--now", "end"],
         ["expire", SAMPLE, "--profile", "classic", "--now", "end"]),
        (["check", SAMPLE, "--release", "3.9,4.3"], ["check", SAMPLE, "--loads-on", "3.9,4.3"]),
        (["check", SAMPLE, "--release", "3.9", "--release", "4.3"], ["check", SAMPLE, "--loads-on", "3.9,4.3"]),
        (["history", SAMPLE, "--rewinds"], ["history", SAMPLE, "-g", "*", "--rewinds"]),
        (["vote", "--members", "m1:range+sticky,m2:sticky+range", "--release", "3.9"],
         ["vote", "--members", "m1:range+sticky,m2:sticky+range", "--profile", "classic"]),
        (["assign", "--topics", "t=3", "--members", "m:t", "--release", "2.5"],
         ["assign", "--topics", "t=3", "--members", "m:t", "--kafka", "2.5"]),
        (["clean", SAMPLE, "--dry-run", "--now", "end", "--release", "3.9"],
         ["clean", SAMPLE, "--dry-run", "--now", "end", "--broker", "3.9"]),
    ],
)  # fmt: skip
def test_both_forms_give_the_same(new: list[str], old: list[str]) -> None:
    mine, older = run(*new), run(*old)
    assert mine.stdout
    assert (mine.exit_code, mine.stdout) == (older.exit_code, older.stdout)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_by_kafkas_name_is_that_of_its_option(name: str) -> None:
    asked = ("clean", SAMPLE, "--dry-run", "--now", "end", "--drop-expired")
    mine = run(*asked, "--config", f"{name}={VALUES[name]}")
    older = run(*asked, SETTINGS[name].option, OLDER.get(name, VALUES[name]))
    assert mine.exit_code == older.exit_code != 2, mine.stderr
    assert mine.stdout == older.stdout
    twice = run(*asked, "--config", f"{name}={VALUES[name]}", SETTINGS[name].option, OLDER.get(name, VALUES[name]))
    assert (twice.exit_code, f"{name} is given twice" in twice.stderr) == (2, True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("segment.byte=1", "such as segment.bytes"),
        ("segment.bytes", "is no NAME=VALUE"),
        ("segment.bytes=x", "'x' is not a valid integer"),
        ("log.cleaner.io.buffer.load.factor=1.5", "is no share"),
        ("delete.retention.ms=soon", "is no duration"),
    ],
)
def test_what_is_no_setting_is_refused(given: str, told: str) -> None:
    found = run("clean", SAMPLE, "--dry-run", "--config", given)
    assert found.exit_code == 2
    assert told in " ".join(found.stderr.split())


def test_expiry_in_clean_follows_the_release() -> None:
    asked = ("clean", SAMPLE, "--dry-run", "--drop-expired", "--now", "end+8d")
    by_era = run(*asked, "--broker", "3.9", "--era", "classic")
    assert run(*asked, "--release", "3.9").stdout == by_era.stdout
    assert run(*asked, "--release", "3.9", "--broker", "3.9").exit_code == 2


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "__consumer_offsets-0"
    folder.mkdir(parents=True)
    log = LogBuilder().group(member("m"), generation=1).commit(5).commit(3)
    (folder / f"{0:020}.log").write_bytes(b"".join(log.batches))
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("name", "more"), [("offsets", ()), ("groups", ()), ("history", ("-g", "*")), ("rebalances", ())]
)
def test_watch_is_the_command_with_follow(data: Path, name: str, more: tuple[str, ...]) -> None:
    watched = run("watch", name, data, *more, "--until-idle", "0ms")
    followed = run(name, data, *more, "--follow", "--until-idle", "0ms")
    assert watched.exit_code == 0, watched.stderr
    assert watched.stdout
    mine, older = (re.sub(r'"commit_age_ms":\d+', "", one.stdout) for one in (watched, followed))
    assert (mine, watched.stderr) == (older, followed.stderr)


def test_watch_refuses_what_is_of_the_end_and_knows_four_commands(data: Path) -> None:
    assert "--until-time does not go with" in run("watch", "offsets", data, "--until-time", "2h").stderr
    assert run("watch", "info", data).exit_code == 2
    assert run("watch", "history", data, "-g", "*", "--alert", "rewound", "--until-idle", "0ms").exit_code == 0
    assert run("watch", "offsets", data, "--alert", "lag:1h").exit_code == 2


def test_a_topic_has_no_effect_on_generations_which_is_said() -> None:
    plain, with_topic = run("rebalances", SAMPLE), run("rebalances", SAMPLE, "-t", "nothing")
    assert (with_topic.exit_code, with_topic.stdout) == (plain.exit_code, plain.stdout)
    assert "-t has no effect here: a generation is of the whole group" in with_topic.stderr
    assert "-t," not in run("rebalances", "--help").stdout


def test_history_without_rewinds_needs_a_group() -> None:
    assert run("history", SAMPLE).exit_code == 2


def test_help_and_completion_load_no_library() -> None:
    """They have to answer at once."""
    code = (
        "import sys; from offsets_log_cli.main import main; main(sys.argv[1:], standalone_mode=False);"
        "print(sorted({'numpy', 'pyarrow', 'rich', 'numba', 'offsets_log_cli.check'} & set(sys.modules)))"
    )
    for arguments in (["--help"], ["offsets", "--help"], ["clean", "--help"], ["help", "reading"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]", arguments


def test_members_shows_who_was_there() -> None:
    (row, *_) = rows("members", SAMPLE)
    assert {"group", "member_id", "client_id"} <= row.keys()
    assert CliRunner().invoke(main, ["members", SAMPLE, "-g", "nobody"]).stdout == ""
