"""What a question about few records of a log asks for; `selected` finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ShowsName = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records are asked for. Those of a record type that kernels do not know always come, too.

    Attributes:
        group: whether records of a group are.
        topic: whether offset commits of a topic are, and no other records; None asks nothing of topics.
        record_types: of types 0, 1 and 2, those that are; None for all. Of the newer kinds all are.
        with_names: also what may say something new of a topic id.
        with_markers: also markers of producers that wrote something of it.
        producers: with markers of these from the beginning, too.
        with_batches: every batch at least begins.
        is_bare: of plain batches no more is asked than their records: they come as a `BareBatch`.
    """

    group: ShowsName
    topic: ShowsName | None = None
    record_types: frozenset[int] | None = None
    with_names: bool = False
    with_markers: bool = False
    producers: frozenset[int] = frozenset()
    with_batches: bool = False
    is_bare: bool = False
