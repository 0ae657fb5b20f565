"""What a run with ``--engine spark`` reads: logs that are opened here, or of which a store tells names and sizes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from cli.inputs import Inputs
from spark_jobs.beside import open_found

if TYPE_CHECKING:
    from cli.options import ReadOptions
    from offsets_log.errors import Damage


def spark_inputs(reading: ReadOptions, stack: ExitStack) -> Inputs:
    """Return the inputs of a run whose logs Spark reads. Of logs in a network store, only names and sizes are read.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    opened = open_found(
        reading.paths,
        stack,
        as_partition=reading.as_partition,
        partitions=reading.offsets_partition,
        input_format="segments" if reading.input_format else None,
    )
    inputs = Inputs(reading, opened.logs, **opened.how)
    inputs.locate = _locate_nothing  # no lines of dumps are read; it goes to tasks, and the inputs must not
    return inputs


def _locate_nothing(damage: Damage) -> None:
    pass
