"""A real broker, streamed while groups commit, after a restart too: the tables are those of its own segments."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.restore import live
from tests.spark.streams import Stream, answer, table

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # kafka-python's admin client
]

GROUPS = ("a", "b", "c")
RECORDED = 2
"""The partition that begins with a recording's records, transactions among them."""


def test_tables_are_those_of_the_brokers_segments(recording: Callable[[str], Path], tmp_path: Path) -> None:
    real = live.make(tmp_path / "broker")
    with real.running():
        live.fill(real)
        live.make_coordinators(real, GROUPS)
    source = recording("kafka-4.3-mixed") / "log" / f"__consumer_offsets-{RECORDED}"
    real.place(RECORDED, b"".join(path.read_bytes() for path in sorted(source.glob("*.log"))))
    stream = Stream(str(tmp_path / "to"), random.Random(5), **{"kafka.bootstrap.servers": live.server(real)})
    for number in range(2):
        with real.running():
            live.make_coordinators(real, GROUPS)
            with live.admin(real) as client:
                for group in GROUPS:
                    offsets = {TopicPartition("orders", p): OffsetAndMetadata(number, f"m{p}", -1) for p in range(3)}
                    client.alter_group_offsets(group, offsets)
                    stream.step(1)
            while stream.step():
                pass
    stream.reader.stop()
    for kind, command in (("offsets", "compact"), ("groups", "groups")):
        assert table(tmp_path / "to", kind) == answer(command, real.data, "modern")
    assert len(table(tmp_path / "to", "offsets")) > 9
