"""The states of all partitions put together, as one document or as rows: what `rebuild` answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from offsets_log.group_tables import GROUP_COLUMNS, MEMBER_COLUMNS, group_row
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile
from offsets_log.replay.topic_names import TopicNames
from offsets_log.tables import COMPACT_COLUMNS, PENDING_COLUMNS, Row, offset_row, offset_row_order, pending_row

MEMORY_COLUMNS = {
    "groups": (*GROUP_COLUMNS, "members"),
    "members": MEMBER_COLUMNS,
    "offsets": tuple(column.name for column in COMPACT_COLUMNS),
    "pending": PENDING_COLUMNS,
}


class Memory:
    """The states of the loaded partitions, in the order of the partitions."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.parts: list[tuple[PartitionLog, CoordinatorState, Problem | None]] = []
        self.names = TopicNames()

    def add(self, log: PartitionLog, state: CoordinatorState, failure: Problem | None) -> None:
        """One loaded partition."""
        self.parts.append((log, state, failure))

    def name_topics(self, given: Mapping[bytes, str], found: Mapping[bytes, str]) -> None:
        """Take topic names from the user, the topics' folders and all partitions' records, in this order."""
        self.names = TopicNames(given, found, *(state.topic_names for _, state, _ in self.parts))

    def document(self, damages: list[Row], *, expand: bool = False) -> Row:
        """The whole answer."""
        return {
            "profile": self.profile.name,
            "end_offsets": {_name(log): state.end_offset for log, state, _ in self.parts},
            "loads": {_name(log): _load(failure) for log, _, failure in self.parts},
            "cleaned_until": {_name(log): log.cleaned_until for log, _, _ in self.parts},
            "groups": sorted(
                (
                    group_row(group, self.profile, self.names, log.offsets_partition, expand=expand)
                    for log, state, _ in self.parts
                    for group in state.groups.values()
                ),
                key=lambda row: (row["group"], row["offsets_partition"] or 0),
            ),
            "offsets": self._offsets("iter_served"),
            "pending": sorted(
                (
                    {name: row[name] for name in (*PENDING_COLUMNS, *(set(row) - set(PENDING_COLUMNS)))}
                    for log, state, _ in self.parts
                    for row in (pending_row(value, log.offsets_partition) for value in state.pending)
                ),
                key=lambda row: (*offset_row_order(row), row["producer_id"]),
            ),
            "orphans": self._offsets("iter_orphans"),
            "problems": damages,
        }

    def _offsets(self, which: str) -> list[Row]:
        return sorted(
            (
                offset_row(value, log.offsets_partition)
                for log, state, _ in self.parts
                for value in getattr(state, which)()
            ),
            key=offset_row_order,
        )

    @staticmethod
    def rows(document: Row, table: str) -> list[Row]:
        """One kind of rows of the document."""
        if table == "members":
            return [{"group": group["group"]} | member for group in document["groups"] for member in group["members"]]
        if table == "groups":
            return [group | {"members": len(group["members"])} for group in document["groups"]]
        rows: list[Row] = document[table]
        return rows

    def warnings(self) -> Iterator[str]:
        """What to know before trusting the answer: loads that fail, history that is gone."""
        for log, _, failure in self.parts:
            if failure is not None:
                yield (
                    f"offsets partition {_name(log)}: a {self.profile.name} coordinator would not load it: "
                    f"record offset {failure.record_offset}, {failure.rule}: {failure.problem}"
                )


def _name(log: PartitionLog) -> str:
    return "unknown" if log.offsets_partition is None else str(log.offsets_partition)


def _load(failure: Problem | None) -> dict[str, Any]:
    return {
        "ok": failure is None,
        "record_offset": failure.record_offset if failure else None,
        "rule": failure.rule if failure else None,
        "problem": failure.problem if failure else None,
    }
