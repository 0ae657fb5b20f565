"""The directories of other topics' partitions in a data directory: their segments, opened one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from offsets_log.data_directory.log_ends import ReadAt
from offsets_log.disk.folder import SEGMENT, Opener
from offsets_log.disk.local import input_errors, is_file, list_names, map_file, map_pieces, open_pieces
from offsets_log.log_format.segment import Buffer

OFFSETS_END = 1 << 63


@dataclass(frozen=True)
class UserPartition:
    """A partition's directory; see `data_directory.log_ends.PartitionFiles`.

    Attributes:
        above: the files of the data directory it lies in: name → how to read it.
    """

    topic: str
    partition: int
    path: Path
    above: Mapping[str, Opener]
    dated_from = 0

    @property
    def shown_path(self) -> str:
        """To show."""
        return str(self.path)

    def base_offsets(self) -> list[int]:
        """Those of its segments, rising. Raises InputError."""
        return self._base_offsets

    def names(self) -> list[str]:
        """Of all files in it. Raises InputError."""
        return list_names(self.path)

    @cached_property
    def _base_offsets(self) -> list[int]:
        found = (SEGMENT.fullmatch(name) for name in self.names())
        bases = (int(match[1]) for match in found if match and not match[2] and not match[3])
        return sorted(base for base in bases if base < OFFSETS_END)  # a broker reads no greater number

    @contextmanager
    def open_log(self, base_offset: int) -> Iterator[Buffer]:
        """The records of a segment, mapped for as long as the context lasts. Raises InputError."""
        with ExitStack() as stack:
            yield map_pieces(self.path / f"{base_offset:020}.log", stack)

    @contextmanager
    def open_index(self, base_offset: int) -> Iterator[ReadAt]:
        """How to read the index of a segment, for as long as the context lasts. Raises InputError."""
        with ExitStack() as stack:
            yield open_pieces(self.path / f"{base_offset:020}.index", stack)

    def index_size(self, base_offset: int) -> int:
        """The size of a segment's index in bytes; 0 without one. Raises InputError."""
        path = self.path / f"{base_offset:020}.index"
        with input_errors(path):
            return path.stat().st_size if is_file(path) else 0

    def read(self, name: str) -> bytes | None:
        """A small file beside the segments; None if there is none. Raises InputError."""
        path = self.path / name
        if not is_file(path):
            return None
        with ExitStack() as stack:
            return bytes(map_file(path, stack))
