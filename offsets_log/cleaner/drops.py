"""Records that a user wants to drop: single ones, groups, what has expired, everything after a moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.recovery import OpenLog
from offsets_log.cleaner.answers import undamaged
from offsets_log.cleaner.batches import batches
from offsets_log.cleaner.choice import Choice, Named
from offsets_log.cleaner.editing import Store, edited
from offsets_log.cleaner.failures import CleaningError
from offsets_log.cleaner.opening import reopened
from offsets_log.cleaner.settings import Settings
from offsets_log.errors import OffsetsLogError
from offsets_log.events import EVERYTHING, Until
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import OFFSET_COMMIT_TYPES, decode_key
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.expiry import Retention, cycle_of
from offsets_log.replay.partial import GroupTopicPartition
from offsets_log.replay.profile import PROFILES

MAX_INT64 = (1 << 63) - 1


def _all(group: str) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Drops:
    """The records to drop from one partition.

    Attributes:
        until: where the log is to end; what stands behind that is dropped.
        keeps_group: whether a group of this name stays; all records of the other groups are dropped, of any type.
        records: offsets of records to drop.
        retention: drop what a coordinator's expiry would remove with this retention; None drops nothing for its age.
    """

    until: Until = EVERYTHING
    keeps_group: Callable[[str], bool] = _all
    records: frozenset[int] = frozenset()
    retention: Retention | None = None

    def __bool__(self) -> bool:
        """Return whether anything may be dropped."""
        return self != NOTHING


NOTHING = Drops()


def dropped(
    log: PartitionLog,
    opened: OpenLog,
    drops: Drops,
    settings: Settings,
    store: Store = b"".join,
    *,
    in_bulk: bool = False,
) -> tuple[PartitionLog, OpenLog]:
    """Return the log without the records of ``drops``, as a broker opens it, with new indexes and snapshots.

    What has expired is decided last, by the log that is left once everything else is dropped.

    Args:
        in_bulk: whether to use kernels where no group is named; starting them pays for a large log only.

    Raises:
        OffsetsLogError: something cannot be read, or a record that is to go is not there.
    """
    staying = Staying(drops, _end_of(opened, drops.until))
    without = partial(_without, settings=settings, store=store, in_bulk=in_bulk)
    log, opened = without(log, opened, staying, staying.end_offset)
    if staying.missed:
        numbers = ", ".join(map(str, sorted(staying.missed)))
        raise CleaningError(f"no record of data with offset {numbers} is there to be dropped")
    if drops.retention is not None:
        unexpired = _unexpired(log, opened, settings.now_ms, drops.retention)
        log, opened = without(log, opened, unexpired, opened.end_offset or 0)
    return log, opened


def _without(
    log: PartitionLog,
    opened: OpenLog,
    choice: Choice,
    end_offset: int,
    *,
    settings: Settings,
    store: Store,
    in_bulk: bool,
) -> tuple[PartitionLog, OpenLog]:
    left = edited(log, opened, choice, settings.rules, end_offset=end_offset, store=store, in_bulk=in_bulk)
    return left, reopened(left, settings, in_bulk=in_bulk)


def _end_of(opened: OpenLog, until: Until) -> int:
    """Return where a log ended at a moment: the first later batch ends it, and all that follow count as later."""
    end_offset = opened.end_offset or 0
    if until.time_ms is not None:
        later = (batch for file in opened.files.values() for batch in batches(file))
        end_offset = next((batch.base_offset for batch in later if batch.max_timestamp_ms > until.time_ms), end_offset)
    return end_offset if until.record_offset is None else min(end_offset, until.record_offset)


@dataclass(slots=True)
class Staying:
    """Chooses the records that are not named to be dropped.

    Attributes:
        end_offset: nothing stays from there on.
        missed: records that are to go and were not met.
    """

    drops: Drops
    end_offset: int
    missed: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.missed = set(self.drops.records)

    @property
    def named(self) -> Named | None:
        """The choice by offsets; None if groups are named, which only keys tell."""
        if self.drops.keeps_group is not _all:
            return None
        return Named(self.drops.records, stay=False, until_offset=self.end_offset)

    def end_within(self, batch: FileBatch) -> int | None:
        """Return where the log is to end within a batch."""
        return self.end_offset if batch.next_offset > self.end_offset else None

    def keeps_bare(self, batch: FileBatch) -> bool:
        """Return true: every batch without records stays (``CL-35``)."""
        return True

    def keeps_all(self, batch: FileBatch) -> bool:
        """Return whether no group, and no offset in the batch, is named to go.

        Of a batch of magic 0 or 1 only the last offset is known.
        """
        if self.drops.keeps_group is not _all:
            return False
        first = -1 if batch.is_legacy else batch.offset
        return not any(first <= offset <= batch.last_offset for offset in self.missed)

    def keeps_record(self, batch: FileBatch, record: Record) -> bool:
        """Return whether a record stays, by its offset and its group."""
        if record.offset in self.drops.records:
            self.missed.discard(record.offset)
            return False
        if self.drops.keeps_group is _all:
            return True
        named = group_and_key(record)
        return named is None or self.drops.keeps_group(named[0])


@dataclass(slots=True)
class Unexpired:
    """Chooses what stays when expired offsets and groups are dropped.

    Attributes:
        pending: keys with offsets in an open transaction: of their records, those of the transaction stay, and
            tombstones, as these cancel some of what is pending (``J-12``).
        open_since: producer → where its open transaction begins.
    """

    keys: set[GroupTopicPartition]
    groups: set[str]
    pending: set[GroupTopicPartition]
    open_since: dict[int, int]

    @property
    def named(self) -> None:
        """None: only keys tell what goes."""

    def end_within(self, batch: FileBatch) -> int | None:
        """Return nothing: the log ends where it ended."""
        return None

    def keeps_bare(self, batch: FileBatch) -> bool:
        """Return true: every batch without records stays (``CL-35``)."""
        return True

    def keeps_all(self, batch: FileBatch) -> bool:
        """Return false: each record is examined."""
        return False

    def keeps_record(self, batch: FileBatch, record: Record) -> bool:
        """Return whether a record stays, by what its key names."""
        named = group_and_key(record)
        if named is None:
            return True
        group, key = named
        if key in self.pending and (record.value is None or self._is_open(batch)):
            return True
        return group not in self.groups and key not in self.keys

    def _is_open(self, batch: FileBatch) -> bool:
        return batch.is_transactional and batch.offset >= self.open_since.get(batch.producer_id, MAX_INT64)


def _unexpired(log: PartitionLog, opened: OpenLog, now_ms: int, retention: Retention) -> Unexpired:
    profile = PROFILES[retention.era.profile]
    state = finish(replay(undamaged(iter_events(log)), profile, on_damage=lambda damage: None))
    cycle = cycle_of(state, now_ms, retention)
    return Unexpired(
        keys={offset.value.key for group in cycle for offset in group.offsets if offset.expired},
        groups={group.group.group_id for group in cycle if group.removed},
        pending={value.key for value in state.pending},
        open_since=opened.producers.open_since(),
    )


def group_and_key(record: Record) -> tuple[str, GroupTopicPartition | None] | None:
    """Return what a record's key names; None if it cannot be read."""
    try:
        record_type, key, _ = decode_key(record.key)
    except OffsetsLogError:
        return None
    if record_type.number in OFFSET_COMMIT_TYPES:
        return key["group"], (key["group"], key["topic"], key["partition"])
    return key["group"] if "group" in key else key["group_id"], None
