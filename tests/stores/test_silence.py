"""Stores that do not answer: what is told, when it ends, and that a signal ends it at once."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from offsets_log.disk import asking
from offsets_log.disk.asking import ANSWER_S, NO_ANSWER, PATIENCE_S, Patience
from offsets_log.errors import InputError
from tests import waiting
from tests.stores.servers import s3_url

ROOT = Path(__file__).parents[2]
URLS: dict[str, Callable[[str, int], str]] = {
    "http": lambda host, port: f"http://{host}:{port}/{0:020}.log",
    "s3": lambda host, port: s3_url(host, port, "bucket/data"),
}


@contextmanager
def silent_server() -> Iterator[tuple[socket.socket, str, int]]:
    """A socket that takes connections as a stopped process does: nobody reads what comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, *server.getsockname()


def started(place: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "offsets_log_cli.main", "info", place]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("kind", URLS)
def test_an_interrupt_ends_it_at_once(kind: str) -> None:
    with silent_server() as (server, host, port):
        process = started(URLS[kind](host, port))
        try:
            server.settimeout(waiting.PATIENCE_S)
            connection, _ = server.accept()
            with connection:
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                began = time.monotonic()
                _, said = process.communicate(timeout=waiting.PATIENCE_S)
                took_s = time.monotonic() - began
        finally:
            process.kill()
    assert process.returncode == 130
    assert b"interrupted" in said
    assert b"secret" not in said
    assert took_s < ANSWER_S / 2


def test_a_silent_store_is_told_of_once_and_given_up_within_half_a_minute() -> None:
    with silent_server() as (server, host, port):
        server.settimeout(waiting.PATIENCE_S)
        process = started(URLS["s3"](host, port))
        connection, _ = server.accept()
        with connection:
            began = time.monotonic()
            answer, said = process.communicate(timeout=waiting.PATIENCE_S)
            took_s = time.monotonic() - began
    words = said.decode()
    assert (process.returncode, answer) == (1, b"")
    assert words.count(NO_ANSWER) == 1
    assert "it failed again and again" in words
    assert "secret" not in words
    assert took_s < 2 * ANSWER_S + PATIENCE_S + 15


def test_a_failure_that_lasts_is_told_of_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(asking, "tell", told.append)
    monkeypatch.setattr(asking, "WAITS_S", (0.02,) * 1000)
    monkeypatch.setattr(asking, "PATIENCE_S", 0.3)
    monkeypatch.setattr(asking, "QUIET_S", 0.05)
    asked: list[int] = []

    def ask() -> None:
        asked.append(1)
        raise OSError("reset")

    patience = Patience("s3://bucket")
    with pytest.raises(OSError, match="reset"):
        patience.answered(ask, lambda error: False, 0)
    assert told == [f"s3://bucket: {NO_ANSWER}"]
    assert 2 < len(asked) < 100


def test_who_waits_longer_than_an_answer_may_take_is_told_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(asking, "tell", told.append)
    patience = Patience("s3://bucket")
    with pytest.raises(TimeoutError, match="no answer"):
        patience.answer(lambda: time.sleep(1), 0.05, 0.02)
    assert patience.answer(lambda: time.sleep(0.1) or 7, None, 0.02) == 7
    assert told == [f"s3://bucket: {NO_ANSWER}"]


def test_nobody_waits_once_the_process_is_about_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_ended", asking.threading.Event())
    patience = Patience("s3://bucket")
    began = time.monotonic()
    timer = asking.threading.Timer(0.1, asking.give_up)
    timer.start()
    with pytest.raises(InputError, match="interrupted"):
        patience.answer(lambda: time.sleep(5), None)
    assert asking.is_unanswered()
    with pytest.raises(InputError, match="interrupted"):
        patience.answer(lambda: 1, None)
    assert time.monotonic() - began < 4
