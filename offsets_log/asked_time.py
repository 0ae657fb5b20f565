"""Times that users ask for: numbers, dates, words such as ``yesterday 14:00``, and times that a log's end decides.

All are UTC, as in Kafka's own logs, unless a date says otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from offsets_log.words import DAY_MS, UNITS_MS, given_time

UNDERSTOOD = (
    "give epoch ms, 2026-01-31T14:05:00Z, 2h for two hours ago, yesterday 14:00, end-2h for two hours before the logs "
    "end, or 05:36 of their last day"
)
"""What a time may be, for errors."""
MAX_DIGITS = 30
"""How many digits a given number may have: more are too many anyhow, and would take long to read."""

_DURATION = r"([0-9]+)(ms|s|m|h|d|w)"
_AGO = re.compile(rf"{_DURATION}(?: ago)?")
_FROM = re.compile(rf"(now|end)(?: ?([+-]) ?{_DURATION})?")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,3}))?)?Z?")
_DAY = re.compile(rf"(today|yesterday)(?:[ T]({_CLOCK.pattern}))?")
_DAYS_AGO = {"today": 0, "yesterday": 1}


@dataclass(frozen=True, slots=True)
class OfLog:
    """A time that depends on where logs end.

    Attributes:
        text: as it was given.
        later_ms: how much later than their end it is, or earlier.
        clock_ms: else a time of day: that of the last day on which they have it.
    """

    text: str
    later_ms: int = 0
    clock_ms: int | None = None

    def at(self, end_ms: int) -> int:
        """Return the time in epoch milliseconds for logs that end then."""
        if self.clock_ms is None:
            return end_ms + self.later_ms
        of_day = end_ms // DAY_MS * DAY_MS + self.clock_ms
        return of_day if of_day <= end_ms else of_day - DAY_MS

    def in_words(self, end_ms: int) -> str:
        """Say which time it is for logs that end then."""
        return f"{self.text} is read as {given_time(self.at(end_ms))}: the logs end at {given_time(end_ms)}"


def parse_time(text: str, now_ms: int) -> int | OfLog:
    """Return epoch milliseconds, or what a log's end decides; a number alone is none of these.

    Raises:
        ValueError: it is no time; the words say what is understood.
    """
    if match := _AGO.fullmatch(text):
        return now_ms - _duration_ms(match[1], match[2])
    if match := _FROM.fullmatch(text):
        later_ms = _duration_ms(match[3], match[4]) * (-1 if match[2] == "-" else 1) if match[2] else 0
        return now_ms + later_ms if match[1] == "now" else OfLog(text, later_ms)
    if match := _DAY.fullmatch(text):
        return (now_ms // DAY_MS - _DAYS_AGO[match[1]]) * DAY_MS + (_clock_ms(match[2]) if match[2] else 0)
    if _CLOCK.fullmatch(text):
        return OfLog(text, clock_ms=_clock_ms(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time: {UNDERSTOOD}") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


def _duration_ms(number: str, unit: str) -> int:
    return int(number[:MAX_DIGITS]) * UNITS_MS[unit]


def _clock_ms(text: str) -> int:
    """Return a time of day in milliseconds."""
    match = _CLOCK.fullmatch(text)
    assert match is not None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
    return hours * UNITS_MS["h"] + minutes * UNITS_MS["m"] + seconds * 1000 + int((match[4] or "0").ljust(3, "0"))
