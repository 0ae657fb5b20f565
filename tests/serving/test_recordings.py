"""What clients are answered over every recording: what its broker answered, after a restart and at every step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import log_directories, read_json
from tests.replay.test_compact_recordings import (
    LOADED,
    WITH_STEPS,
    answered,
    profile_of,
    steps,
    without_unanswered_topics,
)
from tests.replay.test_rebuild_recordings import TYPE_OF_EMPTY_GROUP_IS_LOST, differences
from tests.serving.client import UNSTABLE, Served, moments, offsets_of, told

Recording = Callable[[str], Path]


def compare(name: str, served: Served, answer: dict[str, Any]) -> None:
    document = told(served)
    assert without_unanswered_topics(name, answered(document), answer) == answered(answer)
    if "groups" in answer:
        assert differences(document, answer) == []
    for group, topic, partition in answer.get("unstable", ()):
        asked = [{"name": topic, "partition_indexes": [partition]}]
        (row,) = offsets_of(served, group, asked, stable=True)
        assert (row["error_code"], row["committed_offset"]) == (UNSTABLE, -1)


@pytest.mark.parametrize("name", LOADED)
def test_clients_get_the_answers_after_a_restart(name: str, recording: Recording) -> None:
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    for log_directory in log_directories(folder):
        answer = read_json(folder / "answers" / f"restart{log_directory.name.removeprefix('log')}.json")
        for row in answer.get("groups", ()) if name in TYPE_OF_EMPTY_GROUP_IS_LOST else ():
            if row["state"] == "Empty":
                row.pop("protocol_type")
        with moments(log_directory, profile=profile_of(facts).name, topics=facts.get("topics")) as (asked, session):
            compare(name, asked.load(session), answer)


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-lifetime"])
def test_clients_get_the_same_of_logs_that_kernels_read(
    name: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offsets_log.columnar.large.BULK_FROM_BYTES", 0)
    test_clients_get_the_answers_after_a_restart(name, recording)


@pytest.mark.parametrize("name", WITH_STEPS)
def test_clients_get_the_answers_at_steps(name: str, recording: Recording) -> None:
    """At every third from the last: that the state is right at all of them is asked where it is rebuilt."""
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    found = steps(folder, facts)[::-3]
    for log_directory in dict.fromkeys(log for log, _ in found):
        with moments(log_directory, profile=profile_of(facts).name, topics=facts.get("topics")) as (asked, session):
            for line in (line for log, line in found if log == log_directory):
                bounds = tuple(
                    (log.offsets_partition, line["end_offsets"].get(str(log.offsets_partition), 0))
                    for log in session.inputs.logs
                )
                compare(name, asked.load(session.bounded(bounds)), line)
