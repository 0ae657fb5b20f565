"""Kafka's releases, a row each: what changed there for a reader of its logs; all else is as in the row before.

A column is one subject. Most are mappings, of which a row names what is new or other: `scala` and `java` hold
attributes of `replay.profile.Profile`, `cleaner` those of `cleaner.settings.Rules`, `assignors` those of
`rebalance.assignors.assignor.Rules`, `writes` those of `coordinator.config.Writes`. The fields of records and messages
stand in their own tables, where ``since`` names the first release that knows a field.

`ROWS` is the table, `TABLE` the same with all that rows inherit, `NEWEST` its last row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from typing import Any

Version = tuple[int, ...]
"""Four numbers."""

Changes = Mapping[str, Any]

_NUMBER = r"[0-9]{1,9}"
BEFORE_RELEASE = re.compile(r"-(?i:snapshot|rc[0-9]{1,3})")
"""How the name of a build ends that is not released yet."""
_NAME = re.compile(
    rf"({_NUMBER})(?:\.({_NUMBER})(?:\.({_NUMBER}))?(?:\.({_NUMBER}))?)?(?:-java|{BEFORE_RELEASE.pattern})?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRelease:
    """A release, or the first of several that are alike.

    Attributes:
        name: the release in which this changed; of a line such as ``4.3`` it is the first, 4.3.0.
        until: the line's last patch release that is known, where no row names it.
        says: what differs, if nothing in the other columns does.
        scala, java: attributes of the profiles of the two coordinators; None while the release has no such one.
        scala_era, java_era: names in `replay.expiry.ERAS`.
        load: ``reads_large_batches``: the buffer grows for them (``L-6``); ``ends_without_data``, where nothing is read
            (``L-4``, told since 0.11); ``serves_what_it_read`` before it failed, from the cache (``L-10``).
        writes: the layouts that its coordinators write.
        defaults: defaults of the broker's settings, with underscores for dots.
        cleaner: the cleaner's rules; None before 3.1, since when the time of deletion stands in the batch.
        assignors: what the assignors of its clients do; None before 2.5.
        metadata_versions: names of the levels of ``metadata.version`` that its brokers are the first to know, released
            or not; before 3.9 those of its own name. The first ever is level 1.
        features: feature → the level that a new cluster starts with; unknown before 4.0.
        apis: API → its newest version, of those that read groups and offsets; unknown before 3.7.
        errors: the protocol's error codes that came, of 4.4 on.
        settings: configurations of topics, groups and brokers that came and hold no secret, of 4.4 on.
    """

    name: str
    until: str | None = None
    says: str | None = None
    scala: Changes | None = field(default_factory=dict)
    java: Changes | None = field(default_factory=dict)
    scala_era: str | None = None
    java_era: str | None = None
    load: Changes = field(default_factory=dict)
    writes: Changes = field(default_factory=dict)
    defaults: Mapping[str, int] = field(default_factory=dict)
    cleaner: Changes | None = field(default_factory=dict)
    assignors: Changes | None = field(default_factory=dict)
    metadata_versions: tuple[str, ...] = ()
    features: Mapping[str, int] = field(default_factory=dict)
    apis: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()

    @property
    def version(self) -> Version:
        """Its number."""
        return version_of(self.name)

    @property
    def line(self) -> Version:
        """Major and minor."""
        return self.version[:2]


def _row(name: str, **columns: Any) -> KafkaRelease:
    return KafkaRelease(name=name, **columns)


CONSUMER_TYPES = frozenset({3, 4, 5, 6, 7, 8})
SHARE_TYPES = frozenset({10, 11, 12, 13, 14, 15})
STREAMS_TYPES = frozenset({17, 19, 20, 21, 22, 23})
CLASSIC_TYPES = frozenset({0, 1, 2})
REGULAR_EXPRESSION_TYPE = frozenset({16})

# fmt: off
ROWS: tuple[KafkaRelease, ...] = (
    _row(
        "0.8.2", until="0.8.2.2",
        scala={
            "release": (0, 8), "known_types": frozenset({0}), "newest_value_versions": ((0, 0),), "newest_magic": 0,
            "transactions_by_bit": True, "reads_first_control_record_only": True, "unknown_marker_aborts": True,
            "tombstone_spares_committed": True, "cancels_pending": "own", "latest_by": "batch",
            "offsets_make_groups": True, "is_unavailable_after_failure": False, "answers_from_one_cache": True,
            "skips_unknown_types": False, "refuses_duplicate_instance_ids": False, "refuses_subscriptions": False,
            "negative_rebalance_timeout_is_session": False, "reads_zstd": False, "counts_written_offsets": False,
        },
        scala_era="0.8.2",
        load={"reads_large_batches": False, "ends_without_data": True, "serves_what_it_read": True},
        writes={"magic": 0, "key_type": 0, "offset_value_version": 0, "always_expires": True},
        defaults={
            "offsets_retention_minutes": 24 * 60, "group_max_session_timeout_ms": 30_000,
            "group_initial_rebalance_delay_ms": 0,
        },
    ),
    _row(
        "0.9", until="0.9.0.1",
        scala={
            "release": (0, 9), "known_types": CLASSIC_TYPES, "newest_value_versions": ((0, 1), (1, 1), (2, 0)),
        },
        scala_era="0.9",
        writes={"key_type": 1, "offset_value_version": 1, "group_value_version": 0},
    ),
    _row(
        "0.10.0",
        scala={"release": (0, 10), "newest_magic": 1},
        writes={"magic": 1},
        defaults={"group_max_session_timeout_ms": 300_000},
    ),
    _row(
        "0.10.1", until="0.10.2.2",
        scala={"newest_value_versions": ((0, 1), (1, 1), (2, 1)), "checks_removed_groups": True},
        scala_era="0.10.1",
        load={"serves_what_it_read": False},
        writes={"group_value_version": 1},
    ),
    _row(
        "0.11", until="0.11.0.3",
        scala={"release": (0, 11), "newest_magic": 2}, load={"ends_without_data": False},
        writes={"magic": 2},
        defaults={"group_initial_rebalance_delay_ms": 3000},
    ),
    _row("1.0", until="1.0.2"),
    _row("1.1", until="1.1.1"),
    _row(
        "2.0", until="2.0.1",
        scala_era="2.0",
        load={"reads_large_batches": True},
        defaults={"offsets_retention_minutes": 7 * 24 * 60},
    ),
    _row(
        "2.1", until="2.1.1",
        scala={"release": (2, 1), "newest_value_versions": ((0, 3), (1, 3), (2, 2)), "reads_zstd": True},
        scala_era="2.1",
        writes={"offset_value_version": 3, "always_expires": False, "group_value_version": 2},
    ),
    _row("2.2", until="2.2.2"),
    _row(
        "2.3", until="2.3.1",
        scala={"release": (2, 3), "newest_value_versions": ((0, 3), (1, 3), (2, 3))},
        writes={"group_value_version": 3},
        defaults={"group_max_session_timeout_ms": 1_800_000},
    ),
    _row("2.4", scala_era="2.4"),
    _row("2.4.1", load={"ends_without_data": True}),
    _row(
        "2.5", until="2.5.1",
        assignors={
            "revokes_in_order": False, "uses_racks": False, "tolerates_one_more": False, "compares_claims": False,
            "has_generation_field": False, "counts_members_above_quota": False, "keeps_claims": False,
        },
    ),
    _row("2.6", until="2.6.3"),
    _row("2.7", until="2.7.2"),
    _row("2.8"),
    _row("2.8.2", scala_era="classic"),
    _row(
        "3.0",
        scala={"release": (3, 0), "refuses_duplicate_instance_ids": True, "refuses_subscriptions": True},
        scala_era="2.4",
        assignors={"counts_members_above_quota": True, "keeps_claims": True},
        metadata_versions=("3.0-IV1",),
    ),
    _row("3.0.1", until="3.0.2", scala_era="classic"),
    _row(
        "3.1",
        scala_era="2.4",
        cleaner={
            "keeps_empty_at": None, "makes_magic_2": False, "indexes_each_batch": False,
            "finds_by_base_offset": False, "reads_txnindex_as_message": False,
        },
        metadata_versions=("3.1-IV0",),
    ),
    _row("3.1.1", until="3.1.2", scala_era="classic"),
    _row("3.2", until="3.2.3", metadata_versions=("3.2-IV0",)),
    _row("3.3", until="3.3.2", metadata_versions=("3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3")),
    _row(
        "3.4",
        assignors={"compares_claims": True, "has_generation_field": True},
        metadata_versions=("3.4-IV0",),
    ),
    _row(
        "3.4.1",
        scala={
            "release": (3, 9), "skips_unknown_types": True,
            "newest_value_versions": ((0, 4), (1, 4), (2, 4)),
        },
    ),
    _row(
        "3.5", until="3.5.2",
        assignors={"uses_racks": True, "tolerates_one_more": True},
        metadata_versions=("3.5-IV0", "3.5-IV1", "3.5-IV2"),
    ),
    _row("3.6", until="3.6.2", metadata_versions=("3.6-IV0", "3.6-IV1", "3.6-IV2")),
    _row(
        "3.7",
        java={
            "release": (3, 7), "known_types": CLASSIC_TYPES | CONSUMER_TYPES,
            "cancels_pending": "none", "latest_by": "marker", "lower_case_states": True, "reads_newer_as_newest": True,
            "tombstones_need_their_target": True,
        },
        java_era="modern-3.7",
        metadata_versions=("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4"),
        apis={
            "Fetch": 16, "ListOffsets": 8, "Metadata": 12, "OffsetFetch": 9, "FindCoordinator": 4, "DescribeGroups": 5,
            "ListGroups": 4, "SaslHandshake": 1, "ApiVersions": 3, "OffsetForLeaderEpoch": 4, "DescribeConfigs": 4,
            "DescribeLogDirs": 4, "SaslAuthenticate": 2, "DescribeCluster": 1, "ConsumerGroupDescribe": 0,
        },
    ),
    _row("3.7.1", until="3.7.2", assignors={"revokes_in_order": True}),
    _row(
        "3.8", until="3.8.1",
        java={
            "release": (3, 8), "cancels_pending": "all", "latest_by": "record",
            "lower_case_states": False,
        },
        java_era="3.8-java",
        metadata_versions=("3.8-IV0",),
        apis={"FindCoordinator": 5, "ListGroups": 5, "DescribeTopicPartitions": 0},
    ),
    _row(
        "3.9", until="3.9.1",
        java={"release": (3, 9)},
        cleaner={"indexes_each_batch": True},
        metadata_versions=("3.9-IV0", "4.0-IV0", "4.0-IV1"),
        apis={"Fetch": 17, "ListOffsets": 9, "FindCoordinator": 6, "ApiVersions": 4, "ShareGroupDescribe": 0},
    ),
    _row("3.9.2", cleaner={"keeps_empty_at": "first_uncleanable"}),
    _row(
        "4.0",
        scala=None,
        java={
            "release": (4, 0), "reads_newer_as_newest": False, "tombstones_need_their_target": False,
            "replaces_simple_group": frozenset({"consumer"}),
            "known_types": CLASSIC_TYPES | CONSUMER_TYPES | frozenset({9}) | SHARE_TYPES | REGULAR_EXPRESSION_TYPE,
        },
        cleaner={"makes_magic_2": True},
        metadata_versions=("4.0-IV2", "4.0-IV3", "4.1-IV0"),
        features={
            "metadata.version": 25, "eligible.leader.replicas.version": 0, "group.version": 1, "kraft.version": 1,
            "transaction.version": 2,
        },
        apis={
            "ListOffsets": 10, "Metadata": 13, "DescribeGroups": 6, "DescribeCluster": 2, "ConsumerGroupDescribe": 1,
        },
    ),
    _row("4.0.1", java_era="4.0.1"),
    _row("4.0.2", java={"partitions_have_one_owner": False, "commit_interval_offsets": 16_384}),
    _row(
        "4.1",
        java={
            "release": (4, 1), "finds_by_base_offset": True, "type_0_needs_version_0": True,
            "partitions_have_one_owner": True, "commit_interval_offsets": None,
            "known_types": CLASSIC_TYPES | CONSUMER_TYPES | SHARE_TYPES | REGULAR_EXPRESSION_TYPE | STREAMS_TYPES,
        },
        writes={"offset_value_version": 4},
        cleaner={"finds_by_base_offset": True},
        metadata_versions=("4.1-IV1", "4.2-IV0", "4.2-IV1"),
        features={
            "metadata.version": 27, "eligible.leader.replicas.version": 1, "share.version": 0, "streams.version": 0,
        },
        apis={
            "Fetch": 18, "OffsetFetch": 10, "ShareGroupDescribe": 1, "StreamsGroupDescribe": 0,
            "DescribeShareGroupOffsets": 0,
        },
    ),
    _row("4.1.1", java={"commit_interval_offsets": 16_384}),
    _row("4.1.2", java={"partitions_have_one_owner": False}),
    _row(
        "4.2",
        java={"release": (4, 2)},
        metadata_versions=("4.3-IV0",),
        features={"metadata.version": 29, "share.version": 1, "streams.version": 1},
        apis={"ListOffsets": 11, "DescribeShareGroupOffsets": 1},
    ),
    _row("4.2.1", java={"replaces_simple_group": frozenset({"consumer", "streams"})}),
    _row(
        "4.2.2",
        says="A record that is larger than max.decompressed.message.bytes once it is decompressed ends a round of the "
        "cleaner. A classic member cannot join a consumer group that has members while "
        "group.consumer.migration.policy is disabled. Loads, expiry and formats are as in 4.2.1.",
        settings=("max.decompressed.message.bytes",),
    ),
    _row(
        "4.3",
        java={
            "release": (4, 3), "first_epoch": 1,
        },
        metadata_versions=("4.4-IV0",),
        features={"metadata.version": 30},
        apis={"DescribeLogDirs": 5},
    ),
    _row(
        "4.3.1",
        says="A classic member cannot join a consumer group that has members while group.consumer.migration.policy is "
        "disabled. Loads, cleaning, expiry, formats and the tables of tools are as in 4.3.0.",
    ),
    _row(
        "4.4",
        java={
            "release": (4, 4), "refuses_subscriptions": False, "first_validated_topology_epoch": -1,
            "reads_txnindex_as_message": True,
        },
        java_era="modern",
        cleaner={"keeps_empty_at": "high_watermark", "reads_txnindex_as_message": True},
        metadata_versions=("4.4-IV1", "4.4-IV2", "4.5-IV0"),
        features={"metadata.version": 33, "share.version": 2},
        apis={"ApiVersions": 5, "StreamsGroupDescribe": 1},
        errors={
            134: "GROUP_DELETION_FAILED", 135: "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED",
            136: "CONTROLLER_ID_NOT_REGISTERED",
        },
        settings=(
            "consumer.assignor.offload.enable", "errors.deadletterqueue.auto.create.topics.enable",
            "errors.deadletterqueue.copy.record.enable", "errors.deadletterqueue.group.enable",
            "errors.deadletterqueue.topic.name", "errors.deadletterqueue.topic.name.prefix",
            "group.consumer.assignor.offload.enable", "group.share.assignor.offload.enable",
            "group.streams.assignor.offload.enable", "log.remote.copy.lag.bytes", "log.remote.copy.lag.ms",
            "remote.copy.lag.bytes", "remote.copy.lag.ms",
            "share.assignor.offload.enable", "streams.acceptable.recovery.lag", "streams.assignor.name",
            "streams.assignor.offload.enable", "streams.num.warmup.replicas", "streams.rack.aware.assignment.tags",
            "streams.task.offset.interval.ms",
        ),
    ),
)
# fmt: on
"""The table itself."""


def version_of(name: str) -> Version:
    """Return the four numbers of ``X``, ``X.Y``, ``X.Y.Z`` or ``0.X.Y.Z``, whatever follows: ``-java``, ``-rc1``.

    Raises:
        ValueError: it is no release's name.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is no release of Kafka, such as {NEWEST.name} or {NEWEST.name}.0")
    return tuple(int(number or 0) for number in match.groups()[:4])


