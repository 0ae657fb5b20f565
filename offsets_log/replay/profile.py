"""Define what the coordinators of different releases make of the same log.

A profile is data; the rules that use it are in `partial` (offsets), `groups` and `refusal` (what ends a load).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from offsets_log.log_format.batch import NO_PRODUCER_ID, RecordBatch

CONSUMER_TYPES = frozenset({3, 4, 5, 6, 7, 8})
OFFSET_AND_GROUP_TYPES = frozenset({0, 1, 2})
STREAMS_TYPES = frozenset({17, 19, 20, 21, 22, 23})


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The rules of one coordinator in one release.

    Attributes:
        name: its name in `--profile` and `--loads-on`.
        release: (major, minor); decides which layout is read where several share a version number.
        transactions_by_bit: whether a data batch belongs to a transaction if its attribute bit says so (``L-11``), or
            if it has a producer id (``J-5``).
        reads_first_control_record_only: whether only the first record of a control batch is read (``L-12``), or all
            (``J-2``).
        unknown_marker_aborts: whether a control record that is no marker discards the producer's pending offsets
            (``L-12``).
        tombstone_spares_committed: whether a transactional tombstone leaves committed offsets alone (``L-18``).
        cancels_pending: whose pending offsets a tombstone cancels: those of ``all`` producers (``J-12``), its ``own``
            producer's if it is transactional (``L-18``), or ``none`` (``J-12`` of 3.7).
        latest_by: by what a transaction's offset must be later than the committed one to replace it: by its ``record``
            offset (``J-11``), by the number of its ``batch`` (``L-9``, ``L-13``), or by its ``marker``, which always
            is (``J-11`` of 3.7).
        offsets_make_groups: whether groups with offsets, even pending ones, exist once the whole log is read
            (``L-36``); otherwise an offset creates its group at the moment its record is replayed (``J-6``, ``J-15``).
        checks_removed_groups: whether a removed group that offsets keep alive is an error at the end (``L-39``,
            ``B-4``).
        is_unavailable_after_failure: whether a failed partition answers nobody (``J-3``), or is served empty
            (``L-42``).
        answers_from_one_cache: whether a group is answered for from whichever partition it was loaded (``D-11``), or
            from its own only.
        known_types: record types it replays.
        skips_unknown_types: whether unknown types are skipped with a warning (``L-21``, ``J-3``), or end the load.
        newest_value_versions: record type → newest value version it reads; 0 for a type that is not listed (``Y4``).
        reads_newer_as_newest: whether newer value versions are read as the newest instead of refused (``Y4``, 3.7 to
            3.9).
        type_0_needs_version_0: whether other value versions under a type 0 key are refused (``Y6``).
        tombstones_need_their_target: whether a tombstone for an unknown group or member ends the load (``J-18``).
        replaces_simple_group: kinds of groups whose records replace a simple group (``J-19``, ``B-1``).
        partitions_have_one_owner: whether a held partition is never taken over (``J-20``); otherwise an owner of a
            lower epoch gives way.
        first_epoch: group and assignment epoch of a newer kind's group before a record sets them.
        refuses_duplicate_instance_ids: whether one instance id twice in a type 2 record ends the load (``L-31``).
        refuses_subscriptions: whether a type 2 member's subscription with a length that cannot be ends the load
            (``B-18``).
        negative_rebalance_timeout_is_session: whether a type 2 member's negative rebalance timeout means its session
            timeout (``L-27``).
        lower_case_states: whether names of the newer kinds' states are in lower case (``B-15``).
        newest_magic: newest batch format it reads.
        reads_zstd: whether it reads zstd (since 2.1).
        finds_by_base_offset: whether a position in the log is found by batches' base offsets (since 4.1) or by their
            last offsets.
        counts_written_offsets: whether a load ends where the log's offsets go back (``D-6``).
        commit_interval_offsets: the number of offsets after which it counts at the latest (since 4.2); None if it
            counts only at the end of the log.
    """

    name: str
    release: tuple[int, int]
    transactions_by_bit: bool = False
    reads_first_control_record_only: bool = False
    unknown_marker_aborts: bool = False
    tombstone_spares_committed: bool = False
    cancels_pending: str = "all"
    latest_by: str = "record"
    offsets_make_groups: bool = False
    checks_removed_groups: bool = False
    is_unavailable_after_failure: bool = True
    answers_from_one_cache: bool = False
    known_types: frozenset[int]
    skips_unknown_types: bool = True
    newest_value_versions: tuple[tuple[int, int], ...] = ((0, 4), (1, 4), (2, 4))
    reads_newer_as_newest: bool = False
    type_0_needs_version_0: bool = False
    tombstones_need_their_target: bool = False
    replaces_simple_group: frozenset[str] = frozenset()
    partitions_have_one_owner: bool = True
    first_epoch: int = 0
    refuses_duplicate_instance_ids: bool = True
    refuses_subscriptions: bool = True
    negative_rebalance_timeout_is_session: bool = True
    lower_case_states: bool = False
    newest_magic: int = 2
    reads_zstd: bool = True
    finds_by_base_offset: bool = False
    counts_written_offsets: bool = True
    commit_interval_offsets: int | None = None

    def newest_value_version(self, record_type: int) -> int:
        """Return the newest version it reads of that record type's value."""
        return dict(self.newest_value_versions).get(record_type, 0)

    def skips(self, record_type: int) -> bool:
        """Whether records of a type are skipped, whatever they contain (``L-21``, ``records:Y3``)."""
        return self.skips_unknown_types and record_type not in self.known_types

    def is_transactional(self, batch: RecordBatch) -> bool:
        """Whether a data batch belongs to a transaction."""
        return bool(self.is_in_transaction(batch.is_transactional, batch.producer_id))

    def is_in_transaction(self, has_bit: Any, producer_id: Any) -> Any:
        """Whether a batch with this attribute bit and producer id belongs to a transaction; takes arrays too."""
        return has_bit if self.transactions_by_bit else producer_id != NO_PRODUCER_ID


