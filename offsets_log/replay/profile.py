"""Whose rules: what the coordinators of different releases make of the same log (``replay.md`` §J.5).

A profile is data. The rules themselves are in `partial` (offsets) and `groups`, where these facts are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from offsets_log.log_format.batch import NO_PRODUCER_ID, RecordBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The rules of one coordinator.

    Attributes:
        name: as `--profile` takes it.
        is_transactional: whether a data batch belongs to a transaction.
        reads_first_control_record_only: of a control batch (``L-12``), else all of them (``J-2``).
        unknown_marker_aborts: a control record that is no marker discards the producer's pending offsets (``L-12``).
        tombstone_spares_committed: a transactional tombstone leaves committed offsets alone (``L-18``).
        cancels_pending: whose pending offsets a tombstone cancels: ``all`` producers' (``J-12``), its ``own`` if it is
            transactional (``L-18``), or ``none`` (``J-12`` of 3.7).
        latest_by_record: the committed offset with the highest record offset wins (``L-13``, ``J-11``), else the one
            applied last (``J-11`` of 3.7); a transaction applies where its marker stands.
        offsets_make_groups: groups of offsets, pending ones too, exist once all is read (``L-36``); else an offset
            makes its group exist at the moment its record is replayed (``J-6``, ``J-15``).
        knows_newer_groups: record types from 3 on; else they are skipped (``L-21``).
    """

    name: str
    is_transactional: Callable[[RecordBatch], bool]
    reads_first_control_record_only: bool = False
    unknown_marker_aborts: bool = False
    tombstone_spares_committed: bool = False
    cancels_pending: str = "all"
    latest_by_record: bool = True
    offsets_make_groups: bool = False
    knows_newer_groups: bool = True


def _has_producer_id(batch: RecordBatch) -> bool:
    """``J-5``."""
    return batch.producer_id != NO_PRODUCER_ID


MODERN = Profile(name="modern", is_transactional=_has_producer_id)
"""The Java coordinator as of 4.3."""

MODERN_3_7 = Profile(
    name="modern-3.7",
    is_transactional=_has_producer_id,
    cancels_pending="none",
    latest_by_record=False,
)
"""The Java coordinator's first preview."""

CLASSIC = Profile(
    name="classic",
    is_transactional=lambda batch: batch.is_transactional,  # L-11
    reads_first_control_record_only=True,
    unknown_marker_aborts=True,
    tombstone_spares_committed=True,
    cancels_pending="own",
    offsets_make_groups=True,
    knows_newer_groups=False,
)
"""The Scala coordinator, up to 3.9 (``doLoadGroupsAndOffsets``)."""

PROFILES = {profile.name: profile for profile in (MODERN, MODERN_3_7, CLASSIC)}
