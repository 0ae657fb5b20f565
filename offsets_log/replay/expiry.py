"""Compute what a coordinator's next expiry cycle would remove: ``cleanupGroupMetadata`` over a loaded state.

A cycle visits each group that exists on its own (`cycle_of`): first its offsets, by a condition that follows from the
group's kind and state (``E-4``–``E-12``), then the group itself once it has none left (``E-13``–``E-16``). Removals are
written as tombstones only (``E-3``, `tombstones`). Orphans belong to no group and are never visited (``J-15``).

Only the fields of the records count, never the Kafka timestamps around them (``E-22``); the caller gives the time. Some
of a broker's state is not in the log: commits in flight (``E-9``), members that are joining, unfinished generations.
These can only delay the removals computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.partition_log import OUTCOMES, UNRECORDED_GROUPS
from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION, decode_body
from offsets_log.messages.registry import INT16, CoordinatorRecord, encode_coordinator_record
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.group import CLASSIC, CONSUMER, SHARE, STREAMS, Group
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata
from offsets_log.words import DAY_MS

NEEDED_COLUMNS = frozenset(
    {"commit_timestamp_ms", "expire_timestamp_ms", "current_state_timestamp_ms", "subscribed_topics", "state", OUTCOMES}
) | {UNRECORDED_GROUPS}
"""Columns that expiry depends on; it cannot be computed for a log whose source lacks one of them."""

COMMIT_TIMESTAMP = "commit_timestamp"
CURRENT_STATE_TIMESTAMP = "current_state_timestamp"
EXPIRE_TIMESTAMP = "expire_timestamp"
SUBSCRIBED = "subscribed"
PENDING = "pending"
ACTIVE = "active"
"""Bases of a decision.

The first three are times: retention is counted from the first two, and the third is the end itself. Under the others an
offset stays as long as its group does not change.
"""
# ------------------------------------------------------------------------------------------------- eras


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """The expiry rules of a range of releases.

    Attributes:
        name: its name.
        releases: the releases, in words.
        profile: name of the profile whose load rules they have.
        default_retention_ms: default of ``offsets.retention.minutes``, in milliseconds (``E-2``).
        reads_expire_timestamp: whether an explicit expire timestamp (value version 1) replaces commit time and
            retention.
        grace_ms: 1 where an offset expires only after the moment has passed, 0 where it expires in that moment.
        asks_group: whether the group's state matters (``E-5``–``E-8``); otherwise offsets expire by their own time.
        states_with_expiry: states of a classic consumer group with members in which the offsets of unsubscribed topics
            expire (``E-6``). After a load the only state with members is Stable (``L-24``).
        spares_pending: whether an offset stays while an open transaction has one for its partition (``E-9``).
        removes_groups: whether the cycle removes empty groups (``E-14``, ``E-15``); otherwise a group goes at once with
            its last member (``E-13``).
        group_rule: ``E-14`` or ``E-15``, whichever holds.
        transaction_keeps_group: whether an open transaction of a group keeps it (``E-14``, ``E-15``).
        transaction_keeps_bare_group: whether it also keeps a group without committed offsets.
        description_keeps_group: whether a description of its topology keeps a streams group (``K44-41``).
        tombstone_needs_generation: whether a group that was never rebalanced gets no tombstone (``E-14``).
        offset_tombstone_type: record type of an offset's tombstone, whatever type its live record has (``E-18``).
    """

    name: str
    releases: str
    profile: str
    default_retention_ms: int = 7 * DAY_MS
    reads_expire_timestamp: bool = True
    grace_ms: int = 0
    asks_group: bool = True
    states_with_expiry: frozenset[str] = frozenset({"Stable"})
    spares_pending: bool = True
    removes_groups: bool = True
    group_rule: str = "E-15"
    transaction_keeps_group: bool = True
    transaction_keeps_bare_group: bool = True
    description_keeps_group: bool = False
    tombstone_needs_generation: bool = False
    offset_tombstone_type: int = 1

    def retention(self, retention_ms: int | None = None) -> Retention:
        """Return these rules with a broker's ``offsets.retention.minutes``, in milliseconds; None for the default."""
        return Retention(self.default_retention_ms if retention_ms is None else retention_ms, self)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long offsets are kept, in milliseconds, and by whose rules."""

    retention_ms: int
    era: Era


JAVA_4_0_1 = Era(name="4.0.1", releases="Java, 4.0.1 to 4.3", profile="modern")
MODERN = replace(JAVA_4_0_1, name="modern", releases="Java, 4.4 and later", description_keeps_group=True)
JAVA_3_8 = replace(JAVA_4_0_1, name="3.8-java", releases="Java, 3.8 to 4.0.0", transaction_keeps_bare_group=False)
JAVA_3_7 = replace(
    JAVA_3_8,
    name="modern-3.7",
    releases="Java, 3.7",
    profile="modern-3.7",
    spares_pending=False,
    transaction_keeps_group=False,
)
CLASSIC_ERA = Era(
    name="classic",
    releases="Scala, 2.8.2 to 3.9 but 3.0.0 and 3.1.0",
    profile="classic",
    spares_pending=False,
    group_rule="E-14",
    tombstone_needs_generation=True,
)
SCALA_2_4 = replace(
    CLASSIC_ERA,
    name="2.4",
    releases="2.4 to 2.8.1, 3.0.0, 3.1.0",
    states_with_expiry=frozenset({"PreparingRebalance", "CompletingRebalance", "Stable"}),
)
SCALA_2_1 = replace(CLASSIC_ERA, name="2.1", releases="2.1 to 2.3", states_with_expiry=frozenset())
SCALA_2_0 = replace(SCALA_2_1, name="2.0", releases="2.0", asks_group=False, grace_ms=1)
SCALA_0_10_1 = replace(SCALA_2_0, name="0.10.1", releases="0.10.1 to 1.1", default_retention_ms=DAY_MS)
SCALA_0_9 = replace(SCALA_0_10_1, name="0.9", releases="0.9 to 0.10.0", removes_groups=False)
SCALA_0_8_2 = replace(SCALA_0_9, name="0.8.2", releases="0.8.2", reads_expire_timestamp=False, offset_tombstone_type=0)

ERAS = {
    era.name: era
    for era in (
        SCALA_0_8_2, SCALA_0_9, SCALA_0_10_1, SCALA_2_0, SCALA_2_1, SCALA_2_4, CLASSIC_ERA, JAVA_3_7, JAVA_3_8,
        JAVA_4_0_1, MODERN,
    )
}  # fmt: skip
"""Era by its name; every profile has an era of the same name."""

# ---------------------------------------------------------------------------------- a group's condition


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition by which a group's offsets expire (``offsetExpirationCondition``).

    Attributes:
        base: a time, or `ACTIVE` if nothing expires.
        subscribed: topics whose offsets stay in any case.
    """

    base: str
    rule: str
    reason: str
    subscribed: frozenset[str] = frozenset()


