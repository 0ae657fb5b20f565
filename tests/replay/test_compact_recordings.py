"""Compare latest served offsets to real brokers: after a restart, and cut at every step of a recording's timeline.

A broker's answers are the truth; the only exceptions are those named in the recordings' README.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.profile import CLASSIC, MODERN, MODERN_3_7, Profile
from tests.conftest import RECORDINGS, log_directories, read_json, read_json_lines, read_partitions

Recording = Callable[[str], Path]
OffsetRow = tuple[str, str, int, int, int | None, str]

LOADED = [name for name in RECORDINGS if name != "load-fails"]


def profile_of(recording: dict[str, Any]) -> Profile:
    """Return the rules of the coordinator that gave the answers."""
    if recording["kafka_version"].startswith("3.7") and recording["coordinator"] == "java":
        return MODERN_3_7
    return {"java": MODERN, "scala": CLASSIC}[recording["coordinator"]]


def load(log_directory: Path, profile: Profile) -> tuple[set[OffsetRow], set[tuple[str, str, int]]]:
    """Return served offsets and keys with a pending commit, of all partitions of a data folder."""
    served: set[OffsetRow] = set()
    pending: set[tuple[str, str, int]] = set()
    for log in read_partitions(log_directory).values():
        state = finish(replay(iter_events(log), profile, on_damage=lambda damage: None))
        pending |= {value.key for value in state.pending}
        served |= {
            (*value.key, value.committed_offset, value.leader_epoch, value.metadata) for value in state.iter_served()
        }
    return served, pending


def answered(answer: dict[str, Any]) -> set[OffsetRow]:
    """Return the offsets of a broker's answer."""
    columns = ("group", "topic", "partition", "committed_offset", "leader_epoch", "metadata")
    return {tuple(row[column] for column in columns) for row in answer["offsets"]}


def without_unanswered_topics(name: str, served: set[OffsetRow], answer: dict[str, Any]) -> set[OffsetRow]:
    """Drop topics that did not exist when kafka-0.8.2 was asked: its answers never name these (recordings' README)."""
    if name != "kafka-0.8.2":
        return served
    missing = {"nowhere", "тема-ü", "short-lived"}
    left = {row for row in served if row[1] not in missing}
    assert len(served) - len(left) == 11
    return left


@pytest.mark.parametrize("name", LOADED)
def test_served_offsets_equal_the_answers_after_a_restart(name: str, recording: Recording) -> None:
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    profile = profile_of(facts)
    compared = 0
    for log_directory in log_directories(folder):
        variant = log_directory.name.removeprefix("log")
        answer = read_json(folder / "answers" / f"restart{variant}.json")
        served, pending = load(log_directory, profile)
        assert without_unanswered_topics(name, served, answer) == answered(answer)
        compared += len(served)
        if "unstable" in answer:  # brokers before 2.5 and the 3.7 preview cannot be asked (B-8)
            assert pending == {tuple(key) for key in answer["unstable"]}
    assert compared > 0


def steps(folder: Path, facts: dict[str, Any]) -> list[tuple[Path, dict[str, Any]]]:
    """Yield the answers at known end offsets, each with its log; a live Scala broker is not a loaded one."""
    name = facts["name"]
    if facts["coordinator"] == "scala":
        loaded = folder / "answers" / "loaded.jsonl"
        return [(folder / "log", line) for line in read_json_lines(loaded)] if loaded.exists() else []
    timeline = folder / "timeline.jsonl"
    lines = read_json_lines(timeline) if timeline.exists() else []
    if name.endswith("-live-copy"):
        lines = lines[:1]  # the second line is later than the copy
    found = []
    for i, line in enumerate(lines):
        log = "log"
        if name.endswith("-cleaned"):
            log = "log-later" if i == len(lines) - 1 else "log-before"
        if "offsets" in line and not line.get("not_quiet"):
            found.append((folder / log, line))
    return found


WITH_STEPS = [
    name for name in LOADED if name.startswith("kafka-4") or name in ("kafka-3.7-preview", "kafka-3.9-classic")
]


def test_the_two_coordinators_differ_over_the_same_random_bytes(recording: Recording) -> None:
    """Both coordinators loaded the same logs: each served what its profile gives, and the results differ."""
    java, scala = recording("random-java"), recording("random-scala")
    by_java, _ = load(java / "log", MODERN)
    by_scala, _ = load(java / "log", CLASSIC)
    assert by_java == answered(read_json(java / "answers" / "restart.json"))
    assert by_scala == answered(read_json(scala / "answers" / "restart.json"))
    assert by_java - by_scala
    assert by_scala - by_java
