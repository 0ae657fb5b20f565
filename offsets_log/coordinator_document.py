"""The states of all partitions put together, as one document or as rows: what `rebuild` answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from offsets_log.broker.outcome import Outcome
from offsets_log.broker.shutdowns import in_words
from offsets_log.data_directory.decisions import Outcomes
from offsets_log.data_directory.share_offsets import ShareOffsets
from offsets_log.data_directory.transactions import OUTCOME_COLUMNS
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.releases import profile_of
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.groups import (
    EXPANDED_COLUMNS,
    GROUP_COLUMNS,
    MEMBER_COLUMNS,
    MEMBER_KIND_COLUMNS,
    MEMBERS_COUNT,
    group_row,
    members_count,
)
from offsets_log.rows.survey import Survey
from offsets_log.rows.tables import (
    COMPACT_COLUMNS,
    PENDING_COLUMNS,
    PENDING_NAMES,
    Column,
    Row,
    offset_row,
    offset_row_order,
    partition_name,
    pending_row,
    untold_rows,
)

MEMORY_COLUMNS: dict[str, tuple[Column, ...]] = {
    "groups": (*GROUP_COLUMNS, MEMBERS_COUNT),
    "members": (*MEMBER_COLUMNS, *MEMBER_KIND_COLUMNS),
    "offsets": COMPACT_COLUMNS,
    "pending": PENDING_COLUMNS,
}


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """One loaded partition: its log, what is held of it, what ends its load, what was seen on the way.

    Attributes:
        outcomes: what a broker makes of the files, by the stop before; nothing where it loads what is read here.
    """

    log: PartitionLog
    state: CoordinatorState
    failure: Problem | None
    found: Survey
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)


NO_OUTCOMES: Mapping[str, Outcome] = {}


class Memory:
    """The states of the loaded partitions, in the order of the partitions.

    Args:
        outcomes: tells what becomes of what is pending; None where nothing does.
        share_offsets: tells where share groups are; None where nothing does.
    """

    def __init__(
        self, profile: Profile, outcomes: Outcomes | None = None, share_offsets: ShareOffsets | None = None
    ) -> None:
        self.profile = profile
        self.outcomes = outcomes
        self.share_offsets = share_offsets
        self.parts: list[PartitionPart] = []
        self.names = TopicNames()

    def add(
        self,
        log: PartitionLog,
        state: CoordinatorState,
        found: Survey,
        outcomes: Mapping[str, Outcome] = NO_OUTCOMES,
        *,
        as_broker: bool = False,
    ) -> None:
        """Add one loaded partition.

        Args:
            found: what was seen on the way.
            outcomes: as of `PartitionPart`.
            as_broker: leave its rows out if its load ends early.
        """
        failure = state.failure
        self.parts.append(PartitionPart(log, state.as_broker() if as_broker else state, failure, found, outcomes))

    def name_topics(self, given: Mapping[bytes, str], found: Mapping[bytes, str]) -> None:
        """Take topic names from the user, the topics' folders and all partitions' records, in this order."""
        self.names = TopicNames(given, found, *(part.state.topic_names for part in self.parts))

    def document(self, damages: list[Row], *, expand: bool = False) -> Row:
        """Return the whole answer."""
        return {
            "profile": profile_of(self.profile.name),
            "end_offsets": {partition_name(part.log.offsets_partition): _end_offset(part) for part in self.parts},
            "loads": {partition_name(part.log.offsets_partition): _load(part) for part in self.parts},
            "history": {partition_name(part.log.offsets_partition): _history(part) for part in self.parts},
            "groups": sorted(
                (
                    group_row(
                        group,
                        self.profile,
                        self.names,
                        part.log.offsets_partition,
                        part.state.missing_columns_of(group),
                        expand=expand,
                    )
                    for part in self.parts
                    for group in part.state.groups.values()
                ),
                key=lambda row: (row["group"], row["offsets_partition"] or 0),
            ),
            "offsets": self._offsets("iter_served"),
            "pending": sorted(
                (row for part in self.parts for row in self._pending(part)),
                key=lambda row: (*offset_row_order(row), row["producer_id"]),
            ),
            "orphans": self._offsets("iter_orphans"),
            **self._untold(),
            **({} if self.share_offsets is None else {"share_offsets": self.share_offsets.rows()}),
            "problems": damages,
        }

    def _offsets(self, which: str) -> list[Row]:
        return sorted(
            (
                offset_row(value, part.log.offsets_partition, part.state.missing_columns)
                for part in self.parts
                for value in getattr(part.state, which)()
            ),
            key=offset_row_order,
        )

    def _untold(self) -> dict[str, list[Row]]:
        rows = [row for part in self.parts for row in untold_rows(part.state, part.log.offsets_partition)]
        return {"untold": sorted(rows, key=offset_row_order)} if rows else {}

    def _pending(self, part: PartitionPart) -> Iterator[Row]:
        state = part.state
        told = {} if self.outcomes is None else self.outcomes.cells(part.log, (*state.pending, *state.hidden_pending))
        for value in state.pending:
            row = pending_row(value, part.log.offsets_partition, state.missing_columns)
            row = {name: row[name] for name in (*PENDING_NAMES, *(set(row) - set(PENDING_NAMES)))}
            yield row | told.get(value.producer_id, {})

    def columns(self, table: str, *, expand: bool = False) -> tuple[Column, ...]:
        """Return the columns of the rows of a table; ``expand`` as of `document`."""
        if table == "pending" and self.outcomes is not None:
            return MEMORY_COLUMNS[table] + OUTCOME_COLUMNS
        return MEMORY_COLUMNS[table] + (EXPANDED_COLUMNS if expand and table == "members" else ())

    def rows(self, document: Row, table: str, *, expand: bool = False) -> list[Row]:
        """Return one kind of rows of the document; ``expand`` as of `document`."""
        if table == "members":
            names = [column.name for column in self.columns(table, expand=expand)]
            groups = ((group["group"], group["members"] or ()) for group in document["groups"])
            members = ({"group": group} | member for group, members in groups for member in members)
            return [{name: member.get(name) for name in names} for member in members]
        if table == "groups":
            return [group | {"members": members_count(group)} for group in document["groups"]]
        rows: list[Row] = document[table]
        return rows + document.get("untold", []) if table == "offsets" else rows

    def warnings(self) -> Iterator[str]:
        """Yield what to know before trusting the answer: loads that fail, history that is gone."""
        yield from dict.fromkeys(self._warnings())

    def _warnings(self) -> Iterator[str]:
        for part in self.parts:
            name, cleaned_until = partition_name(part.log.offsets_partition), part.log.cleaned_until
            if part.outcomes:
                yield from in_words(part.outcomes, self.profile.name, name)
            elif part.failure is not None:
                yield part.failure.in_words(self.profile.name, name)
            if cleaned_until is not None and part.state.end_offset < cleaned_until:
                yield (
                    f"offsets partition {name}: below record offset {cleaned_until} superseded records were compacted "
                    f"away; this state as of {part.state.end_offset} may lack what was true then"
                )


def _history(part: PartitionPart) -> dict[str, Any]:
    """Return how far back the log can be trusted: below ``cleaned_until`` and in gaps, records were compacted away."""
    tells_offsets = _tells_record_offsets(part)
    return {
        "first_record_offset": part.found.first_offset if tells_offsets else None,
        "cleaned_until": part.log.cleaned_until,
        "missing_offsets": part.found.missing_offsets if tells_offsets else None,
        "tails": list(part.found.tails),
    }


def _tells_record_offsets(part: PartitionPart) -> bool:
    return "record_offset" not in part.log.missing_columns


def _end_offset(part: PartitionPart) -> int | None:
    return part.state.end_offset if _tells_record_offsets(part) else None


def _load(part: PartitionPart) -> dict[str, Any]:
    """Return whether the partition loads; of a damaged one, by the stop before where that makes a difference."""
    if not part.outcomes:
        return _verdict(part, part.failure)
    (shutdown, first), *others = part.outcomes.items()
    verdict = _outcome(part, first)
    if all(other.equals(first) for _, other in others):
        return verdict | {"shutdown": None if others else shutdown}
    return verdict | {"shutdown": shutdown, **{f"after_{name}_shutdown": _outcome(part, it) for name, it in others}}


def _outcome(part: PartitionPart, outcome: Outcome) -> dict[str, Any]:
    told = {} if outcome.at_start is None else {"rule": outcome.at_start.rule, "problem": outcome.at_start.problem}
    return (
        _verdict(part, outcome.failure)
        | told
        | {
            "ok": outcome.at_start is None and outcome.ends and outcome.failure is None and outcome.starts,
            "starts": outcome.starts,
            "ends": outcome.ends,
            "log_end_offset": outcome.end_offset,
        }
    )


def _verdict(part: PartitionPart, failure: Problem | None) -> dict[str, Any]:
    return {
        "ok": failure is None,
        "record_offset": failure.record_offset if failure and _tells_record_offsets(part) else None,
        "rule": failure.rule if failure else None,
        "problem": failure.problem if failure else None,
    }
