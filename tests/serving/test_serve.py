"""``serve`` as a user has it: listeners, moments, lines on standard input, refusals, other clients."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

import pytest
from click.testing import CliRunner

from offsets_log.protocol.api import SIZE_BYTES
from offsets_log.protocol.registry import APIS
from offsets_log.serving import topics
from offsets_log_cli.main import main
from offsets_log_cli.serve import END_OFFSETS
from tests.builders import TIME, LogBuilder, record_bytes
from tests.serving.client import LIST_GROUPS, OFFSET_FETCH, frame_of
from tests.waiting import PATIENCE_S, wait_for


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Group g commits offset n in the n-th second."""
    builder = LogBuilder()
    for number in range(5):
        builder.offset = number * 1000
        key = {"group": "g", "topic": "t", "partition": 0}
        builder.add(record_bytes(1, key, {"offset": number, "metadata": "", "commit_timestamp": TIME}, 3))
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"".join(builder.batches))
    return tmp_path


class Serving:
    """A process that serves."""

    def __init__(self, process: subprocess.Popen[str], words: Path) -> None:
        self.process, self.words = process, words

    def listener(self) -> tuple[int, str]:
        """The port and the moment of the next line."""
        assert self.process.stdout is not None
        address, moment, _ = self.process.stdout.readline().split("\t")
        return int(address.rpartition(":")[2]), moment

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def said(self) -> str:
        """What it has said on standard error."""
        return self.words.read_text()

    def has_said(self, words: str) -> None:
        """Come back when it has said these words on standard error."""
        wait_for(f"it says {words!r}", lambda: words in self.said(), of=self.process, said=self.said)

    def end(self, status: int = 0) -> str:
        """What it said on standard error, once it has ended in order."""
        self.process.communicate("quit\n", timeout=PATIENCE_S)
        assert self.process.returncode == status, self.said()
        return self.said()


@contextmanager
def serving(*arguments: object) -> Iterator[Serving]:
    command = [sys.executable, "-c", "from offsets_log_cli.main import run; run()", "serve", "--listen", "127.0.0.1:0"]
    command += map(str, arguments)
    with (
        NamedTemporaryFile() as words,
        subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words.file
        ) as process,
    ):
        try:
            yield Serving(process, Path(words.name))
        finally:
            process.kill()


def asked(port: int, key: int, body: dict[str, Any], version: int) -> dict[str, Any]:
    """The answer to one request over a connection of its own."""
    frame = frame_of(key, version, body)
    with socket.create_connection(("127.0.0.1", port), 10) as connection, connection.makefile("rwb") as stream:
        stream.write(len(frame).to_bytes(SIZE_BYTES) + frame)
        stream.flush()
        answer = _read(stream, int.from_bytes(_read(stream, SIZE_BYTES)))
    return APIS[key].decode_response(version, answer)[1]


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    assert len(data) == size
    return data


def committed(port: int) -> int:
    group = {"group_id": "g", "member_id": None, "member_epoch": -1, "topics": None}
    (row,) = asked(port, OFFSET_FETCH, {"groups": [group]}, 9)["groups"]
    offset: int = row["topics"][0]["partitions"][0]["committed_offset"] if row["topics"] else -1
    return offset


def test_each_moment_has_a_listener(data: Path) -> None:
    with serving(data, "--at", TIME + 1500, "--at", TIME + 3000) as run:
        (first, moment), (second, _) = run.listener(), run.listener()
        assert moment == "at 2023-11-14T22:13:21.500Z"
        assert (committed(first), committed(second)) == (1, 3)
        assert [row["group_id"] for row in asked(first, LIST_GROUPS, {}, 5)["groups"]] == ["g"]
        run.say("at 5")
        run.say("step 1")
        assert run.listener()[0] == first
        assert run.listener()[0] == second
        assert (committed(first), committed(second)) == (2, 4)
        assert "there are 2 listeners" in run.end()


def test_lines_travel_in_time(data: Path) -> None:
    with serving(data) as run:
        port, moment = run.listener()
        assert moment == "at the end of the logs"
        assert committed(port) == 4
        for line, expected in (
            (f"at {TIME}", 0),
            ("step 2.5", 2),
            ("step -1", 1),
            (f"at {TIME - 1}", -1),
            ("end", 4),
        ):
            run.say(line)
            assert run.listener()[0] == port
            assert committed(port) == expected
        for line in ("step 1", "at noon", "fly", "", "step far"):
            run.say(line)
        said = run.end()
        assert "this is the end of the logs: go to a moment first" in said
        assert "'noon' is no time" in said
        assert "'fly' is none of: at TIME, step SECONDS, end, quit" in said


def test_moments_beyond_the_logs_are_told(data: Path) -> None:
    begin, end = "before the logs begin, at 2023-11-14 22:13:20", "after the logs end, at 2023-11-14 22:13:2"
    with serving(data, "--at", TIME - 1) as run:
        run.listener()
        run.say(f"at {TIME + 1}")
        run.listener()
        run.say("step 99")
        run.listener()
        words = run.end()
    assert (words.count(begin), words.count(end)) == (1, 1)
    with serving(data, "--at", TIME, "--step", "10000") as run:
        run.listener()
        run.has_said(end)
        assert run.end().count(end) == 1


