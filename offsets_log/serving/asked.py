"""What answers are given: the parts that all of them share."""

from __future__ import annotations

from typing import Any, NamedTuple

Body = dict[str, Any]
"""A message, as its schema table has it."""

NOT_ASKED = -(1 << 31)
"""Authorized operations that are not told."""


class Held(bytes):
    """The frame of an answer that is to be held back for some seconds."""

    wait_s: float

    def __new__(cls, frame: bytes, wait_s: float) -> Held:
        held = super().__new__(cls, frame)
        held.wait_s = wait_s
        return held


class Asked(NamedTuple):
    """A request beside its message.

    Attributes:
        host, port: where the client that asks reaches the one broker.
    """

    version: int
    host: str
    port: int
