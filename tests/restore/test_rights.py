"""A broker with TLS, logins and access lists: what a user may not set is told beforehand, and runs survive any kill.

So do runs with plans that were translated: the broker lacks the first records of another cluster.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    NewTopic,
    ResourcePattern,
    ResourceType,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

from offsets_log.cluster.admin import Cluster
from offsets_log.java_properties import parse_properties
from offsets_log.restore.judging import judge
from offsets_log.restore.target import Committed
from offsets_log.rows.tables import Row
from offsets_log_cli.main import main
from tests.cli.test_translate import write_log, write_source
from tests.coordinator.broker import Broker
from tests.restore import live
from tests.restore.plans import plan_of, row
from tests.restore.secure_broker import USER, USER_PASSWORD, make_certificates, secure
from tests.restore.test_live import interrupted
from tests.restore.test_secure import login
from tests.translation.logs import Said
from tests.translation.test_live import NOT_COPIED, START_MS, fill

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("OFFSETS_LOG_KILLS", "1"))
GROUPS = [f"mine-{number:02}" for number in range(40)]
SHARE_GROUPS = ["mine-shared-0", "mine-shared-1"]
RESTORED = 20
"""The offset of all groups in all partitions."""


class Guarded(NamedTuple):
    """A broker, and how its user gets in."""

    real: Broker
    server: str
    config: Path


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """``alice`` may set groups ``mine-…`` on ``orders``, see ``seen`` and ``read-only``, and nothing else."""
    folder = tmp_path_factory.mktemp("rights")
    real = live.make(folder / "broker")
    make_certificates(folder / "keys")
    port = secure(real, folder / "keys")["BOTH"]
    with real.properties.open("a") as file:
        file.write("authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n")
        file.write("super.users=User:ANONYMOUS\n")
    config = folder / "client.properties"
    config.write_text(login(USER_PASSWORD, "SASL_SSL") + f"ssl.truststore.location={folder / 'keys' / 'ca.pem'}\n")
    with real.running():
        fill(real, NOT_COPIED)
        with live.admin(real) as admin:
            admin.create_topics([NewTopic("read-only", 1, 1), NewTopic("hidden", 1, 1)])
            admin.create_acls(
                [
                    _allow(ResourceType.GROUP, "mine-", ACLOperation.READ, ACLResourcePatternType.PREFIXED),
                    _allow(ResourceType.GROUP, "mine-", ACLOperation.DELETE, ACLResourcePatternType.PREFIXED),
                    _allow(ResourceType.GROUP, "seen", ACLOperation.DESCRIBE),
                    _allow(ResourceType.TOPIC, "orders", ACLOperation.READ),
                    _allow(ResourceType.TOPIC, "read-only", ACLOperation.DESCRIBE),
                ]
            )
        live.make_coordinators(real, ["any"])
        yield Guarded(real, f"127.0.0.1:{port}", config)


def _allow(
    kind: ResourceType, name: str, operation: ACLOperation, pattern: Any = ACLResourcePatternType.LITERAL
) -> ACL:
    return ACL(f"User:{USER}", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name, pattern))


def properties(guarded: Guarded) -> dict[str, str]:
    return dict(parse_properties(guarded.config.read_text(), "f"))


def test_what_the_user_may_not_set_is_told(guarded: Guarded) -> None:
    rows = [
        row("mine-1"),
        row("mine-1", topic="hidden"),
        row("mine-1", topic="read-only"),
        row("nobody"),
        row("seen"),
    ]
    with closing(Cluster(guarded.server, properties(guarded))) as cluster:
        judged = [(found["group"], found["topic"], found["problems"]) for found in judge(cluster, rows)]
    assert judged == [
        ("mine-1", "hidden", ["no topic"]),
        ("mine-1", "read-only", ["denied", "beyond end"]),
        ("nobody", "orders", ["denied"]),
        ("seen", "orders", ["denied"]),
    ]


def answers(guarded: Guarded) -> tuple[live.Groups, dict[str, Any]]:
    with closing(Cluster(guarded.server, properties(guarded))) as cluster:
        starts = {group: dict(cluster.share_groups.offsets(group)) for group in SHARE_GROUPS}
    return live.committed(guarded.real, GROUPS), starts


def written(guarded: Guarded, folder: Path) -> Row:
    return plan_of(*(row(group, partition=n, offset=RESTORED, metadata="m") for group in GROUPS for n in range(3)))


def translated(guarded: Guarded, folder: Path) -> Row:
    """The same, told by the records of a source that has more of them."""
    committed = {(group, "orders", n): NOT_COPIED + RESTORED for group in GROUPS for n in range(3)}
    source = write_source(folder / "source", committed)
    for n in range(3):
        records = [Said(START_MS + number, None, b"%d" % number) for number in range(live.RECORDS)]
        write_log(source / f"orders-{n}", records)
        shutil.copytree(guarded.real.data / f"orders-{n}", folder / "target" / f"orders-{n}")
    words = ["translate", source, "--target", folder / "target", "--to", folder / "plan", "--partitions", 1]
    result = CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)
    assert (result.exit_code, "120 exact" in result.stderr) == (0, True), result.stderr
    plan: Row = json.loads((folder / "plan" / "plan.json").read_bytes())
    return plan


@pytest.mark.parametrize("make_plan", [written, translated])
def test_killed_anywhere_run_again_and_undone_is_as_before(
    guarded: Guarded, tmp_path: Path, make_plan: Callable[[Guarded, Path], Row]
) -> None:
    with live.admin(guarded.real) as client:
        for number, group in enumerate(GROUPS[::2]):
            keys = [TopicPartition("orders", (number + shift) % 3) for shift in range(1 + number % 3)]
            client.alter_group_offsets(group, {key: OffsetAndMetadata(30 + number % 9, "mine", 0) for key in keys})
    with closing(Cluster(guarded.server, properties(guarded))) as cluster:
        assert cluster.share_groups.commit(SHARE_GROUPS[0], {("orders", 0): Committed(3, None, "")}) == {}
    made = make_plan(guarded, tmp_path)
    rows = made["offsets"]
    shares = [
        {"group": group, "topic": "orders", "partition": 0, "start_offset": 9, "status": "initialized"}
        for group in SHARE_GROUPS
    ]
    before, chosen = answers(guarded), random.Random(make_plan.__name__)
    for kill in range(KILLS):
        folder = tmp_path / str(kill)
        plan = live.write_plan(folder / "plan.json", [])
        plan.write_text(json.dumps(made | {"share_offsets": shares}))
        journal = folder / "restore-journal.jsonl"
        where = ("--bootstrap-server", guarded.server, "--command-config", guarded.config, "--execute")
        for words in ((plan, *where), ("--undo", journal, *where)):
            lines = chosen.randrange(1, 2 * len(rows))
            how = chosen.choice([signal.SIGKILL, signal.SIGTERM])
            written = journal.read_bytes().count(b"\n") if journal.exists() else 0
            interrupted(live.start(*words), journal, written + lines, how)
            status, changes, said = live.restore(*words)
            assert status == 0, (said, [change["reason"] for change in changes if change["reason"]])
            if "--undo" not in words:
                groups, starts = answers(guarded)
                assert all(groups[r["group"]]["orders", r["partition"]] == (RESTORED, "m", -1) for r in rows)
                assert all(starts[group]["orders", 0].committed_offset == 9 for group in SHARE_GROUPS)
                if not kill:
                    unread = [number for number in range(NOT_COPIED + RESTORED, live.RECORDS) for _ in range(3)]
                    assert live.read_on(guarded.real, GROUPS[1], "classic", len(unread)) == unread
        assert answers(guarded) == before
