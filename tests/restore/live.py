"""Real brokers that plans are restored to: their topics, what groups have, and Java's consumers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError

from offsets_log.rows.tables import Row
from tests.coordinator import broker
from tests.restore.plans import plan_of
from tests.waiting import PATIENCE_S, wait_for

RECORDS = 60
"""In each partition of ``orders``."""
PARTITIONS = 3
NOTHING_MS = 10_000
"""How long a consumer waits for a record that shall not come."""
MORE_S = 2
"""How long one that has read all that it should may read more."""

Groups = dict[str, dict[tuple[str, int], tuple[int, str, int]]]


def server(real: broker.Broker) -> str:
    return f"127.0.0.1:{real.port}"


def make(folder: Path, version: str = broker.VERSION) -> broker.Broker:
    """A broker that is not running, without a topic."""
    try:
        libs = broker.jars(version)
    except broker.NotAvailableError as reason:
        pytest.skip(f"no real broker: {reason}")
    folder.mkdir()
    return broker.Broker(libs, folder, partitions=4)


@contextmanager
def admin(real: broker.Broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=server(real))
    try:
        yield client
    finally:
        client.close()


def fill(real: broker.Broker) -> None:
    """Make ``orders``: record N of a partition says N."""
    with admin(real) as client:
        client.create_topics([NewTopic("orders", PARTITIONS, 1)])
    producer = KafkaProducer(bootstrap_servers=server(real))
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            producer.send("orders", value=b"%d" % number, partition=partition)
    producer.flush()
    producer.close()


def make_coordinators(real: broker.Broker, groups: Sequence[str]) -> None:
    """Come back when every group has one that answers; the first question makes ``__consumer_offsets``."""
    passing = (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
    with admin(real) as client:

        def answer() -> bool:
            with suppress(*passing):
                client.list_group_offsets(dict.fromkeys(groups))
                return True
            return False

        wait_for("all groups have coordinators that answer", answer, of=real.process, every_s=0.1)


def committed(real: broker.Broker, groups: Sequence[str]) -> Groups:
    """What groups have."""
    with admin(real) as client:
        answer = client.list_group_offsets(dict.fromkeys(groups))
    return {
        group: {(key.topic, key.partition): (v.offset, v.metadata, v.leader_epoch) for key, v in offsets.items()}
        for group, offsets in answer.items()
        if offsets
    }


def read_on(real: broker.Broker, group: str, protocol: str, count: int) -> list[int]:
    """What a Java consumer of a group reads, as numbers in order; it should be so many."""
    settings = ("group.protocol=" + protocol, "auto.offset.reset=none", "enable.auto.commit=false")
    command = ["java", *broker.quick(real.libs), "-cp", f"{real.libs}/*"]
    command += ["org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", server(real)]
    command += ["--topic", "orders", "--group", group]
    command += [word for setting in settings for word in ("--consumer-property", setting)]
    return numbers_read(command, count)


def numbers_read(command: Sequence[str], count: int) -> list[int]:
    """What a consumer prints until it has read so many records, however long they take, and a little longer."""
    silence_ms = 1000 * PATIENCE_S if count else NOTHING_MS
    command = [*command, "--timeout-ms", str(silence_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        lines = (line for line in process.stdout if line.strip().isdecimal())
        found = [*islice(lines, count)]
        if count:
            time.sleep(MORE_S)
            process.terminate()
        found += lines
    return sorted(map(int, found))


def write_plan(file: Path, rows: Sequence[Row]) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(plan_of(*rows)))
    return file


def start(*arguments: object) -> subprocess.Popen[str]:
    """``offsets-log restore`` as a process of its own."""
    code = "from offsets_log_cli.main import run; run()"
    words = [sys.executable, "-c", code, "restore", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def restore(*arguments: object) -> tuple[int, list[dict[str, Any]], str]:
    """Exit status, rows, and the words on standard error."""
    process = start(*arguments)
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, [json.loads(line) for line in out.split("\n")[:-1]], err
