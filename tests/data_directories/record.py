"""Makes the recordings of whole data directories: real brokers on loopback, their files, and their words beside them.

    python tests/data_directories/record.py JARS SCRATCH OUT NAME [PORT]

JARS holds one folder VERSION/libs per Kafka version, SCRATCH is for brokers, OUT gets a folder NAME: one of
`SCENARIOS`. Java 17 and three minutes a recording are enough. Ids and times differ from run to run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
CLIENTS = "4.3.0"
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8")
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
DECODERS = {
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__consumer_offsets": "--offsets-decoder",
}
LOG4J2 = """\
appender.c.type=Console
appender.c.name=c
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d %p %c{1} %m%n
rootLogger.level=WARN
rootLogger.appenderRef.c.ref=c
"""
LOG4J = """\
log4j.rootLogger=WARN,c
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=%d %p %c{1} %m%n
"""
SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "log.index.size.max.bytes": "16384",
    "log.segment.delete.delay.ms": "3600000",
    "log.cleaner.backoff.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "3000",
    "log.flush.start.offset.checkpoint.interval.ms": "3000",
    "metadata.log.max.snapshot.interval.ms": "12000",
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.num.partitions": "4",
    "transaction.partition.verification.enable": "false",
}
SHARE_SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "4",
    "group.share.max.record.lock.duration.ms": "3600000",
}


def say(*words: str) -> None:
    """A line for whoever waits."""
    sys.stdout.write(" ".join([time.strftime("%H:%M:%S"), *words]) + "\n")
    sys.stdout.flush()


class Broker:
    """One broker and controller in a process of its own.

    Args:
        node: its number.
        nodes: how many the cluster has, which is how many replicas internal topics have.
        voters: how many of them are controllers, the first ones.
        directories: its data directories, below its home.
        is_dynamic: whether the quorum's members stand in the metadata log (``kraft.version`` 1), not in the settings.
    """

    def __init__(
        self,
        jars: Path,
        home: Path,
        port: int,
        node: int = 1,
        nodes: int = 1,
        voters: int = 1,
        directories: tuple[str, ...] = ("data",),
        is_dynamic: bool = False,
    ) -> None:
        self.jars, self.home, self.port = jars, home, port + 2 * (node - 1)
        self.is_dynamic = is_dynamic
        self.directories = [home / name for name in directories]
        self.process: subprocess.Popen[bytes] | None = None
        quorum = ",".join(f"{n}@127.0.0.1:{port + 2 * n - 1}" for n in range(1, voters + 1))
        client, controller = f"PLAINTEXT://127.0.0.1:{self.port}", f"CONTROLLER://127.0.0.1:{self.port + 1}"
        is_voter, replicas = node <= voters, str(nodes)
        settings = {
            **SETTINGS,
            **(SHARE_SETTINGS if jars.parent.name >= "4" else {}),
            "node.id": str(node),
            "process.roles": "broker,controller" if is_voter else "broker",
            **({"controller.quorum.bootstrap.servers": controller[13:]} if is_dynamic else {}),
            **({} if is_dynamic else {"controller.quorum.voters": quorum}),
            "listeners": f"{client},{controller}" if is_voter else client,
            "advertised.listeners": client,
            "log.dirs": ",".join(str(path) for path in self.directories),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": "1",
        }
        home.mkdir(parents=True)
        (home / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        (home / "log4j2.properties").write_text(LOG4J2)
        (home / "log4j.properties").write_text(LOG4J)

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.port}"

    def _command(self, *words: str) -> list[str]:
        return [
            *JAVA,
            "-Xmx400m",
            f"-Dlog4j2.configurationFile={self.home}/log4j2.properties",
            f"-Dlog4j.configuration=file:{self.home}/log4j.properties",
            "-cp",
            f"{self.jars}/*",
            *words,
        ]

    def format(self) -> None:
        """Make its data directories."""
        config = str(self.home / "server.properties")
        with (self.home / "format.out").open("wb") as out:
            words = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config]
            command = self._command(*words, *(["--standalone"] if self.is_dynamic else []))
            subprocess.run(command, check=True, stdout=out, stderr=out)

    def start(self) -> None:
        """Start it; clients wait until it answers."""
        with (self.home / "broker.out").open("ab") as out:
            command = self._command("kafka.Kafka", str(self.home / "server.properties"))
            self.process = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.home)

    def end(self, signal_number: int) -> None:
        """Stop it (SIGTERM) or kill it (SIGKILL)."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal_number)
            self.process.wait(90)

    def copy_to(self, folder: Path) -> None:
        """All of its data directories, holes and times kept."""
        for path in self.directories:
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-a", "--sparse=always", str(path), str(folder / path.name)], check=True)
        for lock in folder.rglob(".lock"):
            lock.chmod(0o644)


