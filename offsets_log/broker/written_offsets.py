"""Track offsets that a Java coordinator counts while it loads: it notices where a log's offsets go back (``D-6``).

References: ``CoordinatorLoaderImpl.java``, ``SnapshottableCoordinator.java``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from offsets_log.broker.failures import BrokerError


@dataclass(slots=True)
class WrittenOffsets:
    """The last written and the last committed offset of a coordinator that loads.

    Attributes:
        high_watermark: the partition's high watermark, which is the end of a log with one replica.
        commit_interval_offsets: number of offsets after which it also counts below the high watermark; None for never.
        snapshots: snapshots of its memory: offset where it was taken → number of batches replayed by then.
        batches: number of batches replayed so far.
    """

    high_watermark: int
    commit_interval_offsets: int | None
    written: int = 0
    committed: int = 0
    snapshots: dict[int, int] = field(default_factory=lambda: {0: 0})
    batches: int = 0
    _committed_by_loader: int = -1

    def advance(self, offset: int) -> None:
        """Note that a batch was replayed; the next one begins at ``offset``. Raises BrokerError (``D-6``)."""
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
        """How many batches its answers reflect: those up to ``committed``; None without a snapshot there (``D-13``)."""
        return self.snapshots.get(self.committed)
