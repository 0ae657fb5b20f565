"""``__transaction_state`` replayed, and what it says of transactions that are open in the offsets topic.

References: ``TransactionStateManager``, ``TransactionCoordinator`` (``onEndTransactionComplete``), ``data-dir.md`` §6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, iter_log
from offsets_log.log_format.record import iter_records
from offsets_log.messages.state_topics import TRANSACTION_STATE, decode_state_record
from offsets_log.messages.transaction_log import TRANSACTION_STATES
from offsets_log.rows.tables import Column

OFFSETS_TOPIC = "__consumer_offsets"

COMMITTED, ABORTED, UNDECIDED, HANGING, TIMED_OUT = "committed", "aborted", "undecided", "hanging", "timed out"
"""What becomes of the offsets of a transaction that has no marker.

hanging: nobody will ever end it. timed out: the coordinator would have aborted it by the time asked for.
"""
DECIDED = frozenset({COMMITTED, ABORTED})

OUTCOME_COLUMNS = (
    Column("transactional_id", "string", "of the producer; null where no copy of the coordinator's log tells"),
    Column("transaction_state", "string", "by the coordinator's last record: Ongoing, PrepareCommit, Empty …"),
    Column("transaction_started_ms", "bigint", "when the transaction began that it speaks of"),
    Column("transaction_timeout_ms", "int", "after which the coordinator aborts it"),
    Column("outcome", "string", "committed, aborted, undecided, hanging or timed out"),
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

    def cells(self) -> dict[str, object]:
        """`OUTCOME_COLUMNS`."""
        state = self.state
        return {
            "transactional_id": state and state.transactional_id,
            "transaction_state": state and state.status,
            "transaction_started_ms": state.started_ms if state and state.started_ms >= 0 else None,
            "transaction_timeout_ms": state and state.timeout_ms,
            "outcome": self.outcome,
        }


@dataclass(slots=True)
class TransactionStates:
    """All transactional ids that the copies of the coordinator's log know.

    Attributes:
        by_id: transactional id → its state.
        partitions: of the topic, that were read.
        is_whole: whether these are all: else a producer that is not found may be in another.
        damages: what could not be read.
        newest_timestamp_ms: of all records; None without one.
    """

    by_id: dict[str, TransactionState] = field(default_factory=dict)
    partitions: set[int] = field(default_factory=set)
    is_whole: bool = False
    damages: list[Damage] = field(default_factory=list)
    newest_timestamp_ms: int | None = None

    def of_producer(self, producer_id: int) -> TransactionState | None:
        """The state that has a producer id now, else one that had it before or gets it next."""
        states = self.by_id.values()
        for state in states:
            if state.producer_id == producer_id:
                return state
        return next((state for state in states if producer_id in state.other_producer_ids), None)

    def outcome(self, producer_id: int, offsets_partition: int, newest_pending_ms: int, now_ms: int | None) -> Outcome:
        """What becomes of the offsets that a producer has pending in an offsets partition.

        Args:
            newest_pending_ms: the time of the last of its records there.
            now_ms: for which time the answer is; None says nothing of transactions that time out.
        """
        state = self.of_producer(producer_id)
        if state is None:
            return Outcome(outcome=HANGING if self.is_whole and self.by_id else UNDECIDED)
        takes_part = offsets_partition in state.partitions.get(OFFSETS_TOPIC, ())
        if state.status in _PREPARED and takes_part:
            return Outcome(outcome=_PREPARED[state.status], state=state)
        if state.status in _COMPLETE and state.updated_ms >= newest_pending_ms:
            return Outcome(outcome=_COMPLETE[state.status], state=state, is_marker_missing=True)
        if state.status == "Ongoing" and takes_part:
            is_late = now_ms is not None and now_ms > state.started_ms + state.timeout_ms
            return Outcome(outcome=TIMED_OUT if is_late else UNDECIDED, state=state)
        return Outcome(outcome=HANGING, state=state)


def replay_transaction_log(
    logs: Iterable[PartitionLog], all_partitions: Collection[int] | None = None
) -> TransactionStates:
    """Replay copies of ``__transaction_state``: the last record of each transactional id counts.

    Args:
        logs: one for each partition of the topic that there is; `offsets_partition` is its number.
        all_partitions: of the topic; None where nothing tells how many it has: then those from 0 to the last.
    """
    states = TransactionStates()
    for log in logs:
        states.partitions.add(log.offsets_partition or 0)
        _replay(log, states)
    expected = range(max(states.partitions, default=-1) + 1) if all_partitions is None else all_partitions
    states.is_whole = bool(states.partitions) and states.partitions.issuperset(expected) and not states.damages
    return states


def _replay(log: PartitionLog, states: TransactionStates) -> None:
    for segment, item in iter_log(log):
        if isinstance(item, Damage):
            states.damages.append(item)
        elif isinstance(item, RecordBatch) and not item.is_control:
            for record in iter_records(item):
                if isinstance(record, Damage):
                    record.error.at(file=segment.file)
                    states.damages.append(record)
                    continue
                try:
                    _apply(record.key, record.value, states)
                except OffsetsLogError as error:
                    error.at(file=segment.file, position=record.position, record_offset=record.offset)
                    states.damages.append(Damage(error, b""))
                states.newest_timestamp_ms = max(record.timestamp_ms, states.newest_timestamp_ms or record.timestamp_ms)


def _apply(key: bytes | None, value: bytes | None, states: TransactionStates) -> None:
    record = decode_state_record(TRANSACTION_STATE, key, value)
    transactional_id: str = record.key["transactional_id"]
    fields = record.value
    if fields is None:
        states.by_id.pop(transactional_id, None)
        return
    number = fields["transaction_status"]
    states.by_id[transactional_id] = TransactionState(
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
    )


def abort_command(bootstrap_server: str, offsets_partition: int, first_offset: int) -> str:
    """The command line that ends a hanging transaction.

    Args:
        first_offset: of its first record in the offsets partition.
    """
    return (
        f"kafka-transactions.sh --bootstrap-server {bootstrap_server} abort --topic {OFFSETS_TOPIC} "
        f"--partition {offsets_partition} --start-offset {first_offset}"
    )
