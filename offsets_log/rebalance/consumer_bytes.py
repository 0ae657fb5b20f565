"""Conversions between assignors' values and the consumer protocol's bytes (``ConsumerProtocol.java``)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from offsets_log.messages.consumer_protocol import Embedded, decode_subscription, encode_embedded
from offsets_log.messages.sticky_user_data import STICKY_USER_DATA
from offsets_log.rebalance.assignors.assignor import Subscription, TopicPartition
from offsets_log.rebalance.java_order import java_hash_order

SUBSCRIPTIONS_REMEMBERED = 1 << 10


@lru_cache(maxsize=SUBSCRIPTIONS_REMEMBERED)
def subscription_of(data: bytes, group_instance_id: str | None, root: str = "subscription") -> Subscription:
    """Return what an assignor is told of a member; members say the same generation after generation.

    Raises:
        CorruptRecordError: the bytes do not parse.
    """
    fields = decode_subscription(data, root).fields
    generation = fields.get("generation_id", -1)
    return Subscription(
        topics=tuple(fields["topics"]),
        owned_partitions=tuple(
            (row["topic"], number) for row in fields.get("owned_partitions", ()) for number in row["partitions"]
        ),
        generation=generation if generation >= 0 else None,
        user_data=fields["user_data"],
        group_instance_id=group_instance_id,
        rack_id=fields.get("rack_id"),
    )


def sticky_user_data(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """Write the user data of ``StickyAssignor``, with topics in the order of Java's hash map."""
    rows = {row["topic"]: row for row in topic_rows(partitions)}
    previous = [rows[topic] for topic in java_hash_order(rows, newest_first=True)]
    return encode_embedded(Embedded(STICKY_USER_DATA, 1, {"previous_assignment": previous, "generation": generation}))


def by_topic(partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Return partitions as an assignment is written: topics in order of their first partition (``records:D3``)."""
    places = {topic: at for at, topic in reversed(list(enumerate(topic for topic, _ in partitions)))}
    return sorted(partitions, key=lambda partition: places[partition[0]])


def topic_rows(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    """Return rows of ``topic`` and ``partitions``, in order of first appearance."""
    rows: dict[str, list[int]] = {}
    for topic, number in partitions:
        rows.setdefault(topic, []).append(number)
    return [{"topic": topic, "partitions": numbers} for topic, numbers in rows.items()]
