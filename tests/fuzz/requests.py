"""Hostile requests to ``serve``: what ``python -m tests.fuzz --what requests`` asks.

An input is a frame without its size. The invariant: an answer to this very request, in its version and of bounded
size, or an error that closes the connection; and a good client's answer is the same afterwards. Some inputs also go
over a socket, with a forged size or in pieces: then the connection ends, or is answered, within seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from offsets_log.cluster.server import Server
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.message_struct import UNKNOWN_TAGS
from offsets_log.messages.schema import ArrayOf, Field, Scalar, Struct, WireType, in_versions
from offsets_log.protocol.api import SIZE_BYTES, Header
from offsets_log.protocol.registry import APIS
from offsets_log.replay.profile import MODERN
from offsets_log.serving.answers import ANSWERS, API_VERSIONS, respond, versions_of
from offsets_log.serving.state import Served
from offsets_log.session.moments import Moments
from offsets_log_cli.options import ReadOptions
from offsets_log_cli.session import open_session
from tests.data_directories.copies import PACKED
from tests.fuzz.mutation import FORGED, mutate

RECORDING, COPY = "kafka-4.3-one", "copies/stopped"
ADDRESS = ("127.0.0.1", 9092)
MOST_ANSWERED = 32 << 20
ONE_IN = 200
"""So many inputs, of which one goes over a socket."""
SECONDS = 10.0
"""For a socket."""
ZEROS, ODD = bytes(16), "\0é\ufffd"
UNKNOWN_VERSION = 35
_OPEN = contextlib.ExitStack()
"""What stays open for as long as the process runs."""


@cache
def served() -> Served:
    """What is asked: a broker's data directory, with users' topics."""
    folder = tempfile.mkdtemp()
    with tarfile.open(PACKED / f"{RECORDING}.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    (copy,) = Path(folder).glob(f"**/{COPY}")
    session = _OPEN.enter_context(open_session(ReadOptions(paths=(str(copy),), quiet=True)))
    return Moments(session, MODERN, {}, "data-dir").load(session)


# ------------------------------------------------------------------------------------- requests


@cache
def _names() -> tuple[str, ...]:
    return (*served().groups, *served().topics, "", "no such", ODD, "x" * 300)


def _value(kind: WireType, version: int, dice: random.Random) -> Any:
    match kind:
        case Struct(fields):
            return _struct(fields, version, dice)
        case ArrayOf(element):
            return [_value(element, version, dice) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
        case Scalar("string"):
            return dice.choice(_names())
        case Scalar("bytes"):
            return dice.randbytes(dice.randrange(9))
        case Scalar("uuid"):
            return Uuid(dice.choice((ZEROS, dice.randbytes(16))))
        case Scalar("bool"):
            return dice.random() < 0.5
        case Scalar(name):
            bits = int(name.lstrip("uint")) - 1
            return max(-(1 << bits), min((1 << bits) - 1, dice.choice((0, 0, 1, 2, -1, -3, 100, *FORGED))))
    raise AssertionError(kind)


def _struct(fields: tuple[Field, ...], version: int, dice: random.Random) -> dict[str, Any]:
    made = {
        row.name: None if row.nullable and dice.random() < 0.2 else _value(row.type, version, dice)
        for row in fields
        if in_versions(version, row.versions)
    }
    if dice.random() < 0.05:
        made[UNKNOWN_TAGS] = [(dice.randrange(40, 200), dice.randbytes(dice.randrange(5)))]
    return made


def hostile_requests(seed: int) -> Iterator[bytes]:
    """Endless hostile requests; the same for the same seed."""
    dice = random.Random(seed)
    keys = sorted({*ANSWERS, API_VERSIONS})
    while True:
        api = APIS[dice.choice(keys)]
        version = dice.choice(versions_of(api.key, served().profile.release))
        body = _struct(api.request.fields, version, dice)
        if dice.random() < 0.9:
            body = {name: 0 if name == "max_wait_ms" else value for name, value in body.items()}
        header = Header(api.key, version, dice.randrange(-(1 << 31), 1 << 31), dice.choice((None, "client", ODD)))
        frame = api.encode_request(header, body)[SIZE_BYTES:]
        match dice.randrange(8):
            case 0 | 1 | 2:
                yield frame
            case 3:
                yield dice.randrange(1 << 16).to_bytes(2) + frame[2:]
            case 4:
                yield frame[:2] + dice.randrange(1 << 16).to_bytes(2) + frame[4:]
            case 5:
                yield frame[:8] + mutate(frame[8:], dice)
            case 6:
                yield frame[:4] + mutate(frame[4:], dice)
            case _:
                yield mutate(frame, dice)


# ------------------------------------------------------------------------------------- checks


@cache
def _good() -> tuple[bytes, bytes]:
    """A good client's request and its answer."""
    frame = APIS[16].encode_request(Header(16, 5, 7, "good"), {"states_filter": [], "types_filter": []})[SIZE_BYTES:]
    return frame, respond(served(), frame, ADDRESS)


