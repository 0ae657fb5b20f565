"""Rounds of the cleaner in this process; `spark_jobs.clean` has tasks of a cluster do them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from offsets_log.actions.partition_folders import partition_of, place_here
from offsets_log.cleaner.partition import clean_partition
from offsets_log.columnar.processors import processors

if TYPE_CHECKING:
    from offsets_log.actions.clean_changes import Changes
    from offsets_log.actions.partition_folders import PartitionFolders
    from offsets_log.cleaner.partition import Cleaned, CleanOrder
    from offsets_log.disk.folders import Place
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.session.session import Session


SIFT = "cleaning.sifting.sift"
"""The largest kernel of a round."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of a run, which are done one after the other, and what is to be done before each."""

    session: Session
    folders: PartitionFolders
    changes: Changes
    works: Sequence[tuple[PartitionLog, CleanOrder]]

    def say(self, words: str, *, is_wrong: bool = False) -> None:
        """Say something of a partition."""
        self.session.account.is_wrong |= is_wrong
        self.session.account.say(words)


class Machine:
    """Where partitions are cleaned, and their folders written: this machine."""

    def begin(self, session: Session) -> bool:
        """Get ready; return whether kernels do it."""
        is_large = session.engine.is_large_for(SIFT)
        if is_large:
            session.engine.compile_first(SIFT)
        return is_large

    def place(self, session: Session, to: str, stack: ExitStack) -> Place:
        """Make the new directory, as `place_here`."""
        return place_here(session, to, stack)

    def clean(self, rounds: Rounds, stack: ExitStack) -> Iterator[Cleaned]:
        """Clean the partitions and write their folders."""
        session, changes = rounds.session, rounds.changes
        for log, order in rounds.works:
            change = partial(changes.apply, session, settings=order.settings, stack=stack)
            yield clean_partition(
                log,
                order,
                rounds.folders.begin(partition_of(log)),
                rounds.say,
                change=change if changes.are_some else None,
                advance=session.account.advance,
                threads=processors(),
            )
