"""The directories of other topics' partitions in a data directory: their segments, opened one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from offsets_log.disk.folder import SEGMENT, Opener
from offsets_log.disk.local import is_file, list_directory, map_file
from offsets_log.log_format.segment import Buffer


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

    @property
    def shown_path(self) -> str:
        """To show."""
        return str(self.path)

    def base_offsets(self) -> list[int]:
        """Those of its segments, rising. Raises InputError."""
        return self._base_offsets

    def names(self) -> list[str]:
        """Of all files in it. Raises InputError."""
        names, _, _ = list_directory(self.path)
        return names

    @cached_property
    def _base_offsets(self) -> list[int]:
        found = (SEGMENT.fullmatch(name) for name in self.names())
        return [int(match[1]) for match in found if match and not match[2] and not match[3]]

    @contextmanager
    def open(self, base_offset: int, suffix: str) -> Iterator[Buffer]:
        """A file of a segment for as long as the context lasts; empty if there is none. Raises InputError."""
        path = self.path / f"{base_offset:020}{suffix}"
        with ExitStack() as stack:
            yield map_file(path, stack) if suffix == ".log" or is_file(path) else b""

    def read(self, name: str) -> bytes | None:
        """A small file beside the segments; None if there is none. Raises InputError."""
        path = self.path / name
        if not is_file(path):
            return None
        with ExitStack() as stack:
            return bytes(map_file(path, stack))