MODERN = Profile(
    name="modern",
    release=(4, 3),
    known_types=OFFSET_AND_GROUP_TYPES | CONSUMER_TYPES | STREAMS_TYPES | {10, 11, 12, 13, 14, 15, 16},
    type_0_needs_version_0=True,
    replaces_simple_group=frozenset({"consumer", "streams"}),
    partitions_have_one_owner=False,
    first_epoch=1,
    finds_by_base_offset=True,
    commit_interval_offsets=16_384,
)
"""The Java coordinator as of 4.3."""

_JAVA_4_2 = replace(MODERN, name="4.2", release=(4, 2), replaces_simple_group=frozenset({"consumer"}), first_epoch=0)
_JAVA_4_1 = replace(_JAVA_4_2, name="4.1", release=(4, 1), partitions_have_one_owner=True, commit_interval_offsets=None)
_JAVA_4_0 = replace(
    _JAVA_4_1,
    name="4.0",
    release=(4, 0),
    finds_by_base_offset=False,
    known_types=OFFSET_AND_GROUP_TYPES | CONSUMER_TYPES | {9, 10, 11, 12, 13, 14, 15, 16},
    type_0_needs_version_0=False,
)
_JAVA_3_9 = replace(
    _JAVA_4_0,
    name="3.9-java",
    release=(3, 9),
    known_types=OFFSET_AND_GROUP_TYPES | CONSUMER_TYPES,
    reads_newer_as_newest=True,
    tombstones_need_their_target=True,
    replaces_simple_group=frozenset(),
)
_JAVA_3_8 = replace(_JAVA_3_9, name="3.8-java", release=(3, 8))

MODERN_3_7 = replace(
    _JAVA_3_8,
    name="modern-3.7",
    release=(3, 7),
    cancels_pending="none",
    latest_by="marker",
    lower_case_states=True,
)
"""The Java coordinator's first preview."""

CLASSIC = Profile(
    name="classic",
    release=(3, 9),
    transactions_by_bit=True,
    reads_first_control_record_only=True,
    unknown_marker_aborts=True,
    tombstone_spares_committed=True,
    cancels_pending="own",
    latest_by="batch",
    offsets_make_groups=True,
    checks_removed_groups=True,
    is_unavailable_after_failure=False,
    answers_from_one_cache=True,
    known_types=OFFSET_AND_GROUP_TYPES,
    negative_rebalance_timeout_is_session=False,
    counts_written_offsets=False,
)
"""The Scala coordinator, up to 3.9 (``doLoadGroupsAndOffsets``)."""

