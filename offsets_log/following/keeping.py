"""Keep what a coordinator would hold of one partition, and which of it the last records touched."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter

from offsets_log.replay.live import LiveState, Touched
from offsets_log.replay.partial import (
    GroupTopicPartition,
    OffsetAndMetadata,
    PartialState,
)
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile

RECORD_OFFSET = attrgetter("record_offset")


class KeptPartition(LiveState):
    """The state of one offsets partition.

    Attributes:
        touched: keys and groups that were touched since `settle` was called.
    """

    def __init__(self, profile: Profile, offsets_partition: int | None) -> None:
        super().__init__(profile)
        self.offsets_partition = offsets_partition
        self.touched = Touched(set(), set())
        self._problems: list[Problem] = []  # of those that stay, the first
        self._unsettled: set[str] = set()  # groups that end a load unless more records come

    def add(self, later: PartialState) -> Touched:
        """Take what the records that follow do; it must not be used afterwards."""
        found = super().add(later)
        self.touched.keys |= found.keys
        self.touched.groups |= found.groups
        self._problems = sorted((*self._problems, *found.problems), key=RECORD_OFFSET)[:1]
        self._unsettled -= found.groups
        self._unsettled.update(each for each in found.groups if self.fold(each).problems_at_end())
        return found

    @property
    def failure(self) -> Problem | None:
        """The problem that ends a load of this partition; None if it loads."""
        at_end = chain.from_iterable(self.fold(each).problems_at_end() for each in self._unsettled)
        return min((*self._problems, *at_end), key=RECORD_OFFSET, default=None)

    def settle(self) -> None:
        """Begin to note again what is touched."""
        self.touched = Touched(set(), set())

    # ------------------------------------------------------------------------------------ what is answered

    def answered(self, key: GroupTopicPartition, *, orphans: bool = False) -> OffsetAndMetadata | None:
        """Return what is answered for a key; None if nothing.

        Args:
            orphans: also of a group that does not exist.
        """
        return self.committed(key) if orphans or self.fold(key[0]).is_answered else None

    def served(self) -> Iterator[OffsetAndMetadata]:
        """Yield all offsets that are answered."""
        return (value for value in self._offsets.iter_committed() if self.fold(value.group).is_answered)
