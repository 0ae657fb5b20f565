"""Counts and times in words, and text that no terminal takes for more than text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
DAY_MS = UNITS_MS["d"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 record``, ``2 records``.

    Args:
        plural: the noun of other counts, if it has more than an s at its end.
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def to_install(extra: str) -> str:
    """Return what installs an extra; by its name pip adds it to what is installed, for no package index has it."""
    return (
        f"pip install 'offsets-log[{extra}]' where offsets-log is installed, or pip install '.[{extra}]' in its clone"
    )


def shown_duration(duration_ms: int) -> str:
    """Return milliseconds in the largest unit that gives a whole number: ``7d``, ``90m``, ``10080 ms``."""
    for unit in "dhms":
        if duration_ms and duration_ms % UNITS_MS[unit] == 0:
            return f"{duration_ms // UNITS_MS[unit]}{unit}"
    return f"{duration_ms} ms"


def shown_span(span_ms: int) -> str:
    """Return milliseconds in their two largest units, the rest cut off: ``3d 4h``, ``46m 3s``, ``1.250s``."""
    if span_ms < 0:
        return f"-{shown_span(-span_ms)}"
    if span_ms < UNITS_MS["m"]:
        return f"{span_ms / 1000:.3f}s"
    parts: list[str] = []
    for unit in "dhms":
        count, span_ms = divmod(span_ms, UNITS_MS[unit])
        if count or parts:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def shown_time(epoch_ms: int) -> str:
    """Return epoch milliseconds as a UTC time; a number if it is beyond the calendar."""
    try:
        return _SECONDS[epoch_ms // 1000] + _ENDS[epoch_ms % 1000]
    except OverflowError:
        return str(epoch_ms)


def given_time(time_ms: int) -> str:
    """Return a time as options take it."""
    return shown_time(time_ms).replace(" ", "T")


def shown_times(times_ms: Sequence[int | None], null: str) -> list[str]:
    """Return what `shown_time` makes of many times, and another text for None."""
    seconds, ends = _SECONDS, _ENDS
    try:
        return [null if time is None else seconds[time // 1000] + ends[time % 1000] for time in times_ms]
    except OverflowError:
        return [null if time is None else shown_time(time) for time in times_ms]


class _Seconds(dict[int, str]):
    """Epoch seconds as texts, as many as are worth remembering."""

    def __missing__(self, epoch_s: int) -> str:
        text = (EPOCH + timedelta(seconds=epoch_s)).strftime("%Y-%m-%d %H:%M:%S")
        if len(self) >= SECONDS_REMEMBERED:
            self.clear()
        self[epoch_s] = text
        return text


_SECONDS = _Seconds()
_ENDS = [f".{ms:03}Z" for ms in range(1000)]
SECONDS_REMEMBERED = 1 << 14


BLANK = r"\x20"
"""A blank where nobody would see it."""


def visible(text: str) -> str:
    """Return text on one line that cannot disturb a terminal, nor hide what it is.

    Control and format characters are escaped, and what looks like a blank and is none.
    """
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(
        character.encode("unicode_escape").decode("ascii") if _is_disturbing(character) else character
        for character in text
    )


def _is_disturbing(character: str) -> bool:
    kind = unicodedata.category(character)
    return character == "\\" or kind in ("Cc", "Cf", "Cs", "Zl", "Zp") or (kind == "Zs" and character != " ")


def with_edges(text: str) -> str:
    """Return text in which blanks at the beginning and the end can be seen."""
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if inner else 0
    return BLANK * before + inner + BLANK * (len(text) - before - len(inner))


def rewinds_in_words(rewinds: int, begun_below: int) -> str:
    """Say how often an answer went back, at once and after a deletion."""
    after = f", {begun_below} began lower after a deletion" if begun_below else ""
    return f"{counted(rewinds, 'rewind')}{after}"
