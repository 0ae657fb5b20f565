"""Open transactions of the offsets topic, by what their coordinator's log says became of them.

What is certain can be applied as if the markers stood at the end of each log, one behind the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from offsets_log.data_directory.transactions import (
    COMMITTED,
    DECIDED,
    HANGING,
    Outcome,
    TransactionStates,
    abort_command,
)
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, batches_of
from offsets_log.replay.partial import EndTransactionMarker, OffsetAndMetadata
from offsets_log.rows.tables import Row
from offsets_log.words import counted

BOOTSTRAP_SERVER = "HOST:PORT"
"""Stands in command lines for a broker of the cluster, which no log names."""


class TakesMarkers(Protocol):
    """A replay at its end: `PartialState`, or its like for bulk."""

    end_offset: int

    def add_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        """Note the end of a transaction."""


@dataclass(frozen=True, slots=True)
class PendingTransaction:
    """What a producer has pending in a log.

    Attributes:
        oldest_ms, newest_ms: when the first and the last of its pending offsets were written.
        offsets: how many there are.
    """

    producer_id: int
    oldest_ms: int
    newest_ms: int
    offsets: int


def pending_transactions(pending: Iterable[OffsetAndMetadata]) -> list[PendingTransaction]:
    """Return pending offsets by producer, in the order in which the producers last wrote."""
    times: dict[int, list[int]] = {}
    for value in pending:
        times.setdefault(value.producer_id, []).append(value.commit_timestamp_ms)
    found = (PendingTransaction(producer_id, min(ms), max(ms), len(ms)) for producer_id, ms in times.items())
    return sorted(found, key=lambda one: (one.newest_ms, one.producer_id))


NO_STATES = "--decide: no __transaction_state lies beside these partitions: give the broker's whole data directory"
BOUNDED = (
    "--decide tells what became of transactions open at the log's end; --until-offset and --until-time end before it"
)
"""Why nothing is decided."""

SAID = 5
"""How many transactions are named one by one."""


class Outcomes:
    """What becomes of open transactions, and what was decided so far.

    Attributes:
        transactions, offsets: outcome → how many transactions of offsets partitions were met when it was decided, and
            how many offsets they have.
        without_marker: offsets partition and transactional id of those that are over and have no marker here.

    Args:
        now_ms: for which time the answers are; None says nothing of transactions that time out.
        home_of: the broker whose copy a log is, as `replay_transaction_log` was told.
    """

    def __init__(
        self,
        states: TransactionStates,
        now_ms: int | None,
        home_of: Callable[[PartitionLog], str],
    ) -> None:
        self.transactions: Counter[str] = Counter()
        self.offsets: Counter[str] = Counter()
        self.without_marker: list[tuple[int, str]] = []
        self._states = states
        self._now_ms = now_ms
        self._home_of = home_of
        self._newest: dict[int, int] = {}

    def of(self, log: PartitionLog, transaction: PendingTransaction) -> Outcome:
        """Return what becomes of a transaction."""
        return self._states.outcome(
            transaction.producer_id,
            -1 if log.offsets_partition is None else log.offsets_partition,
            transaction.newest_ms,
            self._now_ms,
            oldest_pending_ms=transaction.oldest_ms,
            home=self._home_of(log),
            newest_in_log=lambda: self._newest_in(log),
        )

    def _newest_in(self, log: PartitionLog) -> int:
        if id(log) not in self._newest:
            newest = max((batch.max_timestamp_ms for batch in batches_of(log)), default=-1)
            self._newest[id(log)] = newest
        return self._newest[id(log)]

    def cells(self, log: PartitionLog, pending: Iterable[OffsetAndMetadata]) -> dict[int, Row]:
        """Return producer id → `OUTCOME_COLUMNS` of what it has pending.

        Args:
            pending: all that is in the log.
        """
        found = {one.producer_id: self.of(log, one) for one in pending_transactions(pending)}
        hanging = {producer_id for producer_id, outcome in found.items() if outcome.outcome == HANGING}
        begins = first_offsets(batches_of(log), hanging)
        commands = {
            producer_id: abort_command(BOOTSTRAP_SERVER, log.offsets_partition or 0, offset)
            for producer_id, offset in begins.items()
        }
        return {producer_id: outcome.cells(commands.get(producer_id)) for producer_id, outcome in found.items()}

    def hanging(self, log: PartitionLog, pending: Sequence[OffsetAndMetadata]) -> Iterator[OffsetAndMetadata]:
        """Yield those of the offsets whose transactions nobody will ever end; ``pending`` as of `cells`."""
        found = {one.producer_id for one in pending_transactions(pending) if self.of(log, one).outcome == HANGING}
        return (value for value in pending if value.producer_id in found)

    def decide(self, log: PartitionLog, state: TakesMarkers, pending: Iterable[OffsetAndMetadata]) -> None:
        """End the transactions of which the outcome is certain.

        Args:
            state: of the whole log.
            pending: what is open in it.
        """
        marker_offset = state.end_offset
        for transaction in pending_transactions(pending):
            outcome = self.of(log, transaction)
            self.transactions[outcome.outcome] += 1
            self.offsets[outcome.outcome] += transaction.offsets
            if outcome.is_marker_missing and outcome.state is not None:
                self.without_marker.append((log.offsets_partition or 0, outcome.state.transactional_id))
            if outcome.outcome in DECIDED:
                is_commit = outcome.outcome == COMMITTED
                state.add_marker(transaction.producer_id, EndTransactionMarker(is_commit, marker_offset))
                marker_offset += 1

    def in_words(self) -> Iterator[str]:
        """Yield what was decided, what was not, and where a marker is missing, a sentence each."""
        met = ", ".join(
            f"{count} {outcome} ({counted(self.offsets[outcome], 'offset')})"
            for outcome, count in sorted(self.transactions.items())
        )
        yield f"--decide: open transactions by __transaction_state: {met or 'none'}"
        for partition, transactional_id in self.without_marker[:SAID]:
            yield (
                f"offsets partition {partition} lacks the marker of a transaction of {transactional_id!r} that is "
                "over: this copy of it is older than that of __transaction_state, or was cut off"
            )
        if len(self.without_marker) > SAID:
            yield f"{len(self.without_marker) - SAID} more markers are missing"


def first_batches(
    batches: Iterable[RecordBatch], producer_ids: Collection[int] | None = None
) -> dict[int, RecordBatch]:
    """Return producer id → the batch with which its open transaction begins in a log, as a broker counts it.

    It begins with its first batch of data, even without records; a control batch without a record ends nothing
    (``CL-58``).

    Args:
        producer_ids: who is looked for; None for all.
    """
    found: dict[int, RecordBatch] = {}
    for batch in batches if producer_ids is None or producer_ids else ():
        if producer_ids is None or batch.producer_id in producer_ids:
            if batch.is_control:
                if batch.records_count:
                    found.pop(batch.producer_id, None)
            elif batch.is_transactional:
                found.setdefault(batch.producer_id, batch)
    return found


def first_offsets(batches: Iterable[RecordBatch], producer_ids: Collection[int]) -> dict[int, int]:
    """Return producer id → where its open transaction begins in a log; arguments as of `first_batches`."""
    return {producer_id: batch.base_offset for producer_id, batch in first_batches(batches, producer_ids).items()}