WHATEVER_THE_GROUP = Condition(COMMIT_TIMESTAMP, "E-23", "by its own time, whatever the group does")
SIMPLE = Condition(COMMIT_TIMESTAMP, "E-7", "a group of offsets only: by commit time")
EMPTY_SINCE = Condition(CURRENT_STATE_TIMESTAMP, "E-5", "the group is Empty: by the time it became so")
EMPTY = Condition(COMMIT_TIMESTAMP, "E-5", "the group is Empty, since when is not known: by commit time")
NOT_CONSUMERS = Condition(ACTIVE, "E-8", "the group has members that are no consumers")
UNKNOWN_SUBSCRIPTION = Condition(ACTIVE, "E-8", "a member's subscription cannot be read")
WITH_MEMBERS = Condition(ACTIVE, "E-6", "the group has members")
UNSUBSCRIBED = Condition(COMMIT_TIMESTAMP, "E-6", "no member is subscribed to the topic: by commit time")
NEWER = Condition(COMMIT_TIMESTAMP, "E-11", "no member is subscribed to the topic: by commit time")
SHARED = Condition(ACTIVE, "E-11", "a share group's offsets do not expire")


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """Return the topics that members are subscribed to; None if the coordinator does not know (``E-11``, ``E-12``)."""
    return SUBSCRIPTIONS[group.kind](group)


def _classic_topics(group: Group) -> frozenset[str] | None:
    """Return a classic group's topics (``E-12``), from a loaded group too (``L-33``).

    Only the fields of subscription version 0 are read; the bytes after them may be anything.
    """
    if group.protocol_type != "consumer" or (group.members and group.protocol is None):
        return None
    topics: set[str] = set()
    for member in group.members.values():
        behind_version = member.metadata["subscription"][INT16.size :]
        try:
            topics.update(
                decode_body(CONSUMER_PROTOCOL_SUBSCRIPTION, 0, behind_version, "subscription").fields["topics"]
            )
        except OffsetsLogError:
            return None
    return frozenset(topics)


