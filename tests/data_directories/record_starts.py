"""Starts real brokers on all `starts.VARIANTS`, and notes what they do.

    python -m tests.data_directories.record_starts OUT RELEASE [VARIANT ...]

OUT gets ``RELEASE.tar.xz``, the sound directory that a broker of that release left, if it is not there, and
``starts-RELEASE.json``: variant → ``starts`` (whether it ran for `SETTLED_SECONDS` after clients had asked), ``asides``
(folders that it renamed), ``served`` (group → committed offset of ``orders`` 0), ``says`` (its last error). Some two
seconds of one processor a variant, beside what the broker waits.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.coordinator.broker import free_port, jars, quick
from tests.data_directories.starts import GROUPS, OFFSETS_PARTITIONS, SECOND, VARIANTS, made

UP_SECONDS = 90
ASK_SECONDS = 10
SETTLED_SECONDS = 4
"""How long a broker is watched after it has answered: a log directory that fails ends it a moment later."""
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
STARTED = b"Kafka Server started"
LOG4J2 = """\
appender.c.type=Console
appender.c.name=c
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%p %c{1} %m%n
rootLogger.level=WARN
rootLogger.appenderRef.c.ref=c
logger.k.name=kafka.server.KafkaRaftServer
logger.k.level=INFO
"""
LOG4J = """\
log4j.rootLogger=WARN,c
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=%p %c{1} %m%n
log4j.logger.kafka.server.KafkaRaftServer=INFO
"""


class Server:
    """A broker of a release over data directories that are there already."""

    def __init__(self, release: str, work: Path, log_dirs: Sequence[Path]) -> None:
        self.libs = jars(release)
        self.work, self.port = work, free_port()
        controller = free_port()
        self.properties, self.output = work / "server.properties", work / "broker.log"
        settings: dict[str, Any] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": ",".join(map(str, log_dirs)),
            "metadata.log.dir": log_dirs[0],
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
            "log.index.size.max.bytes": 16384,
            "group.initial.rebalance.delay.ms": 0,
        }
        self.properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def java(self, *words: str) -> list[str]:
        (self.work / "log4j2.properties").write_text(LOG4J2)
        (self.work / "log4j.properties").write_text(LOG4J)
        logging = (
            f"-Dlog4j2.configurationFile={self.work}/log4j2.properties",
            f"-Dlog4j.configuration=file:{self.work}/log4j.properties",
        )
        return ["java", "-Xmx400m", *quick(self.libs), *logging, "-cp", f"{self.libs}/*", *words]

    def start(self) -> subprocess.Popen[bytes]:
        with self.output.open("wb") as output:
            return subprocess.Popen(
                self.java("kafka.Kafka", str(self.properties)), stdout=output, stderr=subprocess.STDOUT, cwd=self.work
            )

    def is_up(self, process: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + UP_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if STARTED in self.output.read_bytes():
                return True
            time.sleep(0.2)
        return False

    def admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{self.port}", request_timeout_ms=ASK_SECONDS * 1000)

    def served(self) -> dict[str, int]:
        """The committed offset of each group."""
        found = {}
        with suppress(KafkaError):
            admin = self.admin()
            for group in GROUPS:
                deadline = time.monotonic() + ASK_SECONDS
                while time.monotonic() < deadline:
                    try:
                        offsets = admin.list_group_offsets({group: None})[group]
                    except KafkaError:
                        time.sleep(0.3)
                        continue
                    orders = [one.offset for key, one in offsets.items() if key.topic == "orders"]
                    if orders:
                        found[group] = orders[0]
                    break
            admin.close()
        return found

    def error(self) -> str | None:
        lines = self.output.read_text(errors="replace").splitlines()
        wanted = [
            line for line in lines if "Exception" in line or "ERROR" in line or "FATAL" in line or "Error" in line
        ]
        return wanted[-1][:300] if wanted else None


def make_base(release: str, work: Path) -> Path:
    """The directory of a broker that served `GROUPS` and stopped in order."""
    data = work / "data"
    server = Server(release, work, [data])
    subprocess.run(
        server.java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(server.properties)), check=True
    )
    process = server.start()
    try:
        assert server.is_up(process), server.output.read_text()[-3000:]
        admin = server.admin()
        admin.create_topics([NewTopic("orders", 3, 1)])
        producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{server.port}")
        for number in range(40):
            producer.send("orders", b"x" * number, partition=number % 3)
        producer.flush()
        producer.close()
        for number, group in enumerate(GROUPS):
            for _ in range(60):
                try:
                    admin.alter_group_offsets(
                        group, {TopicPartition("orders", 0): OffsetAndMetadata(10 + number, "", -1)}
                    )
                    break
                except KafkaError:
                    time.sleep(0.5)
        assert server.served() == {group: 10 + number for number, group in enumerate(GROUPS)}
        admin.close()
    finally:
        process.terminate()
        process.wait(60)
    (data / ".lock").unlink(missing_ok=True)
    return data


def judge(release: str, name: str, base: Path, work: Path) -> dict[str, Any]:
    """What a broker does on a variant."""
    log_dirs = made(name, base, work)
    before = {path.name for home in log_dirs for path in home.iterdir() if path.is_dir()}
    server = Server(release, work, log_dirs)
    process = server.start()
    served: dict[str, int] = {}
    try:
        is_up = server.is_up(process)
        if is_up:
            served = server.served()
            with suppress(subprocess.TimeoutExpired):
                process.wait(SETTLED_SECONDS)
        starts = is_up and process.poll() is None
    finally:
        process.kill()
        process.wait()
    after = {path.name for home in log_dirs for path in home.iterdir() if path.is_dir()}
    asides = sorted({name.rpartition(".")[0] for name in after - before if name.endswith("-stray")})
    return {"starts": starts, "asides": asides, "served": served, "says": None if starts else server.error()}


def main() -> None:
    out, release, asked = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    out.mkdir(parents=True, exist_ok=True)
    packed, answers = out / f"start-{release}.tar.xz", out / f"starts-{release}.json"
    with tempfile.TemporaryDirectory() as scratch:
        if not packed.exists():
            work = Path(scratch) / "made"
            work.mkdir()
            data = make_base(release, work)
            with tarfile.open(packed, "w:xz") as tar:
                tar.add(data, "data")
        with tarfile.open(packed) as tar:
            tar.extractall(scratch, filter="data")
        found = json.loads(answers.read_bytes()) if answers.exists() else {}
        for name in asked or [*VARIANTS, *SECOND]:
            if name in found and not asked:
                continue
            work = Path(scratch) / name
            work.mkdir()
            found[name] = judge(release, name, Path(scratch) / "data", work)
            sys.stdout.write(f"{release} {name} {json.dumps(found[name])}\n")
            answers.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
            shutil.rmtree(work)


if __name__ == "__main__":
    main()
