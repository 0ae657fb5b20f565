"""Read the rules of Kafka that this program follows: what `register.toml` says of each id in docstrings and rows.

`PARTS` says what the letters before a rule's number mean.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

PARTS = {
    "L": "Loading, by the Scala coordinator",
    "J": "Loading, by the Java coordinator",
    "B": "What real brokers corrected",
    "E": "Expiry and deletion",
    "C": "Log cleaning",
    "CL": "What cleaning leaves in a directory",
    "D": "Damaged files, and what a broker does with them",
    "DD": "Offsets and the logs they lead to",
    "ST": "A broker's start over its data directories",
    "W": "Writing",
    "G": "Classic groups: votes, generations, static members",
    "A": "Assignors",
    "V": "Not known",
    "records": "Formats of batches and records",
    "K44": "What Kafka 4.4 changed",
}
"""The letters before a rule's number → the subject of such rules, in the order of the register."""

ID = re.compile(r"records:[A-Z]\d+|(?:CL|DD|K44|ST|[LJBECDWGAV])-\d+")
"""Matches every id, and no other text."""

FORMER = {"e.1": "E-23"}
"""Id that a rule has had, in lower case → its id."""
NEAR = 5
"""How many similar ids are named for an unknown one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    Attributes:
        id: its id in docstrings, tests and rows.
        says: the rule, in a sentence or two.
        holds_for: ``Scala``, ``Java`` or ``both`` coordinators, ``broker log layer``, ``log cleaner``, ``client``,
            ``format``.
        releases: the releases where it holds, in words.
        kafka: the classes of Kafka where it can be read.
        changes: numbers of issues (KAFKA-) and proposals (KIP-) that made or changed it.
        sure: ``seen on a broker`` (or in runs of Kafka's own classes), ``read in source``, or ``inferred``.
        acts_in: our modules that follow it, as paths from the root of the repository.
        test: the test of the rule, ``path::function``; None where ``not_offline`` says why there is none.
        not_offline: why no test over files can check it; None where one does.
        means: what it means for an operator who sees it; None for a rule that is never shown.
        do: what the operator should do then.
    """

    id: str
    says: str
    holds_for: str
    releases: str
    kafka: tuple[str, ...]
    changes: tuple[str, ...] = ()
    sure: str
    acts_in: tuple[str, ...]
    test: str | None = None
    not_offline: str | None = None
    means: str | None = None
    do: str | None = None

    @property
    def part(self) -> str:
        """The key of `PARTS` for its id."""
        return re.split(r"[-:.]", self.id)[0]


def rules() -> dict[str, Rule]:
    """Return id → rule, in the order of the register."""
    return {id_: rule(id_) for id_ in _blocks()}


@cache
def rule(id_: str) -> Rule:
    """Return the rule of an id spelt as in the register. Only its own table is parsed, since parsing all is slow."""
    (table,) = tomllib.loads(_blocks()[id_]).values()
    facts: dict[str, Any] = {name: tuple(said) if isinstance(said, list) else said for name, said in table.items()}
    return Rule(id=id_, **facts)


@cache
def _blocks() -> dict[str, str]:
    """Return id → the text of its table; only a table's first line begins with a bracket."""
    text = files(__name__).joinpath("register.toml").read_text(encoding="utf-8")
    parts = re.split(r"^\[\"?([^]\"]+)\"?\]\n", text, flags=re.MULTILINE)
    return {id_: f'["{id_}"]\n{body}' for id_, body in zip(parts[1::2], parts[2::2], strict=True)}


def find(text: str) -> Rule | None:
    """Return the rule of an id in any spelling (``b-9``, ``B9``, ``replay:B-9``, ``Y4`` for ``records:Y4``).

    The answer is None if there is no such rule.
    """
    known = {id_.lower(): id_ for id_ in _blocks()} | FORMER
    wanted = text.lower().removeprefix("replay:")
    with_dash = re.sub(r"^([a-z]+)(?=\d)", r"\1-", wanted)
    found = next((known[spelt] for spelt in (wanted, f"records:{wanted}", with_dash) if spelt in known), None)
    return None if found is None else rule(found)


def near(text: str) -> list[str]:
    """Return ids of the same part similar to an unknown one, the most similar first."""
    part = _part(text)
    known = {id_.lower(): id_ for id_ in _blocks() if _part(id_) == part}
    return [known[like] for like in get_close_matches(text.lower(), known, n=NEAR, cutoff=0.5)]


def _part(text: str) -> str:
    """Return the letters before a rule's number, in lower case."""
    match = re.match(r"(?:records:)?[a-z]+", text.lower())
    return match[0] if match else ""
