"""A coordinator's settings with each release's defaults, and which layouts a release writes.

A field is Kafka's broker config of that name with its dots as underscores: ``offsets_retention_minutes`` is
``offsets.retention.minutes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from offsets_log.replay.expiry import ERAS, Retention
from offsets_log.replay.partition_for import DEFAULT_PARTITIONS
from offsets_log.replay.releases import Release, release_named

INT32_MAX = (1 << 31) - 1

Row = TypeVar("Row")
Since = tuple[tuple[tuple[int, ...], Row], ...]
"""First version with it → what holds from there on, ascending."""


def at(table: Since[Row], version: tuple[int, ...]) -> Row:
    """Return the row of a version; versions before the first row have the first."""
    found = table[0][1]
    for first, row in table:
        if first <= version:
            found = row
    return found


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
        return cls(offsets_retention_minutes=at(RETENTION_MINUTES, release_named(name).version))

    @property
    def retention_ms(self) -> int:
        """``offsets.retention.minutes`` in milliseconds."""
        return self.offsets_retention_minutes * 60_000


RETENTION_MINUTES: Since[int] = (((0,), 24 * 60), ((2, 0), 7 * 24 * 60))


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
        version = release_named(name).version
        return cls(
            group_max_session_timeout_ms=at(MAX_SESSION_TIMEOUT_MS, version),
            group_initial_rebalance_delay_ms=at(INITIAL_REBALANCE_DELAY_MS, version),
        )


MAX_SESSION_TIMEOUT_MS: Since[int] = (((0,), 30_000), ((0, 10, 0), 300_000), ((2, 3), 1_800_000))
INITIAL_REBALANCE_DELAY_MS: Since[int] = (((0,), 0), ((0, 11), 3000))


# ---------------------------------------------------------------------------------- what a release writes


@dataclass(frozen=True, slots=True)
class Writes:
    """The layouts a release writes with its own inter-broker protocol version (``OffsetCommitValue.json``).

    Attributes:
        key_type: record type of an offset's key.
        offset_value_version: value version of a commit without an explicit retention.
        always_expires: whether every commit gets an expire timestamp, or only those that ask (``records:W1``–``W4``).
    """

    magic: int
    key_type: int = 1
    offset_value_version: int = 1
    always_expires: bool = True


WRITES: Since[Writes] = (
    ((0, 8), Writes(0, key_type=0, offset_value_version=0)),
    ((0, 9), Writes(0)),
    ((0, 10), Writes(1)),
    ((0, 11), Writes(2)),
    ((2, 1), Writes(2, offset_value_version=3, always_expires=False)),
    ((4, 1), Writes(2, offset_value_version=4, always_expires=False)),
)

SCALA_ERAS: Since[str] = (
    ((0, 8), "0.8.2"),
    ((0, 9), "0.9"),
    ((0, 10, 1), "0.10.1"),
    ((2, 0), "2.0"),
    ((2, 1), "2.1"),
    ((2, 4), "2.4"),
    ((2, 8, 2), "classic"),
    ((3, 0, 0), "2.4"),
    ((3, 0, 1), "classic"),
    ((3, 1, 0), "2.4"),
    ((3, 1, 1), "classic"),
)
JAVA_ERAS: Since[str] = (((3, 7), "modern-3.7"), ((3, 8), "3.8-java"), ((4, 0, 1), "modern"))


def is_java(release: Release) -> bool:
    """Return whether a release's coordinator is the Java one, as a preview too."""
    return not release.profile.offsets_make_groups


def writes_of(release: Release) -> Writes:
    """Return the layouts that a release writes."""
    return at(WRITES, release.version)


def retention_of(release: Release, config: OffsetConfig) -> Retention:
    """Return how a release expires offsets with these settings."""
    era = ERAS[at(JAVA_ERAS if is_java(release) else SCALA_ERAS, release.version)]
    return era.retention(config.retention_ms)
