"""Prepare rows of compact for files: grouped, and as the maps that several tools take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from offsets_log.rows.tables import Row

Files = Iterator[tuple[str, Iterable[str]]]
"""Paths below the directory, each with its text in pieces."""


def is_share_row(row: Row) -> bool:
    """Whether a row to restore says where a share group starts."""
    return bool(row.get("is_share"))


def by_group(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each group; rows must be in the order of compact."""
    return ((group, list(own)) for group, own in groupby(rows, key=itemgetter("group")))


def by_topic(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each topic of one group; rows must be in the order of compact."""
    return ((topic, list(own)) for topic, own in groupby(rows, key=itemgetter("topic")))


def offsets_by_partition(rows: Sequence[Row]) -> dict[str, int]:
    """Return partition (a string, as JSON keys are) → committed offset, from one topic's rows."""
    return {str(row["partition"]): row["committed_offset"] for row in rows}
