"""Describe what a question about few records of a log asks for; `selected` finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ShowsName = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records are asked for. Records of types that kernels do not know are always included.

    Attributes:
        group: whether records of a group are asked for.
        topic: whether offset commits of a topic are asked for, and no other records; None ignores topics.
        record_types: which of types 0, 1 and 2 are asked for; None for all. Of the newer kinds all are.
        with_names: include records that may say something new of a topic id.
        with_markers: include markers of producers of chosen records.
        producers: producers whose markers are included from the beginning, if markers are.
        with_batches: include at least the beginning of every batch.
        is_bare: only the records of plain batches of data are needed; they come as a `BareBatch`.
    """

    group: ShowsName
    topic: ShowsName | None = None
    record_types: frozenset[int] | None = None
    with_names: bool = False
    with_markers: bool = False
    producers: frozenset[int] = frozenset()
    with_batches: bool = False
    is_bare: bool = False
