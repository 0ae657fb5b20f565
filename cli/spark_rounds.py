"""Rounds of the cleaner that tasks of a cluster run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.clean_rounds import Rounds
from cli.partition_folders import folder_name
from spark_jobs.clean_tasks import Folder
from spark_jobs.cleaning import Rounds as CleaningRounds
from spark_jobs.places import TaskPlace

if TYPE_CHECKING:
    from cli.partition_folders import PartitionFolders
    from offsets_log.broker.recovery import OpenLog
    from offsets_log.cleaner.bounds import Bounds
    from offsets_log.cleaner.kept import Kept
    from offsets_log.cleaner.round import Round
    from offsets_log.cleaner.settings import Settings
    from offsets_log.log_format.partition_log import PartitionLog


class RoundsOnCluster(Rounds):
    """Opens and cleans partitions by tasks."""

    def __init__(self, settings: Settings, rounds: CleaningRounds, *, in_bulk: bool) -> None:
        super().__init__(settings, lambda count: None, in_bulk=in_bulk)
        self._rounds = rounds

    def open(self, log: PartitionLog, stopped_cleanly: bool | None) -> OpenLog:
        """Implement `Rounds.open`."""
        return self._rounds.open(log, stopped_cleanly, in_bulk=self.in_bulk)

    def clean(
        self, partition: int, log: PartitionLog, opened: OpenLog, bounds: Bounds, folders: PartitionFolders
    ) -> tuple[Round, Kept]:
        """Implement `Rounds.clean`."""
        place = folders.place
        folder = Folder(place, folder_name(partition)) if isinstance(place, TaskPlace) else None
        return self._rounds.clean(log, opened, bounds, folder, in_bulk=self.in_bulk)
