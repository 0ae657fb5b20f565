"""README.txt of a rescue, followed: its commands are run as they stand there, against real brokers of two releases.

Tools that are not installed are skipped: rpk, kaf and kafkactl, if they are not in the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka.structs import OffsetAndMetadata, TopicPartition

from offsets_log.restore.readme import DETAILS, README
from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.coordinator.broker import Broker
from tests.restore import live
from tests.restore.empty_cluster import consumer_groups_tool
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka

RELEASES = ("3.9.1", "4.3.0")
WANTED = {("plain", 0): 7, ("plain", 2): 0, ("it's; $HOME", 1): 60, ("-dash", 0): 31}
"""Group and partition of ``orders`` → offset."""
TOOLS = ("offsets-log", "kafka-consumer-groups.sh", "sh kafka-consumer-groups", "rpk", "kaf ", "sh kafkactl")
COMMANDS = re.compile(r"^  ((?:offsets-log |kafka-consumer-groups|sh |rpk |kaf ).*)$", re.MULTILINE)


@pytest.fixture(scope="module", params=RELEASES)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = live.make(tmp_path_factory.mktemp("readme") / "broker", request.param)
    with broker.running():
        live.fill(broker)
        live.make_coordinators(broker, ["any"])
        yield broker


def rescued(folder: Path, server: str) -> Path:
    """A rescue of a log with these groups, for a cluster that is judged fit for them."""
    log = LogBuilder()
    for (group, partition), offset in WANTED.items():
        log.commit(offset, group=group, topic="orders", partition=partition)
    source = folder / "data" / "__consumer_offsets-0"
    source.mkdir(parents=True)
    (source / f"{0:020}.log").write_bytes(b"".join(log.batches))
    words = ["rescue", str(folder / "data"), "--to", str(folder / "out"), "--bootstrap-server", server]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "on the target: all 4 offsets will do there" in result.output
    assert (folder / "out" / "target.jsonl").read_text() == ""
    return folder / "out"


def tools(folder: Path, real: Broker) -> str:
    """A PATH with the tools that the commands name."""
    folder.mkdir()
    consumer_groups_tool(real.libs, folder)
    tool = folder / "offsets-log"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from offsets_log_cli.main import run; run()" "$@"\n')
    tool.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def set_back(real: Broker) -> None:
    """All groups at offset 3 of all partitions."""
    with live.admin(real) as client:
        for group in {group for group, _ in WANTED}:
            offsets = {TopicPartition("orders", n): OffsetAndMetadata(3, "", None) for n in range(live.PARTITIONS)}
            client.alter_group_offsets(group, offsets)


def now(real: Broker) -> dict[tuple[str, int], int]:
    groups = live.committed(real, sorted({group for group, _ in WANTED}))
    found = {(group, key[1]): value[0] for group, own in groups.items() for key, value in own.items()}
    return {key: found[key] for key in WANTED}


def test_every_command_does_what_it_says(real: Broker, tmp_path: Path) -> None:
    folder, path = rescued(tmp_path, live.server(real)), tools(tmp_path / "bin", real)
    text = "".join((folder / name).read_text() for name in (README, DETAILS)).replace("HOST:PORT", live.server(real))
    commands = [command for command in COMMANDS.findall(text) if "share-groups" not in command]
    env = {**os.environ, "PATH": path}
    done: set[str] = set()
    for tool in TOOLS:
        own = [command for command in commands if command.startswith(tool)]
        assert own, tool
        name = {"sh kafkactl": "kafkactl"}.get(tool, tool.strip())
        if shutil.which(name.split()[-1].split("/")[0], path=path) is None and "kafka-consumer" not in name:
            continue
        set_back(real)
        for command in own:
            ran = subprocess.run(
                ["sh", "-c", command],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
            )
            assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
            if "--undo" in command:
                assert set(now(real).values()) == {3}
            elif "--execute" in command and "one group" not in command:
                done.add(tool)
        if tool != "offsets-log":
            assert now(real) == WANTED, tool
    assert {"offsets-log", "kafka-consumer-groups.sh", "sh kafka-consumer-groups"} <= done
