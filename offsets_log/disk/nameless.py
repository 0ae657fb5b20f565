"""Files of which nothing tells the offsets partition: those of one log are recognised by what they hold.

A group's records are in one partition only. Files that have groups in common are therefore pieces of one log, if no
record offset is in two of them and their times go the same way as their offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from offsets_log.columnar.large import is_large
from offsets_log.errors import InputError
from offsets_log.log_format.batch import NO_TIMESTAMP
from offsets_log.log_format.partition_log import PartitionLog, batches_of
from offsets_log.messages.other_topic import first_groups
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.disk.extents import Extent

RECORDS_LOOKED_AT = 100_000
"""Of how many records of a file the groups are compared with those of others."""


@dataclass(frozen=True)
class _Piece:
    """A log of an unknown partition."""

    log: PartitionLog
    groups: set[str]

    @cached_property
    def extent(self) -> Extent:
        from offsets_log.disk.extents import extent_of  # with NumPy, which one file alone does not need

        in_bulk = is_large(self.log.bytes_to_read, "scan.batch_rows._note")
        return extent_of(self.log, lambda size_bytes: None, in_bulk=in_bulk)

    @cached_property
    def first_ms(self) -> int:
        first = next(batches_of(self.log), None)
        return NO_TIMESTAMP if first is None else first.max_timestamp_ms


def pieces_joined(logs: Sequence[PartitionLog]) -> list[PartitionLog]:
    """Return the logs of unknown partitions, with those made one that are pieces of one log, in order of offsets.

    Raises:
        InputError: some share groups and yet are no pieces of one log: nothing tells which of them is right.
    """
    if len(logs) < 2:
        return list(logs)
    tells = ["record_offset" not in log.missing_columns for log in logs]
    pieces = [_Piece(log, first_groups(log, RECORDS_LOOKED_AT)) for log, told in zip(logs, tells, strict=True) if told]
    others = [log for log, told in zip(logs, tells, strict=True) if not told]
    return [_joined(found) for found in _with_groups_in_common(pieces)] + others


def _with_groups_in_common(pieces: Sequence[_Piece]) -> list[list[_Piece]]:
    """Return the pieces in sets; none of a set has a group in common with one of another."""
    sets: list[tuple[set[str], list[_Piece]]] = []
    for piece in pieces:
        near = [one for one in sets if one[0] & piece.groups]
        rest = [one for one in sets if not one[0] & piece.groups]
        groups = piece.groups.union(*(groups for groups, _ in near))
        sets = [*rest, (groups, [*(member for _, members in near for member in members), piece])]
    return [members for _, members in sets]


def _joined(pieces: list[_Piece]) -> PartitionLog:
    from offsets_log.disk.replica_words import place

    if len(pieces) == 1:
        return pieces[0].log
    order = sorted(pieces, key=lambda piece: (piece.extent.begin, piece.extent.end))
    kept = [order[0]]
    notes: list[str] = []
    for piece in order[1:]:
        if piece.extent.content == kept[-1].extent.content:
            notes.append(f"{place(piece.log)} is left out: it has the same batches as {place(kept[-1].log)}")
        else:
            kept.append(piece)
    for problem in _contradictions(kept):
        raise InputError(
            f"{problem}. They are of several partitions, or several states of one, and nothing tells of which: read "
            "the files of one log together, with --as-partition N",
            file=place(kept[0].log),
        )
    if len(kept) > 1:
        spans = ", ".join(f"{place(one.log)} ({one.extent.begin} to {one.extent.end - 1})" for one in kept)
        notes.append(
            f"{counted(len(kept), 'file')} of an unknown offsets partition are read as one log, for they have groups "
            f"in common and no record offset twice: {spans}; --as-partition N tells which partition it is"
        )
    segments = tuple(segment for piece in kept for segment in piece.log.segments)
    earlier = [note for piece in kept for note in piece.log.notes]
    return replace(kept[0].log, segments=segments, notes=(*earlier, *notes))


def _contradictions(pieces: Sequence[_Piece]) -> Iterator[str]:
    """Yield why pieces in order of their offsets are not of one log."""
    from offsets_log.disk.replica_words import place

    for one, other in pairwise(pieces):
        both = f"it and {place(other.log)}" if one is pieces[0] else f"{place(one.log)} and {place(other.log)}"
        if other.extent.begin < one.extent.end:
            last = min(one.extent.end, other.extent.end) - 1
            yield f"{both} have groups in common, and each has its own record offsets {other.extent.begin} to {last}"
        elif NO_TIMESTAMP not in (one.first_ms, other.first_ms) and other.first_ms < one.first_ms:
            yield f"{both} have groups in common, and the one with the later record offsets is of an earlier time"
