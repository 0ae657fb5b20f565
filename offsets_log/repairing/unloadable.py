"""Which batches and records would end the load of a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from offsets_log.broker.reading import LOAD_BUFFER_BYTES
from offsets_log.log_format.batch import RecordBatch
from offsets_log.replay.problem import Problem
from offsets_log.replay.refusal import refusal_of_batch
from offsets_log.replay.releases import Release


@dataclass(frozen=True, slots=True)
class Unloadable:
    """What a release does not load.

    Attributes:
        release: None for nothing.
        problems: record offset → what ends the load there.
    """

    release: Release | None = None
    problems: Mapping[int, Problem] = field(default_factory=dict)

    def of_batch(self, batch: RecordBatch) -> Problem | None:
        """Why a batch as a whole ends the load, or holds it up for ever (``records:M1``, ``L-6``)."""
        if self.release is None:
            return None
        if batch.size_bytes > LOAD_BUFFER_BYTES and not self.release.reads_large_batches:
            problem = f"the batch of {batch.size_bytes} bytes is larger than offsets.load.buffer.size"
            return Problem(batch.base_offset, "L-6", problem)
        return refusal_of_batch(batch, self.release.profile)


NOTHING = Unloadable()
