"""The arrays of one replay, and their room."""

from __future__ import annotations

from copy import copy

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.records import Of, Table
from offsets_log.columnar.overflow import REGIONS, SIZES, SLOTS


class State:
    """The arrays of one replay; `arrays` tells of each.

    Args:
        scan state: with programs and a seed, see `programs.scan_state_of`.
    """

    def __init__(self, scan_state: a.ScanState) -> None:
        self.scan_state = scan_state
        self.slots = np.zeros(2 * a.LEAST_KEYS, np.int64)
        self.rows = a.new_rows(a.LEAST_KEYS)
        self.groups = Table(a.Group, a.LEAST_KEYS)
        self.arena = a.new_arena(128 * a.LEAST_KEYS)
        self.overflow = np.zeros(0, np.int64)
        self.lay_out({name: 2 * a.LEAST_KEYS if name in SLOTS else a.LEAST_KEYS for name in SIZES})

    @property
    def all(self) -> a.Arrays:
        """The arrays together, as kernels take them."""
        return a.Arrays(self.scan_state, self.slots, self.rows, self.groups, self.arena, self.overflow)

    def copy(self) -> State:
        """Return a copy that shares nothing with this state."""
        other = copy(self)
        other.scan_state, other.slots, other.overflow = self.scan_state.copy(), self.slots.copy(), self.overflow.copy()
        other.rows, other.groups = a.new_rows(len(self.rows), self.rows), self.groups.copy()
        other.arena = a.new_arena(len(self.arena))
        other.arena[:] = self.arena
        return other

    def text_at(self, at: int) -> bytes:
        """Return what stands in the arena at a position."""
        size = int.from_bytes(self.arena[at - a.SIZE_BYTES : at].tobytes(), "little")
        return self.arena[at : at + size].tobytes()

    def lay_out(self, room: dict[str, int]) -> None:
        """Give the regions of ``overflow`` room for so many entries; hash tables come back empty."""
        old = {of.region: self.region(of) for of in REGIONS} if len(self.overflow) else {}
        self.overflow = np.zeros(sum(room[name] * size for name, size in SIZES.items()), np.int64)
        at = 0
        for name, size in SIZES.items():
            setattr(self.scan_state, f"{name}_at", at)
            setattr(self.scan_state, f"{name}_room", room[name])
            at += room[name] * size
        for of in REGIONS if old else ():
            known = old[of.region].numbers
            self.region(of).numbers[: len(known)] = known

    def region(self, of: type[Of]) -> Table[Of]:
        """Return a region of ``overflow``, in the same memory."""
        name, size = of.region, of.dtype.itemsize // 8  # type: ignore[attr-defined]
        at, room = int(getattr(self.scan_state, f"{name}_at")), self.room()[name]
        return Table.of_numbers(of, self.overflow[at : at + room * size].reshape(room, size))

    def room(self) -> dict[str, int]:
        """Return how many rows each region of ``overflow`` has room for."""
        return {name: int(getattr(self.scan_state, f"{name}_room")) for name in SIZES}
