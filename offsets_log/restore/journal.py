"""Read and write the journal of `restore`: what was there and what was set, line by line, to continue or undo a run.

JSON Lines. ``event`` is one of

==========  ==========================================================================================================
``run``     a run begins: ``format``, ``format_version`` (1; a reader refuses a higher one), ``cluster_id``, ``undo``
            (whether it puts back), ``started_ms``
``before``  a commit is about to be sent, and the line is on the disk first: ``group``, ``topic``, ``partition``;
            ``before``, the offset that the cluster has; ``wanted``, the one that it is given; ``plan``, the one in the
            plan (null in an undo); each an object of ``committed_offset``, ``leader_epoch``, ``metadata``, or null for
            no offset; ``share``, only where true: it is a share group's start offset
``after``   the same, once the cluster answered: ``applied``, whether it has what was wanted, and the ``reason`` if not
==========  ==========================================================================================================

A ``before`` without its ``after`` is a commit whose outcome the run did not see. If the last line is cut off, nothing
was sent after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from offsets_log.errors import InputError
from offsets_log.restore.changes import Change
from offsets_log.restore.target import Committed
from offsets_log.rows.tables import Row, to_json

FORMAT = "offsets-log restore journal"
FORMAT_VERSION = 1

Key = tuple[str, str, int]
"""Group, topic, partition number."""


@dataclass(slots=True)
class Entry:
    """What a journal says of one offset.

    Attributes:
        before: what the cluster had before a run first set the offset (None for no offset); undoing puts this back.
        ours: the values that runs have set, or may have set.
        plan: the value in the plan when the offset was last set.
        is_open: whether the answer to the last commit is not in the journal.
        is_applied: whether the cluster had what was wanted after the last commit.
        is_share: whether it is a share group's start offset.
    """

    before: Committed | None
    ours: tuple[Committed | None, ...] = ()
    plan: Committed | None = None
    is_open: bool = True
    is_applied: bool = False
    is_share: bool = False


@dataclass(slots=True)
class Journal:
    """What runs have written: the cluster's id, and an entry for each offset that has not been put back."""

    cluster_id: str | None = None
    has_begun: bool = False
    entries: dict[Key, Entry] = field(default_factory=dict)

    def _before(self, key: Key, row: Row, *, is_undo: bool) -> None:
        current, wanted = _committed(row["before"]), _committed(row["wanted"])
        entry = self.entries.get(key)
        is_known = entry is not None and current in (entry.before, *entry.ours)
        if entry is None or not (is_known or is_undo):  # somebody else set it since: keep that value
            entry = self.entries[key] = Entry(current)
        entry.is_share = row.get("share") is True
        entry.ours = (*((current,) if current in entry.ours else ()), wanted)
        entry.is_open, entry.is_applied = True, False
        if not is_undo:
            entry.plan = _committed(row["plan"])

    def _after(self, key: Key, row: Row, *, is_undo: bool) -> None:
        entry = self.entries.get(key)
        if entry is None:
            return
        if is_undo and row["applied"]:
            del self.entries[key]
            return
        entry.is_open, entry.is_applied = False, row["applied"]
        if entry.is_applied:
            entry.ours = (_committed(row["wanted"]),)


_HEAD = to_json({"event": "run", "format": FORMAT})[:-1]
"""The beginning of every journal."""


def read_journal(text: str, file: str) -> Journal:
    """Read a journal's lines, and return what all of them come to.

    Raises:
        InputError: it is no journal, it has another version or several clusters, or a line makes no sense.
    """
    journal, is_undo = Journal(), False
    if not _HEAD.startswith(text[: len(_HEAD)]):
        raise InputError(
            "it is no restore journal: it does not begin with a run. Give what restore --execute wrote", file=file
        )
    for number, row in _rows(text, file):
        try:
            if row["event"] == "run":
                if row["format"] != FORMAT or row["format_version"] != FORMAT_VERSION:
                    raise InputError(f"line {number}: it is no journal that this version reads", file=file)
                if journal.has_begun and row["cluster_id"] != journal.cluster_id:
                    raise InputError(
                        f"line {number}: this run was on another cluster than those before: each cluster needs its "
                        f"own journal",
                        file=file,
                    )
                journal.cluster_id, is_undo, journal.has_begun = row["cluster_id"], row["undo"], True
                continue
            key = row["group"], row["topic"], row["partition"]
            (journal._before if row["event"] == "before" else journal._after)(key, row, is_undo=is_undo)
        except (KeyError, TypeError) as error:
            raise InputError(f"line {number} is none of a restore journal: {error}", file=file) from None
    return journal


def _rows(text: str, file: str) -> Iterator[tuple[int, Any]]:
    """Yield whole lines: the last one may be cut off."""
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            yield number, json.loads(line)
        except ValueError as error:
            raise InputError(f"line {number} is not JSON: {error}", file=file) from None


class JournalNote:
    """Write the lines of a run.

    Args:
        append: adds text to the file; with True, it returns when the text is on the disk.
    """

    def __init__(self, append: Callable[[str, bool], None], *, cluster_id: str | None, undo: bool, now_ms: int) -> None:
        self._append = append
        head = {"event": "run", "format": FORMAT, "format_version": FORMAT_VERSION}
        append(_lines([head | {"cluster_id": cluster_id, "undo": undo, "started_ms": now_ms}]), True)

    def before(self, changes: Iterable[Change]) -> None:
        """Record changes on the disk before they are sent, so that the record survives a crash of the machine."""
        self._append(_lines({"event": "before"} | _values(change) for change in changes), True)

    def after(self, changes: Iterable[Change]) -> None:
        """Record the outcome; if these lines are lost in a crash, the commits count as unfinished."""
        outcomes = ({"applied": change.applied, "reason": change.reason} for change in changes)
        rows = ({"event": "after"} | _values(change) for change in changes)
        self._append(_lines(row | outcome for row, outcome in zip(rows, outcomes, strict=True)), False)


def _lines(rows: Iterable[Row]) -> str:
    return "".join(f"{to_json(row)}\n" for row in rows)


def _values(change: Change) -> Row:
    return {
        "group": change.group,
        "topic": change.topic,
        "partition": change.partition,
        "before": _row(change.current),
        "wanted": _row(change.wanted),
        "plan": _row(change.plan),
        **({"share": True} if change.is_share else {}),
    }


def _row(value: Committed | None) -> Row | None:
    return None if value is None else value._asdict()


def _committed(row: Row | None) -> Committed | None:
    return None if row is None else Committed(row["committed_offset"], row["leader_epoch"], row["metadata"])
