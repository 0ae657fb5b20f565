"""The directories of other topics' partitions in a store: of user topics' segments only what is looked at is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from offsets_log.data_directory.offset_index import ReadAt
from offsets_log.data_directory.segment_batches import Fetch, FilesElsewhere
from offsets_log.disk.packed_partitions import PackedPartition
from offsets_log.errors import InputError
from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.log_format.segment import Buffer

if TYPE_CHECKING:
    from spark_jobs.stores import FoundFile

BLOCK_BYTES = 1 << 14
"""So much of a file is read at once, in bytes."""


@dataclass(frozen=True)
class StoredPartition(PackedPartition, FilesElsewhere):
    """A partition's directory; see `data_directory.segment_batches.PartitionFiles`.

    Attributes:
        stored: its files by their names.
    """

    stored: Mapping[str, FoundFile]

    @cached_property
    def dated_from(self) -> int:
        """All of its log is here."""
        return 0

    @contextmanager
    def open_room(self, base_offset: int) -> Iterator[tuple[Buffer, Fetch]]:
        """Implement `FilesElsewhere.open_room`; its topic id is read too, while others wait for theirs."""
        with suppress(InputError):
            self.read(PARTITION_METADATA)
        file = self.stored[f"{base_offset:020}.log"]
        room = np.zeros(file.size, np.uint8).data  # it takes no memory where nothing is written
        here: set[int] = set()

        def fetch(position: int, size_bytes: int) -> None:
            blocks = range(position // BLOCK_BYTES, -(-min(position + size_bytes, file.size) // BLOCK_BYTES))
            missing = [number for number in blocks if number not in here]
            if missing:
                begin = missing[0] * BLOCK_BYTES
                data = file.read_at(begin, (missing[-1] + 1) * BLOCK_BYTES - begin)
                room[begin : begin + len(data)] = data
                here.update(missing)

        yield room, fetch

    @contextmanager
    def open_index(self, base_offset: int) -> Iterator[ReadAt]:
        """How to read the index of a segment, in pieces."""
        file = self.stored.get(f"{base_offset:020}.index")

        @cache
        def block(number: int) -> bytes:
            position = number * BLOCK_BYTES
            return b"" if file is None or position >= file.size else file.read_at(position, BLOCK_BYTES)

        def read_at(position: int, size_bytes: int) -> bytes:
            number, begin = divmod(position, BLOCK_BYTES)
            return block(number)[begin : begin + size_bytes]  # an index is read in pieces that divide a block

        yield read_at

    def index_size(self, base_offset: int) -> int:
        """The size of a segment's index in bytes; 0 without one."""
        file = self.stored.get(f"{base_offset:020}.index")
        return 0 if file is None else file.size
