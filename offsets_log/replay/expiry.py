"""What a coordinator's next expiry cycle would remove, offline: ``cleanupGroupMetadata`` over a loaded state (§E).

A cycle visits the groups that exist, each on its own (`cycle_of`): its offsets by a condition that follows from the
group's kind and state (``E-4``–``E-12``), then the group itself once nothing is left of it (``E-13``–``E-16``). What
is removed is only ever said by tombstones (``E-3``, `tombstones`). Orphans belong to no group and are never visited
(``J-15``).

Only the records' own fields count, never the Kafka timestamps around them (``E-22``); the time is the caller's. What a
log does not hold is not known here: commits on their way (``E-9``), members that are joining, generations that never
finished. They can only delay what is said to go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from offsets_log.errors import OffsetsLogError
from offsets_log.messages.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION, decode_body
from offsets_log.messages.registry import INT16, CoordinatorRecord, encode_coordinator_record
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.group import CLASSIC, CONSUMER, SHARE, STREAMS, Group
from offsets_log.replay.partial import GroupTopicPartition, OffsetAndMetadata

DAY_MS = 86_400_000

NEEDED_COLUMNS = frozenset(
    {"commit_timestamp_ms", "expire_timestamp_ms", "current_state_timestamp_ms", "subscribed_topics", "state"}
)
"""Columns of rows: a log whose source does not tell one of them does not tell what expires."""

COMMIT_TIMESTAMP = "commit_timestamp"
CURRENT_STATE_TIMESTAMP = "current_state_timestamp"
EXPIRE_TIMESTAMP = "expire_timestamp"
SUBSCRIBED = "subscribed"
PENDING = "pending"
ACTIVE = "active"
"""Bases of a decision. The first three are times that the retention is counted from (the third is the end itself);
under the others an offset stays as long as the group is as it is."""

# ------------------------------------------------------------------------------------------------- eras


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """The rules of a run of releases.

    Attributes:
        name: as `--era` takes it.
        releases: which these are.
        profile: name of the profile that loads as they do.
        default_retention_ms: ``offsets.retention.minutes`` where it was not set (``E-2``).
        reads_expire_timestamp: an explicit one (value version 1) takes the place of commit time and retention.
        grace_ms: 1 where an offset goes only after the moment has passed, 0 where it goes in that moment.
        asks_group: whether the group's state matters (``E-5``–``E-8``), else its offsets go by their own time.
        states_with_expiry: of a classic consumer group with members: in which ones unsubscribed topics' offsets go
            (``E-6``). A load knows no other state with members than Stable (``L-24``).
        spares_pending: not under an open transaction (``E-9``).
        removes_groups: the cycle removes empty groups (``E-14``, ``E-15``), before that they go at once (``E-13``).
        group_rule: which of these two.
        transaction_keeps_group: an open transaction of the group does (``E-14``, ``E-15``).
        transaction_keeps_bare_group: that of a group without committed offsets too.
        tombstone_needs_generation: of a group never rebalanced no tombstone is written (``E-14``).
        offset_tombstone_type: record type of an offset's tombstone, whatever its live record has (``E-18``).
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
    tombstone_needs_generation: bool = False
    offset_tombstone_type: int = 1

    def retention(self, retention_ms: int | None = None) -> Retention:
        """These rules with a broker's ``offsets.retention.minutes``, by default the releases' own."""
        return Retention(self.default_retention_ms if retention_ms is None else retention_ms, self)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long offsets are kept, and by whose rules."""

    retention_ms: int
    era: Era


MODERN = Era(name="modern", releases="Java, 4.0.1 and later", profile="modern")
JAVA_3_8 = replace(MODERN, name="3.8-java", releases="Java, 3.8 to 4.0.0", transaction_keeps_bare_group=False)
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
        SCALA_0_8_2, SCALA_0_9, SCALA_0_10_1, SCALA_2_0, SCALA_2_1, SCALA_2_4, CLASSIC_ERA, JAVA_3_7, JAVA_3_8, MODERN,
    )
}  # fmt: skip
"""What `--era` offers; the name of every profile is that of its own era."""

# ---------------------------------------------------------------------------------- a group's condition


@dataclass(frozen=True, slots=True)
class Condition:
    """By what a group's offsets expire (``offsetExpirationCondition``).

    Attributes:
        base: a time, or `ACTIVE`: nothing expires.
        subscribed: topics whose offsets stay all the same.
    """

    base: str
    rule: str
    reason: str
    subscribed: frozenset[str] = frozenset()


WHATEVER_THE_GROUP = Condition(COMMIT_TIMESTAMP, "E.1", "by its own time, whatever the group does")
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
    """Topics the group's members are subscribed to; None where the coordinator does not know (``E-11``, ``E-12``)."""
    return SUBSCRIPTIONS[group.kind](group)


