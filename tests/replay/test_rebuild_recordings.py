"""Compare groups, members and loads to real brokers, key by key over the keys in their answers.

Each exception is named, with the reason why the log does not show it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offsets_log.coordinator_document import Memory
from offsets_log.events import Until
from offsets_log.log_format.primitives import Uuid
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.profile import CLASSIC, PROFILES, RELEASES, Profile
from offsets_log.rows.survey import Survey
from tests.conftest import log_directories, read_json, read_partitions
from tests.replay.test_compact_recordings import LOADED, WITH_STEPS, Recording, answered, profile_of, steps

Json = dict[str, Any]


def rebuild(log_directory: Path, profile: Profile, topics: Json, end_offsets: dict[str, int] | None = None) -> Json:
    """Return the document of a data folder."""
    memory = Memory(profile)
    for partition, log in read_partitions(log_directory).items():
        until = Until() if end_offsets is None else Until(end_offsets.get(str(partition), 0))
        found = Survey.of(log)
        events = found.watch(iter_events(log, until=until))
        memory.add(log, finish(replay(events, profile, on_damage=lambda damage: None)), found)
    memory.name_topics({Uuid.from_text(topic["id"]): name for name, topic in topics.items() if "id" in topic}, {})
    return memory.document([])


def comparable(row: Json, answer: Json) -> tuple[Json, Json]:
    """Return both over the answer's keys; "" and null are equal for a missing protocol."""
    ours, theirs = {}, {}
    for key, value in answer.items():
        if key == "members":
            continue
        if key == "topology" and value is not None:
            # After a restart the partition counts of internal topics are 0 until a member speaks.
            value, found = _without_counts(value), _without_counts(row[key])
        else:
            found = row[key]
            value = sorted(value) if key == "subscribed_topics" else value  # a set, in the broker's own order
        ours[key], theirs[key] = (found or None, value or None) if key in EMPTY_IS_NULL else (found, value)
    return ours, theirs


TYPE_OF_EMPTY_GROUP_IS_LOST = ("kafka-0.10.2", "kafka-0.11-compacted")
"""Brokers that keep no protocol type when they load a group without members; 1.1 and later do (``L-25``)."""

EMPTY_IS_NULL = frozenset({"protocol", "protocol_type", "assignment"})


def _without_counts(topology: Json) -> Json:
    for subtopology in topology["subtopologies"]:
        for name in ("stateChangelogTopics", "repartitionSourceTopics"):
            for topic in subtopology[name]:
                topic["partitions"] = None
    return topology


def differences(document: Json, answer: Json) -> list[str]:
    """Return where a broker's answer differs from ours."""
    ours = {row["group"]: row for row in document["groups"]}
    expected = {row["group"]: row for row in answer["groups"] if row["type"] is not None}
    found = [f"only one has group {name!r}" for name in sorted(set(ours) ^ set(expected))]
    for name in set(ours) & set(expected):
        found += _row_differences(name, ours[name], expected[name])
        members = {member["member_id"]: member for member in ours[name]["members"]}
        theirs = {member["member_id"]: member for member in expected[name]["members"]}
        found += [f"{name!r}: only one has member {member!r}" for member in sorted(set(members) ^ set(theirs))]
        for member_id in set(members) & set(theirs):
            found += _row_differences(f"{name} {member_id}", members[member_id], theirs[member_id])
    return found


def _row_differences(name: str, row: Json, answer: Json) -> list[str]:
    left, right = comparable(row, answer)
    return [f"{name!r} {key}: {left[key]!r} != {right[key]!r}" for key in right if left[key] != right[key]]


def test_groups_of_a_release_without_group_records_are_those_with_offsets(recording: Recording) -> None:
    """0.8.2 lists no groups; for a group it keeps only topics that its answers never name."""
    folder = recording("kafka-0.8.2")
    answer = read_json(folder / "answers" / "restart.json")
    assert "groups" not in answer
    document = rebuild(folder / "log", CLASSIC, {})
    named = {row["group"] for row in answer["offsets"]}
    assert {row["group"] for row in document["groups"]} == named | {"grüppe-ärger"}


