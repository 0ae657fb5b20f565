"""What assignors give to members: once, or to a group of consumers that come and go, generation by generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offsets_log.errors import AskedError
from offsets_log.pipeline import iter_events
from offsets_log.rebalance.assignors import ASSIGNORS
from offsets_log.rebalance.assignors.assignor import Metadata, Rules, Subscription
from offsets_log.rebalance.generation import Generation
from offsets_log.rebalance.named import parsed_members, parsed_topics
from offsets_log.rebalance.rounds import Clock, Consumer, GroupPlay
from offsets_log.rebalance.timeline import Timelines
from offsets_log.rows.tables import Row


def played_rows(
    members: Mapping[str, tuple[str, ...]],
    topics: Mapping[str, int],
    rounds: Sequence[str],
    assignor: str,
    rules: Rules,
) -> list[Row]:
    """Return one row of `ROUND_COLUMNS` for each member of each generation.

    Raises:
        AskedError: a change has another form, or is of a member that is not there.
    """
    play = GroupPlay(Metadata(dict(topics)), Clock(), rules=rules)
    for member_id, subscribed in members.items():
        play.join(Consumer(member_id, subscribed, (assignor,)))
    play.settle()
    for changes in rounds:
        for change in filter(None, (part.strip() for part in changes.split(","))):
            _make(change, play, assignor)
        play.settle()
    timelines = Timelines()
    timelines.read(iter_events(play.log.read(0)), _no_damage)
    return [row for entry in timelines for row in _rows(entry)]


def assigned_rows(
    members: Mapping[str, tuple[str, ...]], topics: Mapping[str, int], assignor: str, rules: Rules
) -> list[Row]:
    """Return one row of `ASSIGN_COLUMNS` for each member. Raises AssignorError."""
    subscriptions = {member_id: Subscription(topics=subscribed) for member_id, subscribed in members.items()}
    result = ASSIGNORS[assignor](rules).assign(Metadata(dict(topics)), subscriptions)
    return [
        {"member_id": member_id, "partitions": len(result[member_id]), "assigned": result[member_id]}
        for member_id in subscriptions
    ]


def _make(change: str, play: GroupPlay, assignor: str) -> None:
    present = {consumer.client_id: consumer for consumer in play.consumers}
    if change.startswith("-"):
        if change[1:] not in present:
            raise AskedError(f"there is no member {change[1:]!r} to leave; there are {', '.join(present)}")
        play.leave(present[change[1:]])
    elif change.startswith("+"):
        for member_id, subscribed in parsed_members([change[1:]]).items():
            if member_id in present:
                raise AskedError(f"there is a member {member_id!r} already")
            play.join(Consumer(member_id, subscribed, (assignor,)))
    else:
        play.metadata = Metadata({**play.metadata.partition_counts, **parsed_topics([change])})
        for consumer in play.consumers[:1]:  # the leader sees that a topic has grown, and joins again
            consumer.must_join = True


def _rows(entry: Generation) -> list[Row]:
    before = entry.previous.assignment if entry.previous else {}
    rows = []
    nobody: list[str | None] = [None]  # a generation all the same
    for member_id in sorted(entry.members) or nobody:
        units, had = entry.assignment.get(member_id or "", []), before.get(member_id or "", [])
        rows.append(
            {
                "generation": entry.number,
                "protocol": entry.protocol,
                "leader": entry.leader,
                "member_id": member_id,
                "partitions": len(units),
                "assigned": units,
                "gained": [unit for unit in units if unit not in had],
                "lost": [unit for unit in had if unit not in units],
            }
        )
    return rows


def _no_damage(damage: object) -> None:
    raise AssertionError(damage)
