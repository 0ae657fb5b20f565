"""Checks of recorded assignments: the recorded protocol's assignor is run again on the recorded subscriptions.

The log does not say which release's rules the leader followed (`assignor.RULES`), nor how many partitions a topic had
(``A-21``). So all rules are tried, newest first, with the counts that were given, else with those that this generation,
the log up to it, and the whole log show. An assignment that none of them gives is checked for what its assignor
guarantees (``A-10``, ``A-18``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from offsets_log.errors import CorruptRecordError
from offsets_log.messages.consumer_protocol import decode_subscription
from offsets_log.rebalance.assignors import ASSIGNORS, rules_that_differ
from offsets_log.rebalance.assignors.assignor import (
    RULES,
    Assignment,
    Metadata,
    Subscription,
    Subscriptions,
    TopicPartition,
)
from offsets_log.rebalance.assignors.sticky import COOPERATIVE
from offsets_log.rebalance.assignors.sticky_claims import all_equal, sticky_claim
from offsets_log.rebalance.consumer_bytes import by_topic, subscription_of
from offsets_log.rebalance.generation import Generation
from offsets_log.replay.group import CLASSIC, SHARE
from offsets_log.words import counted

Counts = dict[str, int]
RULES_OF = {name: rules_that_differ(name) for name in ASSIGNORS}
MAX_PARTITIONS = 200_000
"""How many partitions a group's topics may have together: a hostile assignment names any number."""
SHOWN = 3
"""How many differences are named one by one."""


class Verdict(StrEnum):
    """The result of the comparison."""

    SAME = "same"
    SAME_AS_SETS = "same as sets"
    DIFFERS = "differs"
    NOT_REPRODUCIBLE = "not reproducible"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result for one generation.

    Attributes:
        rules: the rules that give this assignment, such as ``3.7.1+``.
        reason: how it differs, or why it cannot be computed.
        broken: guarantees of the assignor that the assignment breaks.
    """

    verdict: Verdict
    rules: str | None = None
    reason: str | None = None
    broken: tuple[str, ...] = ()


def verify_all(entries: Iterable[Generation], given: Mapping[str, int]) -> Iterator[tuple[Generation, Verification]]:
    """Yield every generation in which members were assigned something, with its verification.

    Args:
        entries: the timelines of all groups of the log.
        given: topic → number of partitions, as far as known.
    """
    everything = list(entries)
    in_time = sorted(everything, key=lambda entry: (entry.timestamp_ms or 0, entry.record_offset))
    own = {id(entry): counts_in(entry) for entry in everything}
    ever = _largest(own[id(entry)] for entry in in_time)
    until: Counts = {}
    counts_at: dict[int, Counts] = {}
    for entry in in_time:
        if any(until.get(topic, 0) < count for topic, count in own[id(entry)].items()):
            until = _largest((until, own[id(entry)]))
        counts_at[id(entry)] = until
    for entry in everything:
        if entry.members:
            asked = _topics_of(entry)
            candidates: list[Counts] = []
            for seen in (counts_at[id(entry)], ever, own[id(entry)]):
                counts = {topic: count for topic, count in {**seen, **given}.items() if topic in asked}
                if counts not in candidates:
                    candidates.append(counts)
            yield entry, verify(entry, candidates)


def verify(entry: Generation, candidates: list[Counts]) -> Verification:
    """Verify one generation that has members.

    Args:
        candidates: maps of topic → number of partitions, the likeliest first.
    """
    if sum(candidates[0].values()) > MAX_PARTITIONS:
        return Verification(Verdict.NOT_REPRODUCIBLE, reason=f"there would be more than {MAX_PARTITIONS} partitions")
    if entry.kind != CLASSIC:
        return _unreproducible("the broker assigns, by what it knows of topics and racks", entry, {}, {})
    if entry.protocol_type != "consumer":
        return Verification(
            Verdict.NOT_REPRODUCIBLE, reason=f"members of type {entry.protocol_type!r} assign by rules of their own"
        )
    if entry.changes_members_only:
        return _unchanged(entry)
    if entry.was_converted:
        return _unreproducible("the broker made it of a consumer group", entry, {}, {})
    try:
        subscriptions = subscriptions_of(entry)
    except CorruptRecordError as error:
        return Verification(Verdict.NOT_REPRODUCIBLE, reason=str(error))
    if entry.protocol not in ASSIGNORS:
        why = f"the assignor {entry.protocol!r} is none of Kafka's"
        return _unreproducible(why, entry, subscriptions, candidates[0])
    recorded = {member_id: entry.assignment.get(member_id, []) for member_id in subscriptions}
    found = _first_same(entry.protocol, recorded, subscriptions, candidates)
    if found is None and entry.protocol == "sticky" and _is_old(entry):
        return _unreproducible("clients before 2.4 have another algorithm", entry, subscriptions, candidates[0])
    return found or _not_same(entry, recorded, subscriptions, candidates)


def _is_old(entry: Generation) -> bool:
    """Whether a member's subscription, all of which parse, is of the oldest version."""
    return any(decode_subscription(member.row["subscription"]).version == 0 for member in entry.members.values())


