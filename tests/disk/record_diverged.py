"""Makes ``diverged.tar.xz``: replicas of ``__consumer_offsets-0`` that an unclean election let diverge, real brokers'.

    python tests/disk/record_diverged.py JARS SCRATCH [PORT]

JARS holds Kafka 4.3.0 as JARS/4.3.0/libs. Broker 3 is killed, broker 2 takes more commits and is killed, broker 3
starts again, leads in a later epoch, and takes others: ``before`` has both folders then. Broker 2 starts again, and
truncates its log: ``after`` has both folders then. Two minutes are enough. Ids and times differ from run to run.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.data_directories.pack import TAR
from tests.data_directories.record import JAVA, Broker

FOLDER = "__consumer_offsets-0"
UNCLEAN = "cleanup.policy=compact", "min.insync.replicas=1", "unclean.leader.election.enable=true"
TOPICS = {"__consumer_offsets": ("2:3", *UNCLEAN), "orders": ("1,1,1",)}
"""Name → replicas of each partition, configurations."""
SETTINGS = "unclean.leader.election.interval.ms=1000\nbroker.session.timeout.ms=6000\n"


def make_topic(libs: Path, address: str, topic: str) -> None:
    """Make a topic of which the replicas are given, as soon as brokers answer."""
    assignment, *configs = TOPICS[topic]
    words = ["--create", "--if-not-exists", "--topic", topic, "--replica-assignment", assignment]
    words += [word for config in configs for word in ("--config", config)]
    command = [*JAVA, "-cp", f"{libs}/*", "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", address, *words]
    while subprocess.run(command, check=False, capture_output=True).returncode:
        time.sleep(1)


def commit(address: str, count: int, first: int) -> None:
    """Commit offsets of four groups, however often a broker refuses."""
    done, admin = 0, None
    while done < count:
        offsets = {TopicPartition("orders", number): OffsetAndMetadata(first + done, "", None) for number in range(3)}
        try:
            admin = admin or KafkaAdminClient(bootstrap_servers=address, request_timeout_ms=8000)
            answers = admin.alter_group_offsets(f"group-{done % 4}", offsets).values()
            done += all(getattr(answer, "errno", 0) == 0 for answer in answers)
        except KafkaError:
            admin = None
            time.sleep(1)


def keep(brokers: list[Broker], to: Path) -> None:
    """Copy the partition's folders."""
    for number, broker in enumerate(brokers, 2):
        files = shutil.ignore_patterns("*index")
        shutil.copytree(broker.directories[0] / FOLDER, to / f"broker-{number}" / FOLDER, ignore=files)


def main(jars: Path, scratch: Path, port: int = 29392) -> None:
    """Record, and pack."""
    shutil.rmtree(scratch, ignore_errors=True)
    libs, out = jars / "4.3.0" / "libs", scratch / "out"
    brokers = [Broker(libs, scratch / f"broker-{node}", port, node, 3, 1) for node in (1, 2, 3)]
    first, second, third = brokers
    try:
        for broker in brokers:
            properties = broker.home / "server.properties"
            properties.write_text(properties.read_text().replace("partitions=8\n", f"partitions=1\n{SETTINGS}", 1))
            broker.format()
            broker.start()
        for topic in TOPICS:
            make_topic(libs, first.address, topic)
        commit(first.address, 12, 1000)
        time.sleep(3)
        third.end(signal.SIGKILL)
        time.sleep(8)
        commit(first.address, 25, 2000)
        time.sleep(1)
        second.end(signal.SIGKILL)
        time.sleep(8)
        third.start()
        time.sleep(8)
        commit(first.address, 8, 3000)
        time.sleep(3)
        keep([second, third], out / "before")
        second.start()
        time.sleep(15)
        keep([second, third], out / "after")
    finally:
        for broker in brokers:
            broker.end(signal.SIGKILL)
    archive = Path(__file__).parent / "diverged.tar.xz"
    subprocess.run([*TAR, f"--file={archive}", f"--directory={out}", "after", "before"], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), *map(int, sys.argv[3:4]))
