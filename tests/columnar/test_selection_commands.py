"""Commands that ask about few records: the same bytes whether batches are passed by or every record is decoded."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsets_log_cli.main import main
from tests.broker.test_damaged import FOLDERS
from tests.conftest import DISTINCT, NEVER, BulkFrom, log_directories, unpack_once


def answers(bulk_from: BulkFrom, log: Path, *arguments: str) -> tuple[int, str, list[str]]:
    """What a command says of a log in bulk, which is what it says otherwise."""
    found = []
    for least_bytes in (NEVER, 0):
        bulk_from(least_bytes)
        done = CliRunner().invoke(main, [arguments[0], str(log), *arguments[1:]], catch_exceptions=False)
        words = [line for line in done.stderr.split("\n") if not line.startswith("compiling for this machine")]
        found.append((done.exit_code, done.stdout, words))
    assert found[0] == found[1], arguments
    return found[1]


COMMANDS = ("history", "rebalances", "decode")


def others(group: str) -> Sequence[tuple[str, ...]]:
    """More questions about a group, and about many."""
    return (
        ("history", "-g", group, "--rewinds", "-o", "csv"),
        ("history", "-g", group, "--profile", "classic", "-o", "jsonl"),
        ("rebalances", "-g", group, "--verify", "-o", "jsonl"),
        ("decode", "-g", group, "--expand", "-o", "jsonl"),
        ("decode", "-g", group, "--as", "dump-log"),
        ("rebalances", "-o", "jsonl"),
        ("history", "-g", "*", "-o", "csv"),
        ("history", "-g", "*", "-t", "*o*", "--topic-partition", "0", "-o", "table"),
        ("decode", "-g", "*[a-m]*", "-t", "*o*", "-o", "jsonl"),
    )


def groups_of(bulk_from: BulkFrom, log: Path) -> list[str]:
    bulk_from(NEVER)
    done = CliRunner().invoke(main, ["decode", str(log), "-o", "jsonl", "-q"], catch_exceptions=False)
    keys = [json.loads(line).get("key") or {} for line in done.stdout.split("\n") if line]
    names = {key.get("group", key.get("groupId")) for key in keys if isinstance(key, dict)} - {None}
    return sorted(names)


@pytest.mark.parametrize("name", DISTINCT)
def test_recordings(name: str, recording: Callable[[str], Path], bulk_from: BulkFrom) -> None:
    """A command of a group, and a third of the other questions: all in turn."""
    dice = random.Random(name)
    for turn, log in enumerate(log_directories(recording(name))[:2], DISTINCT.index(name)):
        group = dice.choice(groups_of(bulk_from, log) or ["no-such-group"])
        answers(bulk_from, log, COMMANDS[turn % len(COMMANDS)], "-g", group, "-o", "jsonl", "-v")
        for arguments in others(group)[turn % 3 :: 3]:
            answers(bulk_from, log, *arguments)


BOUNDS = (
    ("--until-offset", "40"),
    ("--until-offset", "1:200"),
    ("--until-time", "1795239373667"),
    ("-p", "1"),
    ("-t", "m*"),
    ("--strict",),
    ("-q",),
)


BOUNDED = ("kafka-4.3-mixed", "random-java", "kafka-4.3-live-copy")


@pytest.mark.parametrize("bounds", BOUNDS, ids=" ".join)
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds(name: str, bounds: tuple[str, ...], recording: Callable[[str], Path], bulk_from: BulkFrom) -> None:
    """Commands in turn: each meets every bound, on one of the recordings."""
    turn = BOUNDS.index(bounds) + BOUNDED.index(name)
    answers(
        bulk_from, log_directories(recording(name))[0], COMMANDS[turn % 3], "-g", "*-[a-s]*", *bounds, "-o", "jsonl"
    )


@pytest.mark.parametrize("name", FOLDERS[1::4])
def test_damaged_logs(
    name: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, bulk_from: BulkFrom
) -> None:
    folder = unpack_once(Path(__file__).parents[1] / "broker" / "damaged.tar.xz", tmp_path_factory, request) / name
    group, *_ = groups_of(bulk_from, folder)
    for command in COMMANDS:
        status, _, _ = answers(bulk_from, folder, command, "-g", group, "-v", "-o", "jsonl")
        assert status == 3
