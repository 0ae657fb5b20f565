"""What a run with ``--engine spark`` reads: logs that are opened here, or of which a store tells names and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cli.inputs import Inputs
from offsets_log.disk.dumps import Dumps
from offsets_log.disk.finder import Finder
from offsets_log.disk.reader import DiskLogs, open_logs
from offsets_log.log_format.partition_log import PartitionLog, Segment, batches_of
from spark_jobs.stores import FoundFile, FoundLogs, find_logs, holds_parquet, path_here

if TYPE_CHECKING:
    from cli.options import ReadOptions
    from offsets_log.errors import Damage
    from offsets_log.log_format.batch import RecordBatch

STORED_AT_ONCE = 32
"""How many partitions of other topics are looked at in a store at once: each waits for the network."""


def is_parquet(reading: ReadOptions) -> bool:
    """Return whether the input is Parquet of `decode`."""
    return all(holds_parquet(path, {}) for path in reading.paths)


def spark_inputs(reading: ReadOptions, stack: ExitStack) -> Inputs:
    """Return the inputs of a run whose logs Spark reads. Of logs in a network store, only names and sizes are read.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    how: dict[str, Any] = {"as_partition": reading.as_partition, "partitions": reading.offsets_partition}
    here = [path for path in map(path_here, reading.paths) if path is not None]
    finder = Finder(reading.offsets_partition, stack)
    if is_parquet(reading):
        inputs = Inputs(reading, DiskLogs([], Dumps(None), finder, stack))
    elif len(here) == len(reading.paths):
        opened = open_logs(here, input_format="segments" if reading.input_format else None, **how)
        inputs = Inputs(reading, stack.enter_context(opened))
    else:
        inputs = _stored_inputs(reading, find_logs(reading.paths, stack, finder=finder, **how), finder, stack)
    inputs.locate = _locate_nothing  # no lines of dumps are read; it goes to tasks, and the inputs must not
    return inputs


def _locate_nothing(damage: Damage) -> None:
    pass


def _stored_inputs(reading: ReadOptions, found: FoundLogs, finder: Finder, stack: ExitStack) -> Inputs:
    """Return inputs in a network store, whose other topics are read here, several partitions at once."""
    inputs = Inputs(reading, DiskLogs([log.unread() for log in found.logs], Dumps(None), finder, stack, found.absent))
    inputs.in_order = stack.enter_context(ThreadPoolExecutor(STORED_AT_ONCE)).map
    inputs.batches_of = partial(_stored_batches, {file.path: file for log in found.logs for file in log.files})
    return inputs


def _stored_batches(files: Mapping[str, FoundFile], log: PartitionLog) -> Iterator[RecordBatch]:
    """Yield the batches of a log, of which one segment at a time is brought here."""
    for segment in log.segments:
        file = files[segment.file]
        opened = Segment(file.path, file.base_offset, file.open(ExitStack()))
        yield from batches_of(replace(log, segments=(opened,)))
