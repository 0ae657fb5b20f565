"""Kafka's own tools over a copy: word for word what they said of the broker that it is of."""

from __future__ import annotations

import asyncio
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from offsets_log.cluster.server import Server
from offsets_log.serving.answers import respond
from offsets_log.serving.state import Served
from tests.coordinator.broker import NotAvailableError, compiled, jars, quick
from tests.data_directories.copies import Recorded, recorded
from tests.serving.client import moments
from tests.waiting import PATIENCE_S

__all__ = ["recorded"]
TOOLS = Path(__file__).parents[1] / "data_directories" / "Tools.java"
GROUPS, SHARES = "consumer.group.ConsumerGroupCommand", "consumer.group.ShareGroupCommand"
QUESTIONS = {
    "groups-list": (GROUPS, "--list", "--type"),
    "groups-offsets": (GROUPS, "--describe", "--all-groups", "--offsets"),
    "groups-state": (GROUPS, "--describe", "--all-groups", "--state"),
    "groups-members": (GROUPS, "--describe", "--all-groups", "--members", "--verbose"),
    "get-offsets-earliest": ("GetOffsetShell", "--time", "-2"),
    "get-offsets-latest": ("GetOffsetShell", "--time", "-1"),
    "share-groups-offsets": (SHARES, "--describe", "--all-groups", "--offsets", "--verbose"),
    "share-groups-state": (SHARES, "--describe", "--all-groups", "--state"),
    "share-groups-members": (SHARES, "--describe", "--all-groups", "--members", "--verbose"),
}
"""Name of a recorded text → the tool that said it, and its arguments."""


@contextmanager
def listening(served: Served) -> Iterator[str]:
    """The address of a server in this process."""
    said: list[str] = []
    loop = asyncio.new_event_loop()
    server = Server(partial(respond, served), said.append)
    host, port = loop.run_until_complete(server.listen(("127.0.0.1", 0)))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"{host}:{port}"
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
    assert said == []


def lines(text: str) -> list[str]:
    """A text's lines in order, without the broker's address and with one space where there are several."""
    words = re.sub(r"127\.0\.0\.1:\d+ +", "ADDRESS ", text)
    return sorted(re.sub(" +", " ", line).strip() for line in words.splitlines() if line.strip())


@pytest.mark.kafka
@pytest.mark.parametrize("copy", ["running", "stopped"])
def test_tools_say_of_a_copy_what_they_said_of_its_broker(copy: str, tmp_path: Path, recorded: Recorded) -> None:
    try:
        libs = jars()
    except NotAvailableError as error:
        pytest.skip(str(error))
    folder = recorded("kafka-4.3-one")
    with moments(folder / "copies" / copy / "data") as (asked, session), listening(asked.load(session)) as address:
        work = [
            "\t".join([f"{tmp_path}/{name}.txt", tool, "--bootstrap-server", address, *arguments])
            for name, (tool, *arguments) in QUESTIONS.items()
        ]
        command = ["java", *quick(libs), "-Dlog4j2.level=ERROR", "-cp", f"{libs}/*:{compiled(libs, TOOLS)}", "Tools"]
        subprocess.run(
            command, input="\n".join([*work, ""]).encode(), check=True, timeout=PATIENCE_S, capture_output=True
        )
    for name in QUESTIONS:
        told = (folder / "words" / copy / f"{name}.txt").read_text()
        assert lines((tmp_path / f"{name}.txt").read_text()) == lines(told), name
