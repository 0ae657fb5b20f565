"""``__transaction_state`` replayed, and what it says of transactions that are open in the offsets topic.

References: ``TransactionStateManager``, ``TransactionCoordinator`` (``onEndTransactionComplete``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from offsets_log.data_directory.state_log import iter_state_records
from offsets_log.errors import Damage
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE
from offsets_log.messages.state_topics import StateRecord
from offsets_log.messages.transaction_log import TRANSACTION_STATES
from offsets_log.replay.partition_count import partition_count
from offsets_log.rows.tables import Column
from offsets_log.words import DAY_MS

COMMITTED, ABORTED, UNDECIDED, HANGING, TIMED_OUT = "committed", "aborted", "undecided", "hanging", "timed out"
"""What becomes of the offsets of a transaction that has no marker.

hanging: nobody will ever end it. timed out: the coordinator would have aborted it by the time asked for.
"""
DECIDED = frozenset({COMMITTED, ABORTED})

LONGEST_COPY_MS = DAY_MS
"""No copy of a running broker takes longer: what lies so far apart in it was not written while it was made."""

OUTCOME_COLUMNS = (
    Column(
        "transactional_id",
        "string",
        "the producer's transactional id; null if no copy of the coordinator's log tells it",
    ),
    Column("transaction_state", "string", "by the coordinator's last record: Ongoing, PrepareCommit, Empty …"),
    Column("transaction_started_ms", "bigint", "when the transaction of that record began"),
    Column("transaction_timeout_ms", "int", "time after which the coordinator aborts it"),
    Column("outcome", "string", "committed, aborted, undecided, hanging or timed out"),
    Column("abort_command", "string", "the command line that ends a hanging transaction; null for others"),
)

_PREPARED = {"PrepareCommit": COMMITTED, "PrepareAbort": ABORTED, "PrepareEpochFence": ABORTED}
_COMPLETE = {"CompleteCommit": COMMITTED, "CompleteAbort": ABORTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionState:
    """What the coordinator's last record says of a transactional id.

    Attributes:
        status: Kafka's name of the state.
        partitions: topic → partitions that take part; none between transactions.
        started_ms: −1 between transactions.
        state_partition: of ``__transaction_state``.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    other_producer_ids: frozenset[int]
    status: str
    timeout_ms: int
    started_ms: int
    updated_ms: int
    partitions: Mapping[str, frozenset[int]]
    state_partition: int = 0

    def has_markers(self, newest_ms: int) -> bool:
        """Whether a log with a record of that time has the markers of all transactions before the one spoken of."""
        return newest_ms >= (self.started_ms if self.partitions else self.updated_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What becomes of a producer's pending offsets in one offsets partition.

    Attributes:
        state: of the transactional id; None where none has the producer id.
        is_marker_missing: the transaction is over, and its marker should be in the log: this copy is older, or cut.
    """

    outcome: str
    state: TransactionState | None = None
    is_marker_missing: bool = False

    def cells(self, command: str | None) -> dict[str, object]:
        """Return the cells `OUTCOME_COLUMNS`.

        Args:
            command: that ends it if it hangs.
        """
        state = self.state
        return {
            "transactional_id": state and state.transactional_id,
            "transaction_state": state and state.status,
            "transaction_started_ms": state.started_ms if state and state.started_ms >= 0 else None,
            "transaction_timeout_ms": state and state.timeout_ms,
            "outcome": self.outcome,
            "abort_command": command,
        }


def outcome_in_words(cells: Mapping[str, Any]) -> str:
    """Return what becomes of a transaction, its coordinator's last record, and the command that ends one that hangs.

    Args:
        cells: those of `Outcome.cells`.
    """
    words = str(cells["outcome"])
    if cells["transactional_id"] is not None:
        words += f", {cells['transactional_id']!r} is {cells['transaction_state']}"
    return words + (f": {command}" if (command := cells["abort_command"]) else "")


@dataclass(slots=True)
class TransactionStates:
    """All transactional ids that the copies of the coordinator's log know.

    Attributes:
        by_id: transactional id → its state.
        partitions: of the topic, that were read.
        is_whole: whether these are all: else a producer that is not found may be in another.
        damages: what could not be read.
        newest: partition of the topic → the broker whose copy was read, and the time of its newest record, −1 without.
        still_homes: brokers that had stopped in order, so that all they have was copied at one moment.
    """

    by_id: dict[str, TransactionState] = field(default_factory=dict)
    partitions: set[int] = field(default_factory=set)
    is_whole: bool = False
    damages: list[Damage] = field(default_factory=list)
    newest: dict[int, tuple[str, int]] = field(default_factory=dict)
    still_homes: Collection[str] = frozenset()
    _by_producer: dict[int, TransactionState] | None = field(default=None, init=False, repr=False, compare=False)

    def of_producer(self, producer_id: int) -> TransactionState | None:
        """Return the state that has a producer id now, else one that had it before or gets it next."""
        if self._by_producer is None:
            found = {other: state for state in self.by_id.values() for other in state.other_producer_ids}
            self._by_producer = found | {state.producer_id: state for state in self.by_id.values()}
        return self._by_producer.get(producer_id)

    def may_be_older(self, state: TransactionState | None, home: str, time_ms: int) -> bool:
        """Whether the coordinator may have written more of a producer, before a time, than is known here.

        A running broker's logs are copied one after the other. So a log knows a time only if it has a later record, or
        if the copy would have taken longer than `LONGEST_COPY_MS`; but what a broker left that had stopped in order is
        all of one moment (``DD-5``).

        Args:
            state: of the producer; None where none has its id: then any log may be the one that lacks it.
            home: the broker whose copy tells the time.
        """
        told = self.newest.values() if state is None else [self.newest[state.state_partition]]
        return any(not self._knows(copy, newest_ms, home, time_ms) for copy, newest_ms in told)

    def _knows(self, copy: str, newest_ms: int, home: str, time_ms: int) -> bool:
        newest_of_copy = max(ms for other, ms in self.newest.values() if other == copy)
        if copy not in self.still_homes:
            return newest_ms > time_ms or newest_of_copy > time_ms + LONGEST_COPY_MS
        return copy == home or newest_of_copy >= time_ms

    def outcome(
        self,
        producer_id: int,
        offsets_partition: int,
        newest_pending_ms: int,
        now_ms: int | None,
        *,
        oldest_pending_ms: int | None = None,
        home: str = "",
        newest_in_log: Callable[[], int] | None = None,
    ) -> Outcome:
        """Return what becomes of the offsets that a producer has pending in an offsets partition.

        Args:
            newest_pending_ms, oldest_pending_ms: times of its last and first record there; None is the last one's.
            now_ms: for which time the answer is; None says nothing of transactions that time out.
            home: as of `may_be_older`.
            newest_in_log: tells the time of the newest record in the offsets partition; without it, that of the last
                pending one is taken.
        """
        state = self.of_producer(producer_id)
        oldest_ms = newest_pending_ms if oldest_pending_ms is None else oldest_pending_ms
        if state is not None:
            decided = _told(state, offsets_partition, oldest_ms, newest_pending_ms, now_ms)
            if decided is not None:
                return decided
        if self.may_be_older(state, home, newest_pending_ms):
            return Outcome(outcome=UNDECIDED, state=state)
        if state is None:
            return Outcome(outcome=HANGING if self.is_whole and self.by_id else UNDECIDED)
        is_later = home in self.still_homes or state.has_markers(newest_pending_ms)
        if not is_later and (newest_in_log is None or not state.has_markers(newest_in_log())):
            return Outcome(outcome=UNDECIDED, state=state, is_marker_missing=True)
        return Outcome(outcome=HANGING, state=state)


def _told(
    state: TransactionState, offsets_partition: int, oldest_ms: int, newest_ms: int, now_ms: int | None
) -> Outcome | None:
    """Return what a state says of offsets pending in a partition since one time and until another; None if nothing.

    It may speak of a later transaction, which began after the first of them, or of an earlier one, which ended before.
    """
    takes_part = offsets_partition in state.partitions.get(OFFSETS_TOPIC, ())
    if state.started_ms > oldest_ms and (takes_part or state.status in _COMPLETE):
        return Outcome(outcome=UNDECIDED, state=state, is_marker_missing=True)
    if state.status in _PREPARED and takes_part:
        return Outcome(outcome=_PREPARED[state.status] if oldest_ms <= state.updated_ms else UNDECIDED, state=state)
    if state.status in _COMPLETE and state.updated_ms >= newest_ms:
        return Outcome(outcome=_COMPLETE[state.status], state=state, is_marker_missing=True)
    if state.status == "Ongoing" and takes_part:
        is_late = now_ms is not None and now_ms > state.started_ms + state.timeout_ms
        return Outcome(outcome=TIMED_OUT if is_late else UNDECIDED, state=state)
    return None


def replay_transaction_log(
    logs: Iterable[PartitionLog],
    all_partitions: Collection[int] | None = None,
    home_of: Callable[[PartitionLog], str] = lambda log: "",
    still_homes: Collection[str] = frozenset(),
    missing: Sequence[Damage] = (),
) -> TransactionStates:
    """Replay copies of ``__transaction_state``: the last record of each transactional id counts.

    Args:
        logs: one for each partition of the topic that there is; `offsets_partition` is its number.
        all_partitions: of the topic; None where nothing tells how many it has: then as many as its ids show.
        home_of: the broker whose copy a log is.
        still_homes: those that had stopped in order.
        missing: what the copies lack.
    """
    states = TransactionStates(still_homes=still_homes, damages=[*missing])
    ids: dict[int, set[str]] = {}
    for log in logs:
        partition = log.offsets_partition or 0
        states.partitions.add(partition)
        by_id: dict[str, TransactionState] = {}
        states.newest[partition] = home_of(log), _replay(log, by_id, states.damages)
        states.by_id |= by_id
        ids[partition] = set(by_id)
    expected = range(partition_count(ids).number) if all_partitions is None else all_partitions
    states.is_whole = bool(states.partitions) and states.partitions.issuperset(expected) and not states.damages
    return states


def _replay(log: PartitionLog, by_id: dict[str, TransactionState], damages: list[Damage]) -> int:
    """Replay one partition; the time of its newest record, −1 without one."""
    newest_ms = -1
    for record, decoded in iter_state_records(log, TRANSACTION_STATE, damages):
        if decoded is not None:
            _apply(decoded, by_id, log.offsets_partition or 0)
        newest_ms = max(record.timestamp_ms, newest_ms)
    return newest_ms


def _apply(record: StateRecord, by_id: dict[str, TransactionState], state_partition: int) -> None:
    transactional_id: str = record.key["transactional_id"]
    fields = record.value
    if fields is None:
        by_id.pop(transactional_id, None)
        return
    number = fields["transaction_status"]
    by_id[transactional_id] = TransactionState(
        transactional_id=transactional_id,
        producer_id=fields["producer_id"],
        producer_epoch=fields["producer_epoch"],
        other_producer_ids=frozenset(
            fields.get(name, -1) for name in ("previous_producer_id", "next_producer_id") if fields.get(name, -1) >= 0
        ),
        status=TRANSACTION_STATES.get(number, f"unknown state {number}"),
        timeout_ms=fields["transaction_timeout_ms"],
        started_ms=fields["transaction_start_timestamp_ms"],
        updated_ms=fields["transaction_last_update_timestamp_ms"],
        partitions={
            topic["topic"]: frozenset(topic["partition_ids"]) for topic in fields["transaction_partitions"] or ()
        },
        state_partition=state_partition,
    )


def abort_command(bootstrap_server: str, offsets_partition: int, first_offset: int) -> str:
    """Return the command line that ends a hanging transaction.

    Args:
        first_offset: of its first record in the offsets partition.
    """
    return (
        f"kafka-transactions.sh --bootstrap-server {bootstrap_server} abort --topic {OFFSETS_TOPIC} "
        f"--partition {offsets_partition} --start-offset {first_offset}"
    )
