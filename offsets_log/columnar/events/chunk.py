"""Collect rows of the table of all records: those of the kernel in columns, others with their places among them."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.events.entries import enter
from offsets_log.columnar.events.layouts import Release, programs_of
from offsets_log.columnar.events.rows import ROWS_IN_TABLE
from offsets_log.columnar.wire.programs import scan_state_of
from offsets_log.events import LogEvent
from offsets_log.log_format.partition_log import Segment
from offsets_log.log_format.primitives import Uuid
from offsets_log.rows.shown import Shown

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Room:
    """How much a chunk holds.

    Attributes:
        rows: about how many a table has.
        least_entries: distinct keys, names and topic ids that it has room for at first.
        most_entries, most_entry_bytes: that are remembered; where more are needed the table ends and all are
            forgotten.
    """

    rows: int = ROWS_IN_TABLE
    least_entries: int = 1 << 12
    most_entries: int = 1 << 20
    most_entry_bytes: int = 1 << 28


ROOM = Room()
SLOW_PATH_BYTES = 1 << 24
"""Maximum number of bytes of batches whose rows wait in Python for their table."""


class Entries:
    """Keys, names and topic ids by number; the names are decoded once."""

    def __init__(self, least: int) -> None:
        self.slots = np.zeros(4 * least, np.int64)
        self.entries = np.zeros((least, k.ENTRY_COLUMNS), np.int64)
        self.arena = a.new_arena(a.CACHE_LINE * least)
        self.groups: list[str] = []
        self.topics: list[str] = []
        self.topic_ids: list[str] = []
        self._understood = 0

    def grow(self) -> None:
        """Double the room; the table of slots comes back empty."""
        self.slots = np.zeros(2 * len(self.slots), np.int64)
        self.entries = np.concatenate([self.entries, np.zeros_like(self.entries)])
        arena = a.new_arena(2 * len(self.arena))
        arena[: len(self.arena)] = self.arena
        self.arena = arena

    def understand(self, count: int) -> None:
        """Decode the names and topic ids that are new."""
        new = self.entries[self._understood : count]
        names = {k.IS_GROUP: self.groups, k.IS_TOPIC: self.topics, k.IS_TOPIC_ID: self.topic_ids}
        for at, size, kind in new[new[:, k.ENTRY_KIND] != k.IS_KEY][:, : k.ENTRY_KIND + 1].tolist():
            raw = self.arena[at : at + size].tobytes()
            names[kind].append(str(Uuid(raw)) if kind == k.IS_TOPIC_ID else raw.decode())
        self._understood = count


class Chunk(ABC):
    """Collects rows: those of the kernel in columns, those of the slow path with their places among them.

    Args:
        release: the release that wrote the log, if it is known.
    """

    def __init__(self, release: Release | None = None, room: Room = ROOM) -> None:
        self.release, self.room = release, room
        self.scan_state = scan_state_of(programs_of(release), seed=secrets.randbits(61))
        self.counts = np.zeros(k.COUNTS, np.int64)
        self.longs = np.zeros((k.LONGS, room.rows), np.int64)
        self.ints = np.zeros((k.INTS, room.rows), np.int32)
        self.texts = np.zeros((k.TEXTS, 32 * room.rows), np.uint8)
        self.entries = Entries(room.least_entries)
        self._segments: list[tuple[int, Segment]] = []
        self._slow_path: list[Any] = []
        self._places: list[int] = []
        self._slow_path_bytes = 0

    @abstractmethod
    def row(self, event: LogEvent, shown: Shown) -> Any:
        """Return what is kept of an event read on the slow path, or None if it is not asked for."""

    @abstractmethod
    def made(self, offsets_partition: int | None, shown: Shown) -> Sized:
        """Return what becomes of the rows asked for, in log order, using the chunk's memory."""

    @property
    def arrays(self) -> k.ChunkArrays:
        """The arrays together, as kernels take them."""
        entries = self.entries
        return k.ChunkArrays(
            self.counts, entries.slots, entries.entries, entries.arena, self.longs, self.ints, self.texts
        )

    @property
    def rows(self) -> int:
        """The number of the kernel's rows."""
        return int(self.counts[k.ROWS])

    def __len__(self) -> int:
        return self.rows + len(self._slow_path)

    @property
    def is_full(self) -> bool:
        """Whether it is time for a table."""
        return len(self) >= self.room.rows or self._slow_path_bytes >= SLOW_PATH_BYTES

    def begin_segment(self, segment: Segment) -> None:
        """Note that the kernel's rows from here on are of this segment."""
        self._segments.append((self.rows, segment))

    def add_on_slow_path(self, rows: Sequence[Any], size_bytes: int) -> None:
        """Add the next rows, of a batch of that size."""
        self._slow_path += rows
        self._places += [self.rows] * len(rows)
        self._slow_path_bytes += size_bytes

    def widen(self, count: int) -> None:
        """Make room for a batch of that many rows, or of more bytes. There must be no rows."""
        if count > self.longs.shape[1]:
            self.longs = np.zeros((k.LONGS, count), np.int64)
            self.ints = np.zeros((k.INTS, count), np.int32)
        else:
            self.texts = np.zeros((k.TEXTS, 2 * self.texts.shape[1]), np.uint8)

    @property
    def has_many_entries(self) -> bool:
        """Whether it is time to forget them."""
        entries, size_bytes = self.counts[[k.ENTRIES, k.ARENA_USED]].tolist()
        return bool(entries > self.room.most_entries or size_bytes > self.room.most_entry_bytes // 2)

    def grow(self) -> None:
        """Make room for more entries."""
        self.entries.grow()
        enter(self.scan_state, self.arrays)

    def begin(self) -> None:
        """Begin another part."""
        self.clear()
        self._segments = []

    def clear(self) -> None:
        """Begin again after a table."""
        self.counts[[k.ROWS, *range(k.TEXTS_USED, k.TEXTS_USED + k.TEXTS)]] = 0
        if self.has_many_entries:
            self.entries = Entries(self.room.least_entries)
            self.counts[: k.HAS_BATCHES] = 0
        self._segments = [(0, segment) for _, segment in self._segments[-1:]]
        self._slow_path, self._places, self._slow_path_bytes = [], [], 0

    def _shown(self, shown: Shown) -> Mask:
        """Return for each row of the kernel whether it is asked for. The last name stands for no name."""
        groups = np.array([*map(shown.shows_group, self.entries.groups), False], np.bool_)
        topics = np.array([*map(shown.shows_topic, self.entries.topics), shown.topic is None], np.bool_)
        mask: Mask = groups[self.ints[k.GROUP, : self.rows]] & topics[self.ints[k.TOPIC, : self.rows]]
        return mask
