"""Numbers for what is asked of rows, in the order in which it is met; and arrays that grow with them."""

from __future__ import annotations

import numpy as np

from offsets_log.columnar.jit.kinds import Longs

NOBODY = 0


class Numbers:
    """Numbers of codes.

    Args:
        first: the code of number 0.
    """

    def __init__(self, first: int) -> None:
        self.known = {first: 0}

    def of(self, codes: Longs) -> Longs:
        """Return the numbers of codes, new or known."""
        distinct = np.unique(codes)
        numbers = [self.known.setdefault(code, len(self.known)) for code in distinct.tolist()]
        found: Longs = np.array(numbers, np.int64)[np.searchsorted(distinct, codes)]
        return found


def grown(found: Longs, count: int, fill: int) -> Longs:
    """Return an array with room for so many numbers."""
    if count <= len(found):
        return found
    return np.concatenate([found, np.full(2 * count - len(found), fill, np.int64)])
