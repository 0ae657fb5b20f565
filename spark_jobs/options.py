"""Define what a read is asked for: the options of the data source, named like those of the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from offsets_log.errors import InputError
from offsets_log.events import Until
from offsets_log.log_format.primitives import Uuid
from offsets_log.release_names import release_asked
from offsets_log.replay.profile import PROFILES, Profile
from offsets_log.session.scope import Scope

LEVELS = (
    "offsets", "pending", "groups", "members", "transactions", "history", "problems", "records", "raw_records",
)  # fmt: skip
"""What a row is; `levels.LEVELS` has their columns."""
STREAMED = ("records", "raw_records", "growth")
"""The levels of a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of a read; all values of a list are alternatives.

    Attributes:
        columns: which of the level's columns; empty for all.
        group, topic: globs. What became of a group does not depend on other groups.
        until_offset: (offsets partition or None for all, record offset).
        until_time: epoch milliseconds.
        orphans: whether offsets of groups that do not exist are among ``offsets``.
        unstable: whether ``offsets`` has a column that marks those under an open transaction.
        topic_ids: topic id → name, for members that are told by ids.
        cut_bytes: logs above this size are cut: of records by every read, of states by programs.
        storage_options: options of a remote store, for fsspec.
        max_bytes_per_trigger: about how many bytes of a log a stream takes at a time; None for all there are.
    """

    paths: tuple[str, ...]
    level: str = "offsets"
    columns: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    offsets_partition: tuple[int, ...] = ()
    as_partition: int | None = None
    until_offset: tuple[tuple[int | None, int], ...] = ()
    until_time: int | None = None
    profile: str = "modern"
    kafka: tuple[int, int] | None = None
    orphans: bool = False
    unstable: bool = False
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    include_headers: bool = False
    cut_bytes: int = 8 << 30
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    max_bytes_per_trigger: int | None = None

    @property
    def rules(self) -> Profile:
        """The profile with the rules."""
        return PROFILES[self.profile]

    @property
    def scope(self) -> Scope:
        """What the library reads for it; a task has one thread."""
        same = {one.name: getattr(self, one.name) for one in fields(Scope) if hasattr(self, one.name)}
        return Scope(**same, threads=1)

    @property
    def ids(self) -> dict[bytes, str]:
        """Topic id → name. Raises InputError: an id is none."""
        try:
            return {bytes(Uuid.from_text(topic_id)): str(name) for topic_id, name in self.topic_ids.items()}
        except (ValueError, AttributeError) as error:
            raise InputError(f"topic_ids are no JSON object topic id -> name: {error}") from None

    def until(self, offsets_partition: int | None) -> Until:
        """Return where the reading of a partition stops."""
        offsets = [offset for partition, offset in self.until_offset if partition in (None, offsets_partition)]
        return Until(min(offsets, default=None), self.until_time)


def _words(text: str) -> tuple[str, ...]:
    """Return the elements of a JSON list, or a single word."""
    if text.lstrip().startswith("["):
        return tuple(map(str, json.loads(text)))
    return (text,) if text else ()


def _split(text: str) -> tuple[str, ...]:
    """Return the same, of words with commas between them."""
    return tuple(word.strip() for part in _words(text) for word in part.split(","))


def _until_offset(text: str) -> tuple[tuple[int | None, int], ...]:
    parts = [word.rpartition(":") for word in _split(text)]
    return tuple((int(partition) if partition else None, int(offset)) for partition, _, offset in parts)


def _size(text: str) -> int:
    """Return a number of bytes above 0, as Spark's own options have it: ``100m``, ``1g``."""
    match = re.fullmatch(r"(\d+)([kmg]?)b?", text.strip().lower())
    if match is None or not int(match[1]):
        raise ValueError("a number of bytes above 0, such as 100m")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2]]


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _release(text: str) -> tuple[int, int]:
    major, minor = release_asked(text).version[:2]
    return major, minor


def _one_of(*known: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in known:
            raise ValueError(f"not one of {', '.join(known)}")
        return text

    return parse


def _time(text: str) -> int:
    """Return epoch milliseconds from these or from ISO 8601; of a time without a zone it is UTC."""
    if re.fullmatch(r"-?\d+", text.strip()):
        return int(text)
    moment = datetime.fromisoformat(text.strip())
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


PARSERS: dict[str, Callable[[str], Any]] = {
    "level": _one_of(*LEVELS, STREAMED[-1]),
    "columns": _split,
    "group": _words,
    "topic": _words,
    "offsets_partition": lambda text: tuple(map(int, _split(text))),
    "as_partition": int,
    "until_offset": _until_offset,
    "until_time": _time,
    "profile": _one_of(*PROFILES),
    "kafka": _release,
    "orphans": _flag,
    "unstable": _flag,
    "topic_ids": json.loads,
    "include_headers": _flag,
    "cut_bytes": _size,
    "storage_options": json.loads,
    "max_bytes_per_trigger": _size,
}
"""Attribute of `SourceOptions` → how the text of its option is read; ``_`` and capitals may be left out in its name."""
PATHS = ("path", "paths")


def parse(options: Mapping[str, str]) -> SourceOptions:
    """Parse the options of ``spark.read…option(…).load(path)``.

    Raises:
        InputError: an option is unknown or makes no sense.
    """
    values: dict[str, Any] = {}
    paths: tuple[str, ...] = ()
    known = {name.lower().replace("_", ""): name for name in options}
    if not known or "location" in known:  # which Spark gives to a table of its catalog alone
        raise InputError("Spark tells a table's options to no reader: use CREATE TEMPORARY VIEW … USING offsets_log")
    attributes = {attribute.replace("_", ""): attribute for attribute in PARSERS}
    for plain, name in known.items():
        if plain in PATHS:
            paths += _words(options[name])
        elif plain in attributes:
            try:
                values[attributes[plain]] = PARSERS[attributes[plain]](options[name])
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"the option {name} cannot be {options[name]!r}: {error}") from None
        else:
            raise InputError(f"there is no option {name!r}; there are {', '.join(PARSERS)}")
    if not paths:
        raise InputError("no path: load(PATH) wants a data directory, a partition directory or segments")
    return SourceOptions(paths=tuple(dict.fromkeys(paths)), **values)
