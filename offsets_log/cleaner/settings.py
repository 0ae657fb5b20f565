"""Everything that decides a round of cleaning: the topic's and the broker's settings, the clock, the release."""

from __future__ import annotations

from dataclasses import dataclass

from offsets_log.kafka_releases import FIRST_CLEANER, Version, row_of
from offsets_log.words import DAY_MS


@dataclass(frozen=True, slots=True)
class Rules:
    """The differences between releases.

    Attributes:
        keeps_empty_at: the bound at which the last batch ends that stays without records, a field of `Bounds`
            (``CL-21``, ``K44-30``); None if no batch stays for that.
        makes_magic_2: batches of magic 0 and 1 become such of magic 2 (``CL-33``).
        indexes_each_batch: else an index has at most one entry for each buffer written (``CL-41``).
        finds_by_base_offset: how offsets are looked for, see `LogFile`.
        reads_txnindex_as_message: see `open_log`.
    """

    keeps_empty_at: str | None
    makes_magic_2: bool
    indexes_each_batch: bool
    finds_by_base_offset: bool
    reads_txnindex_as_message: bool

    @classmethod
    def of(cls, release: Version) -> Rules:
        """Return the rules of a release, in numbers: (4, 3) or (4, 3, 0).

        Raises:
            ValueError: its rules are not known.
        """
        changes = row_of(release).cleaner
        if changes is None:
            raise ValueError(f"the cleaner's rules are known from {FIRST_CLEANER.name} on")
        return cls(**changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Kafka's defaults for ``__consumer_offsets`` (``CL-6``).

    Attributes:
        now_ms: the clock, which stands still for a round.
        dedupe_buffer_bytes: memory of the offset map; None for as much as it needs (``CL-12``).
        io_buffer_bytes: size of the buffers for reading and writing together.
        cleaner_max_message_bytes: the broker's ``message.max.bytes``; ``max_message_bytes`` is the topic's.
    """

    now_ms: int
    rules: Rules
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    segment_bytes: int = 100 << 20
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1_048_588
    io_buffer_bytes: int = 512 << 10
    cleaner_max_message_bytes: int = 1_048_588
    dedupe_buffer_bytes: int | None = None
    load_factor_percent: int = 90
    producer_id_expiration_ms: int = DAY_MS
