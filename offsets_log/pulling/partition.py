"""A partition on its way: what a broker answers is appended where it continues the copy, and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from offsets_log.broker.batches import entry_in_memory
from offsets_log.broker.failures import BrokerError, InvalidBatchError
from offsets_log.broker.leader_epochs import latest_of
from offsets_log.data_directory.checkpoints import TopicPartition
from offsets_log.following import metrics
from offsets_log.log_format.record import INT64_MAX
from offsets_log.pulling.facts import PartitionFacts
from offsets_log.pulling.folder import PartitionFolder

ENDLESS = INT64_MAX
MOST_QUIET = 3
"""So many answers without a batch, of a broker that has all, mean that there is none up to the end."""


class DivergedError(Exception):
    """The broker's log is not the continuation of the copy; the message says in what."""


class UnsureError(Exception):
    """The batch at the end of the copy is not as it was: leader epochs must tell whether it was cleaned or cut."""


@dataclass(slots=True)
class PulledPartition:
    """A partition on its way.

    Attributes:
        target: where the log ended when the run began; `ENDLESS` where it is continued for as long as the run lasts.
        is_sure: whether the copy's last batch was met again in the log of the leader that is asked now.
        first_offset: where this run began.
        pulled_bytes: of this run.
        problem: why it is not continued.
        may_pass: whether another run may get over that.
        said: what went wrong last, and may pass.
        refused_at: where bytes were no valid batch.
        read_from: the broker that is asked instead of the leader (KIP-392).
        complete_at: when the copy last went as far as the log, on the clock of `time.monotonic`; at first when the run
            began.
    """

    facts: PartitionFacts
    folder: PartitionFolder
    target: int
    first_offset: int = 0
    is_sure: bool = False
    pulled_bytes: int = 0
    problem: str | None = None
    may_pass: bool = False
    said: str = ""
    refused_at: int = -1
    read_from: int | None = None
    complete_at: float = field(default_factory=time.monotonic)
    _quiet: int = 0
    _is_answered: bool = False

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return self.facts.key

    @property
    def end_offset(self) -> int:
        """Where the copy goes on."""
        found = self.folder.end_offset
        assert found is not None
        return found

    @property
    def is_followed(self) -> bool:
        """Whether it is continued for as long as the run lasts."""
        return self.target == ENDLESS

    @property
    def is_done(self) -> bool:
        """Whether nothing more is asked for."""
        is_read = self.end_offset >= self.target or self._quiet >= MOST_QUIET
        return self.problem is not None or (self._is_continued and is_read and not self.is_followed)

    @property
    def is_whole(self) -> bool:
        """Whether the copy goes as far as the log did when the run began, or when a run that follows it last asked."""
        return self.problem is None and (self._is_continued if self.is_followed else self.is_done)

    @property
    def _is_continued(self) -> bool:
        """Whether a broker has answered, and its log goes on where the copy ends."""
        return self.is_sure and self._is_answered

    @property
    def has_gaps(self) -> bool:
        """Whether the cleaner had been where this run has read."""
        return self.folder.writer.records < self.end_offset - self.first_offset

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the copy's last batches; −1 without one."""
        return latest_of(self.folder.writer.leader_epochs)

    @property
    def fetch_offset(self) -> int:
        """Where to read: behind the copy, or its last batch once more until that is sure."""
        if self.is_sure:
            return self.end_offset
        batch = entry_in_memory("", memoryview(self._last), 0, len(self._last))
        assert batch is not None
        return batch.base_offset

    @property
    def _last(self) -> bytes:
        return self.folder.writer.last_batch

    def doubt(self) -> None:
        """Have the next answer prove that the log is the same: another broker is asked, or this one after a break."""
        self.is_sure = not self._last

    def take(self, answer: Mapping[str, Any], epoch: int, *, is_empty: bool) -> None:
        """Take a part of a response without an error; `flush` writes it.

        Args:
            epoch: of the leader that was asked.
            is_empty: whether the whole response has no batch: else this partition may just have had no room in it.

        Raises:
            UnsureError, DivergedError: it is not known to continue the copy, or does not.
            BrokerError: what comes behind the last batch appended is no valid batch.
        """
        facts = self.facts
        self._is_answered = True
        facts.high_watermark, stable = answer["high_watermark"], answer["last_stable_offset"]
        facts.last_stable_offset = stable if stable >= 0 else None
        if epoch >= 0:
            facts.leader_epoch = epoch
        if answer.get("log_start_offset", -1) >= 0:
            facts.log_start_offset = answer["log_start_offset"]
        self._append(answer["records"] or b"")
        if self.is_sure and self.end_offset >= answer["high_watermark"]:
            self.complete_at = time.monotonic()
        self._quiet = self._quiet + 1 if is_empty and answer["high_watermark"] >= self.target else 0
        if self._quiet >= MOST_QUIET and not self.is_sure:
            raise UnsureError

    def flush(self) -> None:
        """Write what was taken. Raises OutputError."""
        self.folder.flush()
        facts = self.facts
        self.pulled_bytes += self.folder.size_bytes - facts.bytes
        facts.bytes = self.folder.size_bytes
        facts.end_offset = self.end_offset

    def samples(self) -> Iterator[metrics.Sample]:
        """Yield what is worth measuring of what is written; another thread may ask.

        Whoever is told an end is told all bytes before it.
        """
        facts, labels = self.facts, self.key
        end_offset = self.end_offset if facts.end_offset is None else facts.end_offset
        yield metrics.PULLED_END, labels, end_offset
        yield metrics.PULLED_BYTES, labels, self.pulled_bytes
        yield metrics.PULLED_DELAY, labels, time.monotonic() - self.complete_at
        yield metrics.PULLED_PROBLEM, labels, float(self.problem is not None)
        if facts.high_watermark is not None:
            yield metrics.PULLED_HIGH_WATERMARK, labels, facts.high_watermark
            yield metrics.PULLED_BEHIND, labels, max(facts.high_watermark - end_offset, 0)
        if facts.last_stable_offset is not None:
            yield metrics.PULLED_STABLE, labels, facts.last_stable_offset

    def _append(self, records: bytes) -> None:
        if not records:
            return
        begin = 0 if self.is_sure else self._behind_last(records)
        begin = self._skip(records, begin)
        try:
            self.folder.writer.write_all(records, begin, self.target)
        except InvalidBatchError as error:
            if self.refused_at != self.end_offset:
                self.refused_at = self.end_offset
                raise
            self._append_damaged(records, error)

    def _behind_last(self, records: bytes) -> int:
        if not records.startswith(self._last):
            raise UnsureError
        self.is_sure = True
        return len(self._last)

    def _skip(self, records: bytes, begin: int) -> int:
        """Pass batches that lie before the end of the copy, which a cleaned log gives again.

        Raises:
            DivergedError: one lies before it and behind it.
        """
        view = memoryview(records)
        while (batch := entry_in_memory("", view, begin, len(view))) and batch.base_offset < self.end_offset:
            if batch.last_offset >= self.end_offset:
                raise DivergedError(
                    f"the log has a batch from {batch.base_offset} to {batch.last_offset} where the copy ends at "
                    f"{self.end_offset}"
                )
            begin = batch.end
        return begin

    def _append_damaged(self, records: bytes, error: InvalidBatchError) -> None:
        """Append a batch whose checksum is wrong again, which is so on the broker's disk: the copy is byte-exact.

        Raises:
            InvalidBatchError: it is no whole batch that continues the copy, but for its checksum.
        """
        begin = self._skip(records, 0)
        view = memoryview(records)
        while (batch := entry_in_memory("", view, begin, len(view))) and batch.base_offset < self.end_offset:
            begin = batch.end
        if batch is None:
            raise error
        self.folder.writer.write(batch.raw())
        self.facts.damaged += 1


def refusal(error: BrokerError, offset: int) -> str:
    """Return why a partition is not continued, in words."""
    return f"what the broker sends from offset {offset} on is no valid batch: {error.problem}"
