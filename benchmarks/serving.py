"""``serve`` under load: so many connections that ask for the offsets of all groups, again and again."""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.inputs import Log
from benchmarks.timing import Measured, NotMeasuredError, repeated, seconds_of
from offsets_log.protocol.api import SIZE_BYTES, Header
from offsets_log.protocol.registry import APIS

CONNECTIONS = 200
REQUESTS = 20_000
LIST_GROUPS, OFFSET_FETCH = 16, 9
VERSION = 9
PATIENCE_SECONDS = 30.0
"""For an answer."""
PIECE = 1 << 18

Address = tuple[str, int]


@contextmanager
def serving(folder: Path) -> Iterator[Address]:
    """A server over a log, in a process of its own. Raises NotMeasuredError if it does not come up."""
    program = str(Path(sys.executable).with_name("offsets-log"))
    command = [program, "serve", str(folder), "--listen", "127.0.0.1:0", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            host, colon, port = process.stdout.readline().decode().partition("\t")[0].rpartition(":")
            if not colon:
                raise NotMeasuredError("serve did not come up")
            yield host, int(port)
        finally:
            process.terminate()


def request(key: int, version: int, body: dict[str, Any], correlation_id: int = 0) -> bytes:
    """A frame."""
    zeros = APIS[key].request.zeros(version)
    return APIS[key].encode_request(Header(key, version, correlation_id, "load"), zeros | body)


def all_of(group: str, correlation_id: int = 0) -> bytes:
    """A question for all offsets of a group."""
    asked = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}
    return request(OFFSET_FETCH, VERSION, {"groups": [asked]}, correlation_id)


def ask(address: Address, key: int, version: int, frame: bytes) -> dict[str, Any]:
    """One answer."""
    with socket.create_connection(address, PATIENCE_SECONDS) as client, client.makefile("rb") as stream:
        client.sendall(frame)
        answer = stream.read(int.from_bytes(stream.read(SIZE_BYTES)))
    return APIS[key].decode_response(version, answer)[1]


def asked_at_once(address: Address, questions: Sequence[bytes], connections: int) -> None:
    """Ask on several connections, each in one go, until all is answered. Raises NotMeasuredError if some is not."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for number in range(connections):
            mine = questions[number::connections]
            client = stack.enter_context(socket.create_connection(address, PATIENCE_SECONDS))
            client.sendall(b"".join(mine))
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ, _Answers(len(mine)))
        while selector.get_map():
            ready = selector.select(PATIENCE_SECONDS)
            if not ready:
                raise NotMeasuredError("answers are missing")
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)
                piece = key.fileobj.recv(PIECE)
                if not piece:
                    raise NotMeasuredError("a connection was closed")
                if key.data.take(piece) == 0:
                    selector.unregister(key.fileobj)


class _Answers:
    """How many answers are to come on a connection."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._data = b""

    def take(self, piece: bytes) -> int:
        """Take bytes; return how many are left."""
        data, at = self._data + piece, 0
        while len(data) - at >= SIZE_BYTES:
            end = at + SIZE_BYTES + int.from_bytes(data[at : at + SIZE_BYTES])
            if end > len(data):
                break
            self._left, at = self._left - 1, end
        self._data = data[at:]
        return self._left


def under_load(log: Log, repeat: int) -> Measured:
    """`REQUESTS` on `CONNECTIONS`; the answers' offsets are held against the log's truth."""
    with serving(log.folder) as address:
        groups = [row["group_id"] for row in ask(address, LIST_GROUPS, 5, request(LIST_GROUPS, 5, {}))["groups"]]
        offsets = [
            row["committed_offset"]
            for group in groups
            for topic in ask(address, OFFSET_FETCH, VERSION, all_of(group))["groups"][0]["topics"]
            for row in topic["partitions"]
        ]
        questions = [all_of(groups[number % len(groups)], number) for number in range(REQUESTS)]
        seconds = repeated(lambda: seconds_of(lambda: asked_at_once(address, questions, CONNECTIONS)), repeat)
    return Measured(seconds=seconds, agrees={"keys": len(offsets), "sum": sum(offsets)} == log.truth["served"])
