"""Runs a real MirrorMaker 2 between two local brokers: ``python -m tests.translation.record_mirrors POLICY DIRECTORY``.

DIRECTORY then has ``source/data`` and ``target/data`` as brokers that were stopped in order left them, ``truth.jsonl``
with where each group's first unread record is, told by the records themselves, and README.txt about all that.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.coordinator import broker
from tests.shared_files import cached

POLICIES = {"default": "DefaultReplicationPolicy", "identity": "IdentityReplicationPolicy"}
MANY, SOME = 1_020_000, 12_000
"""Records of ``many``; of each partition of ``some``."""
LAGS = (0, 10, 10_000, 1_000_000)
COPY_SECONDS = 300
READ_MS = 5_000
README = """\
source/data, target/data   data directories of both brokers, stopped in order
truth.jsonl                a row for each group and partition: committed_offset in the source, target_topic, and
                           target_offsets, where the first record from there on is in the target; several if
                           MirrorMaker copied it again after it was killed, none if it has none (then target_end).
                           lag: how many records of the source were unread
{policy}: many (1 partition, {many} records), some (2), transactions (1: some aborted, all copied), compacted (1)
Values are <partition>:<number>, numbers go up with the offsets. MirrorMaker was killed once while it copied.
"""


def mirror_jars() -> Path:
    """The folder with MirrorMaker and all it needs; filled from Maven Central once."""
    place = cached(f"connect-mirror-{broker.VERSION}")
    return broker.download(place, (("org.apache.kafka", "connect-mirror", broker.VERSION),))


def server(real: broker.Broker) -> str:
    return f"127.0.0.1:{real.port}"


@contextmanager
def mirror_maker(
    work: Path, source: broker.Broker, target: broker.Broker, policy: str
) -> Iterator[subprocess.Popen[bytes]]:
    """MirrorMaker up, killed at the end if it still runs."""
    settings = {
        "clusters": "a,b",
        "a.bootstrap.servers": server(source),
        "b.bootstrap.servers": server(target),
        "a->b.enabled": "true",
        "a->b.topics": "many,some,transactions,compacted",
        "a->b.sync.group.offsets.enabled": "true",
        "replication.policy.class": f"org.apache.kafka.connect.mirror.{POLICIES[policy]}",
        "replication.factor": 1,
        "tasks.max": 1,
        "offset.flush.interval.ms": 2000,
        **{f"{name}.interval.seconds": 2 for name in ("emit.checkpoints", "sync.group.offsets", "refresh.groups")},
        **{f"{name}.topic.replication.factor": 1 for name in ("checkpoints", "heartbeats", "offset-syncs")},
        **{f"{name}.storage.replication.factor": 1 for name in ("offset", "status", "config")},
    }
    file = work / "mm2.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{mirror_jars()}/*"]
    command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(file)]
    with (work / "mm2.log").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=work)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def ends(real: broker.Broker, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """The ends of topics' partitions; topics that are not there have none."""
    client = KafkaConsumer(bootstrap_servers=server(real))
    try:
        found = [TopicPartition(name, n) for name in topics for n in client.partitions_for_topic(name) or ()]
        return dict(client.end_offsets(found)) if found else {}
    finally:
        client.close()


def wait_until_quiet(target: broker.Broker, topics: Sequence[str], at_least: int) -> None:
    """Come back when all topics are there with so many records, and no more came for some seconds."""
    deadline, before, since = time.monotonic() + COPY_SECONDS, 0, time.monotonic()
    while time.monotonic() < deadline:
        now = sum(ends(target, topics).values())
        if now != before:
            before, since = now, time.monotonic()
        elif now >= at_least and time.monotonic() - since > 8:
            return
        time.sleep(1)
    raise AssertionError(f"{before} of {at_least} records were copied")


def pipe_numbers(real: broker.Broker, first: int, behind: int) -> None:
    """Write records to ``many`` with Kafka's own producer, which is quick."""
    lines = "".join(f"0:{number}\n" for number in range(first, behind)).encode()
    command = ["java", "-XX:+UseSerialGC", "-cp", f"{real.libs}/*", "org.apache.kafka.tools.ConsoleProducer"]
    command += ["--bootstrap-server", server(real), "--topic", "many"]
    subprocess.run(command, input=lines, check=True, capture_output=True, timeout=COPY_SECONDS)


