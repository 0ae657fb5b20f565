"""A segment's batches as the cleaner reads them: through a buffer in memory, to the very end of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from offsets_log.broker.batches import FileBatch, entry_in_memory
from offsets_log.broker.log_file import LogFile
from offsets_log.cleaner.failures import CleaningError
from offsets_log.errors import Damage
from offsets_log.log_format.record import Record, iter_records

Pass = Callable[[int], int]
"""Takes batches in bulk from a position in a segment; returns the position of one that is left."""


def batches(file: LogFile, start: int = 0, passing: Pass = lambda position: position) -> Iterator[FileBatch]:
    """Yield the batches from a position on; no checksum is verified (``CL-40``).

    Args:
        passing: is asked before each batch.

    Raises:
        CleaningError: something is there that is no batch, or not all of one.
    """
    position = passing(start)
    while position < file.size_bytes:
        batch = entry_in_memory(file.file, file.view, position, file.size_bytes)
        if batch is None:
            raise CleaningError(
                f"{file.size_bytes - position} bytes are left, too few for a batch",
                file=file.file,
                position=position,
            )
        yield batch
        position = passing(batch.end)


def records(batch: FileBatch) -> Iterator[Record]:
    """Yield the records of a batch as a broker reads them.

    Raises:
        OffsetsLogError: one cannot be read.
    """
    for record in iter_records(batch.whole(), as_loaded=True):
        if isinstance(record, Damage):
            raise record.error.at(file=batch.file)
        yield record