def _first_same(
    protocol: str, recorded: Assignment, subscriptions: dict[str, Subscription], candidates: list[Counts]
) -> Verification | None:
    same_sets = None
    given = sum(map(len, recorded.values()))
    waiting = sum(len(each.owned_partitions) for each in subscriptions.values()) if protocol == COOPERATIVE else 0
    for counts in candidates:
        if not sum(counts.values()) - waiting <= given <= sum(counts.values()):
            continue  # an assignor hands out everything, but for what is to be given back first
        for rules in RULES_OF[protocol]:
            computed = ASSIGNORS[protocol](rules).assign(Metadata(counts), subscriptions)
            if {each: by_topic(computed[each]) for each in computed} == recorded:
                return Verification(Verdict.SAME, rules.name)
            if same_sets is None and _sets(computed) == _sets(recorded):
                why = "the order within a member's list is another"
                same_sets = Verification(Verdict.SAME_AS_SETS, rules.name, why)
    return same_sets


def _not_same(
    entry: Generation, recorded: Assignment, subscriptions: dict[str, Subscription], candidates: list[Counts]
) -> Verification:
    assert entry.protocol is not None
    counts = candidates[0]
    computed = ASSIGNORS[entry.protocol](RULES[0]).assign(Metadata(counts), subscriptions)
    how = _difference(recorded, computed, entry)
    if any(each.rack is not None for each in subscriptions.values()) and entry.protocol != "roundrobin":
        why = f"racks of replicas are not in the log; without them {how}"
        return _unreproducible(why, entry, subscriptions, counts)
    if "sticky" in entry.protocol and not all_equal(subscriptions):
        return _unreproducible(f"it may depend on the order of hash tables; {how}", entry, subscriptions, counts)
    others = (name for name in ASSIGNORS if name != entry.protocol)
    other = next((name for name in others if _first_same(name, recorded, subscriptions, candidates)), None)
    if other is not None:
        how += f"; {other} would give this: the leader is no Java client"
    elif all(len(computed[member_id]) == len(recorded[member_id]) for member_id in recorded):
        how += "; each member has as many as it should: the leader orders members or partitions in a way of its own"
    broken = broken_guarantees(entry, subscriptions, counts)
    return Verification(Verdict.DIFFERS, reason=how, broken=tuple(broken))


def _unreproducible(
    why: str, entry: Generation, subscriptions: dict[str, Subscription], counts: Counts
) -> Verification:
    broken = tuple(broken_guarantees(entry, subscriptions, counts))
    return Verification(Verdict.NOT_REPRODUCIBLE, reason=why, broken=broken)


def _unchanged(entry: Generation) -> Verification:
    """Verify that a static member that came back has what it had (``G-8``)."""
    assert entry.previous is not None
    if entry.owners == entry.previous.owners:
        return Verification(Verdict.SAME, reason="nothing was assigned: a static member came back")
    return Verification(Verdict.DIFFERS, reason="the same generation has another assignment")


# ------------------------------------------------------------------------------------ what was recorded


def subscriptions_of(entry: Generation) -> dict[str, Subscription]:
    """Return the members' subscriptions, in the order of the record.

    Raises:
        CorruptRecordError: one does not parse.
    """
    return {
        member_id: subscription_of(member.row["subscription"], member.group_instance_id, f"subscription of {member_id}")
        for member_id, member in entry.members.items()
    }


