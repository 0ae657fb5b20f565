"""A real broker without groups, whose topics have room for certain offsets: what a rescue is restored to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafka.admin import KafkaAdminClient, NewTopic

from tests.coordinator.broker import Broker, quick

TOOL = """#!/bin/sh
exec java {options} -cp '{libs}/*' org.apache.kafka.tools.consumer.group.{tool} "$@"
"""


def create_topics(broker: Broker, spans: Mapping[tuple[str, int], tuple[int, int]]) -> None:
    """Topics whose partitions begin and end at given offsets, without a record: the broker must not be running.

    Args:
        spans: (topic, partition) → (first offset, end offset).
    """
    partitions: dict[str, int] = {}
    for topic, partition in spans:
        partitions[topic] = max(partitions.get(topic, 0), partition + 1)
    with broker.running(), KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{broker.port}") as admin:
        admin.create_topics([NewTopic(topic, number, 1) for topic, number in partitions.items()])
    for (topic, partition), span in spans.items():
        folder = broker.data / f"{topic}-{partition}"
        for path in folder.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for base_offset in set(span):  # empty segments: the log begins at the first and goes on at the last
            (folder / f"{base_offset:020}.log").touch()
    for path in (broker.data / ".kafka_cleanshutdown", *broker.data.glob("*-offset-checkpoint")):
        path.unlink(missing_ok=True)


def consumer_groups_tool(libs: Path, folder: Path) -> Path:
    """kafka-consumer-groups.sh: the tool's own class, without the scripts around it."""
    return write_tool(libs, folder / "kafka-consumer-groups.sh", "ConsumerGroupCommand")


def write_tool(libs: Path, file: Path, tool: str) -> Path:
    """A script that runs a tool's class."""
    file.write_text(TOOL.format(libs=libs, options=" ".join(quick(libs)), tool=tool))
    file.chmod(0o755)
    return file
