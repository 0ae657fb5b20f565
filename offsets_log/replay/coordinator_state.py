"""What a coordinator holds after loading one offsets partition: the end of a replay.

Served is what OffsetFetch answers: the committed offsets of groups that exist (``J-15``, ``B-17``). The offsets of
other groups are *orphans*: in the log, in the coordinator's memory, and given to nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from offsets_log.replay.groups import CLASSIC, SIMPLE, group_kind
from offsets_log.replay.partial import OffsetAndMetadata, PartialState


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """The state after a load.

    Attributes:
        group_kinds: group id → kind, of the groups that exist.
        committed: every committed offset, orphans included.
        pending: offsets of open transactions, of groups that do not exist too (``B-2``).
        end_offset: the log's next offset.
    """

    group_kinds: dict[str, str]
    committed: tuple[OffsetAndMetadata, ...]
    pending: tuple[OffsetAndMetadata, ...]
    end_offset: int

    def iter_served(self) -> Iterator[OffsetAndMetadata]:
        """Committed offsets of groups that exist."""
        return (value for value in self.committed if value.group in self.group_kinds)

    def iter_orphans(self) -> Iterator[OffsetAndMetadata]:
        """Committed offsets of groups that do not exist."""
        return (value for value in self.committed if value.group not in self.group_kinds)


def finish(state: PartialState) -> CoordinatorState:
    """The state of a whole log, from its first record on."""
    kinds = {group: group_kind(timeline, state.profile) for group, timeline in state.timelines.items()}
    if state.profile.offsets_make_groups:
        with_offsets = {value.group for value in (*state.iter_committed(), *state.iter_pending())}
        for group, kind in kinds.items():
            if kind != CLASSIC:
                kinds[group] = SIMPLE if group in with_offsets else None
    return CoordinatorState(
        group_kinds={group: kind for group, kind in kinds.items() if kind is not None},
        committed=tuple(state.iter_committed()),
        pending=tuple(state.iter_pending()),
        end_offset=state.end_offset,
    )