def counts_in(entry: Generation) -> Counts:
    """Return topic → number of partitions, as far as what is assigned and owned in a consumers' generation shows it."""
    if entry.protocol_type != "consumer":
        return {}
    partitions: list[TopicPartition] = [unit for units in entry.assignment.values() for unit in units]
    if entry.kind == CLASSIC:
        try:
            for each in subscriptions_of(entry).values():
                partitions += each.owned_partitions
                if entry.protocol == "sticky":
                    partitions += sticky_claim(each, RULES[0]).partitions
        except CorruptRecordError:
            pass
    found: Counts = {}
    for topic, number in partitions:
        found[topic] = max(found.get(topic, 0), number + 1)
    return found


def _topics_of(entry: Generation) -> set[str]:
    """Return the topics that the group's members subscribe to."""
    if entry.kind != CLASSIC or entry.protocol_type != "consumer":
        return set()
    try:
        return {topic for each in subscriptions_of(entry).values() for topic in each.topics}
    except CorruptRecordError:
        return set()


def _largest(several: Iterable[Counts]) -> Counts:
    found: Counts = {}
    for counts in several:
        for topic, count in counts.items():
            found[topic] = max(found.get(topic, 0), count)
    return found


def _sets(assignment: Assignment) -> dict[str, list[TopicPartition]]:
    return {member_id: sorted(partitions) for member_id, partitions in assignment.items()}


def _difference(recorded: Assignment, computed: Assignment, entry: Generation) -> str:
    """Say which partitions have other owners than the newest rules give them."""
    given = {partition: member_id for member_id, partitions in recorded.items() for partition in partitions}
    wanted = {partition: member_id for member_id, partitions in computed.items() for partition in partitions}
    others = sorted(partition for partition in given.keys() | wanted if given.get(partition) != wanted.get(partition))

    def name(member_id: str | None) -> str:
        return "nobody" if member_id is None else entry.members[member_id].client_id or member_id

    shown = [
        f"{topic}-{number} with {name(given.get((topic, number)))} and not {name(wanted.get((topic, number)))}"
        for topic, number in others[:SHOWN]
    ]
    more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
    return f"{counted(len(others), 'partition is', 'partitions are')} elsewhere: {', '.join(shown)}{more}"


# ------------------------------------------------- what an assignment keeps whoever computed it (``A-10``)

BALANCED = ("roundrobin", "sticky")
"""Assignors whose members' counts differ by at most one if all subscribe to the same topics."""


def broken_guarantees(entry: Generation, subscriptions: Subscriptions, counts: Mapping[str, int]) -> list[str]:
    """Return the guarantees that an assignment breaks, in words.

    Args:
        subscriptions: empty if unknown; then only what needs none is checked.
        counts: topic → number of partitions, as far as known.
    """
    found = []
    if entry.kind != SHARE:
        twice = sorted(unit for unit, owners in entry.owners.items() if len(owners) > 1)
        found += [f"{_name(unit)} is assigned to {len(entry.owners[unit])} members" for unit in twice]
    for member_id, subscription in subscriptions.items():
        found += [
            f"{_name(unit)} is assigned to {member_id}, which does not subscribe to it"
            for unit in entry.assignment.get(member_id, [])
            if unit[0] not in subscription.topics
        ]
    asked = {topic for each in subscriptions.values() for topic in each.topics}
    everything = {(topic, number) for topic in asked for number in range(counts.get(topic, 0))}
    missing = sorted(everything - entry.owners.keys())
    if entry.protocol == COOPERATIVE:  # what another member has not given back yet waits
        missing = [
            unit for unit in missing if not any(unit in each.owned_partitions for each in subscriptions.values())
        ]
    found += [f"{_name(unit)} is assigned to nobody" for unit in missing]
    sizes = [len(entry.assignment.get(member_id, [])) for member_id in subscriptions]
    if entry.protocol in BALANCED and sizes and all_equal(subscriptions) and max(sizes) - min(sizes) > 1:
        found.append(f"members have from {min(sizes)} to {max(sizes)} partitions")
    return found


def _name(unit: tuple[object, int]) -> str:
    return f"{unit[0]}-{unit[1]}"
