"""What few records touch: regions of ``overflow``, each with records of one kind, which are found by their numbers.

The scan state knows where a region begins, and its room. Beside them are three hash tables, of groups, producers and
partitions that are owned (`scan.interner`).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from offsets_log.columnar import arrays as a
from offsets_log.columnar.jit.compiled import inlined, within
from offsets_log.columnar.jit.records import Long, Record


class Producer(Record):
    """A producer: its first marker, and its open records as a chain from the newest to the oldest."""

    region: ClassVar[str] = "producers"
    producer_id: Long
    head_offset: Long
    head_commits: Long
    newest: Long
    oldest: Long


class Opened(Record):
    """A record of an open transaction; one that cancels is a tombstone of the producer's own transaction."""

    region: ClassVar[str] = "opened"
    row: Long
    offset: Long
    batch: Long
    index: Long
    cancels: Long
    older: Long


class Cancelled(Record):
    """What a producer's tombstones cancelled before its first marker."""

    region: ClassVar[str] = "cancelled"
    producer: Long
    row: Long


class More(Record):
    """More of a row: the last resolution that met it; the topic id its values name, and the last record that did."""

    region: ClassVar[str] = "more"
    seen_by: Long
    topic_high: Long
    topic_low: Long
    topic_offset: Long
    # Of a key of the newer kinds of groups (`folds.newer`):
    state: Annotated[Long, "seen_by"]  # of a member's own key: a phase, bits for its target and whether it exists
    turn: Annotated[Long, "seen_by"]  # of a CURRENT key: how many records it had; where topics are named: a hash
    needed: Annotated[Long, "topic_high"]  # offset + 1 of the first record that needs a member of which nothing tells
    missed: Annotated[Long, "topic_low"]  # whether it exists, and of the first that needs one that does not (``J-18``)
    given_back: Annotated[Long, "topic_low"]  # of a CURRENT key, while pieces are joined: as `first_turn`
    first_turn: Annotated[Long, "topic_offset"]  # of a CURRENT key: offset + 1 of its first record


class Named(Record):
    """A topic id that a row's values named once."""

    region: ClassVar[str] = "named"
    row: Long
    high: Long
    low: Long
    offset: Long


class Unended(Record):
    """What an inspection has seen of a producer: records of offsets without a marker yet, the first one, and whether
    there was a marker at all."""

    region: ClassVar[str] = "unended"
    offset: Long
    time: Long
    batch: Long
    count: Long
    is_ended: Long
    waiting: Annotated[Long, "offset"]  # where the newest sample is that waits for a marker, and one more


class Owned(Record):
    """A partition that a member of a consumer group took, and which of the member's assignments did it last; the first
    record that took it, and its key."""

    region: ClassVar[str] = "owned"
    group: Long
    high: Long
    low: Long
    partition: Long
    owner: Long
    owner_turn: Long
    first_owned: Long
    first_owner: Long


class Told(Record):
    """A record with names of topics whose key has a later one."""

    region: ClassVar[str] = "told"
    offset: Long
    batch: Long
    index: Long


class Kept(Record):
    """Any record of a group that is read again; with NOTHING as its batch, that there were offset values of it."""

    region: ClassVar[str] = "kept"
    group: Long
    offset: Long
    batch: Long
    index: Long


SLOTS = ("group_slots", "producer_slots", "owned_slots")
"""The hash tables."""
REGIONS: tuple[Any, ...] = (Producer, Opened, Cancelled, More, Named, Unended, Owned, Told, Kept)
SIZES = dict.fromkeys(SLOTS, 1) | {of.region: of.dtype.itemsize // 8 for of in REGIONS}
"""Region → size of an entry."""

_PRODUCER, _OPENED, _CANCELLED, _MORE = within(Producer), within(Opened), within(Cancelled), within(More)
_NAMED, _UNENDED, _OWNED, _TOLD, _KEPT = within(Named), within(Unended), within(Owned), within(Told), within(Kept)


@inlined
def producer_at(arrays: a.Arrays, number: Any) -> Producer:
    """Return a producer."""
    return _PRODUCER(arrays.overflow, arrays.scan_state.producers_at, number)


@inlined
def opened_at(arrays: a.Arrays, number: Any) -> Opened:
    """Return a record of an open transaction."""
    return _OPENED(arrays.overflow, arrays.scan_state.opened_at, number)


@inlined
def cancelled_at(arrays: a.Arrays, number: Any) -> Cancelled:
    """Return what was cancelled."""
    return _CANCELLED(arrays.overflow, arrays.scan_state.cancelled_at, number)


@inlined
def more_at(arrays: a.Arrays, row: Any) -> More:
    """Return more of a row."""
    return _MORE(arrays.overflow, arrays.scan_state.more_at, row)


@inlined
def named_at(arrays: a.Arrays, number: Any) -> Named:
    """Return a topic id that was named."""
    return _NAMED(arrays.overflow, arrays.scan_state.named_at, number)


@inlined
def unended_at(arrays: a.Arrays, producer: Any) -> Unended:
    """Return what a survey has seen of a producer."""
    return _UNENDED(arrays.overflow, arrays.scan_state.unended_at, producer)


@inlined
def owned_at(arrays: a.Arrays, number: Any) -> Owned:
    """Return a partition that was taken."""
    return _OWNED(arrays.overflow, arrays.scan_state.owned_at, number)


@inlined
def told_at(arrays: a.Arrays, number: Any) -> Told:
    """Return a record with names of topics."""
    return _TOLD(arrays.overflow, arrays.scan_state.told_at, number)


@inlined
def kept_at(arrays: a.Arrays, number: Any) -> Kept:
    """Return a record of a group that is read again."""
    return _KEPT(arrays.overflow, arrays.scan_state.kept_at, number)
