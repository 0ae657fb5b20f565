"""The batches and records that would end a release's load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from offsets_log.broker.reading import LOAD_BUFFER_BYTES
from offsets_log.log_format.batch import NEWEST_MAGIC, RecordBatch
from offsets_log.replay.problem import Problem
from offsets_log.replay.refusal import refusal_of_batch
from offsets_log.replay.releases import Release

Problems = Mapping[int, Problem]
"""Record offset → the problem that ends the load there."""


@dataclass(frozen=True, slots=True)
class Unloadable:
    """The parts of a log that a release does not load.

    Attributes:
        release: the release; None if everything counts as loadable.
        problems: the records that end it.
    """

    release: Release | None = None
    problems: Problems = field(default_factory=dict)

    @property
    def most_batch_bytes(self) -> int | None:
        """The size above which batches end the load; None for no limit."""
        return None if self.release is None or self.release.reads_large_batches else LOAD_BUFFER_BYTES

    @property
    def reads_newest(self) -> bool:
        """Whether all batches of magic 2 are loaded, whatever their codec."""
        profile = None if self.release is None else self.release.profile
        return profile is None or (profile.newest_magic >= NEWEST_MAGIC and profile.reads_zstd)

    def of_batch(self, batch: RecordBatch) -> Problem | None:
        """Return why a batch ends the load, or holds it up forever (``records:M1``, ``L-6``); None if it does not."""
        if self.release is None:
            return None
        if self.most_batch_bytes is not None and batch.size_bytes > self.most_batch_bytes:
            problem = f"the batch of {batch.size_bytes} bytes is larger than offsets.load.buffer.size"
            return Problem(batch.base_offset, "L-6", problem)
        return refusal_of_batch(batch, self.release.profile)


NOTHING = Unloadable()