def check_request(data: bytes) -> tuple[int, int]:
    """Ask; (answers, refusals). Raises AssertionError if the invariant breaks."""
    good, expected = _good()
    try:
        answer: bytes | None = respond(served(), data, ADDRESS)
    except OffsetsLogError:
        answer = None
    if answer is not None:
        _check_answer(data, answer)
    assert respond(served(), good, ADDRESS) == expected
    if zlib.crc32(data) % ONE_IN == 0:
        _check_over_a_socket(data)
    return int(answer is not None), int(answer is None)


def _check_answer(data: bytes, answer: bytes) -> None:
    key, version, correlation = (int.from_bytes(data[at:end], signed=True) for at, end in ((0, 2), (2, 4), (4, 8)))
    assert int.from_bytes(answer[:SIZE_BYTES]) == len(answer) - SIZE_BYTES <= MOST_ANSWERED
    is_known = version in versions_of(key, served().profile.release)
    answered, body = APIS[key].decode_response(version if is_known else 0, answer[SIZE_BYTES:])
    assert answered == correlation
    assert is_known or body["error_code"] == UNKNOWN_VERSION


@cache
def _listening() -> tuple[str, int]:
    """The address of a server that runs for as long as the process."""
    found: list[tuple[str, int]] = []
    is_up = threading.Event()

    async def run() -> None:
        server = Server(partial(respond, served()), lambda words: None)
        found.append(await server.listen(("127.0.0.1", 0)))
        is_up.set()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    assert is_up.wait(SECONDS)
    return found[0]


@contextlib.contextmanager
def _closing_allowed() -> Iterator[None]:
    """The other side may close the connection, but not leave us waiting."""
    try:
        yield
    except TimeoutError:
        raise
    except OSError:
        return


def _check_over_a_socket(data: bytes) -> None:
    """Send a stream in pieces: maybe with a forged size, maybe cut off, maybe beside good requests."""
    dice = random.Random(data)
    size = len(data) if dice.random() < 0.7 else dice.choice(FORGED)
    good, expected = _good()
    before = len(good).to_bytes(SIZE_BYTES) + good if dice.random() < 0.5 else b""
    stream = before + (size & 0xFFFFFFFF).to_bytes(SIZE_BYTES) + data
    stream = stream[: dice.randrange(len(stream) + 1)] if dice.random() < 0.3 else stream
    with socket.create_connection(_listening(), SECONDS) as client:
        received = bytearray()
        with _closing_allowed():
            at = 0
            while at < len(stream):
                step = dice.choice((1, 3, 50, len(stream)))
                client.sendall(stream[at : at + step])
                at += step
            client.shutdown(socket.SHUT_WR)
            while piece := client.recv(1 << 16):
                received += piece
                assert len(received) <= MOST_ANSWERED
        if len(stream) >= len(before) and before and received:
            assert received.startswith(expected)
    with socket.create_connection(_listening(), SECONDS) as other:
        other.sendall(len(good).to_bytes(SIZE_BYTES) + good)
        answer = b""
        while len(answer) < len(expected):
            piece = other.recv(1 << 16)
            assert piece, "a good client's connection was closed"
            answer += piece
        assert answer == expected
