"""Convert what Spark has joined to this machine's form: for each log the state after a load, its counts, its writers.

`joined_logs` takes the rows of `fold.memory` (`run.joined_table`), which grow with keys, groups and open transactions.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from offsets_log import errors
from offsets_log.columnar.folds.writers import WritersState
from offsets_log.columnar.scan.reading import Seen
from offsets_log.columnar.shuffle.counts import tell_counts, writers_of
from offsets_log.data_directory.decisions import TakesMarkers
from offsets_log.errors import Damage
from offsets_log.log_format.completeness import Missing
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.primitives import Uuid
from offsets_log.replay.coordinator_state import CoordinatorState, Holdings, in_order
from offsets_log.replay.group import Group
from offsets_log.replay.partial import EndTransactionMarker, OffsetAndMetadata
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.rows.survey import Survey
from offsets_log.rows.tables import Row
from spark_jobs.pieces import tail_of

RAW_NAMES = ("group", "topic", "metadata")
"""Text columns of offsets that may have a column with raw bytes beside them, for text that is not UTF-8."""


def joined_logs(table: pa.Table, count: int | None = None) -> list[JoinedLog]:
    """Return the rows of `fold.memory`, log by log.

    Args:
        count: how many logs were read; some may have no segment. None for all logs that have rows.
    """
    numbers = range(count) if count is not None else sorted(set(table["log"].drop_null().to_pylist()))
    return [JoinedLog(table.filter(pc.equal(table["log"], number))) for number in numbers]


@dataclass(frozen=True)
class JoinedLog:
    """The joined result of one log.

    Attributes:
        table: its rows of `fold.memory`.
    """

    table: pa.Table

    def rows(self, *kinds: str) -> list[Row]:
        """Return the rows of some kinds in log order."""
        chosen = self._of(*kinds).sort_by([("piece", "ascending"), ("number", "ascending")])
        found: list[Row] = chosen.to_pylist()
        return found

    def _of(self, *kinds: str) -> pa.Table:
        return self.table.filter(pc.is_in(self.table["kind"], pa.array(kinds)))

    @property
    def offsets_partition(self) -> int | None:
        """The log's offsets partition; None if unknown."""
        found: int | None = self.table["offsets_partition"][0].as_py()
        return found

    @cached_property
    def facts(self) -> Row:
        """Counts of the log, and where it ends."""
        facts: Row = json.loads(self.rows("log")[0]["facts"])
        return facts

    def seen(self, here: Callable[[str], str] = lambda file: file) -> Iterator[Seen]:
        """Yield what could not be read, tails, and what is missing.

        Args:
            here: returns the name of a file as the user gave it, from the name that tasks read it by.
        """
        found = [(row["kind"], json.loads(row["facts"]), row["value"]) for row in self.rows(*SEEN)]
        found.sort(key=lambda item: item[1]["first_offset"] if item[0] == "missing" else -1)
        for kind, facts, raw in found:
            if facts["file"] is not None:
                facts["file"] = here(facts["file"])
            yield SEEN[kind](facts, raw)

    def tell(self, found: Survey) -> None:
        """Copy what was counted into a survey."""
        tell_counts(self.facts, self.rows("transaction"), found)

    def pending(self) -> tuple[OffsetAndMetadata, ...]:
        """Return the offsets of open transactions."""
        return tuple(offsets_of(self._of("open")))

    def decided(self, decide: Callable[[TakesMarkers, Iterable[OffsetAndMetadata]], None]) -> list[Row]:
        """Return rows of partials for the markers that are added behind the log.

        Args:
            decide: adds them, given what is pending.
        """
        markers = _Markers(self.facts["end_offset"])
        decide(markers, self.pending())
        place = {name: self.rows("piece")[0][name] for name in ("log", "pieces", "offsets_partition")}
        return [place | {"piece": place["pieces"], "kind": "producer"} | row for row in markers.rows]

    def groups(self) -> dict[str, Group]:
        """Return the groups that exist."""
        return {row["group"]: pickle.loads(row["value"]) for row in self.rows("group")}

    def holdings(self, *, shows_all: bool) -> Holdings:
        """Return how much a coordinator holds of what is shown.

        Args:
            shows_all: whether these are all groups: of others no rows were joined.
        """
        served, orphans = (len(self._of(kind)) for kind in ("served", "orphan"))
        pending = sorted(offsets_of(self._of("open", "hidden_open")), key=attrgetter("record_offset"))
        return Holdings(
            tuple(self.groups().values()), served, orphans, tuple(pending), hidden_groups=0 if shows_all else None
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What would have ended a real load, as `CoordinatorState.problems`."""
        return in_order(Problem(**json.loads(row["facts"])) for row in self.rows("problem"))

    def state(self, profile: Profile) -> CoordinatorState:
        """Return what a coordinator holds after loading."""
        return CoordinatorState(
            profile=profile,
            groups=self.groups(),
            committed=tuple(offsets_of(self._of("served", "orphan"))),
            pending=self.pending(),
            problems=self.problems,
            topic_names={bytes(Uuid.from_text(row["topic_id"])): row["topic"] for row in self.rows("topic_name")},
            end_offset=self.facts["end_offset"],
        )

    def writers(self) -> WritersState:
        """Return who wrote the log."""
        return writers_of(self.rows("writers")[0]["value"])


@dataclass(slots=True)
class _Markers:
    """Takes markers as columns of partials."""

    end_offset: int
    rows: list[Row] = field(default_factory=list)

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Implement `TakesMarkers.add_marker`."""
        self.rows.append({"producer_id": producer_id, "record_offset": marker.record_offset, "commits": marker.commit})


def offsets_of(table: pa.Table) -> Iterator[OffsetAndMetadata]:
    """Yield rows of offsets as values."""
    columns = {name: table[name].to_pylist() for name in OffsetAndMetadata._fields}
    for name in RAW_NAMES:
        raw = table[f"{name}_base64"]
        if raw.null_count < len(raw):
            columns[name] = [
                text if encoded is None else MalformedString(base64.b64decode(encoded))
                for text, encoded in zip(columns[name], raw.to_pylist(), strict=True)
            ]
    yield from map(OffsetAndMetadata, *columns.values())


def _damage(facts: Row, raw: Any) -> Damage:
    place = {name: facts[name] for name in ("file", "position", "record_offset", "field")}
    return Damage(getattr(errors, facts["error"])(facts["problem"], **place), raw)


SEEN: dict[str, Callable[[Row, Any], Seen]] = {
    "damage": _damage,
    "tail": lambda facts, raw: tail_of(facts),
    "missing": lambda facts, raw: Missing(**facts),
}
"""Kind of row → what it stands for, from its facts and raw bytes."""
