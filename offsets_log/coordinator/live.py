"""The memory of one offsets partition while this broker leads it: what was loaded, and what was appended since.

Appended bytes are read back, replayed by the code that loads a log (`pipeline.replay`), and merged as the pieces of a
split log are. So the memory always equals what a new load would give, as with the Java coordinator (``B-12``). The
Scala coordinator's live memory differs from a loaded one if an offset or a group is deleted while a transaction is open
(``B-11``); here it is as loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from offsets_log.errors import Damage, ReplayError
from offsets_log.events import Event, LogEvent
from offsets_log.pipeline import replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.fold import OnDamage
from offsets_log.replay.live import LiveState
from offsets_log.replay.profile import Profile


@dataclass(slots=True)
class Writer:
    """What the partition knows of one producer id (``W-3``, ``W-4``).

    Attributes:
        in_transaction: whether data was written since its last marker, whatever became of that data.
    """

    producer_epoch: int = -1
    coordinator_epoch: int = -1
    in_transaction: bool = False


class LedState(LiveState):
    """The offsets, groups and open transactions of one partition, and who writes to it.

    Attributes:
        writers: producer id → its writer, for all since the partition was loaded.
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self.writers: dict[int, Writer] = {}

    def load(self, events: Iterable[LogEvent], on_damage: OnDamage) -> CoordinatorState:
        """Replay a whole log into this new memory, and return the state that it ends in."""
        loaded = replay(self._watch(events), self.profile, on_damage=on_damage)
        state = finish(loaded)
        self.add(loaded)
        return state

    def append(self, events: Iterable[LogEvent]) -> None:
        """Replay what was just written. Raises ReplayError: a load would end there."""
        for problem in self.add(replay(self._watch(events), self.profile, on_damage=_raise)).problems:
            raise ReplayError(problem.problem, rule=problem.rule)

    def _watch(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        for event in events:
            if isinstance(event, Event) and event.batch.producer_id >= 0:
                writer = self.writers.setdefault(event.batch.producer_id, Writer())
                writer.producer_epoch = max(writer.producer_epoch, event.batch.producer_epoch)
                writer.in_transaction = event.control is None
                if event.control is not None:
                    writer.coordinator_epoch = max(writer.coordinator_epoch, event.control.coordinator_epoch or 0)
            yield event


def _raise(damage: Damage) -> None:
    raise damage.error