_INHERITED = ("scala_era", "java_era")
_MAY_LACK = ("scala", "java", "cleaner", "assignors")


def _inherit(before: KafkaRelease, row: KafkaRelease) -> KafkaRelease:
    """Return a row with what it has from the row before; a mapping that is None in a row has ended, or not begun."""
    columns: dict[str, Any] = {name: getattr(row, name) or getattr(before, name) for name in _INHERITED}
    for column in fields(row):
        changes = getattr(row, column.name)
        if isinstance(changes, Mapping):
            found = {**(getattr(before, column.name) or {}), **changes}
            columns[column.name] = found or (None if column.name in _MAY_LACK else found)
    return replace(row, **columns)


_NOTHING = _row("0.0")
TABLE: tuple[KafkaRelease, ...] = tuple(accumulate(ROWS, _inherit, initial=_NOTHING))[1:]
"""The same with all that rows inherit, oldest first."""
NEWEST, OLDEST = TABLE[-1], TABLE[0]
SPAN = f"{OLDEST.name} to {NEWEST.name}"
"""What is known, in words."""

FIRST_CLEANER = next(row for row in TABLE if row.cleaner is not None)
"""The first release whose cleaner is known."""

METADATA_VERSIONS = tuple(name for row in ROWS for name in row.metadata_versions)
"""Names of the levels of ``metadata.version`` from 1 on (``MetadataVersion.java``)."""
FIRST_METADATA_VERSIONS = next(row for row in ROWS if row.metadata_versions)
"""The first release that has such levels."""
SETTINGS = frozenset(name for row in ROWS for name in row.settings)


def row_of(version: Version) -> KafkaRelease:
    """Return the last row at or before a version; the first for one before all."""
    return next((row for row in reversed(TABLE) if row.version <= (*version, 0, 0, 0, 0)[:4]), OLDEST)


def newest_metadata_version(row: KafkaRelease) -> int:
    """Return the newest level of ``metadata.version`` that brokers of a release know; 0 before there were any."""
    return sum(len(one.metadata_versions) for one in ROWS if one.version <= row.version)
