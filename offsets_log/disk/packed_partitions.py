"""The directories of other topics' partitions in an archive; see `user_partitions` for those on a disk."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property

from offsets_log.data_directory.directory import Opener
from offsets_log.data_directory.segment_batches import OFFSETS_END
from offsets_log.disk.folder import SEGMENT, Folder
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Buffer, Pieces, pieces_of


@dataclass(frozen=True)
class PackedPartition:
    """A partition's directory; see `data_directory.segment_batches.PartitionFiles`.

    Attributes:
        folder: its files, and from which offset on segments are kept of which only the end is.
    """

    topic: str
    partition: int
    folder: Folder

    @property
    def shown_path(self) -> str:
        """To show."""
        return self.folder.shown_path

    @property
    def above(self) -> Mapping[str, Opener]:
        """The files of the data directory it lies in: name → how to read it."""
        return self.folder.above

    def names(self) -> list[str]:
        """Return the names of all files in it that were read."""
        return [*self.folder.files, *self.folder.beside]

    def base_offsets(self) -> list[int]:
        """Return the base offsets of its segments, rising."""
        return self._base_offsets

    @cached_property
    def _base_offsets(self) -> list[int]:
        found = (SEGMENT.fullmatch(name) for name in self.folder.files)
        bases = (int(match[1]) for match in found if match and not match[2] and not match[3])
        return sorted(base for base in bases if base < OFFSETS_END)

    @cached_property
    def dated_from(self) -> int:
        """From where on all of the log is here; what is before tells no time."""
        begin = 0
        for base_offset in reversed(self._base_offsets):
            kept_from = self.folder.kept_from.get(f"{base_offset:020}.log")
            if kept_from is not None:
                return kept_from
            begin = base_offset
        return begin

    def open_log(self, base_offset: int) -> AbstractContextManager[Buffer]:
        """Open what there is of a segment."""
        return nullcontext(self.folder.files[f"{base_offset:020}.log"]())

    def open_segment(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open what there is of a segment, in pieces."""
        return nullcontext(pieces_of(memoryview(self.folder.files[f"{base_offset:020}.log"]())))

    def open_index(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open the index of a segment; where the segment's beginning is not here it fits nothing."""
        return nullcontext(pieces_of(self._index(base_offset)))

    def _index(self, base_offset: int) -> Buffer:
        name = f"{base_offset:020}.index"
        is_whole = f"{base_offset:020}.log" not in self.folder.kept_from
        return self.folder.beside[name]() if is_whole and name in self.folder.beside else b""

    def read(self, name: str) -> bytes | None:
        """Read a small file beside the segments; None if there is none."""
        files = self.folder.files if name in self.folder.files else self.folder.beside
        return bytes(files[name]()) if name in files else None

    def log(self) -> PartitionLog:
        """Return all segments as a log, of a topic that is read whole."""
        names = [f"{base_offset:020}.log" for base_offset in self._base_offsets]
        segments = (
            Segment(self.folder.shown(name), base_offset, self.folder.files[name]())
            for base_offset, name in zip(self._base_offsets, names, strict=True)
        )
        return PartitionLog(self.partition, tuple(segments))
