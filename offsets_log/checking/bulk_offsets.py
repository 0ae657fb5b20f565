"""What a bulk check knows of committed and pending offsets at the end of a load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.materialize import timelines as tl
from offsets_log.columnar.materialize import values as vl
from offsets_log.replay.partial import GroupTopicPartition


@dataclass(frozen=True, slots=True)
class HeldOffsets:
    """The offsets by one set of rules; groups have their numbers in the first state.

    Attributes:
        committed, pending: whether each group has such offsets.
        counts: number of committed offsets of each group.
        firsts: lowest record offset of these.
        open: (producer id, group) of each pending offset.
    """

    state: ColumnarState
    committed: npt.NDArray[np.bool_]
    pending: npt.NDArray[np.bool_]
    counts: a.Int64s
    firsts: a.Int64s
    open: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, state: ColumnarState, number_of: Mapping[str, int]) -> HeldOffsets:
        """Return the offsets of a state."""
        count = len(number_of)
        numbers = np.array([number_of[name] for name in tl.group_names(state)], np.int64)
        rows = state.arrays.rows
        live = rows.of(vl.find(state).committed)
        groups = numbers[live.column(a.Row.group)] if len(live) else np.zeros(0, np.int64)
        counts = np.bincount(groups, minlength=count)
        firsts = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(firsts, groups, live.column(a.Row.record_offset))
        open_ = [(it[0], int(numbers[rows[it[1]].group])) for it in vl.iter_open(state)]
        pending = np.zeros(count, np.bool_)
        pending[[group for _, group in open_]] = True
        return cls(state, counts > 0, pending, counts, firsts, open_)

    def count_of(self, groups: npt.NDArray[np.bool_]) -> int:
        """Return how many committed offsets some groups have."""
        return int(self.counts[groups].sum())


@dataclass(frozen=True, slots=True, eq=False)
class ServedOffsets(Mapping[GroupTopicPartition, int]):
    """The committed offsets of groups that exist; they are looked up when more than their number is asked for.

    Attributes:
        count: their number.
        committed: returns all committed offsets.
        groups: returns the names of the groups that exist.
    """

    count: int
    committed: Callable[[], Mapping[GroupTopicPartition, int]]
    groups: Callable[[], set[str]]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[GroupTopicPartition]:
        return iter(self._found())

    def __getitem__(self, key: GroupTopicPartition) -> int:
        return self._found()[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and len(self) == len(other) and self._found() == dict(other)

    def _found(self) -> dict[GroupTopicPartition, int]:
        groups = self.groups()
        return {key: offset for key, offset in self.committed().items() if key[0] in groups}
