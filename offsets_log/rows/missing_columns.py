"""What rows show in columns that their source does not have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def without_missing_columns(row: dict[str, Any], missing_columns: frozenset[str]) -> dict[str, Any]:
    """Return a row with null in the columns that its source does not have (`Segment.missing_columns`)."""
    return row | dict.fromkeys(missing_columns & row.keys()) if missing_columns else row


def with_following(missing_columns: frozenset[str], following: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return columns that a source lacks, and those of another table that follow from them.

    Args:
        following: a column → those that depend on it.
    """
    return missing_columns.union(*(following.get(column, ()) for column in missing_columns))