def test_the_log_is_played_as_time_passes(data: Path) -> None:
    with serving(data, "--at", TIME - 1, "--step", "100") as run:
        port, _ = run.listener()
        assert committed(port) == -1
        wait_for("the last commit is played", lambda: committed(port) == 4, of=run.process)
        run.end()


def test_what_has_expired_is_left_out(data: Path) -> None:
    with serving(data, "--now", TIME + 1000, "--retention", "1s") as run:
        port, _ = run.listener()
        assert asked(port, LIST_GROUPS, {}, 5)["groups"] == []
        run.end()
    with serving(data, "--now", TIME + 1000) as run:
        port, _ = run.listener()
        assert committed(port) == 4
        run.end()


def test_tls_and_logins_are_told(data: Path) -> None:
    with serving(data) as run:
        port, _ = run.listener()
        for sent in (bytes.fromhex("160301020001"), bytes.fromhex("0000000f001100010000000100055041494e20")):
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                connection.sendall(sent)
                assert connection.recv(10) == b""
        said = run.end()
        assert "a client speaks TLS, and this port does not: security.protocol=PLAINTEXT" in said
        assert "the ends of 1 partition are not known" in said


def test_an_address_for_all_is_told(data: Path) -> None:
    with serving(data, "--listen", "0.0.0.0:0", "--end-offsets", "committed") as run:
        run.listener()
        said = run.end()
        assert "0.0.0.0 is not the loopback address: everyone who reaches this port" in said
        assert "ends of" not in said


def test_a_signal_ends_it_in_order(data: Path) -> None:
    with serving(data) as run:
        run.listener()
        run.process.terminate()
        assert run.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--at", "2h", "--until-time", "1h"], "--at is a time of its own"),
        (["--retention", "1d"], "--retention decides what has expired by --now"),
        (["--step", "2"], "--step begins at a moment"),
        (["--at", "2h", "--at", "1h", "--advertise", "h:1"], "--advertise names one address"),
        (["--at", "2h", "--at", "1h", "--listen", "127.0.0.1:65535"], "there are no 2 ports from 65535 on"),
        (["--advertise", "foo:0"], "port 0 is nowhere"),
        (["--listen", "9092"], "is not HOST:PORT"),
        (["--listen", "h:70000"], "is not HOST:PORT"),
        (["--engine", "spark"], "--engine is gone"),
    ],
)
def test_what_cannot_be_served_is_refused(data: Path, options: list[str], words: str) -> None:
    ran = CliRunner().invoke(main, ["serve", str(data), *options])
    assert ran.exit_code == 2
    assert words in ran.output


def test_a_port_that_is_taken_is_one_line(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = CliRunner().invoke(main, ["serve", str(data), "--listen", f"127.0.0.1:{taken.getsockname()[1]}"])
    assert ran.exit_code == 1
    assert "cannot listen on 127.0.0.1" in ran.output


def test_names_of_what_tells_ends_are_the_servers() -> None:
    assert END_OFFSETS == topics.END_OFFSETS


def jumped(data: Path) -> None:
    """A batch of a clock that jumped stands behind the first."""
    path = data / "__consumer_offsets-0" / f"{0:020}.log"
    late = LogBuilder()
    late.offset = 10_000_000
    late.add((b"\x00\x00", b""))
    first, *others = path.read_bytes().partition((1000).to_bytes(8))
    path.write_bytes(first + (500).to_bytes(8) + late.batches[0][8:] + b"".join(others))


JUMPED = "offsets partition 0 is read only below record offset 500, where a batch has the time"


def test_of_a_log_that_ends_too_early_it_is_told_at_every_moment(data: Path) -> None:
    jumped(data)
    with serving(data, "--at", str(TIME + 1500)) as process:
        process.listener()
        for step in ("step 1", "step -2"):
            process.say(step)
            process.listener()
        said = process.end(3)
    assert [line.split("; ")[1].split(",")[0] for line in said.splitlines() if line.startswith(JUMPED)] == [
        "1 later batch",
        "2 later batches",
    ]


def test_every_listener_tells_it(data: Path) -> None:
    jumped(data)
    with serving(data, "--at", str(TIME + 500), "--at", str(TIME + 1500)) as process:
        assert [process.listener()[1][-5:] for _ in range(2)] == [".500Z"] * 2
        assert process.end().count(JUMPED) == 1


def test_while_time_passes_it_is_told_once(data: Path) -> None:
    jumped(data)
    with serving(data, "--at", str(TIME + 500), "--step", "1") as process:
        process.listener()
        process.has_said(JUMPED)
        time.sleep(2)  # more moments pass
        assert process.end().count(JUMPED) == 1