class Source:
    """What is written to the source, and how far it came."""

    def __init__(self, real: broker.Broker) -> None:
        self.real = real
        self.numbers: defaultdict[tuple[str, int], int] = defaultdict(int)

    def make_topics(self) -> None:
        compacted = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
        compacted |= {"min.compaction.lag.ms": "0", "max.compaction.lag.ms": "2000"}
        topics = [NewTopic("many", 1, 1), NewTopic("some", 2, 1), NewTopic("transactions", 1, 1)]
        admin = KafkaAdminClient(bootstrap_servers=server(self.real))
        admin.create_topics([*topics, NewTopic("compacted", 1, 1, topic_configs=compacted)])
        admin.close()

    def send(self, producer: KafkaProducer, topic: str, partition: int, count: int, keys: int = 0) -> None:
        for _ in range(count):
            number = self.numbers[topic, partition]
            self.numbers[topic, partition] += 1
            key = b"%d" % (number % keys) if keys else None
            producer.send(topic, key=key, value=b"%d:%d" % (partition, number), partition=partition)

    def write(self, part: int) -> None:
        """Write half of all: part 0 or 1."""
        pipe_numbers(self.real, part * MANY // 2, (part + 1) * MANY // 2)
        producer = KafkaProducer(bootstrap_servers=server(self.real), linger_ms=20)
        for partition in (0, 1):
            self.send(producer, "some", partition, SOME // 2)
        for _ in range(4):  # a segment each, so that the cleaner takes what is older
            self.send(producer, "compacted", 0, 300, keys=70)
            producer.flush()
            time.sleep(1.5)
        producer.close()
        writer = KafkaProducer(bootstrap_servers=server(self.real), transactional_id=f"writer-{part}")
        writer.init_transactions()
        for size in (1, 7, 40, 3, 250, 1, 1, 90, 12, 500):
            writer.begin_transaction()
            self.send(writer, "transactions", 0, size)
            writer.flush()
            writer.abort_transaction() if size in (3, 90) else writer.commit_transaction()
        writer.close()

    def commit(self) -> None:
        """Commit groups that lag by so many offsets in each partition, and some in the middle."""
        admin = KafkaAdminClient(bootstrap_servers=server(self.real))
        at = ends(self.real, ["many", "some", "transactions", "compacted"])
        for lag in (*LAGS, 1, 33, 250, 777, 5_003, 123_457, 555_555):
            offsets = {key: OffsetAndMetadata(end - lag, "", None) for key, end in at.items() if end >= lag}
            _until_done(lambda lag=lag, offsets=offsets: admin.alter_group_offsets(f"lag-{lag}", offsets))
        admin.close()


def _until_done(question: object) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            assert callable(question)
            if all(error.__name__ == "NoError" for error in question().values()):
                return
        except KafkaError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.5)


Numbered = dict[tuple[str, int], list[tuple[int, int]]]
"""Topic and partition → (offset, number) of all its records."""


def numbers(real: broker.Broker, topics: Sequence[str]) -> Numbered:
    client = KafkaConsumer(bootstrap_servers=server(real), auto_offset_reset="earliest", consumer_timeout_ms=READ_MS)
    client.assign(list(ends(real, topics)))
    found: Numbered = defaultdict(list)
    for record in client:
        found[record.topic, record.partition].append((record.offset, int(record.value.split(b":")[1])))
    client.close()
    return found


def truth(source: broker.Broker, target: broker.Broker, names: dict[str, str]) -> Iterator[dict[str, object]]:
    """A row for each group and partition."""
    from tests.restore.live import committed

    there, copied = numbers(source, list(names)), numbers(target, list(names.values()))
    copied_ends = ends(target, list(names.values()))
    places: dict[tuple[str, int], dict[int, list[int]]] = {}
    for key, rows in copied.items():
        places[key] = defaultdict(list)
        for offset, number in rows:
            places[key][number].append(offset)
    admin = KafkaAdminClient(bootstrap_servers=server(source))
    groups = sorted(row["group_id"] for row in admin.list_groups())
    admin.close()
    for group, offsets in committed(source, groups).items():
        for (topic, partition), (offset, _, _) in sorted(offsets.items()):
            if topic not in names:
                continue
            unread = [number for at, number in there[topic, partition] if at >= offset]
            target_key = names[topic], partition
            yield {
                "group": group,
                "topic": topic,
                "partition": partition,
                "committed_offset": offset,
                "lag": len(unread),
                "target_topic": names[topic],
                "target_offsets": places[target_key][unread[0]] if unread else [],
                "target_end": copied_ends[TopicPartition(*target_key)],
            }


def record(policy: str, folder: Path) -> None:
    """Record one case."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    brokers = []
    for name in ("source", "target"):
        (folder / name).mkdir()
        brokers.append(broker.Broker(broker.jars(), folder / name, partitions=4))
    source, target = brokers
    prefix = "a." if policy == "default" else ""
    names = {name: prefix + name for name in ("many", "some", "transactions", "compacted")}
    with source.running(), target.running():
        written = Source(source)
        written.make_topics()
        written.write(0)
        written.commit()
        with mirror_maker(folder, source, target, policy) as process:
            deadline = time.monotonic() + COPY_SECONDS
            while sum(ends(target, [names["many"]]).values()) < MANY // 5:
                assert time.monotonic() < deadline, (folder / "mm2.log").read_text()[-2000:]
                time.sleep(0.2)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        written.write(1)
        with mirror_maker(folder, source, target, policy) as process:
            wait_until_quiet(target, list(names.values()), MANY + 2 * SOME + 1800)
            written.commit()
            time.sleep(15)
            process.terminate()
            process.wait(60)
        with (folder / "truth.jsonl").open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in truth(source, target, names))
    (folder / "README.txt").write_text(README.format(policy=policy, many=MANY))


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]).absolute())
