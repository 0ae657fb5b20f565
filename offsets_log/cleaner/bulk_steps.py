"""Of batches of producers those that may be steps, told without looking at each: see `cleaner.steps`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from offsets_log.cleaner.steps import Begins
from offsets_log.columnar import arrays as a
from offsets_log.columnar.cleaning import producers as pr
from offsets_log.columnar.jit.records import Table

Flags = npt.NDArray[np.bool_]


class StepNotes:
    """Takes what is noted of the batches of a run.

    Args:
        begins: where aborted transactions begin.
    """

    def __init__(self, begins: Begins) -> None:
        self._begins, self._noted = begins, list[a.Int64s]()

    def take(self, noted: Table[pr.Noted]) -> None:
        """Take the next batches."""
        self._noted.append(noted.numbers)

    def positions(self) -> list[int]:
        """Return where those stand that may be steps, of the batches taken since the last call."""
        if not self._noted:
            return []
        numbers = np.concatenate(self._noted)
        self._noted.clear()
        rows = numbers.view(pr.Noted.dtype)[:, 0]
        positions: list[int] = rows["position"][_may_be_steps(rows, self._begins)].tolist()
        return positions


def _may_be_steps(rows: npt.NDArray[np.void], begins: Begins) -> Flags:
    """Tell those that are not between others of the same kind in a stretch of the same producer.

    A producer's batches before its last abort that has a commit behind it are none: they leave nothing.
    """
    order = np.argsort(rows["producer_id"], kind="stable")
    producers, kinds, offsets = (rows[name][order] for name in ("producer_id", "kind", "last_offset"))
    is_end = (kinds == pr.ABORT) | (kinds == pr.OTHER)
    numbers, is_forgotten = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    for first, end in pairwise([*np.flatnonzero(np.diff(producers, prepend=producers[:1] - 1)), len(rows)]):
        if (known := begins.get(int(producers[first]))) is not None:
            numbers[first:end] = np.searchsorted(known, offsets[first:end], side="right")
        is_forgotten[first : first + _forgotten(kinds[first:end])] = True
    stretches = np.stack((producers, np.cumsum(is_end), numbers))
    found = is_end
    for kind, ends in ((pr.TRANSACTIONAL_DATA, (0, 1)), (pr.COMMIT, (1,))):
        at = np.flatnonzero(kinds == kind)
        is_other = (np.diff(stretches[:, at]) != 0).any(axis=0)
        for end in ends:
            found[at[np.concatenate((is_other, [True]) if end else ([True], is_other))[: len(at)]]] = True
    chosen = np.zeros(len(rows), np.bool_)
    chosen[order] = found & (~is_forgotten | (kinds == pr.OTHER))
    return chosen


def _forgotten(kinds: a.Int64s) -> int:
    """Return how many of a producer's batches are before its last abort that has a commit behind it."""
    commits = np.flatnonzero(kinds == pr.COMMIT)
    aborts = np.flatnonzero(kinds[: commits[-1] if len(commits) else 0] == pr.ABORT)
    return int(aborts[-1]) if len(aborts) else 0
