"""One offsets partition of a coordinator: elections, its load's state, and writing to the log before the memory.

    NOT_LOADED ─ elected ─► LOADING ─► LOADED
        ▲                      └─────► FAILED ─ elected again ─► LOADING
        └── resigned, from any

A leader epoch older than the newest known one is ignored (``L-44``). If a record ends the load, the partition is FAILED
under the Java coordinator (``J-3``), and LOADED but empty under the Scala one (``L-42``).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from offsets_log.coordinator.config import OffsetConfig, Writes
from offsets_log.coordinator.errors import CoordinatorError, Errors, answer_to_append
from offsets_log.coordinator.live import LedState, Writer
from offsets_log.coordinator.log import OffsetsLog, at_offset, with_leader_epoch
from offsets_log.coordinator.records import NO_PRODUCER, Producer, batch_of
from offsets_log.errors import Damage
from offsets_log.log_format.building import build_marker
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.pipeline import iter_events
from offsets_log.replay.problem import Problem
from offsets_log.replay.profile import Profile


class LoadState(StrEnum):
    """How far a partition is loaded."""

    NOT_LOADED = "not loaded"
    LOADING = "loading"
    LOADED = "loaded"
    FAILED = "failed"


class OffsetsPartition:
    """A partition that this broker leads or may lead.

    Attributes:
        leader_epoch: the newest known one; −1 before any.
        failure: what ended the last load, or would have ended it (``B-4``); None if nothing did.
        damages: what the last load could not read.
        next_cycle_ms: when expiry is due (``E-1``).
    """

    def __init__(self, number: int, log: OffsetsLog, profile: Profile, writes: Writes, config: OffsetConfig) -> None:
        self.number = number
        self.load_state = LoadState.NOT_LOADED
        self.leader_epoch = -1
        self.failure: Problem | None = None
        self.damages: list[Damage] = []
        self.next_cycle_ms = 0
        self._log = log
        self._profile = profile
        self._writes = writes
        self._config = config
        self._live = LedState(profile)

    # --------------------------------------------------------------------------------- leading or not

    def on_election(self, leader_epoch: int) -> bool:
        """Load the partition, unless the epoch is old or it is loaded or being loaded; return whether it was loaded.

        Raises:
            Exception: the log cannot be read; the exception is the log's, and the partition is FAILED.
        """
        if leader_epoch < self.leader_epoch:
            return False
        is_news = leader_epoch > self.leader_epoch
        self.leader_epoch = leader_epoch
        if self.load_state in (LoadState.LOADING, LoadState.LOADED):
            return False
        if self.load_state is LoadState.FAILED and not is_news:
            return False
        self._load()
        return True

    def on_resignation(self, leader_epoch: int | None) -> bool:
        """Forget everything, write nothing, and return whether this was news (``L-43``).

        An epoch of None means that the topic was deleted.
        """
        if leader_epoch is not None:
            if leader_epoch < self.leader_epoch:
                return False
            self.leader_epoch = leader_epoch
        self.load_state = LoadState.NOT_LOADED
        self._live = LedState(self._profile)
        return True

    def _load(self) -> None:
        live = self._live = LedState(self._profile)
        self.load_state, self.failure, self.damages = LoadState.LOADING, None, []
        damages: list[Damage] = []
        try:
            state = live.load(iter_events(self._log.read(self.number)), damages.append)
        except Exception:
            if self._live is live:
                self.load_state = LoadState.FAILED
            raise
        if self._live is not live:
            return  # resigned, or elected again, while the log was read
        self.failure, self.damages = state.failure, damages
        self.load_state = LoadState.LOADED
        if state.failure is not None and not state.failure.is_served:
            self._live = LedState(self._profile)
            if self._profile.is_unavailable_after_failure:
                self.load_state = LoadState.FAILED

    @property
    def live(self) -> LedState:
        """The partition's memory.

        Raises:
            CoordinatorError: COORDINATOR_LOAD_IN_PROGRESS, or NOT_COORDINATOR, also after a failed load (``J-3``).
        """
        if self.load_state is LoadState.LOADED:
            return self._live
        if self.load_state is LoadState.LOADING:
            raise CoordinatorError(
                Errors.COORDINATOR_LOAD_IN_PROGRESS, f"offsets partition {self.number} is being loaded"
            )
        raise CoordinatorError(Errors.NOT_COORDINATOR, f"offsets partition {self.number} is {self.load_state}")

    # ------------------------------------------------------------------------------------------ writing

    def append(self, records: Sequence[CoordinatorRecord], now_ms: int, producer: Producer = NO_PRODUCER) -> None:
        """Write the records as one batch, then apply them; do nothing if there are none.

        Raises:
            CoordinatorError: the log refused, or INVALID_PRODUCER_EPOCH (``W-3``); the memory is unchanged.
            CorruptRecordError: a value does not fit its field; the memory is unchanged.
        """
        live = self.live
        if not records:
            return
        self._writer(live, producer)
        batch = batch_of(
            records,
            self._writes,
            compression=self._config.offsets_topic_compression_codec,
            now_ms=now_ms,
            leader_epoch=self.leader_epoch,
            producer=producer,
        )
        self._write(live, batch)

    def append_marker(self, producer: Producer, *, commit: bool, coordinator_epoch: int, now_ms: int) -> None:
        """Write the end of a transaction, then apply it (``W-4``, ``W-5``).

        Raises:
            CoordinatorError: the log refused, INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED; the memory is
                unchanged.
        """
        live = self.live
        if coordinator_epoch < self._writer(live, producer).coordinator_epoch:
            raise CoordinatorError(
                Errors.TRANSACTION_COORDINATOR_FENCED, f"a marker of coordinator epoch {coordinator_epoch} is too late"
            )
        marker = build_marker(
            0,
            commit=commit,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            timestamp_ms=now_ms,
            coordinator_epoch=coordinator_epoch,
        )
        self._write(live, with_leader_epoch(marker, self.leader_epoch))

    @staticmethod
    def _writer(live: LedState, producer: Producer) -> Writer:
        writer = live.writers.get(producer.producer_id, Writer())
        if producer.producer_epoch < writer.producer_epoch:
            raise CoordinatorError(
                Errors.INVALID_PRODUCER_EPOCH,
                f"producer {producer.producer_id} is at epoch {writer.producer_epoch}, not {producer.producer_epoch}",
            )
        return writer

    def _write(self, live: LedState, batch: bytes) -> None:
        try:
            base_offset = self._log.append(self.number, batch)
        except CoordinatorError as error:
            raise answer_to_append(error) from error
        stored = at_offset(batch, base_offset)
        live.append(iter_events(PartitionLog(self.number, (Segment("appended", base_offset, stored),))))
