"""Prepare rows of compact for files: grouped, and as the maps that several tools take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from offsets_log.rows.tables import Row
from offsets_log.words import counted

Files = Iterator[tuple[str, Iterable[str]]]
"""Paths below the directory, each with its text in pieces."""


def is_share_row(row: Row) -> bool:
    """Whether a row to restore says where a share group starts."""
    return bool(row.get("is_share"))


def counted_rows(rows: Sequence[Row]) -> str:
    """Return ``2 offsets, 1 start of a share group``, without what there is none of."""
    starts = sum(map(is_share_row, rows))
    parts = [counted(len(rows) - starts, "offset")] if len(rows) > starts or not starts else []
    return ", ".join(parts + ([counted(starts, "start of a share group", "starts of share groups")] if starts else []))


def kind_of_row(row: Row) -> tuple[str, bool]:
    """Return a row's group, and whether it says where a share group starts."""
    return row["group"], is_share_row(row)


def by_group(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each group; rows must be in the order of compact."""
    return ((group, list(own)) for group, own in groupby(rows, key=itemgetter("group")))


def by_topic(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each topic of one group; rows must be in the order of compact."""
    return ((topic, list(own)) for topic, own in groupby(rows, key=itemgetter("topic")))


def offsets_by_partition(rows: Sequence[Row]) -> dict[str, int]:
    """Return partition (a string, as JSON keys are) → committed offset, from one topic's rows."""
    return {str(row["partition"]): row["committed_offset"] for row in rows}
