"""A real Kafka broker over segments that a test wrote, on this machine only.

Its jars come from Maven Central once, into ``$OFFSETS_LOG_KAFKA_DIR`` or the user's cache; beside them is kept what is
made of them: classes of programs, a formatted directory, classes as Java has read them.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.shared_files import cached, made_once, one_at_a_time
from tests.waiting import PATIENCE_S, wait_for

VERSION = os.environ.get("OFFSETS_LOG_KAFKA_VERSION", "4.4.0")
ASK = Path(__file__).with_name("Ask.java")
DOWNLOAD_SECONDS = 600
STOP_SECONDS = 120
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For processes that live for seconds."""


class NotAvailableError(Exception):
    """Why there can be no broker here, in one line."""


def jars(version: str = VERSION) -> Path:
    """The folder of Kafka's jars, filled if it must be; for the usual version ``$OFFSETS_LOG_KAFKA_DIR`` names it.

    Raises:
        NotAvailableError: no java, no mvn, or no way to Maven Central.
    """
    for tool in ("java", "javac"):
        if shutil.which(tool) is None:
            raise NotAvailableError(f"there is no {tool}")
    configured = os.environ.get("OFFSETS_LOG_KAFKA_DIR") if version == VERSION else None
    kafka = tuple(("org.apache.kafka", name, version) for name in ("kafka_2.13", "kafka-tools"))
    artifacts = (*kafka, ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"))
    folder = download(Path(configured) if configured else cached(f"kafka-{version}"), artifacts)
    assert (folder / f"kafka_2.13-{version}.jar").exists(), f"{folder} has no Kafka {version}"
    if version == VERSION:  # of others there are too few processes
        made_once(_archive(folder), partial(_keep_classes, folder))
    return folder


def download(folder: Path, artifacts: Sequence[tuple[str, str, str]]) -> Path:
    """Fill a folder with jars from Maven Central, and with all that they need, unless it is there.

    Raises:
        NotAvailableError: there is no mvn, or no way there.
    """
    return made_once(folder, partial(_fetch, artifacts))


def _fetch(artifacts: Sequence[tuple[str, str, str]], libs: Path) -> None:
    if shutil.which("mvn") is None:
        raise NotAvailableError("Kafka's jars are not in the cache, and there is no mvn to fetch them")
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in artifacts
    )
    (libs.parent / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>x</groupId><artifactId>x</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libs.name}"]
    try:
        with one_at_a_time(cached("maven")):  # which is not sure of its own files beside others of its kind
            subprocess.run(command, cwd=libs.parent, check=True, timeout=DOWNLOAD_SECONDS, capture_output=True)
    except (subprocess.SubprocessError, OSError):
        raise NotAvailableError(f"mvn cannot fetch {artifacts[0][1]} from Maven Central") from None


def quick(libs: Path) -> tuple[str, ...]:
    """Options of Java for processes that live for seconds: classes are taken as `_keep_classes` has left them."""
    archive = _archive(libs)
    return (*QUICK, f"-XX:SharedArchiveFile={archive}") if archive.exists() else QUICK


def _archive(libs: Path) -> Path:
    """Where classes of Kafka are kept as this machine's Java has read and verified them: half the time of a start."""
    java = shutil.which("java")
    return libs / f"classes-{Path(java).resolve().stat().st_mtime_ns if java else 0}.jsa"


def _keep_classes(libs: Path, archive: Path) -> None:
    with Broker(libs, archive.parent, partitions=1).running(f"-XX:ArchiveClassesAtExit={archive}"):
        pass


def compiled(libs: Path, source: Path) -> Path:
    """The classes of a program beside the jars that it needs, compiled when a test first asks for them."""

    def compile_to(folder: Path) -> None:
        _run("javac", "-cp", f"{libs}/*", "-d", str(folder), str(source))

    return made_once(libs / f"{source.stem}-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}", compile_to)


def format_data(libs: Path, data: Path) -> None:
    """Make the data directory of a broker with node id 1 that has not started yet; all are in clusters of one id."""

    def format_to(folder: Path) -> None:
        properties = folder.with_suffix(".properties")
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": folder,
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        tool = ("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties))
        _run("java", *quick(libs), "-cp", f"{libs}/*", *tool)

    shutil.copytree(made_once(libs / "formatted", format_to), data)


def _run(*command: str) -> None:
    ran = subprocess.run(command, timeout=PATIENCE_S, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


_ports = itertools.count(random.SystemRandom().randrange(10_000, 30_000))


def free_port() -> int:
    """A port of the loopback interface that nobody listens on, another with each call.

    It is below those that the system gives to connections, and far from those of other processes: none takes it
    meanwhile.
    """
    for port in _ports:
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("all ports are taken")


class Broker:
    """One KRaft broker with its own folder.

    Attributes:
        class_path: its jars; others may be added behind them.
    """

    def __init__(self, libs: Path, work: Path, partitions: int) -> None:
        self.libs, self.work, self.class_path = libs, work, f"{libs}/*"
        self.data, self.properties, self.output = work / "data", work / "server.properties", work / "broker.log"
        self.port, controller = free_port(), free_port()
        settings: dict[str, Any] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": partitions,
            "group.initial.rebalance.delay.ms": 0,
            "offsets.retention.minutes": 2**31 - 1,
            "offsets.retention.check.interval.ms": 9_000_000_000_000,
            "log.cleaner.min.compaction.lag.ms": 2**63 - 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
        }
        self.properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        format_data(libs, self.data)

    @contextlib.contextmanager
    def running(self, *options: str) -> Iterator[None]:
        """The broker up, and surely down afterwards; options are Java's."""
        command = ["java", "-Xmx512m", *quick(self.libs), *options]
        command += ["-cp", self.class_path, "kafka.Kafka", str(self.properties)]
        with self.output.open("ab") as output:
            process = self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=self.work)
            try:
                self._wait_for_port(process)
                yield
            finally:
                process.terminate()
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _wait_for_port(self, process: subprocess.Popen[bytes]) -> None:
        def listens() -> bool:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return True
            return False

        said = lambda: self.output.read_text(errors="replace")[-2000:]  # noqa: E731
        wait_for(f"the broker listens at {self.port}", listens, of=process, said=said, every_s=0.1)

    def ask(
        self, questions: Mapping[str, list[tuple[str, int]]], commits: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """What it answers of these groups and partitions; the first question creates ``__consumer_offsets``.

        Args:
            commits: group → offset of partition 0 of that topic, committed before.
        """
        asked, answered = self.work / "questions.json", self.work / "answers.json"
        asked.write_text(json.dumps(questions))
        told = [str(word) for commit in (commits or {}).items() for word in commit]
        java = ("java", *quick(self.libs), "-cp", f"{self.libs}/*{os.pathsep}{compiled(self.libs, ASK)}")
        _run(*java, ASK.stem, str(self.port), str(asked), str(answered), *told)
        answers: dict[str, Any] = json.loads(answered.read_bytes())
        return answers

    def place(self, partition: int, segment: bytes) -> None:
        """Put a segment in the place of a partition's files while the broker is down."""
        folder = self.data / f"__consumer_offsets-{partition}"
        for path in folder.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        (folder / f"{0:020}.log").write_bytes(segment)
        for path in (self.data / ".kafka_cleanshutdown", *self.data.glob("*-offset-checkpoint")):
            path.unlink(missing_ok=True)