@pytest.mark.parametrize("name", [name for name in LOADED if name != "kafka-0.8.2"])
def test_groups_and_members_equal_the_answers_after_a_restart(name: str, recording: Recording) -> None:
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    for log_directory in log_directories(folder):
        answer = read_json(folder / "answers" / f"restart{log_directory.name.removeprefix('log')}.json")
        document = rebuild(log_directory, profile_of(facts), facts.get("topics", {}))
        if name in TYPE_OF_EMPTY_GROUP_IS_LOST:
            for row in answer["groups"]:
                if row["state"] == "Empty":
                    assert not row.pop("protocol_type")
        assert differences(document, answer) == []
        assert all(load["ok"] for load in document["loads"].values())


@pytest.mark.parametrize("name", WITH_STEPS)
def test_offsets_groups_and_members_equal_the_answers_at_every_step(name: str, recording: Recording) -> None:
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    found = steps(folder, facts)
    for log_directory, line in found:
        document = rebuild(log_directory, profile_of(facts), facts.get("topics", {}), line["end_offsets"])
        assert differences(document, line) == [], line["what"]
        assert answered(document) == answered(line), line["what"]
        if "unstable" in line:
            pending = {(row["group"], row["topic"], row["partition"]) for row in document["pending"]}
            assert pending == {tuple(key) for key in line["unstable"]}, line["what"]
    assert found


OTHER_RELEASES = {"4.0.0": "4.0", "3.9.1-java": "3.9-java", "3.7.2-java": "3.7-java"}


@pytest.mark.parametrize("answers", OTHER_RELEASES)
def test_other_releases_of_the_java_coordinator_answer_by_their_own_rules(answers: str, recording: Recording) -> None:
    """Releases refuse, serve and list parts of the same random bytes by their own rules (``B-8``, ``B-9``)."""
    folder = recording("random-java")
    profile = RELEASES[OTHER_RELEASES[answers]]
    answer = read_json(folder / "answers" / f"restart-{answers}.json")
    memory = Memory(profile)
    refused = set()
    for partition, log in read_partitions(folder / "log").items():
        state = finish(replay(iter_events(log), profile, on_damage=lambda damage: None))
        if state.failure is not None:
            refused.add(partition)
        memory.add(log, state, Survey.of(log), as_broker=True)
    document = memory.document([])
    assert refused == {row["offsets_partition"] for row in answer["failed"]}
    names = ("group", "topic", "partition", "committed_offset", "leader_epoch", "metadata")
    assert {tuple(row[name] for name in names) for row in document["offsets"]} == {
        tuple(row[name] for name in names) for row in answer["offsets"]
    }
    for row in answer["groups"]:
        if row.get("error") == "UNSUPPORTED_VERSION":  # 3.9.1 has no request that describes a consumer group
            row.update({group["group"]: group for group in document["groups"]}[row["group"]], type=row["type"])
            del row["error"]
        if row["type"] == "":  # 3.7.2 and 3.9.1 were asked by a request that names no type
            row["type"] = {group["group"]: group["type"] for group in document["groups"]}[row["group"]]
    assert differences(document, answer) == []


LOAD_FAILS = {"3.9.1": "classic", "4.0.0": "4.0", "4.1.1": "4.1", "4.2.0": "4.2", "4.3.0": "modern"}
NOT_COMPARED = {
    32: "members without a protocol: the brokers' describe fails",
    37: "4.3's describe of a streams group without a topology fails",
    47: "the answers of a group of another partition stand under that partition",
    48: "the broker's recovery had cut the log before it was loaded",
}


@pytest.mark.parametrize("version", LOAD_FAILS)
def test_groups_of_the_hand_made_partitions_equal_each_releases_answers(version: str, recording: Recording) -> None:
    folder = recording("load-fails")
    profile = {**PROFILES, **RELEASES}[LOAD_FAILS[version]]
    file = "load.json" if version == "4.3.0" else f"load-{version}.json"
    logs = read_partitions(folder / "log")
    compared = 0
    for answer in read_json(folder / "answers" / file):
        partition = answer["partition"]
        if partition in NOT_COMPARED:
            continue
        state = finish(replay(iter_events(logs[partition]), profile, on_damage=lambda damage: None))
        memory = Memory(profile)
        memory.add(logs[partition], state, Survey.of(logs[partition]), as_broker=True)
        document = memory.document([])
        for member in (member for group in document["groups"] for member in group["members"]):
            if "inferred" in member:  # these topics do not exist: the brokers leave them out, and infer nothing
                member["assignment"] = []
        assert differences(document, answer) == [], answer["what"]
        compared += len(state.groups)
    assert compared > 90
