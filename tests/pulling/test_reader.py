"""What a cluster is asked before a copy begins: who leads what, and where logs begin and end."""

from __future__ import annotations

from contextlib import closing

import pytest

from offsets_log.cluster.reader import ClusterReader
from offsets_log.log_format.primitives import ZERO_UUID, Uuid
from offsets_log.protocol.list_offsets import EARLIEST, LATEST
from tests.pulling.brokers import OFFSETS, Brokers, Log
from tests.pulling.copies import refusing_ends

IMPATIENT = {"default.api.timeout.ms": "300", "request.timeout.ms": "3000"}
NOT_LEADER, TOPIC_AUTHORIZATION_FAILED = 6, 29


@pytest.mark.parametrize(
    ("told", "topic_id"), [(ZERO_UUID, None), (Uuid(b"\1" * 16), Uuid(b"\1" * 16))], ids=["zero", "one"]
)
def test_a_topic_without_an_id_has_none(told: Uuid, topic_id: Uuid | None) -> None:
    with (
        Brokers({("t", 0): Log()}, topic_ids={"t": told}).running() as brokers,
        closing(ClusterReader(brokers.address, IMPATIENT)) as reader,
    ):
        topic = reader.metadata().topics["t"]
    assert (topic.topic_id, topic.error_code, {key: one.node_id for key, one in topic.leaders.items()}) == (
        topic_id,
        0,
        {0: 0},
    )


def test_patience_may_be_less_than_usual() -> None:
    logs = {(OFFSETS, 1): Log()}
    with (
        Brokers(logs, answers={2: refusing_ends(NOT_LEADER, 1 << 30)}).running() as brokers,
        closing(ClusterReader(brokers.address, IMPATIENT | {"default.api.timeout.ms": "3600000"})) as reader,
    ):
        found, refused = reader.list_offsets(list(logs), LATEST, patience=0)
    assert (found, refused) == ({}, {(OFFSETS, 1): "NOT_LEADER_OR_FOLLOWER"})


@pytest.mark.parametrize(
    ("code", "times", "offsets", "problem"),
    [
        (NOT_LEADER, 1, {0: 7, 1: 7}, {}),
        (NOT_LEADER, 1 << 30, {0: 7}, {1: "NOT_LEADER_OR_FOLLOWER"}),
        (TOPIC_AUTHORIZATION_FAILED, 1, {0: 7}, {1: "TOPIC_AUTHORIZATION_FAILED"}),
    ],
)
@pytest.mark.parametrize("of", [EARLIEST, LATEST])
def test_who_does_not_lead_is_asked_again_while_there_is_patience(
    of: int, code: int, times: int, offsets: dict[int, int], problem: dict[int, str]
) -> None:
    logs = {(OFFSETS, number): Log().fill(7) for number in (0, 1)}
    with (
        Brokers(logs, answers={2: refusing_ends(code, times)}).running() as brokers,
        closing(ClusterReader(brokers.address, IMPATIENT)) as reader,
    ):
        found, refused = reader.list_offsets(list(logs), of)
    assert ({key[1]: offset for key, offset in found.items()}, {key[1]: why for key, why in refused.items()}) == (
        offsets,
        problem,
    )