def _consumer_topics(group: Group) -> frozenset[str]:
    """Return the topics subscribed by name, and those that regular expressions resolved to (types 5 and 16)."""
    rows: list[Iterable[str]] = [member.metadata.get("subscribed_topic_names", ()) for member in group.members.values()]
    rows += [resolved["topics"] for resolved in group.regular_expressions.values()]
    return frozenset(topic for row in rows for topic in row)


def _streams_topics(group: Group) -> frozenset[str]:
    """Return the topology's source and repartition topics (``StreamsTopology.sourceTopicMap``); none if Empty."""
    subtopologies = group.topology["subtopologies"] if group.members and group.topology is not None else ()
    return frozenset(
        topic
        for row in subtopologies
        for topic in (*row["source_topics"], *(info["name"] for info in row["repartition_source_topics"]))
    )


SUBSCRIPTIONS: dict[str, Callable[[Group], frozenset[str] | None]] = {
    CLASSIC: _classic_topics,
    CONSUMER: _consumer_topics,
    STREAMS: _streams_topics,
    SHARE: lambda group: None,
}


def condition_of(group: Group, state: CoordinatorState, era: Era) -> Condition:
    """Return the condition by which the group's offsets expire in that era."""
    if not era.asks_group:
        return WHATEVER_THE_GROUP
    if group.kind == SHARE:
        return SHARED
    subscribed = subscribed_topics(group)
    if group.kind != CLASSIC:
        assert subscribed is not None
        return replace(NEWER, subscribed=subscribed)
    if group.is_simple:
        return SIMPLE
    if not group.members:
        return EMPTY if group.current_state_timestamp_ms is None else EMPTY_SINCE
    if subscribed is None:
        return UNKNOWN_SUBSCRIPTION if group.protocol_type == "consumer" else NOT_CONSUMERS
    if group.state(state.profile) not in era.states_with_expiry:
        return WITH_MEMBERS
    return replace(UNSUBSCRIBED, subscribed=subscribed)


# ------------------------------------------------------------------------------------------- the answers


@dataclass(frozen=True, slots=True)
class OffsetExpiry:
    """What becomes of a committed offset.

    Attributes:
        expired: whether a cycle at the given time removes it.
        expires_at_ms: the first moment when a cycle would remove it, in epoch milliseconds; None if none does while the
            group does not change.
        base: what decided: a time (see `COMMIT_TIMESTAMP` …), or what keeps it.
    """

    value: OffsetAndMetadata
    expired: bool
    expires_at_ms: int | None
    base: str
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class GroupExpiry:
    """What becomes of a group and its offsets.

    Attributes:
        offsets: the offsets by topic and partition.
        removed: whether a cycle at the given time removes the group.
        removed_at_ms: the first moment when a cycle would remove it, in epoch milliseconds: the given time for an empty
            group without offsets; None if none does while the group does not change.
    """

    group: Group
    offsets: tuple[OffsetExpiry, ...]
    removed: bool
    removed_at_ms: int | None
    rule: str
    reason: str


def cycle_of(state: CoordinatorState, now_ms: int, retention: Retention) -> list[GroupExpiry]:
    """Return what an expiry cycle at the given time does with every group, by group id.

    Args:
        state: the state as its broker would load it; if offsets are left out, groups go too early.
        now_ms: the broker's clock, in epoch milliseconds.
    """
    offsets: dict[str, list[OffsetAndMetadata]] = {group: [] for group in sorted(state.groups)}
    for value in state.iter_served():
        offsets[value.group].append(value)
    pending = frozenset(value.key for value in state.pending)
    in_transaction = frozenset(group for group, _, _ in pending)
    found = []
    for group_id, values in offsets.items():
        group = state.groups[group_id]
        condition = condition_of(group, state, retention.era)
        expiries = tuple(
            _offset_expiry(value, group, condition, pending, now_ms, retention)
            for value in sorted(values, key=lambda value: (value.topic, value.partition))
        )
        found.append(_group_expiry(group, expiries, group_id in in_transaction, now_ms, retention.era))
    return found


