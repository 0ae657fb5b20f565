"""Rounds of the cleaner in this process; `spark_jobs.clean` runs them on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from offsets_log.actions.partition_folders import place_here
from offsets_log.cleaner.folder import new_files
from offsets_log.cleaner.opening import open_for_cleaning
from offsets_log.cleaner.result import kept_after
from offsets_log.cleaner.round import clean
from offsets_log.columnar.processors import processors

if TYPE_CHECKING:
    from offsets_log.actions.partition_folders import PartitionFolders
    from offsets_log.broker.recovery import OpenLog
    from offsets_log.cleaner.bounds import Bounds
    from offsets_log.cleaner.group_cleaning import NewSegment
    from offsets_log.cleaner.kept import Kept
    from offsets_log.cleaner.round import Round
    from offsets_log.cleaner.settings import Settings
    from offsets_log.disk.folders import Place
    from offsets_log.log_format.partition_log import PartitionLog
    from offsets_log.session.session import Session


SIFT = "cleaning.sifting.sift"
"""The largest kernel of a round."""


class Rounds:
    """Opens and cleans partitions.

    Args:
        advance: takes numbers of bytes that were read.
        in_bulk: whether kernels do it.
    """

    def __init__(self, settings: Settings, advance: Callable[[int], None], *, in_bulk: bool) -> None:
        self._settings, self._advance, self.in_bulk = settings, advance, in_bulk

    def reads_here(self, log: PartitionLog) -> bool:
        """Whether this process reads all of a log in any case."""
        return True

    def open(self, log: PartitionLog, stopped_cleanly: bool | None) -> OpenLog:
        """Open a log as `open_for_cleaning` does."""
        return open_for_cleaning(log, self._settings, stopped_cleanly=stopped_cleanly, in_bulk=self.in_bulk)

    def clean(
        self, partition: int, log: PartitionLog, opened: OpenLog, bounds: Bounds, folders: PartitionFolders
    ) -> tuple[Round, Kept]:
        """Run a round and write the partition's folder; return the round, and why each byte in it is kept."""
        write = folders.begin(partition)

        def emit(new: NewSegment) -> None:
            for file in new_files(new):
                write(file)

        done = clean(opened, bounds, self._settings, emit, self._advance, in_bulk=self.in_bulk, threads=processors())
        folders.write_others(partition, log, done)
        return done, kept_after(done, in_bulk=self.in_bulk)


class Machine:
    """Where partitions are cleaned, and their folders written: this machine."""

    def rounds(self, session: Session, settings: Settings) -> Rounds:
        """Return what opens and cleans partitions."""
        engine = session.engine
        is_large = engine.is_large_for(SIFT)
        if is_large:
            engine.compile_first(SIFT)
        return Rounds(settings, session.account.advance, in_bulk=is_large)

    def place(self, session: Session, to: str, stack: ExitStack) -> Place:
        """Make the new directory, as `place_here`."""
        return place_here(session, to, stack)
