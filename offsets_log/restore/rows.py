"""Rows of compact on their way into files: grouped, and as the maps that several tools take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from offsets_log.rows.tables import Row

Files = Iterator[tuple[str, Iterable[str]]]
"""Path below the directory, and the text in pieces."""


def by_group(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each group, of rows in the order of compact."""
    return ((group, list(own)) for group, own in groupby(rows, key=itemgetter("group")))


def by_topic(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each topic, of one group's rows in the order of compact."""
    return ((topic, list(own)) for topic, own in groupby(rows, key=itemgetter("topic")))


def offsets_by_partition(rows: Sequence[Row]) -> dict[str, int]:
    """partition, as the text that a JSON key is → committed offset, of one topic's rows."""
    return {str(row["partition"]): row["committed_offset"] for row in rows}
