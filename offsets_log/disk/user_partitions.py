"""The directories of other topics' partitions in a data directory: their segments, opened one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property

from offsets_log.data_directory.directory import Opener
from offsets_log.data_directory.segment_batches import OFFSETS_END
from offsets_log.disk.folder import SEGMENT
from offsets_log.disk.local import Opened, Place, is_file, list_names, map_file, open_pieces
from offsets_log.disk.stored import StorePath
from offsets_log.errors import InputError
from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.log_format.segment import Buffer, Pieces


@dataclass(frozen=True)
class UserPartition:
    """A partition's directory; see `data_directory.segment_batches.PartitionFiles`.

    Attributes:
        above: the files of the data directory it lies in: name → how to read it.
    """

    topic: str
    partition: int
    path: Place
    above: Mapping[str, Opener]
    dated_from = 0

    @property
    def shown_path(self) -> str:
        """The path as it is shown."""
        return str(self.path)

    def base_offsets(self) -> list[int]:
        """Return the base offsets of its segments, ascending. Raises InputError."""
        return self._base_offsets

    def names(self) -> list[str]:
        """Return the names of all its files. Raises InputError."""
        return list_names(self.path)

    @cached_property
    def _base_offsets(self) -> list[int]:
        found = (SEGMENT.fullmatch(name) for name in self.names())
        bases = (int(match[1]) for match in found if match and not match[2] and not match[3])
        return sorted(base for base in bases if base < OFFSETS_END)  # a broker reads no greater number

    def open_log(self, base_offset: int) -> AbstractContextManager[Buffer]:
        """Open a segment's whole contents, for as long as the context lasts. Raises InputError."""
        stack = ExitStack()
        return Opened(map_file(self.path / f"{base_offset:020}.log", stack), stack.close)

    def open_segment(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open a segment of which only pieces are read."""
        if isinstance(self.path, StorePath):
            with suppress(InputError):
                self.read(PARTITION_METADATA)  # its topic id, while others wait for theirs
        return open_pieces(self.path / f"{base_offset:020}.log")

    def open_index(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open the index of a segment likewise; one that is not there has no bytes."""
        return open_pieces(self.path / f"{base_offset:020}.index", is_optional=True)

    def read(self, name: str) -> bytes | None:
        """Read a small file beside the segments; return None if there is none. Raises InputError."""
        path = self.path / name
        if not is_file(path):
            return None
        with ExitStack() as stack:
            return bytes(map_file(path, stack))