def _classic_topics(group: Group) -> frozenset[str] | None:
    """``E-12``, of a loaded group too (``L-33``): only the fields of version 0 are read; the rest may be anything."""
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
    """By name, and what regular expressions resolved to (types 5 and 16)."""
    rows: list[Iterable[str]] = [member.metadata.get("subscribed_topic_names", ()) for member in group.members.values()]
    rows += [resolved["topics"] for resolved in group.regular_expressions.values()]
    return frozenset(topic for row in rows for topic in row)


def _streams_topics(group: Group) -> frozenset[str]:
    """What the topology reads, repartition topics too (``StreamsTopology.sourceTopicMap``); nothing when Empty."""
    if not group.members or group.topology is None:
        return frozenset()
    return frozenset(
        topic
        for row in group.topology["subtopologies"]
        for topic in (*row["source_topics"], *(info["name"] for info in row["repartition_source_topics"]))
    )


SUBSCRIPTIONS: dict[str, Callable[[Group], frozenset[str] | None]] = {
    CLASSIC: _classic_topics,
    CONSUMER: _consumer_topics,
    STREAMS: _streams_topics,
    SHARE: lambda group: None,
}


def condition_of(group: Group, state: CoordinatorState, era: Era) -> Condition:
    """By what the group's offsets expire in that era."""
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
        expired: whether a cycle at that time removes it.
        expires_at_ms: the first moment at which one would; None if none does while the group is as it is.
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
        offsets: by topic and partition.
        removed: whether a cycle at that time removes the group.
        removed_at_ms: the first moment at which one would: now for an empty one without offsets; None as above.
    """

    group: Group
    offsets: tuple[OffsetExpiry, ...]
    removed: bool
    removed_at_ms: int | None
    rule: str
    reason: str


def cycle_of(state: CoordinatorState, now_ms: int, retention: Retention) -> list[GroupExpiry]:
    """What an expiry cycle at a time does with every group, by group id.

    Args:
        state: as its broker would load it; offsets left out of it make groups go too early.
        now_ms: the broker's clock.
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
    reason = "it is Empty: with its last offset"
    return GroupExpiry(group, offsets, now_ms >= at_ms, at_ms, era.group_rule, reason)


def _kept(group: Group, offsets: tuple[OffsetExpiry, ...], in_transaction: bool, era: Era) -> tuple[str, str] | None:
    """The rule and the reason for which a group stays as long as it is as it is; None if it does not."""
    keeps = era.transaction_keeps_group and (bool(offsets) or era.transaction_keeps_bare_group)
    reasons = (
        (not era.removes_groups, "E-13", "no cycle removes groups: they go with their last member"),
        (group.kind == SHARE, "E-11", "a share group does not expire"),
        (bool(group.members), era.group_rule, "it has members"),
        (in_transaction and keeps, era.group_rule, "a transaction of it is open"),
        (any(offset.expires_at_ms is None for offset in offsets), era.group_rule, "it has an offset that stays"),
    )
    return next(((rule, reason) for holds, rule, reason in reasons if holds), None)


# -------------------------------------------------------------------------------------------- tombstones

GROUP_TOMBSTONES = {CLASSIC: (2,), CONSUMER: (6, 16, 4, 3), STREAMS: (20, 17, 23)}
"""kind → record types of the tombstones for a group without members, in order (``J-17``)."""


def tombstones(state: CoordinatorState, now_ms: int, retention: Retention) -> list[tuple[bytes, None]]:
    """The keys and values that a cycle appends, as one list for the partition (``E-17``).

    Of each group its offsets, then the group. A broker visits groups, topics and partitions in the order of its hash
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
    """A broker writes malformed names as it reads them, with U+FFFD (``B-7``)."""
    plain = {name: str(part) if isinstance(part, str) else part for name, part in key.items()}
    return CoordinatorRecord(record_type=record_type, key=plain)
