"""A server of one broker's protocol: frames in, frames out, in the order of each connection.

No client is trusted: sizes, connections and times are bounded, and a connection that goes beyond them is closed, with
one line that says why. Answers are made on the loop's own thread, one after the other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from offsets_log.errors import OffsetsLogError
from offsets_log.protocol.api import SIZE_BYTES
from offsets_log.serving.asked import Held

Address = tuple[str, int]
"""Host and port."""

Respond = Callable[[bytes, Address], bytes]
"""Makes the frame of an answer, maybe a `Held` one, from that of a request without its size; raises OffsetsLogError to
close."""

TLS_HANDSHAKE = b"\x16\x03"
HTTP_METHODS = (b"GET ", b"POST", b"HEAD", b"PUT ")
FRAMES_AT_ONCE = 32
"""Of one connection, before others have their turn."""
SAID_OF_A_KIND = 5
"""How often the same is said."""
MOST_KINDS = 50
"""So many different things are said of clients."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may ask for.

    Attributes:
        request_bytes: of one request.
        connections: at once.
        idle_s: without a byte, as ``connections.max.idle.ms`` of brokers.
        slow_s: for a request to come whole, and for answers to be read.
        look_every_s: how often connections are looked at.
    """

    request_bytes: int = 1 << 20
    connections: int = 1000
    idle_s: float = 600.0
    slow_s: float = 30.0
    look_every_s: float = 5.0


class Server:
    """A listener; several may share a loop.

    Attributes:
        respond: what answers; it may be exchanged at any time.
        advertised: where clients reach it; None for the address that each has connected to.
    """

    def __init__(
        self,
        respond: Respond,
        say: Callable[[str], None],
        *,
        advertised: Address | None = None,
        limits: Limits = Limits(),
    ) -> None:
        self.respond = respond
        self.advertised = advertised
        self.limits = limits
        self._say = say
        self._said: Counter[str] = Counter()
        self._connections: set[_Connection] = set()
        self._listener: asyncio.Server | None = None
        self._looks: asyncio.TimerHandle | None = None

    async def listen(self, address: Address) -> Address:
        """Begin to listen; return the address, of which port 0 has become another. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: _Connection(self, loop), *address, backlog=128)
        self._looks = loop.call_later(self.limits.look_every_s, self._look)
        host, port = self._listener.sockets[0].getsockname()[:2]
        return host, port

    def close(self) -> None:
        """Stop to listen, and close all connections."""
        if self._listener is not None:
            self._listener.close()
        if self._looks is not None:
            self._looks.cancel()
        for connection in list(self._connections):
            connection.abort()

    def say(self, words: str, peer: str) -> None:
        """Say something about a client, a few times."""
        if words not in self._said and len(self._said) >= MOST_KINDS:
            return
        self._said[words] += 1
        if self._said[words] > SAID_OF_A_KIND:
            return
        last = "; no more of this is said" if self._said[words] == SAID_OF_A_KIND else ""
        self._say(f"{peer}: {words}: closed{last}")

    def admits(self, connection: _Connection) -> bool:
        """Take a connection, unless there are too many."""
        self._connections.add(connection)
        return len(self._connections) <= self.limits.connections

    def forget(self, connection: _Connection) -> None:
        """Note that a connection is over."""
        self._connections.discard(connection)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._connections):
            if words := connection.overdue(now):
                connection.end(words)
        self._looks = loop.call_later(self.limits.look_every_s, self._look)


