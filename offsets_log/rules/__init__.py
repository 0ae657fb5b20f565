"""The rules of Kafka that this program follows: what `register.toml` says of each id that docstrings and rows cite.

`PARTS` says what the letters before a rule's number stand for.
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
    "D": "Damaged files, and what a broker makes of them",
    "DD": "Offsets and the logs they lead to",
    "W": "Writing",
    "G": "Classic groups: votes, generations, static members",
    "A": "Assignors",
    "V": "Not known",
    "records": "Formats of batches and records",
}
"""The letters before a rule's number → what such rules are about, in the order of the register."""

ID = re.compile(r"records:[A-Z]\d+|(?:CL|DD|[LJBECDWGAV])-\d+|E\.1")
"""Every id, and nothing that stands in text for another reason."""

NEAR = 5
"""Near matches that are named for an id that there is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    Attributes:
        id: as docstrings, tests and rows cite it.
        says: the rule, one sentence.
        holds_for: ``Scala``, ``Java`` or ``both`` coordinators, ``broker log layer``, ``log cleaner``, ``client``,
            ``format``.
        releases: in which of them, in words.
        kafka: the classes of Kafka in which it can be read.
        changes: numbers of issues (KAFKA-) and proposals (KIP-) that made or changed it.
        sure: ``seen on a broker`` (or in runs of Kafka's own classes), ``read in source``, or ``inferred``.
        acts_in: our modules that follow it, as paths from the root of the repository.
        test: the test that holds it, ``path::function``; None where ``not_offline`` says why there is none.
        not_offline: why no test over files can hold it; None where one does.
        means: what it means for an operator to whom it is shown; None for a rule that is not shown.
        do: what to do then.
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
        """A key of `PARTS`."""
        return re.split(r"[-:.]", self.id)[0]


def rules() -> dict[str, Rule]:
    """Id → rule, in the order of the register."""
    return {id_: rule(id_) for id_ in _blocks()}


@cache
def rule(id_: str) -> Rule:
    """The rule of an id as the register spells it. Only its own table is parsed, for all take long."""
    (table,) = tomllib.loads(_blocks()[id_]).values()
    facts: dict[str, Any] = {name: tuple(said) if isinstance(said, list) else said for name, said in table.items()}
    return Rule(id=id_, **facts)


@cache
def _blocks() -> dict[str, str]:
    """Id → the text of its table, which begins with a line that begins with a bracket, as no other line does."""
    text = files(__name__).joinpath("register.toml").read_text(encoding="utf-8")
    parts = re.split(r"^\[\"?([^]\"]+)\"?\]\n", text, flags=re.MULTILINE)
    return {id_: f'["{id_}"]\n{body}' for id_, body in zip(parts[1::2], parts[2::2], strict=True)}


def find(text: str) -> Rule | None:
    """The rule of an id, however it is spelt: ``b-9``, ``B9``, ``replay:B-9``, ``Y4`` for ``records:Y4``."""
    known = {id_.lower(): id_ for id_ in _blocks()}
    wanted = text.lower().removeprefix("replay:")
    with_dash = re.sub(r"^([a-z]+)(?=\d)", r"\1-", wanted)
    found = next((known[spelt] for spelt in (wanted, f"records:{wanted}", with_dash) if spelt in known), None)
    return None if found is None else rule(found)


def near(text: str) -> list[str]:
    """Ids like one that there is not, the likest first."""
    known = {id_.lower(): id_ for id_ in _blocks()}
    return [known[like] for like in get_close_matches(text.lower(), known, n=NEAR, cutoff=0.5)]