class Recorder:
    """Classes compiled, brokers and clients started, all ended at the end."""

    def __init__(
        self,
        jars: Path,
        scratch: Path,
        out: Path,
        version: str,
        sources: tuple[str, ...] = ("Clients.java", "Tools.java"),
    ) -> None:
        self.jars, self.scratch, self.out, self.version = jars, scratch, out, version
        self.libs = jars / version / "libs"
        self.brokers: list[Broker] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.classes = scratch / "classes"
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        self.classes.mkdir(parents=True)
        client_libs = f"{jars / CLIENTS / 'libs'}/*"
        files = [str(HERE / name) for name in sources]
        subprocess.run(["javac", "-nowarn", "-d", str(self.classes), "-cp", client_libs, *files], check=True)

    def broker(
        self,
        port: int,
        node: int = 1,
        nodes: int = 1,
        voters: int = 1,
        directories: tuple[str, ...] = ("data",),
        is_dynamic: bool = False,
    ) -> Broker:
        """One more broker, formatted and started."""
        home = self.scratch / f"broker-{node}"
        made = Broker(self.libs, home, port, node, nodes, voters, directories, is_dynamic)
        made.format()
        made.start()
        self.brokers.append(made)
        return made

    def clients(self, *words: str) -> subprocess.Popen[bytes]:
        """Clients that wait at the end of each step."""
        class_path = f"{self.classes}:{self.jars / CLIENTS / 'libs'}/*"
        command = [*JAVA, "-Xmx300m", "-Dlog4j2.level=ERROR", "-cp", class_path, "Clients", *words]
        errors = (self.scratch / "clients.out").open("ab")
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        self.processes.append(process)
        return process

    def wait(self, clients: subprocess.Popen[bytes], step: str) -> None:
        """Until clients have come to the end of a step."""
        assert clients.stdout is not None
        said = clients.stdout.readline().decode().strip()
        if said != step:
            raise RuntimeError(f"{said!r} instead of {step!r}, see {self.scratch}/clients.out")
        say(self.out.name, step)

    def go_on(self, clients: subprocess.Popen[bytes]) -> None:
        """Let them go on."""
        assert clients.stdin is not None
        clients.stdin.write(b"\n")
        clients.stdin.flush()

    def words(self, name: str, address: str) -> None:
        """What the brokers say now: texts of the tools of their version, and AdminClient's words as JSON."""
        folder = self.out / "words" / name
        folder.mkdir(parents=True)
        began_ms = int(time.time() * 1000)
        asking = self.clients("ask", address, str(folder / "admin.json"))
        self.wait(asking, "done")
        at = ("--bootstrap-server", address)
        groups, shares = "consumer.group.ConsumerGroupCommand", "consumer.group.ShareGroupCommand"
        tools: dict[str, tuple[str, ...]] = {
            "groups-list": (groups, *at, "--list", "--type" if self.version >= "4" else "--state"),
            "groups-offsets": (groups, *at, "--describe", "--all-groups", "--offsets"),
            "groups-state": (groups, *at, "--describe", "--all-groups", "--state"),
            "groups-members": (groups, *at, "--describe", "--all-groups", "--members", "--verbose"),
            "get-offsets-earliest": ("GetOffsetShell", *at, "--time", "-2"),
            "get-offsets-latest": ("GetOffsetShell", *at, "--time", "-1"),
            "topics": ("TopicCommand", *at, "--describe"),
            "transactions-list": ("TransactionsCommand", *at, "list"),
            "quorum": ("MetadataQuorumCommand", *at, "describe", "--status"),
            "features": ("FeatureCommand", *at, "describe"),
        }
        for transactional_id in json.loads((folder / "admin.json").read_text())["transactions"]:
            words = ("TransactionsCommand", *at, "describe", "--transactional-id", transactional_id)
            tools[f"transaction-{transactional_id}"] = words
        if self.version >= "4":
            for what in ("offsets", "state", "members"):
                verbose = ("--verbose",) if what != "state" else ()
                tools[f"share-groups-{what}"] = (shares, *at, "--describe", "--all-groups", f"--{what}", *verbose)
        self.tools(folder, tools)
        (folder / "when.json").write_text(json.dumps({"from_ms": began_ms, "to_ms": int(time.time() * 1000)}) + "\n")

    def tools(self, folder: Path, tools: dict[str, tuple[str, ...]]) -> None:
        """Run tools of the brokers' version in one process."""
        lines = "".join("\t".join([f"{folder}/{name}.txt", *words]) + "\n" for name, words in tools.items())
        class_path = f"{self.classes}:{self.libs}/*"
        command = [*JAVA, "-Xmx300m", "-Dlog4j2.level=ERROR", "-cp", class_path, "Tools"]
        with (self.scratch / "tools.out").open("ab") as out:
            subprocess.run(command, input=lines.encode(), check=True, stdout=out, stderr=out, timeout=300)

    def copy(self, name: str, broker: Broker, how: str) -> None:
        """Copy a broker's data directories to ``copies/NAME`` and say when."""
        began_ms = int(time.time() * 1000)
        folder = self.out / "copies" / name
        broker.copy_to(folder)
        about = {"how": how, "from_ms": began_ms, "to_ms": int(time.time() * 1000)}
        (self.out / "copies" / f"{name}.json").write_text(json.dumps(about) + "\n")

    def dump(self) -> None:
        """What kafka-dump-log says of the logs of all copies; of user topics nothing."""
        tools: dict[str, tuple[str, ...]] = {}
        copies = self.out / "copies"
        for directory in sorted(path for path in copies.rglob("*") if path.is_dir()):
            decoder = DECODERS.get(directory.name.rpartition("-")[0])
            if decoder is None or (decoder == "--share-group-state-decoder" and self.version < "4"):
                continue
            files = [path for path in directory.iterdir() if path.suffix in (".log", ".checkpoint")]
            for path in sorted(path for path in files if path.stat().st_size):
                name = f"{directory.relative_to(copies)}/{path.name}"
                tools[name] = ("DumpLogSegments", decoder, "--print-data-log", "--files", str(path))
        self.tools(self.out / "dump-log", tools)
        for text in (self.out / "dump-log").rglob("*.txt"):
            text.write_text(text.read_text().replace(f"{copies}/", ""))

    def close(self) -> None:
        """End everything that was started."""
        for process in self.processes:
            process.kill()
            process.wait(30)
        for broker in self.brokers:
            broker.end(signal.SIGKILL)