class _Transport(Protocol):
    """What is used of `asyncio.Transport`."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class _Connection(asyncio.Protocol):
    """One client's connection.

    Answers wait while the client reads none; requests wait then, too, in the client's own buffers.
    """

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._buffer = bytearray()
        self._is_blocked = self._is_held = self._is_scheduled = self._is_over = False
        self._last_byte = self._blocked_since = self._begun = loop.time()
        self._peer = ""
        self._address = ("", 0)
        self._transport: _Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note where the client has come in."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._peer = _shown(peer) if peer else "a client"
        self._address = self._server.advertised or (own[0], own[1])
        if not self._server.admits(self):
            self.end(f"more than {self._server.limits.connections} connections")

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is over."""
        self._is_over = True
        self._buffer.clear()
        self._server.forget(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and answer the requests in them."""
        if self._is_over:
            return
        self._last_byte = self._loop.time()
        if not self._buffer:
            self._begun = self._last_byte
        self._buffer += data
        if not self._is_scheduled:
            self._answer()

    def pause_writing(self) -> None:
        """Take no more requests: the client does not read."""
        self._is_blocked, self._blocked_since = True, self._loop.time()
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Take requests again: the client reads."""
        self._is_blocked = False
        if not self._is_over and not self._is_held:
            self._transport.resume_reading()
            if not self._is_scheduled:
                self._answer()

    def _answer(self) -> None:
        """Answer the requests that are here whole; after some of them others have their turn."""
        self._is_scheduled = False
        position, buffer = 0, self._buffer
        for _ in range(FRAMES_AT_ONCE):
            if self._is_blocked or self._is_held or self._is_over or len(buffer) - position < SIZE_BYTES:
                break
            size = int.from_bytes(buffer[position : position + SIZE_BYTES], signed=True)
            if not 0 <= size <= self._server.limits.request_bytes:
                self.end(self._why_not(bytes(buffer[position : position + 16]), size))
                return
            begin, position_behind = position + SIZE_BYTES, position + SIZE_BYTES + size
            if len(buffer) < position_behind:
                break
            if not self._respond(bytes(buffer[begin:position_behind])):
                return
            position = position_behind
        else:
            self._is_scheduled = True
            self._loop.call_soon(self._answer)
        if position:
            del buffer[:position]
            self._begun = self._loop.time()

    def _respond(self, frame: bytes) -> bool:
        """Answer one request; return whether the connection goes on."""
        try:
            answer = self._server.respond(frame, self._address)
        except OffsetsLogError as error:
            self.end(str(error))
            return False
        if isinstance(answer, Held):
            self._is_held = True
            self._transport.pause_reading()
            self._loop.call_later(answer.wait_s, self._release, answer)
        else:
            self._transport.write(answer)
        return True

    def _release(self, answer: bytes) -> None:
        """Send an answer that was held back, and go on with what has waited in the client's own buffers."""
        if self._is_over:
            return
        self._is_held = False
        self._transport.write(answer)
        if not self._is_blocked:
            self._transport.resume_reading()
            self._answer()

    def _why_not(self, first: bytes, size: int) -> str:
        if first.startswith(TLS_HANDSHAKE):
            return "a client speaks TLS, and this port does not: security.protocol=PLAINTEXT"
        if first.startswith(HTTP_METHODS):
            return "a client speaks HTTP, and this is a port of Kafka's protocol"
        return f"a request of {size} bytes, more than {self._server.limits.request_bytes}, or no request of Kafka's"

    def overdue(self, now: float) -> str | None:
        """Return why it has to end; None if it has not."""
        limits = self._server.limits
        if self._is_blocked:
            return f"no answer was read for {limits.slow_s:g} s" if now - self._blocked_since > limits.slow_s else None
        if self._buffer and not self._is_scheduled and now - self._begun > limits.slow_s:
            return f"a request did not come whole within {limits.slow_s:g} s"
        return f"nothing was asked for {limits.idle_s:g} s" if now - self._last_byte > limits.idle_s else None

    def end(self, words: str) -> None:
        """Close the connection once what was answered is sent, or at once if nobody reads it; say why."""
        if self._is_over:
            return
        self._is_over = True
        self._buffer.clear()
        self._server.say(words, self._peer)
        if self._is_blocked:
            self._transport.abort()
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close it without a word."""
        self._is_over = True
        self._transport.abort()


def _shown(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
