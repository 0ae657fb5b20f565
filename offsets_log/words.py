"""Counts and times in words, for messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 record``, ``2 records``.

    Args:
        plural: the noun of other counts, if it has more than an s at its end.
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def shown_time(epoch_ms: int) -> str:
    """Return epoch milliseconds as a UTC time; a number if it is beyond the calendar."""
    try:
        return f"{_shown_second(epoch_ms // 1000)}.{epoch_ms % 1000:03}Z"
    except OverflowError:
        return str(epoch_ms)


@lru_cache(1 << 14)
def _shown_second(epoch_s: int) -> str:
    return (EPOCH + timedelta(seconds=epoch_s)).strftime("%Y-%m-%d %H:%M:%S")
