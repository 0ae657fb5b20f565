"""Which groups exist after a load: the fold of a group's timeline (``replay.md`` §J.3, §J.4).

* An offset value of a group that does not exist creates a *simple* group (``J-6``, ``B-3``, ``B-17``).
* Type 2: a value replaces whatever has that id with a classic group (``J-14``), a tombstone removes it (``J-15``).
* A record of a newer kind creates its group, also in place of a simple one; a tombstone never creates one out of
  nothing (``J-18``), and the tombstone of the kind's own record (3, 11, 17) removes it (``J-17``).
* A record of another kind than the group that stands there would end the load (``J-19``, ``B-1``): it changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from offsets_log.messages.registry import CoordinatorRecord
from offsets_log.replay.profile import Profile
from offsets_log.replay.timeline import Timeline

GROUP_METADATA = 2
SIMPLE = "simple"
CLASSIC = "classic"


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A kind of group of the newer protocols.

    Attributes:
        root: the record type whose tombstone removes the group.
        replaces_simple: whether its records take the place of a simple group (``B-1``).
    """

    name: str
    root: int
    replaces_simple: bool = True


CONSUMER = GroupKind("consumer", root=3)
SHARE = GroupKind("share", root=11, replaces_simple=False)
STREAMS = GroupKind("streams", root=17)

KIND_OF_TYPE: dict[int, GroupKind] = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), CONSUMER),
    **dict.fromkeys((9, 10, 11, 12, 13, 14, 15), SHARE),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), STREAMS),
}


def group_kind(timeline: Timeline, profile: Profile) -> str | None:
    """What the group is once its timeline is replayed: ``simple``, ``classic``, ``consumer``, …, or None."""
    kind: str | None = None
    for event in timeline.events:
        if event.record is None:
            kind = kind or SIMPLE
        elif event.record.record_type == GROUP_METADATA:
            kind = None if event.record.is_tombstone else CLASSIC
        elif profile.knows_newer_groups:
            kind = _after_kind_record(kind, event.record)
    return kind


def _after_kind_record(kind: str | None, record: CoordinatorRecord) -> str | None:
    own = KIND_OF_TYPE[record.record_type]
    stands = kind == own.name or (kind == SIMPLE and own.replaces_simple)
    if record.is_tombstone:
        if not stands:
            return kind
        return None if record.record_type == own.root else own.name
    return own.name if stands or kind is None else kind
