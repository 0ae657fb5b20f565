"""Rename groups and topics that have other names on the cluster than in the plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from offsets_log.errors import InputError
from offsets_log.rows.tables import Row


def parse_renames(texts: Iterable[str], known: Collection[str], option: str) -> dict[str, str]:
    """Parse ``OLD=NEW`` texts to a mapping old → new; where a name contains ``=``, OLD is a name in the plan.

    Raises:
        InputError: the plan has no such name, or a text can be read in several ways or has no new name, or one name
            gets two of them.
    """
    found: dict[str, str] = {}
    for text in texts:
        cuts = [at for at, character in enumerate(text) if character == "=" and text[:at] in known]
        if len(cuts) != 1:
            problem = "OLD is no name of the plan" if not cuts else "the plan has several such OLD"
            raise InputError(f"{option} {text}: {problem}; it takes OLD=NEW")
        old, new = text[: cuts[0]], text[cuts[0] + 1 :]
        if not new:
            raise InputError(f"{option} {text}: NEW is empty; it takes OLD=NEW")
        if found.setdefault(old, new) != new:
            raise InputError(f"{option} {text}: {old} cannot have two names")
    return found


def renamed(rows: Sequence[Row], groups: Mapping[str, str], topics: Mapping[str, str]) -> list[Row]:
    """Return the rows under their new names; rows of a renamed topic lose their topic id.

    Raises:
        InputError: two rows would have the same group, topic and partition.
    """
    seen: set[tuple[str, str, int]] = set()
    result = []
    for row in rows:
        new = dict(row)
        if row["group"] in groups:
            new["group"] = groups[row["group"]]
            new.pop("group_base64", None)
        if row["topic"] in topics:
            new |= {"topic": topics[row["topic"]], "topic_id": None}
            new.pop("topic_base64", None)
        key = new["group"], new["topic"], new["partition"]
        if key in seen:
            raise InputError(f"under their new names two offsets are of group {key[0]}, {key[1]}-{key[2]}")
        seen.add(key)
        result.append(new)
    return result
