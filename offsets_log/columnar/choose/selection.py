"""Describe what a question about few records of a log asks for; `selected` finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ShowsName = Callable[[str], bool]
ShowsKey = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records are asked for. Records of types that kernels do not know are always included.

    Attributes:
        group: whether records of a group are asked for.
        topic: whether offset commits of a topic are asked for, and no other records; None ignores topics.
        key: whether offset commits with a raw key are asked for, of the groups; None for all. Of a group that may have
            been removed on the way all are, from there on.
        record_types: which of types 0, 1 and 2 are asked for; None for all. Of the newer kinds all are.
        with_names: include records that may say something new of a topic id.
        with_markers: include the markers that end what producers of chosen records have open.
        producers: producers all of whose markers are included, if markers are.
        with_batches: include at least the beginning of every batch.
        is_bare: only the records of plain batches of data are needed; they come as `BareBatches`.
    """

    group: ShowsName
    topic: ShowsName | None = None
    key: ShowsKey | None = None
    record_types: frozenset[int] | None = None
    with_names: bool = False
    with_markers: bool = False
    producers: frozenset[int] = frozenset()
    with_batches: bool = False
    is_bare: bool = False
