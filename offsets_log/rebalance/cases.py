"""Questions to assignors and votes as JSON objects; the answer is the question with its result added.

An assignment's question has ``assignor``, ``kafka`` (the release whose rules hold), ``topics`` (name → partitions),
``replica_racks`` (topic → for each partition its replicas' racks) and ``members`` in the order in which the leader has
them (``member_id``, ``topics``, and optionally ``group_instance_id``, ``owned`` as ``[topic, partition]``,
``generation``, ``rack``, ``user_data_hex``). The question of a vote has ``members`` (``member_id``, ``protocols``).
"""

from __future__ import annotations

from typing import Any, TypeVar

from offsets_log.errors import InputError
from offsets_log.rebalance.assignors import ASSIGNORS
from offsets_log.rebalance.assignors.assignor import NEWEST, Metadata, Rules, Subscription, TopicPartition, rules_of
from offsets_log.rebalance.java_order import java_string_order
from offsets_log.rebalance.vote import HashOrders, select_protocol
from offsets_log.release_names import release_asked

MAX_PARTITIONS = 10_000_000
"""How many partitions all topics of a question may have together; no cluster has as many."""

Json = dict[str, Any]
Kind = TypeVar("Kind")


def assignment_answer(case: Json, assignor: str = "range", rules: Rules = NEWEST) -> Json:
    """Return the question with its ``result``: member id → partitions in the assignor's order.

    Args:
        assignor, rules: used if the question does not name its own.

    Raises:
        InputError: with the field that is wrong.
    """
    name = _field(case, "assignor", str, assignor)
    if name not in ASSIGNORS:
        raise InputError(f"there is no assignor {name!r}; there are {', '.join(ASSIGNORS)}", field="assignor")
    if (release := _field(case, "kafka", str, None)) is not None:
        try:
            asked = release_asked(release)
        except ValueError as error:
            raise InputError(str(error), field="kafka") from None
        rules, case = rules_of(asked.version), case | {"kafka": asked.shown}
    subscriptions = {}
    for member in _field(case, "members", list):
        subscriptions[_field(member, "member_id", str)] = _subscription(member)
    result = ASSIGNORS[name](rules).assign(_metadata(case), subscriptions)
    return case | {"result": {member_id: result[member_id] for member_id in sorted(result, key=java_string_order)}}


def vote_answer(case: Json, orders: HashOrders) -> Json:
    """Return the question with its ``candidates`` and the ``selected`` protocol; null without candidates.

    Raises:
        InputError: with the field that is wrong.
    """
    members = {}
    for member in _field(case, "members", list):
        members[_field(member, "member_id", str)] = _texts(member, "protocols")
    vote = select_protocol(members, orders)
    return case | {"candidates": vote.candidates, "selected": vote.selected}


def _metadata(case: Json) -> Metadata:
    topics = _field(case, "topics", dict)
    for topic in topics:
        _field(topics, topic, int)
    if sum(count for count in topics.values() if count > 0) > MAX_PARTITIONS:
        raise InputError(f"there are more than {MAX_PARTITIONS} partitions", field="topics")
    racks = _field(case, "replica_racks", dict, {})
    for topic in racks:
        for number, row in enumerate(_field(racks, topic, list)):
            _texts({f"{topic}[{number}]": row}, f"{topic}[{number}]")
    return Metadata(topics, racks)


def _subscription(member: Json) -> Subscription:
    generation = _field(member, "generation", int, -1)
    user_data = _field(member, "user_data_hex", str, None)
    try:
        raw = None if user_data is None else bytes.fromhex(user_data)
    except ValueError:
        raise InputError("it is not hexadecimal", field="user_data_hex") from None
    return Subscription(
        topics=_texts(member, "topics"),
        owned_partitions=tuple(map(_topic_partition, _field(member, "owned", list, []))),
        generation=generation if generation >= 0 else None,
        user_data=raw,
        group_instance_id=_field(member, "group_instance_id", str, None),
        rack_id=_field(member, "rack", str, None),
    )


def _topic_partition(value: Any) -> TopicPartition:
    match value:
        case [str(topic), int(number)] if not isinstance(number, bool):
            return topic, number
    raise InputError(f"{value!r} is not [topic, partition]", field="owned")


def _texts(owner: Any, name: str) -> tuple[str, ...]:
    found = _field(owner, name, list)
    if not all(isinstance(each, str) for each in found):
        raise InputError("not all of it is text", field=name)
    return tuple(found)


REQUIRED: Any = object()


def _field(owner: Any, name: str, kind: type[Kind], default: Any = REQUIRED) -> Kind:
    """Return a field of a JSON object; null counts as absent."""
    if not isinstance(owner, dict):
        raise InputError(f"{owner!r} is not a JSON object")
    value = owner.get(name)
    if value is None:
        if default is REQUIRED:
            raise InputError("it is missing", field=name)
        found: Kind = default
        return found
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{value!r} is not of type {kind.__name__}", field=name)
    return value
