"""What is said of the copies of a partition, each compared with the one that is read."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from offsets_log.broker.leader_lines import Truncation, truncation
from offsets_log.disk.alike import TOLD, Agreement
from offsets_log.disk.differences import Differences, Some, differences
from offsets_log.disk.extents import Extent
from offsets_log.log_format.partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class Comparing:
    """Compares copies with the one that is read.

    Attributes:
        extents: those of the logs.
        best: the number of the copy.
        in_bulk: what it is in `batch_rows`.
    """

    logs: Sequence[PartitionLog]
    extents: Sequence[Extent]
    best: int
    in_bulk: bool

    def others(self) -> Iterator[Other]:
        """Yield the copies that are left out; those that are equal to each other and undamaged are one."""
        same: dict[object, list[int]] = {}
        for index, extent in enumerate(self.extents):
            if index != self.best:
                is_plain = not extent.damages and extent.tail is None
                key = (extent.begin, extent.content, self.logs[index].size_bytes) if is_plain else index
                same.setdefault(key, []).append(index)
        for indices in same.values():
            yield self._compared(indices)

    def _compared(self, indices: list[int]) -> Other:
        own, read = self.extents[indices[0]], self.extents[self.best]
        logs = self.logs[self.best], self.logs[indices[0]]
        other = Other([self.logs[index] for index in indices], own, logs[0], read)
        if own.content == read.content:
            return other
        other.found = differences(logs, (read, own), in_bulk=self.in_bulk)
        other.is_foreign = bool(other.found.records.count) and other.found.last_same < 0
        if other.found.is_of_epochs and own.end <= read.end:
            return other
        other.cut, other.overrules = truncation(own.epochs, read.epochs), truncation(read.epochs, own.epochs)
        if cut := other.cut or other.overrules:
            other.found = differences(logs, (read, own), until=cut.offset, in_bulk=self.in_bulk)
        return other


@dataclass(slots=True)
class Other:
    """A copy that is left out, or several that are equal.

    Attributes:
        extent: of each of these logs.
        found: how the chosen copy, the first side, differs from it.
        cut: where a cluster would have truncated it, if it is not of the line of the chosen copy.
        overrules: where a cluster would have truncated the chosen copy.
        is_foreign: whether both have batches at the same offsets, and not one that is the same.
    """

    logs: Sequence[PartitionLog]
    extent: Extent
    read_log: PartitionLog
    read: Extent
    found: Differences = field(default_factory=Differences)
    cut: Truncation | None = None
    overrules: Truncation | None = None
    is_foreign: bool = False

    @property
    def high_watermark(self) -> int | None:
        """The highest that is noted beside it and counts for the chosen copy; None if there is none."""
        noted = [log.checkpoints.high_watermark for log in self.logs]
        mark = max((mark for mark in noted if mark is not None), default=None)
        if mark is None or self.is_foreign:
            return None
        return mark if self.cut is None else min(mark, self.cut.offset)

    @property
    def agreement(self) -> Agreement | None:
        """How it agrees with the chosen copy; None if there is something to tell."""
        own, read = self.extent, self.read
        has_other_tail = own.tail is not None and own.tail != read.tail
        if own.damages or has_other_tail or own.begin != read.begin or own.end > read.end or self.cut or self.overrules:
            return None
        if self.found.are_none:
            return Agreement.SAME if own.end == read.end else Agreement.SHORTER
        return Agreement.CLEANED if self.found.are_of_cleaning and self._are_explained else None

    @property
    def _are_explained(self) -> bool:
        return _is_cleaned(self.logs[0], *self._lacks(1)) and _is_cleaned(self.read_log, *self._lacks(0))

    def _lacks(self, side: int) -> tuple[Some, Some]:
        """Return what a side lacks, and where it holds fewer records."""
        return self.found.sides[1 - side].alone, self.found.sides[side].fewer

    @property
    def goes_on(self) -> bool:
        """Whether it has more of the same line behind the end of the chosen copy."""
        return self.extent.end > self.read.end and self.cut is None

    @property
    def is_in_doubt(self) -> bool:
        """Whether it goes on, or holds what no broker writes that has the chosen copy, nor its cleaner."""
        return self.is_foreign or self.goes_on or bool(self.found.records.count or self.found.epochs.count)

    def words(self) -> str:
        """Say what it holds, and how it differs."""
        places = [place(log) for log in self.logs]
        are = f"{places[0]} is" if len(places) == 1 else f"{', '.join(places)} (equal to each other) are"
        begin, end = self.extent.begin, self.extent.end
        held = f"{f'offsets {begin} to {end - 1}' if begin < end else 'no whole batch'}, {_state(self.extent)}"
        return "; ".join([f"{are} left out: {held}, {self.logs[0].size_bytes} bytes", *self._parts()])

    def _parts(self) -> Iterator[str]:
        own, read, found = self.extent, self.read, self.found
        if self.is_foreign:
            yield "it has no batch in common with the chosen copy, and may be of another cluster"
        if cut := self.cut:
            yield (
                f"it has leader epoch {cut.epoch} from offset {cut.offset} on where the chosen copy has {cut.later}: a "
                "cluster would have truncated it there"
            )
        elif over := self.overrules:
            yield (
                f"it begins later, but has leader epoch {over.later} from offset {over.offset} on where the chosen "
                f"copy has {over.epoch}: a cluster would have truncated the chosen copy there"
            )
        if self.goes_on:
            yield f"it goes on to offset {own.end - 1}, which the chosen copy does not have: give it alone to read it"
        is_in_both = max(own.begin, read.begin) < min(own.end, read.end)
        if found.are_none and is_in_both and not self.cut and not self.overrules:
            yield "it has the same batches" + ("" if own.end == read.end else " where both reach")
        if found.records.count:
            yield f"it holds other records {_where(found)}: no cleaner does that"
        if found.epochs.count:
            one, other = found.first_epochs
            yield (
                f"it has leader epoch {other} and not {one} in {_batches(found.epochs)}, all else of which is the "
                "same: no broker writes that"
            )
        yield from self._lacking()
        yield from self._helping()

    def _lacking(self) -> Iterator[str]:
        for side, log, subject in ((1, self.logs[0], "it"), (0, self.read_log, "the chosen copy")):
            lacks, fewer = self._lacks(side)
            what = [f"lacks {_batches(lacks)}"] if lacks.count else []
            what += [f"holds fewer records in {_batches(fewer)}"] if fewer.count else []
            if what:
                explained = _is_cleaned(log, lacks, fewer)
                why = "what a cleaner leaves" if explained else "taken by a cleaner, or lost"
                yield f"{subject} {' and '.join(what)} ({why})"

    def _helping(self) -> Iterator[str]:
        """Yield where it holds what is damaged in the chosen copy."""
        helps = [*self.found.sides[1].helps.items()]
        for number, some in helps[:TOLD]:
            where = self.read.damages[number].place
            yield f"it has {_offsets(some)} undamaged, where the chosen copy is damaged at {where}: {self._shown(some)}"
        if len(helps) > TOLD:
            yield f"it has what is damaged there at {len(helps) - TOLD} more places"

    def _shown(self, some: Some) -> str:
        """Return what shows batches of it."""
        log, until = self.logs[0], some.last + 1
        if not Path(place(log)).exists():
            return "give this copy alone to read it"
        bound = f"{until}" if log.offsets_partition is None else f"{log.offsets_partition}:{until}"
        command = f"offsets-log records {shlex.quote(place(log))} --until-offset {bound} | tail -n {some.records}"
        return f"{command} shows it"


def _is_cleaned(log: PartitionLog, lacks: Some, fewer: Some) -> bool:
    """Return whether a cleaner explains what a copy lacks: it has cleaned there, or behind it."""
    return lacks.last < max(log.cleaned_until or 0, fewer.last + 1)


def _batches(some: Some) -> str:
    if some.count == 1:
        return f"the batch of {_offsets(some)}"
    return f"{some.count} batches of offsets between {some.first} and {some.last}"


def _offsets(some: Some) -> str:
    return f"offset {some.first}" if some.first == some.last else f"offsets {some.first} to {some.last}"


def _where(found: Differences) -> str:
    """Return where records differ: from an offset on, if nothing behind it is the same in both."""
    first = found.records.first
    return f"from offset {first} on" if first > found.last_same else f"in {_batches(found.records)}"


def _state(extent: Extent) -> str:
    parts: list[str] = []
    if extent.damages:
        first = extent.damages[0]
        where = f"at offset {first.begin} ({first.place})"
        count = len(extent.damages)
        parts.append(f"damaged {where}" if count == 1 else f"{count} damaged pieces, the first {where}")
    if extent.tail is not None and extent.tail.kind == "torn":
        parts.append(f"cut inside a batch at offset {extent.end} (position {extent.tail.position} of its last file)")
    parts = parts or ["undamaged"]
    if extent.tail is not None and extent.tail.kind != "torn":
        parts.append(f"{extent.tail.size_bytes} bytes of zeros behind its batches")
    return ", ".join(parts)


def home(log: PartitionLog) -> str:
    """Return the data directory in which a replica's folder lies; the folder, or the file, that lies in none."""
    own = place(log)
    return own.rpartition("/")[0] or own


def place(log: PartitionLog) -> str:
    """Return the folder of a replica; of a file that was named alone, the file."""
    first = log.segments[0]
    folder = first.file.rpartition("/")[0]
    return first.file if first.base_offset is None or not folder else folder
