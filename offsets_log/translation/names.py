"""What groups and topics are called in the target: by MirrorMaker 2's policies, or by rules that are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from offsets_log.errors import AskedError

Rename = Callable[[str], str]

IDENTITY, DEFAULT = "identity", "default"


def by_policy(text: str) -> Rename:
    """Return the names that a replication policy gives to topics.

    ``default:ALIAS`` puts the source's alias and a dot before them (``DefaultReplicationPolicy``).

    Raises:
        AskedError: there is no such policy.
    """
    policy, _, alias = text.partition(":")
    if policy == IDENTITY and not alias:
        return lambda name: name
    if policy == DEFAULT and alias:
        return lambda name: f"{alias}.{name}"
    raise AskedError(f"--policy {text}: it is {IDENTITY}, or {DEFAULT}:ALIAS with the source cluster's alias")


def by_rules(texts: Iterable[str], option: str, otherwise: Rename = str) -> Rename:
    """Return names by rules ``OLD=NEW`` and ``s/PATTERN/NEW/``, the first of which that fits counts.

    Args:
        otherwise: what becomes of names that no rule fits.

    Raises:
        AskedError: a rule makes no sense.
    """
    rules = [_rule(text, option) for text in texts]

    def rename(name: str) -> str:
        found = (rule(name) for rule in rules)
        return next((new for new in found if new is not None), None) or otherwise(name)

    return rename


def check_apart(names: Iterable[str], rename: Rename, option: str) -> None:
    """Check that no two names become one.

    Raises:
        AskedError: two do.
    """
    known: dict[str, str] = {}
    for name in sorted(set(names)):
        other = known.setdefault(rename(name), name)
        if other != name:
            raise AskedError(f"{option}: {other} and {name} would both be {rename(name)}; give each a name of its own")


def _rule(text: str, option: str) -> Callable[[str], str | None]:
    if text[:1] == "s" and len(text) > 1 and not text[1].isalnum() and text[1] != "=":
        return _substitution(text, option)
    old, is_rule, new = text.partition("=")
    if not is_rule or not old or not new:
        raise AskedError(f"{option} {text}: it takes OLD=NEW or s/PATTERN/NEW/")
    return lambda name: new if name == old else None


def _substitution(text: str, option: str) -> Callable[[str], str | None]:
    parts = text[2:].split(text[1])
    if len(parts) != 3 or parts[2]:
        raise AskedError(f"{option} {text}: it takes s/PATTERN/NEW/, with the sign behind s three times")
    try:
        pattern, new = re.compile(parts[0]), parts[1]
        pattern.sub(new, "")
    except (re.error, IndexError) as error:
        raise AskedError(f"{option} {text}: {error}") from None
    return lambda name: pattern.sub(new, name, count=1) if pattern.search(name) else None
