"""What a step found, and the deliberate caps that keep some of it from being told."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

CAPS = Path(__file__).with_name("caps.toml")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a release has and no table here, or the other way round.

    Attributes:
        what: one line, the same in every run, which a cap names.
        details: lines for the reader beneath it.
        place: the file that a row belongs in; empty where none can be told.
    """

    what: str
    details: tuple[str, ...] = ()
    place: str = ""


@dataclass(frozen=True, slots=True)
class Cap:
    """Drift that is meant.

    Attributes:
        step: whose findings it is about.
        names: patterns as of a shell, each for the lines of findings.
        reason: why there is no row.
    """

    step: str
    names: tuple[str, ...]
    reason: str


def read_caps(path: Path = CAPS) -> list[Cap]:
    """Return the caps of a file: tables ``[[cap]]`` with ``step``, ``names`` and ``reason``."""
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("cap", ())
    return [Cap(row["step"], tuple(row["names"]), row["reason"]) for row in rows]


def uncapped(step: str, findings: Iterable[Finding], caps: Sequence[Cap], *, tells_idle: bool = True) -> list[Finding]:
    """Return the findings that no cap of a step names.

    Args:
        tells_idle: whether there is one also for each name that caps nothing any more.
    """
    names = [name for cap in caps if cap.step == step for name in cap.names]
    used: set[str] = set()
    left = []
    for finding in findings:
        matching = {name for name in names if fnmatchcase(finding.what, name)}
        used |= matching
        if not matching:
            left.append(finding)
    idle = (name for name in names if tells_idle and name not in used)
    return [*left, *(Finding(f'the cap "{name}" caps nothing any more', place=str(CAPS.name)) for name in idle)]