_SCALA_3_4_0 = replace(
    CLASSIC,
    name="3.4.0",
    release=(3, 4),
    skips_unknown_types=False,
    newest_value_versions=((0, 3), (1, 3), (2, 3)),
)
_SCALA_2_3 = replace(
    _SCALA_3_4_0,
    name="2.3",
    release=(2, 3),
    refuses_duplicate_instance_ids=False,
    refuses_subscriptions=False,
)
_SCALA_2_1 = replace(_SCALA_2_3, name="2.1", release=(2, 1), newest_value_versions=((0, 3), (1, 3), (2, 2)))
_SCALA_0_11 = replace(
    _SCALA_2_1,
    name="0.11",
    release=(0, 11),
    newest_value_versions=((0, 1), (1, 1), (2, 1)),
    reads_zstd=False,
)
_SCALA_0_10_1 = replace(_SCALA_0_11, name="0.10.1", release=(0, 10), newest_magic=1)
_SCALA_0_9 = replace(
    _SCALA_0_10_1,
    name="0.9",
    release=(0, 9),
    newest_value_versions=((0, 1), (1, 1), (2, 0)),
    checks_removed_groups=False,
    newest_magic=0,
)
_SCALA_0_10_0 = replace(_SCALA_0_9, name="0.10.0", release=(0, 10), newest_magic=1)
_SCALA_0_8_2 = replace(
    _SCALA_0_9, name="0.8.2", release=(0, 8), known_types=frozenset({0}), newest_value_versions=((0, 0),)
)

PROFILES = {profile.name: profile for profile in (MODERN, MODERN_3_7, CLASSIC)}
"""The values of `--profile`."""

RELEASES: dict[str, Profile] = {
    "0.8.2": _SCALA_0_8_2,
    "0.9": _SCALA_0_9,
    "0.10.0": _SCALA_0_10_0,
    "0.10.1": _SCALA_0_10_1,
    "0.11": _SCALA_0_11,
    "2.0": _SCALA_0_11,
    "2.1": _SCALA_2_1,
    "2.3": _SCALA_2_3,
    "3.0": replace(_SCALA_3_4_0, name="3.0", release=(3, 0)),
    "3.4.1": CLASSIC,
    "3.7-java": MODERN_3_7,
    "3.8-java": _JAVA_3_8,
    "3.9-java": _JAVA_3_9,
    "4.0": _JAVA_4_0,
    "4.1": _JAVA_4_1,
    "4.2": _JAVA_4_2,
    "4.3": MODERN,
}
"""First release with these rules → the rules.

A release has those of the last entry at or before it; the previews of the Java coordinator, which 3.7 to 3.9 have
beside the Scala one, have names of their own.
"""

WAYS = (
    "transactions_by_bit", "reads_first_control_record_only", "unknown_marker_aborts", "tombstone_spares_committed",
    "cancels_pending", "latest_by",
)  # fmt: skip
"""Attributes of `Profile` by which records do something else to offsets."""

_READS_ALL = replace(MODERN, name="all", skips_unknown_types=False, type_0_needs_version_0=False)


def way_of(profile: Profile) -> Profile:
    """Return the rules that do with offsets what a profile does, and replay every record that can be read."""
    return replace(_READS_ALL, **{name: getattr(profile, name) for name in WAYS})


_NOTHING_TO_GROUPS = (
    "name", "release", "newest_value_versions", "reads_newer_as_newest", "type_0_needs_version_0", "newest_magic",
    "reads_zstd", "finds_by_base_offset", "counts_written_offsets", "commit_interval_offsets",
)  # fmt: skip
"""Attributes of `Profile` by which the same records of groups, once they are taken, do nothing else."""


def groups_way_of(profile: Profile) -> Profile:
    """Return the rules that do with groups what a profile does."""
    return replace(profile, **{name: getattr(MODERN, name) for name in _NOTHING_TO_GROUPS})
