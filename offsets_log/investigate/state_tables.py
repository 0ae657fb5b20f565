"""The tables of what a coordinator holds after loading one offsets partition, and of what was seen on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

import pyarrow as pa

from offsets_log.columnar.materialize.arrow import schema_of
from offsets_log.data_directory.transactions import OUTCOME_COLUMNS
from offsets_log.replay.coordinator_state import CoordinatorState
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.problem import Problem
from offsets_log.replay.topic_names import TopicNames
from offsets_log.rows.groups import GROUP_COLUMNS, MEMBER_COLUMNS, group_row, nested_member
from offsets_log.rows.tables import (
    COMPACT_COLUMNS,
    OFFSETS_PARTITION_COLUMN,
    PENDING_COLUMNS,
    Column,
    Row,
    offset_row,
    pending_row,
    to_json,
)

LOAD_COLUMNS = (
    OFFSETS_PARTITION_COLUMN,
    Column("ok", "boolean", "whether a coordinator would load it"),
    Column("record_offset", "bigint", "the record that prevents it"),
    Column("rule", "string", "the rule by which it does"),
    Column("problem", "string", "what is wrong, in words"),
    Column("is_served", "boolean", "whether the partition is served all the same"),
)
DOCUMENT_COLUMNS = (
    *GROUP_COLUMNS,
    Column("members", "int", "how many members it has"),
    Column("document", "json", "all that `rebuild` tells about it"),
)
"""Groups with all that `rebuild` tells."""


def table_of(rows: Sequence[Row], columns: Sequence[Column]) -> pa.Table:
    """Return rows as a table of these columns alone: there is no room for raw bytes of names that are not UTF-8."""
    schema = schema_of(columns)
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def orphans_table(state: CoordinatorState, number: int | None) -> pa.Table:
    """Return committed offsets whose group does not exist; ``number`` is the offsets partition, here as below."""
    rows = [offset_row(value, number, state.missing_columns) for value in state.iter_orphans()]
    return table_of(rows, COMPACT_COLUMNS)


def pending_table(
    state: CoordinatorState,
    number: int | None,
    cells: Callable[[Iterable[OffsetAndMetadata]], Mapping[int, Row]] | None,
) -> pa.Table:
    """Return the offsets of open transactions.

    Args:
        cells: returns producer id → `OUTCOME_COLUMNS` of all that is pending; None where nothing tells.
    """
    rows = [pending_row(value, number, state.missing_columns) for value in state.pending]
    if cells is None:
        return table_of(rows, PENDING_COLUMNS)
    told = cells((*state.pending, *state.hidden_pending))
    return table_of([row | told[row["producer_id"]] for row in rows], (*PENDING_COLUMNS, *OUTCOME_COLUMNS))


def group_documents(state: CoordinatorState, number: int | None, names: TopicNames) -> list[Row]:
    """Return groups with their members as `rebuild` has them."""
    return [group_row(one, state.profile, names, number, state.missing_columns) for one in state.groups.values()]


def documents_table(groups: Sequence[Row]) -> pa.Table:
    """Return what `group_documents` returned as `DOCUMENT_COLUMNS`."""
    rows = [row | {"members": len(row["members"]), "document": to_json(row)} for row in groups]
    return table_of(rows, DOCUMENT_COLUMNS)


def members_table(groups: Sequence[Row]) -> pa.Table:
    """Return the members of what `group_documents` returned."""
    rows = [{"group": row["group"]} | member for row in groups for member in row["members"]]
    return table_of([*map(nested_member, rows)], MEMBER_COLUMNS)


def loads_table(failure: Problem | None, number: int | None) -> pa.Table:
    """Return whether a coordinator would load a log, or else the record and the rule that prevent it."""
    why = {"is_served": False} if failure is None else asdict(failure)
    return table_of([why | {"offsets_partition": number, "ok": failure is None}], LOAD_COLUMNS)
