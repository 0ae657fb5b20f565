"""What answers are given: the parts that all of them share."""

from __future__ import annotations

from typing import Any, NamedTuple

Body = dict[str, Any]
"""A message, as its schema table has it."""

NOT_ASKED = -(1 << 31)
"""Authorized operations that are not told."""


class Asked(NamedTuple):
    """A request beside its message.

    Attributes:
        host, port: of the one broker, as the client that asks reaches it.
    """

    version: int
    host: str
    port: int