def one(recorder: Recorder, port: int, scenario: str) -> None:
    """One broker: copied while it runs, after a kill, and after it was started and stopped once more.

    A "blocked" one is the first of two, the second of which was stopped: with a broker less than
    ``min.insync.replicas`` asks for, nothing can be written to the offsets topic any more.
    """
    is_blocked, is_dynamic = "blocked" in scenario, "dynamic" in scenario
    broker = recorder.broker(port, nodes=2 if is_blocked else 1, is_dynamic=is_dynamic)
    other = recorder.broker(port, 2, 2) if is_blocked else None
    clients = recorder.clients("work", scenario, broker.address)
    recorder.wait(clients, "settled")
    if other is not None:
        other.end(signal.SIGTERM)
        time.sleep(5)
    recorder.go_on(clients)
    recorder.wait(clients, "ready")
    time.sleep(14)  # until checkpoints, snapshots and the cleaner have seen it all
    recorder.words("running", broker.address)
    recorder.copy("running", broker, "copied while the broker ran")
    broker.end(signal.SIGKILL)
    recorder.copy("killed", broker, "copied after kill -9")
    clients.kill()
    if other is not None:
        return  # after an unclean stop nothing of what the second one had can be led by the first alone
    broker.start()
    recorder.wait(recorder.clients("unblock", broker.address), "done")
    time.sleep(25)
    recorder.words("stopped", broker.address)
    broker.end(signal.SIGTERM)
    recorder.copy("stopped", broker, "copied after a clean stop")


def replicas(recorder: Recorder, port: int, scenario: str) -> None:
    """Three brokers, of which the third is killed before the rest is done; the first has two data directories."""
    first = recorder.broker(port, 1, 3, 3, ("data-a", "data-b"))
    second = recorder.broker(port, 2, 3, 3)
    third = recorder.broker(port, 3, 3, 3)
    addresses = ",".join(broker.address for broker in (first, second))
    clients = recorder.clients("work", scenario, addresses)
    recorder.wait(clients, "settled")
    time.sleep(14)
    recorder.words("before", addresses)
    third.end(signal.SIGKILL)
    recorder.copy("broker-3", third, "copied after kill -9; the others went on")
    recorder.go_on(clients)
    recorder.wait(clients, "ready")
    time.sleep(14)
    recorder.words("running", addresses)
    recorder.copy("broker-1", first, "copied while the broker ran")
    recorder.copy("broker-2", second, "copied while the broker ran")


SCENARIOS: dict[str, tuple[str, Callable[[Recorder, int, str], None], str]] = {
    "kafka-4.3-one": ("4.3.0", one, "modern"),
    "kafka-4.3-dynamic": ("4.3.0", one, "modern-dynamic"),
    "kafka-4.3-blocked": ("4.3.0", one, "modern-blocked"),
    "kafka-3.9-blocked": ("3.9.1", one, "classic-blocked"),
    "kafka-4.3-three": ("4.3.0", replicas, "replicas"),
}
"""Name → Kafka's version, how brokers are run, what clients do."""


def main(jars: Path, scratch: Path, out: Path, name: str, port: int = 24100) -> None:
    """Make one recording."""
    version, run, scenario = SCENARIOS[name]
    recorder = Recorder(jars, scratch / name, out / name, version)
    about = {"name": name, "kafka_version": version, "recorded_at": time.strftime("%Y-%m-%d"), "settings": SETTINGS}
    try:
        run(recorder, port, scenario)
    finally:
        recorder.close()
    recorder.dump()
    (recorder.out / "recording.json").write_text(json.dumps(about, indent=1) + "\n")
    say(name, "recorded in", os.path.relpath(recorder.out))


if __name__ == "__main__":
    main(*(Path(word).resolve() for word in sys.argv[1:4]), sys.argv[4], *map(int, sys.argv[5:6]))
