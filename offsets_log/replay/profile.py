"""Define what the coordinators of different releases make of the same log.

A profile is data, taken from the table of releases; the rules that use it are in `partial` (offsets), `groups` and
`refusal` (what ends a load).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from offsets_log.kafka_releases import ROWS, TABLE
from offsets_log.log_format.batch import NO_PRODUCER_ID, RecordBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The rules of one coordinator in one release.

    Attributes:
        name: its name in verdicts.
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
        first_validated_topology_epoch: the same of the topology epoch that a streams group was validated for
            (``K44-11``).
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
        reads_txnindex_as_message: whether a version of an aborted transaction that is not 0 keeps the log from opening
            (since 4.4), or only one above 0 in its first byte (``K44-21``).
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
    first_validated_topology_epoch: int = 0
    refuses_duplicate_instance_ids: bool = True
    refuses_subscriptions: bool = True
    negative_rebalance_timeout_is_session: bool = True
    lower_case_states: bool = False
    newest_magic: int = 2
    reads_zstd: bool = True
    finds_by_base_offset: bool = False
    reads_txnindex_as_message: bool = False
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


def _iter_profiles() -> Iterator[tuple[str, Profile]]:
    """Yield a release with other rules than before, and its profile: the same where only the load's reading differs."""
    scala = None
    for row, whole in zip(ROWS, TABLE, strict=True):
        if row.scala:
            scala = Profile(name=row.name, **(whole.scala or {}))
        if scala is not None and (row.scala or row.load):
            yield row.name, scala
        if row.java:
            name = row.name if whole.scala is None else f"{row.name}-java"
            yield name, Profile(name=name, **(whole.java or {}))


_ALL = dict(_iter_profiles())
_SCALA = [name for name, profile in _ALL.items() if profile.offsets_make_groups]
_JAVA = [name for name in _ALL if name not in _SCALA]
_NAMED = {"modern": _JAVA[-1], "modern-3.7": _JAVA[0], "classic": _SCALA[-1]}

PROFILES = {name: replace(_ALL[release], name=name) for name, release in _NAMED.items()}
"""Profile by its name."""
MODERN, MODERN_3_7, CLASSIC = PROFILES.values()
"""The Java coordinator of the newest release; its first preview; the Scala one, up to 3.9."""

RELEASES: dict[str, Profile] = _ALL | {_NAMED[name]: profile for name, profile in PROFILES.items()}
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
    "reads_zstd", "finds_by_base_offset", "reads_txnindex_as_message", "counts_written_offsets",
    "commit_interval_offsets",
)  # fmt: skip
"""Attributes of `Profile` by which the same records of groups, once they are taken, do nothing else."""


def groups_way_of(profile: Profile) -> Profile:
    """Return the rules that do with groups what a profile does."""
    return replace(profile, **{name: getattr(MODERN, name) for name in _NOTHING_TO_GROUPS})
