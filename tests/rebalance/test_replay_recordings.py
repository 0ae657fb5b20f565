"""Join and sync replayed from what happened in the recordings: the same generations, leaders, protocols, assignments.

Who came and who went is taken from the log's entries, which `test_timeline` holds against the brokers' answers; the
protocols that members vote for from the steps' own words. Everything else is played: the vote, the leader, the number
of the generation, the leader's assignment and, of a cooperative group, the generations that follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offsets_log.messages.consumer_protocol import decode_subscription
from offsets_log.pipeline import iter_events
from offsets_log.rebalance.assignors.assignor import Metadata
from offsets_log.rebalance.classic_group import Joining
from offsets_log.rebalance.generation import Generation, GenerationMember
from offsets_log.rebalance.rounds import Clock, Consumer, GroupPlay
from offsets_log.rebalance.timeline import Timelines
from tests.conftest import read_json, read_json_lines
from tests.rebalance.test_timeline import read_timelines

Recording = Callable[[str], Path]
RELEASES = {"kafka-4.3-mixed": "4.3", "kafka-3.9-classic": "3.9"}
SUPPORTS = re.compile(r"a member that supports \[([^\]]*)\] joined (\S+)")


def protocols_by_group(folder: Path) -> dict[str, list[tuple[str, ...]]]:
    """Group → what its members listed, in the order they came, where the steps tell it."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for step in read_json_lines(folder / "timeline.jsonl"):
        if match := SUPPORTS.match(step["what"]):
            found.setdefault(match[2], []).append(tuple(match[1].split(", ")))
    return found


def eager_groups(entries: list[Generation]) -> bool:
    """Whether cooperative-sticky was voted for by members that list another protocol too: they give everything back."""
    return any(
        entry.protocol == "cooperative-sticky"
        and entry.previous is not None
        and member.member_id in entry.previous.assignment
        and entry.previous.assignment[member.member_id]
        and not decode_subscription(member.row["subscription"]).fields["owned_partitions"]
        for entry in entries
        for member in entry.members.values()
    )


def consumer_of(member: GenerationMember, protocols: tuple[str, ...]) -> Consumer:
    fields = decode_subscription(member.row["subscription"]).fields
    return Consumer(
        member.client_id,
        tuple(fields["topics"]),
        protocols,
        group_instance_id=member.group_instance_id,
        rack_id=fields.get("rack_id"),
    )


class Replay:
    """A recorded group, played again."""

    def __init__(
        self, group_id: str, metadata: Metadata, release: str, listed: list[tuple[str, ...]], also: tuple[str, ...]
    ) -> None:
        self.ids: list[str] = []
        self.also = also
        self.listed = iter(listed)
        self.by_id: dict[str, Consumer] = {}
        self.play = GroupPlay(metadata, Clock(1), group_id=group_id, release=release, new_member_id=self.new_member_id)

    def new_member_id(self, joining: Joining) -> str:
        return self.ids.pop(0)

    def apply(self, entry: Generation) -> None:
        """Who came and who went since the entry before."""
        returning = {member.group_instance_id for member in entry.change.joined} - {None}
        for member in entry.change.left:
            consumer = self.by_id.pop(member.member_id)
            if member.group_instance_id in returning:
                self.play.vanish(consumer)
            else:
                self.play.leave(consumer)
        for member in entry.change.joined:
            protocols = next(self.listed, (str(entry.protocol), *self.also))
            consumer = self.by_id[member.member_id] = consumer_of(member, protocols)
            self.ids.append(member.member_id)
            self.play.join(consumer)
        self.play.settle()

    def entries(self) -> list[Generation]:
        timelines = Timelines()
        timelines.read(iter_events(self.play.log.read(0)), lambda damage: None)
        return list(timelines)


def facts(entry: Generation) -> dict[str, Any]:
    """What must be the same; subscriptions and assignments as their bytes."""
    return {
        "number": entry.number,
        "state": entry.state,
        "protocol_type": entry.protocol_type,
        "protocol": entry.protocol,
        "leader": entry.leader,
        "members": {
            member_id: (
                member.group_instance_id,
                member.client_id,
                member.row["subscription"].hex(),
                member.row["assignment"].hex(),
            )
            for member_id, member in entry.members.items()
        },
    }


def lives(entries: list[Generation]) -> list[list[Generation]]:
    """A group's entries, again for each time it was deleted."""
    found: list[list[Generation]] = [[]]
    for entry in entries:
        if entry.number is None:
            found.append([])
        else:
            found[-1].append(entry)
    return [life for life in found if life]


@pytest.mark.parametrize("name", RELEASES)
def test_replayed_groups_have_the_recorded_generations(name: str, recording: Recording) -> None:
    """``G-3`` … ``G-9``, ``W-11`` … ``W-14``: every classic consumer group of the recording, from its first to last."""
    folder = recording(name)
    topics = read_json(folder / "recording.json")["topics"]
    metadata = Metadata({topic: row["partitions"] for topic, row in topics.items()})
    listed = protocols_by_group(folder)
    compared = 0
    for group_id, entries in read_timelines(folder / "log", topics).generations.items():
        if any(entry.kind != "classic" or entry.protocol_type != "consumer" for entry in entries if entry.number):
            continue
        also = ("range",) if eager_groups(entries) else ()
        for life in lives(entries):
            replay = Replay(group_id, metadata, RELEASES[name], listed.get(group_id, []), also)
            for at, entry in enumerate(life):
                if len(replay.entries()) <= at:
                    replay.apply(entry)
                assert facts(replay.entries()[at]) == facts(entry), (group_id, entry.number)
                compared += 1
            assert len(replay.entries()) == len(life)
    assert compared >= 40
