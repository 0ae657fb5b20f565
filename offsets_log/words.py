"""Counts in words, for messages."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 record``, ``2 records``.

    Args:
        plural: the noun of other counts, if it has more than an s at its end.
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
