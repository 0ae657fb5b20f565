"""The directories of other topics' partitions in a store: of user topics' segments only what is looked at is read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property

from offsets_log.disk.packed_partitions import PackedPartition
from offsets_log.errors import InputError
from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.log_format.segment import NO_PIECES, Pieces
from spark_jobs.files import FoundFile

BLOCK_BYTES = 1 << 14
"""So much of a file is read at once, in bytes."""


@dataclass(frozen=True)
class StoredPartition(PackedPartition):
    """A partition's directory; see `data_directory.segment_batches.PartitionFiles`.

    Attributes:
        stored: its files by their names.
    """

    stored: Mapping[str, FoundFile]

    @cached_property
    def dated_from(self) -> int:
        """All of its log is here."""
        return 0

    def open_segment(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open a segment of which pieces are read; its topic id is read too, while others wait for theirs."""
        with suppress(InputError):
            self.read(PARTITION_METADATA)
        return nullcontext(_in_blocks(self.stored[f"{base_offset:020}.log"]))

    def open_index(self, base_offset: int) -> AbstractContextManager[Pieces]:
        """Open its index likewise; one that is not there has no bytes."""
        file = self.stored.get(f"{base_offset:020}.index")
        return nullcontext(NO_PIECES if file is None else _in_blocks(file))


def _in_blocks(file: FoundFile) -> Pieces:
    """Return a file in a store, of which a block is requested at a time: each request costs more than its bytes."""
    here: dict[int, bytes] = {}

    def read_at(position: int, size_bytes: int) -> bytes:
        first, beyond = position // BLOCK_BYTES, -(-min(position + size_bytes, file.size) // BLOCK_BYTES)
        missing = [number for number in range(first, beyond) if number not in here]
        if missing:
            begin = missing[0] * BLOCK_BYTES
            data = file.read_at(begin, (missing[-1] + 1) * BLOCK_BYTES - begin)
            for number in range(missing[0], missing[-1] + 1):
                here[number] = data[number * BLOCK_BYTES - begin :][:BLOCK_BYTES]
        found = b"".join(here[number] for number in range(first, beyond))
        return found[position - first * BLOCK_BYTES :][:size_bytes]

    return Pieces(file.size, read_at)
