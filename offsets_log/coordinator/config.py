"""A coordinator's settings with the defaults of a release, and which layouts it writes, by the table of releases.

A field is Kafka's broker config of that name with its dots as underscores: ``offsets_retention_minutes`` is
``offsets.retention.minutes``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from offsets_log.replay.expiry import ERAS, Retention
from offsets_log.replay.partition_for import DEFAULT_PARTITIONS
from offsets_log.replay.releases import Release, release_named

INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetConfig:
    """The broker's ``OffsetConfig``; the codec is a name, sizes are in bytes.

    Nothing here uses ``offsets_load_buffer_size``, ``offsets_topic_segment_bytes``, ``…_replication_factor`` and
    ``offsets_commit_…``: they are for the program that keeps the log.
    """

    offset_metadata_max_bytes: int = 4096
    offsets_load_buffer_size: int = 5 * 1024 * 1024
    offsets_retention_minutes: int = 7 * 24 * 60
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_num_partitions: int = DEFAULT_PARTITIONS
    offsets_topic_segment_bytes: int = 100 * 1024 * 1024
    offsets_topic_replication_factor: int = 3
    offsets_topic_compression_codec: str = "none"
    offsets_commit_timeout_ms: int = 5000
    offsets_commit_required_acks: int = -1

    @classmethod
    def for_release(cls, name: str) -> OffsetConfig:
        """Return the defaults of a release such as ``4.3`` (``E-1``, ``E-2``)."""
        return cls(**_defaults(cls, name))

    @property
    def retention_ms(self) -> int:
        """``offsets.retention.minutes`` in milliseconds."""
        return self.offsets_retention_minutes * 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The broker's ``GroupConfig``: limits for classic groups, used by `rebalance.membership`."""

    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = INT32_MAX
    group_initial_rebalance_delay_ms: int = 3000

    @classmethod
    def for_release(cls, name: str) -> GroupConfig:
        """Return the defaults of a release."""
        return cls(**_defaults(cls, name))


def _defaults(of: type[OffsetConfig | GroupConfig], release: str) -> dict[str, Any]:
    known = {one.name for one in fields(of)}
    return {name: value for name, value in release_named(release).row.defaults.items() if name in known}


# ---------------------------------------------------------------------------------- what a release writes


@dataclass(frozen=True, slots=True)
class Writes:
    """The layouts a release writes with its own inter-broker protocol version (``OffsetCommitValue.json``).

    Attributes:
        key_type: record type of an offset's key.
        offset_value_version: value version of a commit without an explicit retention.
        group_value_version: value version of a classic group's record; 0.8.2 writes none.
        always_expires: whether every commit gets an expire timestamp, or only those that ask (``records:W1``–``W4``).
    """

    magic: int
    key_type: int
    offset_value_version: int
    always_expires: bool
    group_value_version: int = 0


def writes_of(release: Release) -> Writes:
    """Return the layouts that a release writes."""
    return Writes(**release.row.writes)


def retention_of(release: Release, config: OffsetConfig) -> Retention:
    """Return how a release expires offsets with these settings."""
    return ERAS[release.asked.era].retention(config.retention_ms)
