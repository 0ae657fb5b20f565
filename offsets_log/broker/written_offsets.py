"""How far a Java coordinator has counted what it loads: where the log's offsets go back, it notices (``D-6``).

References: ``CoordinatorLoaderImpl.java``, ``SnapshottableCoordinator.java``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from offsets_log.broker.failures import BrokerError


@dataclass(slots=True)
class WrittenOffsets:
    """The last written and the last committed offset of a coordinator that loads.

    Attributes:
        high_watermark: of the partition, the end of a log that has one replica.
        commit_interval_offsets: after so many it counts below the high watermark too; None for never.
        snapshots: of its memory: the offset they were taken at → how many batches had been replayed.
        batches: replayed so far.
    """

    high_watermark: int
    commit_interval_offsets: int | None
    written: int = 0
    committed: int = 0
    snapshots: dict[int, int] = field(default_factory=lambda: {0: 0})
    batches: int = 0
    _committed_by_loader: int = -1

    def advance(self, offset: int) -> None:
        """A batch was replayed; the next one begins at ``offset``. Raises BrokerError (``D-6``)."""
        self.batches += 1
        if offset >= self.high_watermark:
            commit = self.high_watermark
        elif self._is_due(offset):
            commit = offset
        else:
            return
        self._write(offset)
        if commit > self._committed_by_loader:
            self._commit(commit)

    def _is_due(self, offset: int) -> bool:
        interval = self.commit_interval_offsets
        return interval is not None and offset - self._committed_by_loader >= interval

    def _write(self, offset: int) -> None:
        if offset <= self.written:
            raise BrokerError(f"offsets go back: from {self.written} to {offset}", rule="D-6")
        self.written = offset
        self.snapshots[offset] = self.batches

    def _commit(self, offset: int) -> None:
        if not self.committed <= offset <= self.written:
            raise BrokerError(f"offset {offset} would be committed, behind {self.committed}", rule="D-6")
        self.committed = self._committed_by_loader = offset
        self.snapshots = {taken: batches for taken, batches in self.snapshots.items() if taken >= offset}

    @property
    def answered_batches(self) -> int | None:
        """Of how many batches it answers: those up to ``committed``; None where no snapshot is of there (``D-13``)."""
        return self.snapshots.get(self.committed)
