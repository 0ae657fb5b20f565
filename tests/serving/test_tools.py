"""Kafka's own tools over a copy: word for word what they said of the broker that it is of."""

from __future__ import annotations

import asyncio
import json
import lzma
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from offsets_log.cluster.server import Server
from offsets_log.serving.answers import respond
from offsets_log.serving.state import Served
from tests.coordinator.broker import NotAvailableError, jars
from tests.data_directories.copies import Recorded, recorded
from tests.serving.client import moments
from tests.serving.record_tools import QUESTIONS, RECORDINGS, SAID, VERSION, ask, data_directory, questions

__all__ = ["recorded"]


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
    """A text's lines in order, without the broker's address and places in code, and with one space for several."""
    words = re.sub(r"127\.0\.0\.1:\d+ +", "ADDRESS ", text)
    plain = (re.sub(" +", " ", line).strip() for line in words.splitlines())
    return sorted(line for line in plain if line and not line.startswith("at "))


def jars_of(version: str) -> Path:
    try:
        return jars(version)
    except NotAvailableError as error:
        pytest.skip(str(error))


@pytest.mark.kafka
@pytest.mark.parametrize("copy", ["running", "stopped"])
def test_tools_say_of_a_copy_what_they_said_of_its_broker(copy: str, tmp_path: Path, recorded: Recorded) -> None:
    libs, folder = jars_of("4.3.0"), recorded("kafka-4.3-one")
    with moments(folder / "copies" / copy / "data") as (asked, session), listening(asked.load(session)) as address:
        told = ask(libs, address, tmp_path, QUESTIONS)
    for name in QUESTIONS:
        assert lines(told[name]) == lines((folder / "words" / copy / f"{name}.txt").read_text()), name


@pytest.mark.kafka
@pytest.mark.parametrize("name", RECORDINGS)
def test_tools_of_4_4_say_what_they_said_of_a_broker_over_the_same_log(
    name: str, tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    libs, folder, data = jars_of(VERSION), recording(name), tmp_path / "data"
    data_directory(folder, data)
    said = json.loads(lzma.decompress(SAID.read_bytes()))[name]
    with moments(data) as (asked, session), listening(asked.load(session)) as address:
        told = ask(libs, address, tmp_path, questions(folder))
    assert told.keys() == said.keys()
    for question, text in said.items():
        assert lines(told[question]) == lines(text), question
