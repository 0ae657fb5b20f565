"""The commands say the same of a log whether kernels read it or not: exit status, rows and words."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar.choose.selected import selected_events
from offsets_log.columnar.choose.selection import Selection
from offsets_log.disk.reader import open_logs
from offsets_log.events import EVERYTHING, LogEvent, Until
from offsets_log.investigate.removal import removals
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.expiry import ERAS
from offsets_log.replay.profile import PROFILES
from offsets_log_cli.main import main
from tests.builders import TIME, LogBuilder
from tests.columnar.test_equal_engines import SEEDS, STEPS, build
from tests.conftest import NEVER, PACKED, BulkFrom
from tests.fuzz.mutation import hostile_segments, recorded_segments, seeds_of
from tests.replay.test_compact_recordings import Recording
from tests.sizes import examples, so_many

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
    ("history", "-g", "*", "--from-time", "2026-11-21T05:36:10Z", "--rewinds"),
    ("diff", "--from-offset", "40", "--why"),
    ("diff", "--from-offset", "40", "--table", "members"),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-live-copy", "random-java"])
def test_both_engines(name: str, arguments: tuple[str, ...], recording: Recording, bulk_from: BulkFrom) -> None:
    log = str(recording(name) / "log")
    answers = []
    for least_bytes in (NEVER, 0):
        bulk_from(least_bytes)
        done = CliRunner().invoke(main, [arguments[0], log, "-o", "jsonl", *arguments[1:]], catch_exceptions=False)
        words = sorted(line for line in done.stderr.split("\n") if not line.startswith("compiling for this machine"))
        answers.append((done.exit_code, done.stdout, words))
    assert answers[0] == answers[1]


FORMS = ((), ("-g", "*a*", "-t", "*[1e]*"), ("--until-offset", "60", "--profile", "classic"), ("--as-broker",))


@pytest.mark.parametrize("arguments", FORMS, ids=" ".join)
@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "random-java"])
def test_both_engines_rescue_the_same_files(
    name: str, arguments: tuple[str, ...], recording: Recording, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """All forms: files for every tool, what is left out, the plan and the words of README.txt."""
    answers = []
    out = tmp_path / "out"
    for least_bytes in (NEVER, 0):
        bulk_from(least_bytes)
        command = ["rescue", str(recording(name) / "log"), "--to", str(out), *arguments]
        done = CliRunner().invoke(main, command, catch_exceptions=False)
        words = sorted(line for line in done.stderr.split("\n") if not line.startswith("compiling for this machine"))
        files = {path.name: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
        answers.append((done.exit_code, done.stdout, words, files))
        shutil.rmtree(out, ignore_errors=True)
    assert answers[0] == answers[1]
    assert {"plan.json", "README.txt"} <= answers[0][3].keys()


# ------------------------------------------------------------------------------------------ how offsets went


def removals_both_ways(log: PartitionLog, cut: int, profile: str, *, is_same_log: bool) -> list[Any]:
    """How offsets that were served before a record went: of all events decoded, and of those that are asked for."""
    rules = PROFILES[profile]
    before, after = (
        finish(replay(iter_events(log, until=until), rules, on_damage=lambda damage: None))
        for until in (Until(cut), EVERYTHING)
    )
    start = cut if is_same_log else None
    held = {value.key for value in (*before.iter_served(), *before.pending)}
    gone = frozenset(held | {(*key[:2], 1 - key[2]) for key in held})

    def all_of_it(selection: Selection, wants: Any) -> Iterable[LogEvent]:
        return iter_events(log, start=start or 0)

    def chosen(selection: Selection, wants: Any) -> Iterable[LogEvent]:
        return selected_events(log, selection, start=start or 0, wants=wants)

    return [removals(read, before, after, start, gone, ERAS[profile], None) for read in (all_of_it, chosen)]


@examples(60)
@given(steps=STEPS, profile=st.sampled_from(list(PROFILES)), cut=st.integers(1, 30), is_same_log=st.booleans())
def test_removals_of_generated_logs(steps: Any, profile: str, cut: int, is_same_log: bool) -> None:
    expected, found = removals_both_ways(build(steps).log, cut, profile, is_same_log=is_same_log)
    assert found == expected


def test_what_goes_is_what_a_marker_put_in_the_place_of_a_commit_before_it() -> None:
    """3.7 compares nothing at a marker (``J-11``)."""
    log = LogBuilder().commit(1).commit(2, producer=7, commit_timestamp=0).commit(3).end(7).commit(None).log
    expected, found = removals_both_ways(log, 1, "modern-3.7", is_same_log=True)
    assert found == expected
    assert f"{TIME + 4} ms" in found["g", "t", 0].reason, "since the commit of the transaction"


def test_removals_in_hostile_segments() -> None:
    seeds = seeds_of(recorded_segments([PACKED / f"{name}.tar.xz" for name in SEEDS]))
    for number, data in enumerate(islice(hostile_segments(seeds, 17), so_many(100))):
        log = PartitionLog(0, (Segment("fuzz.log", 0, data),))
        expected, found = removals_both_ways(log, 5 + number % 20, "modern", is_same_log=bool(number % 2))
        assert found == expected


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "random-java"])
@pytest.mark.parametrize("profile", list(PROFILES))
def test_removals_of_recordings(name: str, profile: str, recording: Recording) -> None:
    with open_logs([str(recording(name) / "log")]) as opened:
        for log in opened.logs:
            for cut, is_same_log in ((3, True), (40, True), (40, False), (150, True)):
                expected, found = removals_both_ways(log, cut, profile, is_same_log=is_same_log)
                assert found == expected
