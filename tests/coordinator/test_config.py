"""Defaults of the eras, and the layouts each release writes."""

from __future__ import annotations

import pytest

from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.config import GroupConfig, OffsetConfig, retention_of
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.records import OffsetCommit
from offsets_log.log_format.primitives import Uuid
from offsets_log.replay.releases import release_named
from tests.coordinator.caches import HOUR_MS, NOW, Clock, batches, started, with_log, written

DAY_MS = 24 * HOUR_MS
TOPIC_ID = Uuid(bytes(range(16)))


@pytest.mark.parametrize(("release", "days"), [("0.8.2", 1), ("1.1", 1), ("2.0", 7), ("3.9", 7), ("4.3", 7)])
def test_retention_is_a_day_up_to_1_1_and_a_week_from_2_0(release: str, days: int) -> None:
    """``E-2``, ``E-1``."""
    config = OffsetConfig.for_release(release)
    assert config.retention_ms == days * DAY_MS
    assert config.offsets_retention_check_interval_ms == 600_000
    assert (config.offset_metadata_max_bytes, config.offsets_topic_num_partitions) == (4096, 50)
    assert (config.offsets_load_buffer_size, config.offsets_topic_compression_codec) == (5 << 20, "none")


def test_what_no_release_is_named_for_are_the_newest_ones_defaults() -> None:
    """As Kafka's documentation of broker configs has them."""
    config = OffsetConfig()
    assert config == OffsetConfig.for_release("4.3")
    assert config.offsets_topic_segment_bytes == 104_857_600
    assert config.offsets_topic_replication_factor == 3
    assert (config.offsets_commit_timeout_ms, config.offsets_commit_required_acks) == (5000, -1)
    assert GroupConfig() == GroupConfig.for_release("4.3")


@pytest.mark.parametrize(
    ("release", "max_session_ms", "delay_ms"),
    [
        ("0.9", 30_000, 0),
        ("0.10.0", 300_000, 0),
        ("0.10.2", 300_000, 0),
        ("0.11", 300_000, 3000),
        ("2.2", 300_000, 3000),
        ("2.3", 1_800_000, 3000),
    ],
)
def test_group_config_of_an_era(release: str, max_session_ms: int, delay_ms: int) -> None:
    config = GroupConfig.for_release(release)
    assert (config.group_max_session_timeout_ms, config.group_initial_rebalance_delay_ms) == (max_session_ms, delay_ms)
    assert (config.group_min_session_timeout_ms, config.group_max_size) == (6000, 2**31 - 1)


@pytest.mark.parametrize(
    ("release", "era"),
    [
        ("0.8.2", "0.8.2"), ("0.9", "0.9"), ("0.10.0", "0.9"), ("0.10.1", "0.10.1"), ("1.1", "0.10.1"), ("2.0", "2.0"),
        ("2.1", "2.1"), ("2.3", "2.1"), ("2.4", "2.4"), ("2.8.1", "2.4"), ("3.1.1", "classic"),
        ("3.8-java", "3.8-java"),
        ("2.8.2", "classic"), ("3.0.0", "2.4"), ("3.0.1", "classic"), ("3.1.0", "2.4"), ("3.9.1", "classic"),
        ("3.7-java", "modern-3.7"), ("3.9-java", "3.8-java"), ("4.0.0", "3.8-java"), ("4.0.1", "4.0.1"),
        ("4.3", "4.0.1"), ("4.4", "modern"),
    ],
)  # fmt: skip
def test_a_release_expires_by_the_rules_of_its_era(release: str, era: str) -> None:
    """``E-4``–``E-15``."""
    assert retention_of(release_named(release), OffsetConfig()).era.name == era


def test_a_coordinator_has_the_configuration_that_it_is_given_or_its_releases_own() -> None:
    for release in ("0.9", "4.3"):
        offsets, group = OffsetConfig(offset_metadata_max_bytes=7), GroupConfig(group_max_size=9)
        given = GroupCoordinatorCache(
            MemoryLog(), Clock(NOW), release=release, offset_config=offsets, group_config=group
        )
        assert (given.offset_config, given.group_config) == (offsets, group)
        own = GroupCoordinatorCache(MemoryLog(), Clock(NOW), release=release)
        assert own.offset_config == OffsetConfig.for_release(release)
        assert own.group_config == GroupConfig.for_release(release)


def test_a_release_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="no release"):
        OffsetConfig.for_release("3.10")


@pytest.mark.parametrize(
    ("release", "magic", "record_type", "version"),
    [
        ("0.8.2", 0, 0, 0), ("0.9", 0, 1, 1), ("0.10.0", 1, 1, 1), ("0.10.2", 1, 1, 1), ("0.11", 2, 1, 1),
        ("2.0", 2, 1, 1),
        ("2.1", 2, 1, 3), ("3.9", 2, 1, 3), ("3.9-java", 2, 1, 3), ("4.0", 2, 1, 3), ("4.1", 2, 1, 4), ("4.3", 2, 1, 4),
    ],
)  # fmt: skip
def test_a_commit_is_written_as_its_release_does(release: str, magic: int, record_type: int, version: int) -> None:
    """``records:W1``–``W5``; and each release loads what it wrote."""
    cache, log = with_log(release)
    commit = OffsetCommit(42, None, leader_epoch=9, topic_id=TOPIC_ID)
    cache.commit_offsets("g", {("t", 0): commit, ("t", 1): commit})
    partition = cache.partition_for("g")
    (first, second) = written(log, partition)
    assert first.batch.magic == magic
    record = second.decoded
    assert record is not None
    assert record.value is not None
    assert (record.record_type, record.value_version) == (record_type, version)
    assert (record.value["offset"], record.value["metadata"], record.value["commit_timestamp"]) == (42, "", NOW)
    assert record.value.get("leader_epoch", -1) == (9 if version >= 3 else -1)
    assert record.value.get("topic_id") == (TOPIC_ID if version == 4 else None)
    is_dated = version == 1
    expires = NOW + OffsetConfig().retention_ms if is_dated else None
    assert record.value.get("expire_timestamp") == expires
    again = started(release, log)
    assert again.fetch_offsets("g") == cache.fetch_offsets("g")
    assert again.fetch_offsets("g")["t", 1].committed_offset == 42


def test_an_explicit_retention_needs_version_1_in_any_release() -> None:
    """``records:W1``: the leader epoch is lost."""
    cache, log = with_log("4.3")
    cache.commit_offsets("g", {("t", 0): OffsetCommit(1, leader_epoch=9)}, retention_ms=1000)
    (event,) = written(log, cache.partition_for("g"))
    assert event.decoded is not None
    assert event.decoded.value is not None
    assert (event.decoded.value_version, event.decoded.value["expire_timestamp"]) == (1, NOW + 1000)
    assert cache.fetch_offsets("g")["t", 0].leader_epoch is None


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("release", ["0.9", "0.10.2", "2.8", "4.3"])
def test_every_batch_format_goes_to_the_end_of_the_log_and_is_loaded_again(release: str, codec: str) -> None:
    """``records:M5``: a compressed message has its offsets inside."""
    config = OffsetConfig(offsets_topic_num_partitions=1, offsets_topic_compression_codec=codec)
    cache, log = with_log(release, config=config)
    for number in range(3):
        cache.commit_offsets("g", {("t", number): OffsetCommit(number), ("u", number): OffsetCommit(number)})
    assert [event.record.offset for event in written(log, 0)] == [0, 1, 2, 3, 4, 5]
    assert {batch.compression for batch in batches(log, 0)} == {codec}
    assert started(release, log, config=config).fetch_offsets("g") == cache.fetch_offsets("g")
