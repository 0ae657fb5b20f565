"""The server as clients reach it: order, bounds, and words about those that are closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from offsets_log.cluster.server import Address, Limits, Server
from offsets_log.errors import InputError
from offsets_log.protocol.api import SIZE_BYTES
from offsets_log.serving.asked import Held
from tests.waiting import PATIENCE_S

ROOMY = Limits()
QUICK = Limits(request_bytes=1000, connections=3, idle_s=0.3, slow_s=0.2, look_every_s=0.05)


def echo(frame: bytes, address: Address) -> bytes:
    """The request itself; some are refused, some held back, some very long."""
    if frame == b"refuse":
        raise InputError("refused")
    answer = len(frame).to_bytes(SIZE_BYTES) + frame
    if frame.startswith(b"hold"):
        return Held(answer, 0.1)
    return answer * 100_000 if frame == b"long" else answer


Visit = Callable[[Address], Awaitable[None]]


def visited(visit: Visit, limits: Limits = ROOMY, respond: Callable[[bytes, Address], bytes] = echo) -> list[str]:
    """What a server said while clients visited it."""
    said: list[str] = []

    async def run() -> None:
        server = Server(respond, said.append, limits=limits)
        address = await server.listen(("127.0.0.1", 0))
        try:
            await asyncio.wait_for(visit(address), PATIENCE_S)
        finally:
            server.close()

    asyncio.run(run())
    return said


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(SIZE_BYTES) + frame for frame in frames)


async def closed(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the server closes."""
    try:
        return await reader.read(-1)
    except ConnectionResetError:
        return b""


def test_requests_that_come_together_are_answered_in_their_order() -> None:
    frames = [b"%d" % number for number in range(500)]
    frames.insert(3, b"hold it")

    async def visit(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        sent = framed(*frames)
        writer.write(sent[:7])
        await asyncio.sleep(0.01)
        writer.write(sent[7:])
        assert await reader.readexactly(len(sent)) == sent
        writer.close()

    assert visited(visit) == []


def test_a_refused_request_ends_the_connection_behind_the_answers_before_it() -> None:
    async def visit(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(framed(b"one", b"refuse", b"two"))
        assert await closed(reader) == framed(b"one")
        writer.close()

    (words,) = visited(visit)
    assert words.endswith(": refused: closed")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (bytes.fromhex("160301020001000100"), "a client speaks TLS, and this port does not"),
        (b"GET / HTTP/1.1\r\n\r\n", "a client speaks HTTP"),
        ((1001).to_bytes(4), "a request of 1001 bytes, more than 1000"),
        (b"\xff\xff\xff\xff", "a request of -1 bytes"),
    ],
)
def test_what_is_no_request_is_told_and_closed(sent: bytes, words: str) -> None:
    async def visit(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        assert await closed(reader) == b""
        writer.close()

    (said,) = visited(visit, QUICK)
    assert words in said


def test_slow_senders_idle_clients_and_those_that_read_nothing_are_closed() -> None:
    async def visit(address: Address) -> None:
        slow = await asyncio.open_connection(*address)
        idle = await asyncio.open_connection(*address)
        deaf = await asyncio.open_connection(*address)
        deaf[1].write(framed(*[b"long"] * 40))
        slow[1].write(b"\0\0\0\x09abc")
        await closed(slow[0])
        await closed(idle[0])
        await asyncio.sleep(0.3)
        for _, writer in (slow, idle, deaf):
            writer.close()

    said = "\n".join(visited(visit, QUICK))
    assert "a request did not come whole within 0.2 s" in said
    assert "nothing was asked for 0.3 s" in said
    assert "no answer was read for 0.2 s" in said


def test_more_connections_than_there_may_be_are_closed_and_room_comes_again() -> None:
    async def visit(address: Address) -> None:
        some = [await asyncio.open_connection(*address) for _ in range(QUICK.connections)]
        reader, writer = await asyncio.open_connection(*address)
        assert await closed(reader) == b""
        some.pop()[1].close()
        await asyncio.sleep(0.05)
        again, asking = await asyncio.open_connection(*address)
        asking.write(framed(b"x"))
        assert await again.readexactly(5) == framed(b"x")
        for one in (writer, asking, *(writer for _, writer in some)):
            one.close()

    (words,) = visited(visit, QUICK)
    assert "more than 3 connections" in words


def test_the_same_is_not_said_for_ever() -> None:
    async def visit(address: Address) -> None:
        for _ in range(20):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(framed(b"refuse"))
            await closed(reader)
            writer.close()

    said = visited(visit)
    assert len(said) == 5
    assert said[-1].endswith("no more of this is said")


def test_clients_learn_the_address_they_came_to() -> None:
    async def visit(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(framed(b"where"))
        port = address[1].to_bytes(2)
        assert await reader.readexactly(6) == framed(port)
        writer.close()

    assert visited(visit, respond=lambda frame, address: framed(address[1].to_bytes(2))) == []


def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    async def visit(address: Address) -> None:
        with pytest.raises(OSError, match="in use"):
            await Server(echo, lambda words: None).listen(address)

    assert visited(visit) == []
