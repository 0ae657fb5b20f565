"""A real broker: the copy is its segments' bytes, with nothing but the right to read, by requests that only read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

from offsets_log_cli.main import main
from tests.coordinator.broker import Broker
from tests.restore import live
from tests.restore.secure_broker import USER, USER_PASSWORD, make_certificates, secure

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # kafka-python's admin client
]

OFFSETS = "__consumer_offsets"
GROUPS = ("a", "b", "c")
READERS = {"reader-256": ScramMechanism.SCRAM_SHA_256, "reader-512": ScramMechanism.SCRAM_SHA_512}
REQUESTS = """status=error
appender.f.type=File
appender.f.name=F
appender.f.fileName={file}
appender.f.layout.type=PatternLayout
appender.f.layout.pattern=%m%n
logger.r.name=kafka.request.logger
logger.r.level=debug
logger.r.additivity=false
logger.r.appenderRef.f.ref=F
rootLogger.level=off
"""
"""Log4j's settings for a file of all requests."""
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
MORE = {
    "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.login.scram-sha-256.sasl.jaas.config": SCRAM,
    "listener.name.login.scram-sha-512.sasl.jaas.config": SCRAM,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:CN=client",
}


class Running(NamedTuple):
    """A broker that runs, its ports by listener, and where its requests are logged."""

    broker: Broker
    ports: dict[str, int]
    keys: Path
    requests: Path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("pull")
    real = live.make(folder / "broker")
    make_certificates(folder / "keys")
    ports = secure(real, folder / "keys")
    with real.properties.open("a") as file:
        file.writelines(f"{name}={value}\n" for name, value in MORE.items())
    (folder / "log4j2.properties").write_text(REQUESTS.format(file=folder / "requests.log"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JDK_JAVA_OPTIONS", f"-Dlog4j2.configurationFile={folder}/log4j2.properties")
        with real.running():
            live.fill(real)
            live.make_coordinators(real, GROUPS)
            commit(real)
            yield Running(real, {**ports, "PLAINTEXT": real.port}, folder / "keys", folder / "requests.log")


def commit(real: Broker) -> None:
    """Offsets of all groups, and the right of some users to read the topic."""
    secrets = [UserScramCredentialUpsertion(user, mechanism, "secret") for user, mechanism in READERS.items()]
    topic = ResourcePattern(ResourceType.TOPIC, OFFSETS)
    with live.admin(real) as client:
        for number in range(8):
            for group in GROUPS:
                offsets = {TopicPartition("orders", p): OffsetAndMetadata(number, f"m{p}", -1) for p in range(3)}
                client.alter_group_offsets(group, offsets)
        assert set(client.alter_user_scram_credentials(secrets).values()) == {None}
        client.create_acls(
            [ACL(f"User:{user}", "*", ACLOperation.READ, ACLPermissionType.ALLOW, topic) for user in (*READERS, USER)]
        )


def login(mechanism: str, user: str, password: str, protocol: str) -> str:
    quoted = password.replace("\\", "\\\\\\\\").replace('"', '\\\\"')
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{user}" password="{quoted}";'
    return f"security.protocol={protocol}\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n"


def ways(keys: Path) -> dict[str, tuple[str, str]]:
    """Name → listener and properties."""
    trust = f"ssl.truststore.type=PEM\nssl.truststore.location={keys}/ca.pem\n"
    tls = f"security.protocol=SSL\n{trust}ssl.keystore.type=PEM\nssl.keystore.location={keys}/client.pem\n"
    return {
        "PLAINTEXT": ("PLAINTEXT", ""),
        "TLS": ("TLS", tls),
        "PLAIN": ("LOGIN", login("PLAIN", USER, USER_PASSWORD, "SASL_PLAINTEXT")),
        "PLAIN by TLS": ("BOTH", trust + login("PLAIN", USER, USER_PASSWORD, "SASL_SSL")),
        "SCRAM-SHA-256": ("LOGIN", login("SCRAM-SHA-256", "reader-256", "secret", "SASL_PLAINTEXT")),
        "SCRAM-SHA-512": ("LOGIN", login("SCRAM-SHA-512", "reader-512", "secret", "SASL_PLAINTEXT")),
    }


def pull(running: Running, path: Path, way: str) -> list[dict[str, Any]]:
    listener, properties = ways(running.keys)[way]
    (path / "client.properties").write_text(f"client.id=puller\n{properties}")
    server = f"127.0.0.1:{running.ports[listener]}"
    words = ["pull", "--bootstrap-server", server, "--command-config", str(path / "client.properties")]
    result = CliRunner().invoke(main, [*words, "--to", str(path / "copy")])
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def logs_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def batches(folder: Path, partition: int) -> bytes:
    return logs_of(folder / f"{OFFSETS}-{partition}")


@pytest.mark.parametrize("way", ways(Path()))
def test_the_copy_is_the_brokers_own_bytes_however_one_logs_in(running: Running, way: str, tmp_path: Path) -> None:
    """By SASL a user that may READ the topic, and nothing else."""
    rows = pull(running, tmp_path, way)
    assert sum(row["pulled_bytes"] for row in rows) > 1000
    for row in rows:
        assert batches(tmp_path / "copy", row["partition"]) == batches(running.broker.data, row["partition"])
    ends = json.loads((tmp_path / "copy" / "log-ends.json").read_text())["topics"]
    assert bool(ends) == (way in ("PLAINTEXT", "TLS")), "those alone may see orders"


def test_the_copy_answers_as_the_coordinator_does_and_knows_lags(running: Running, tmp_path: Path) -> None:
    pull(running, tmp_path, "PLAINTEXT")
    result = CliRunner().invoke(main, ["compact", str(tmp_path / "copy"), "-o", "jsonl"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    answered = live.committed(running.broker, GROUPS)
    told = {(row["group"], row["topic"], row["partition"]): (row["committed_offset"], row["metadata"]) for row in rows}
    assert told == {
        (group, *key): (offset, metadata)
        for group, offsets in answered.items()
        for key, (offset, metadata, _) in offsets.items()
    }
    assert {(row["log_end_offset"], row["lag"], row["lag_from"]) for row in rows} == {
        (live.RECORDS, live.RECORDS - 7, "high watermark")
    }


def test_a_snapshot_has_what_the_coordinator_answers(running: Running, tmp_path: Path) -> None:
    """And asks for nothing but to read, by the broker's own log of requests."""
    (tmp_path / "client.properties").write_text("client.id=snapshot\n")
    words = ["pull", "--from-admin", "--bootstrap-server", live.server(running.broker)]
    more = ["--command-config", str(tmp_path / "client.properties"), "--to", str(tmp_path / "snapshot")]
    result = CliRunner().invoke(main, [*words, *more])
    assert result.exit_code == 0, result.stderr
    plan = json.loads((tmp_path / "snapshot" / "plan.json").read_text())
    told: live.Groups = {}
    for row in plan["offsets"]:
        epoch = -1 if row["leader_epoch"] is None else row["leader_epoch"]
        told.setdefault(row["group"], {})[row["topic"], row["partition"]] = (
            row["committed_offset"], row["metadata"], epoch,
        )  # fmt: skip
    assert told == live.committed(running.broker, GROUPS)
    asked = [line for line in running.requests.read_text().splitlines() if '"clientId":"snapshot"' in line]
    names = {found[1] for line in asked if (found := re.search(r'"requestApiKeyName":"(\w+)"', line))}
    assert {"LIST_GROUPS", "OFFSET_FETCH"} <= names
    assert names <= {"API_VERSIONS", "METADATA", "LIST_OFFSETS", "LIST_GROUPS", "DESCRIBE_GROUPS", "OFFSET_FETCH"}


def test_logs_of_transactions_are_the_brokers_own_bytes_too(running: Running, tmp_path: Path) -> None:
    producer = KafkaProducer(bootstrap_servers=live.server(running.broker), transactional_id="tx")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"x", partition=0).get(30)
    producer.commit_transaction()
    producer.close()
    words = ["pull", "--bootstrap-server", live.server(running.broker), "--to", str(tmp_path / "copy")]
    result = CliRunner().invoke(main, [*words, "--with-transaction-state"])
    assert result.exit_code == 0, result.stderr
    folders = sorted((tmp_path / "copy").glob("__transaction_state-*"))
    pulled = {folder.name: logs_of(folder) for folder in folders}
    assert any(pulled.values())
    for name, batches_of_copy in pulled.items():  # the transaction's last record may come later
        assert logs_of(running.broker.data / name).startswith(batches_of_copy)


def test_the_broker_was_asked_for_nothing_but_to_read(running: Running, tmp_path: Path) -> None:
    """By its own log of requests."""
    pull(running, tmp_path, "TLS")
    asked = [line for line in running.requests.read_text().splitlines() if '"clientId":"puller"' in line]
    names = {found[1] for line in asked if (found := re.search(r'"requestApiKeyName":"(\w+)"', line))}
    assert {"METADATA", "LIST_OFFSETS", "FETCH"} <= names
    assert names <= {
        "API_VERSIONS", "METADATA", "LIST_OFFSETS", "FETCH", "OFFSET_FOR_LEADER_EPOCH", "SASL_HANDSHAKE",
        "SASL_AUTHENTICATE",
    }  # fmt: skip
