"""Which classes that a rule here was read in are not as in the last release that is known.

Builds of Kafka are reproducible: class files with the same checksums are the same code. Of those that differ, javap
tells the members that do (`javap`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from offsets_log.rules import rules
from tools.release_drift.findings import Finding
from tools.release_drift.jars import Jars
from tools.release_drift.javap import Members, code_of

WATCHED = Path(__file__).with_name("watched.toml")


@dataclass(frozen=True, slots=True)
class Watched:
    """What is concerned when a class changes.

    Attributes:
        rules: ids of rules that were read in it.
        places: modules of ours that follow them.
    """

    rules: tuple[str, ...]
    places: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """Both for the reader."""
        told = (("rules", self.rules), ("see", self.places))
        return tuple(f"{word} {', '.join(names)}" for word, names in told if names)


def watched_classes(path: Path = WATCHED) -> dict[str, Watched]:
    """Return simple name of a class → what it concerns: those that rules name, and those of ``watched.toml``."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for rule in rules().values():
        for named in rule.kafka:
            ids, places = found.setdefault(named.partition(".")[0], (set(), set()))
            ids.add(rule.id)
            places.update(rule.acts_in)
    for row in tomllib.loads(path.read_text(encoding="utf-8"))["watched"]:
        for named in row["classes"]:
            found.setdefault(named, (set(), set()))[1].update(row["places"])
    return {name: Watched(tuple(sorted(ids)), tuple(sorted(places))) for name, (ids, places) in found.items()}


def class_drift(jars: Jars, known: Jars) -> Iterator[Finding]:
    """Yield the watched classes whose code is not that of the release that is known, that are new, or gone.

    A class that moved to another jar is the same one; of one that moved to another package both names are told.

    Raises:
        NotAvailableError: there is no javap.
    """
    watched = watched_classes()
    before, after = _watched_in(known, watched), _watched_in(jars, watched)
    for name in sorted(before.keys() - after.keys()):
        yield Finding(f"class {name} is gone", watched[_simple(name)].lines)
    for name in sorted(after.keys() - before.keys()):
        yield Finding(f"class {name} is new", watched[_simple(name)].lines)
    names = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    old, new = code_of(known, names), code_of(jars, names)
    for name in names:
        if changed := _changed(old[name], new[name]):
            yield Finding(f"class {name} has changed", (*changed, *watched[_simple(name)].lines))


def _watched_in(jars: Jars, watched: Mapping[str, Watched]) -> dict[str, frozenset[tuple[str, int]]]:
    return {name: files for name, files in jars.classes.items() if _simple(name) in watched}


def _simple(name: str) -> str:
    return name.rpartition(".")[2]


def _changed(old: Members, new: Members) -> tuple[str, ...]:
    """Return which members differ, by their names: one with another signature has changed, too."""
    gone = {_member_name(member) for member in old if member not in new}
    added = {_member_name(member) for member in new if member not in old}
    changed = {_member_name(member) for member in old if member in new and old[member] != new[member]}
    told = (("changed", changed | (gone & added)), ("gone", gone - added), ("new", added - gone))
    return tuple(f"{word}: {', '.join(sorted(names))}" for word, names in told if names)


def _member_name(member: str) -> str:
    """Return a signature's name: what stands before its parentheses, or of a field its last word."""
    return member.partition("(")[0].rpartition(" ")[2]