def _offset_expiry(
    value: OffsetAndMetadata,
    group: Group,
    condition: Condition,
    pending: frozenset[GroupTopicPartition],
    now_ms: int,
    retention: Retention,
) -> OffsetExpiry:
    era = retention.era
    if condition.base == ACTIVE:
        return OffsetExpiry(value, False, None, ACTIVE, condition.rule, condition.reason)
    if value.topic in condition.subscribed:
        return OffsetExpiry(value, False, None, SUBSCRIBED, condition.rule, "the group is subscribed to the topic")
    if era.spares_pending and value.key in pending:
        return OffsetExpiry(value, False, None, PENDING, "E-9", "an open transaction has an offset for the partition")
    if era.reads_expire_timestamp and value.expire_timestamp_ms is not None:
        at_ms = value.expire_timestamp_ms + era.grace_ms
        rule = "E-4" if era.asks_group else condition.rule
        return OffsetExpiry(value, now_ms >= at_ms, at_ms, EXPIRE_TIMESTAMP, rule, "by its own expire timestamp")
    start_ms = value.commit_timestamp_ms
    if condition.base == CURRENT_STATE_TIMESTAMP:
        assert group.current_state_timestamp_ms is not None
        start_ms = group.current_state_timestamp_ms
    at_ms = start_ms + retention.retention_ms + era.grace_ms
    return OffsetExpiry(value, now_ms >= at_ms, at_ms, condition.base, condition.rule, condition.reason)


def _group_expiry(
    group: Group, offsets: tuple[OffsetExpiry, ...], in_transaction: bool, now_ms: int, era: Era
) -> GroupExpiry:
    kept = _kept(group, offsets, in_transaction, era)
    if kept is not None:
        return GroupExpiry(group, offsets, False, None, *kept)
    if not offsets:
        return GroupExpiry(group, offsets, True, now_ms, "E-16", "it is Empty and has no offsets: at the next cycle")
    at_ms = max(offset.expires_at_ms for offset in offsets if offset.expires_at_ms is not None)
    return GroupExpiry(group, offsets, now_ms >= at_ms, at_ms, era.group_rule, "it is Empty: with its last offset")


def _kept(group: Group, offsets: tuple[OffsetExpiry, ...], in_transaction: bool, era: Era) -> tuple[str, str] | None:
    """Return the rule and the reason that keep a group as long as it does not change; None if it goes."""
    keeps = era.transaction_keeps_group and (bool(offsets) or era.transaction_keeps_bare_group)
    reasons = (
        (not era.removes_groups, "E-13", "no cycle removes groups: they go with their last member"),
        (group.kind == SHARE, "E-11", "a share group does not expire"),
        (bool(group.members), era.group_rule, "it has members"),
        (in_transaction and keeps, era.group_rule, "a transaction of it is open"),
        (any(offset.expires_at_ms is None for offset in offsets), era.group_rule, "it has an offset that stays"),
        (era.description_keeps_group and group.may_have_description, "K44-41", "a plugin may describe its topology"),
    )
    return next(((rule, reason) for holds, rule, reason in reasons if holds), None)


# -------------------------------------------------------------------------------------------- tombstones

GROUP_TOMBSTONES = {CLASSIC: (2,), CONSUMER: (6, 16, 4, 3), STREAMS: (20, 17, 23)}
"""Kind → record types of the tombstones for a group without members, in the order of writing (``J-17``)."""


def tombstones(state: CoordinatorState, now_ms: int, retention: Retention) -> list[tuple[bytes, None]]:
    """Return the keys and values that a cycle appends, as one list for the partition (``E-17``).

    Each group's offsets come before the group. A broker visits groups, topics and partitions in the order of its hash
    maps; here they are sorted.
    """
    return [
        (encode_coordinator_record(record)[0], None)
        for group in cycle_of(state, now_ms, retention)
        for record in _iter_tombstones(group, retention.era)
    ]


def _iter_tombstones(expiry: GroupExpiry, era: Era) -> Iterator[CoordinatorRecord]:
    for offset in expiry.offsets:
        if offset.expired:
            value = offset.value
            yield _tombstone(era.offset_tombstone_type, group=value.group, topic=value.topic, partition=value.partition)
    if not expiry.removed or (era.tombstone_needs_generation and expiry.group.generation <= 0):
        return
    group_id = expiry.group.group_id
    for record_type in GROUP_TOMBSTONES[expiry.group.kind]:
        if record_type == 2:
            yield _tombstone(2, group=group_id)
        elif record_type == 16:
            for expression in sorted(expiry.group.regular_expressions):
                yield _tombstone(16, group_id=group_id, regular_expression=expression)
        else:
            yield _tombstone(record_type, group_id=group_id)


def _tombstone(record_type: int, **key: Any) -> CoordinatorRecord:
    """Build a tombstone's record. A broker writes malformed names as it reads them, with U+FFFD (``B-7``)."""
    plain = {name: str(part) if isinstance(part, str) else part for name, part in key.items()}
    return CoordinatorRecord(record_type=record_type, key=plain)
