"""Colours of states, damage and verdicts, which terminals show and nothing else does."""

from __future__ import annotations

import os
from typing import IO, Any

import click

RED, YELLOW, GREEN = "red", "yellow", "green"
DIM = "dim"

_BY_TEXT: dict[str, dict[str, str]] = {
    "severity": {"fails": RED, "damage": RED, "doubt": YELLOW, "skipped": YELLOW},
    "state": {"Stable": GREEN, "Dead": RED, "PreparingRebalance": YELLOW, "CompletingRebalance": YELLOW},
    "change": {"rewound": RED, "gone": RED},
    "outcome": {"hanging": RED, "timed out": YELLOW, "undecided": YELLOW},
    "verdict": {"loads": GREEN, "loads, but something is damaged or doubtful": YELLOW},
    "served": {"nothing": RED, "some": YELLOW},
}
"""Column → text → its colour."""
_OTHERS = {
    "verdict": RED,
    "absent": RED,
    "corrupt": RED,
    "missing_offsets": RED,
    "unsupported": YELLOW,
    "unstable": YELLOW,
}
"""Column → the colour of texts that are not in `_NOTHING`, nor in `_BY_TEXT`."""
_NOTHING = frozenset({"0", "-", "false"})
COLOURED = _BY_TEXT.keys() | _OTHERS.keys()
"""Columns with colours."""

_OF_REMARKS = {"corrupt": RED, "missing": RED, "offsets-log: error": RED, "unsupported": YELLOW}
"""What remarks begin with, before a colon."""


def are_shown(stream: IO[Any]) -> bool:
    """Return whether what is written there may have colours (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def colour_of(column: str, text: str) -> str | None:
    """Return the colour of a cell; None for none."""
    found = _BY_TEXT.get(column, {}).get(text)
    return found if found is not None or text in _NOTHING else _OTHERS.get(column)


def coloured(text: str, colour: str | None) -> str:
    """Return text as terminals show it in a colour."""
    return click.style(text, dim=True) if colour == DIM else click.style(text, fg=colour) if colour else text


def with_coloured_begin(words: str) -> str:
    """Return a remark whose first words, if they say that something is wrong, have a colour."""
    kind = next((kind for kind in _OF_REMARKS if words.startswith(f"{kind}: ")), None)
    return words if kind is None else coloured(kind, _OF_REMARKS[kind]) + words[len(kind) :]
