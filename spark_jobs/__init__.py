"""Provide Spark's data source ``offsets_log``, programs over it, and the same tables of DataFrames of records.

Nothing is imported here: each of Spark's processes takes what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_jobs.records import UndecidedWarning, table_of
    from spark_jobs.source import register

__all__ = ["UndecidedWarning", "register", "table_of"]
_PLACES = {"register": "source", "table_of": "records", "UndecidedWarning": "records"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"spark_jobs.{_PLACES[name]}"), name)
