"""``python -m spark_jobs clean``: the command ``clean`` of offsets-log, whose rounds are tasks of a cluster."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click
from pyspark.sql import SparkSession

import cli.clean
from cli.clean_options import changes_of
from cli.options import gather
from cli.partition_folders import FolderOptions
from cli.terminal import fail
from offsets_log.actions.clean_rounds import SIFT, Machine, Rounds
from offsets_log.actions.partition_folders import folder_name, place_here
from offsets_log.disk.folders import DiskPlace
from offsets_log.errors import OffsetsLogError
from offsets_log.session.session import Session
from spark_jobs import cleaning
from spark_jobs.clean_cluster import SparkCluster
from spark_jobs.clean_tasks import Folder
from spark_jobs.files import path_here
from spark_jobs.places import SharedPlace, TaskPlace, new_in_store
from spark_jobs.run import open_spark

if TYPE_CHECKING:
    from offsets_log.actions.partition_folders import PartitionFolders
    from offsets_log.broker.recovery import OpenLog
    from offsets_log.cleaner.bounds import Bounds
    from offsets_log.cleaner.kept import Kept
    from offsets_log.cleaner.round import Round
    from offsets_log.cleaner.settings import Settings
    from offsets_log.disk.folders import Place
    from offsets_log.log_format.partition_log import PartitionLog


class RoundsOnCluster(Rounds):
    """Opens and cleans partitions by tasks."""

    def __init__(self, settings: Settings, rounds: cleaning.Rounds, *, in_bulk: bool) -> None:
        super().__init__(settings, lambda count: None, in_bulk=in_bulk)
        self._rounds = rounds

    def reads_here(self, log: PartitionLog) -> bool:
        """Implement `Rounds.reads_here`: what lies in a store is read by tasks alone."""
        return not any(segment.is_fetched for segment in log.segments)

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


class Cluster(Machine):
    """A cluster, which cleans partitions of its stores and of a disk that all of it sees."""

    def __init__(self, spark: SparkSession) -> None:
        self._cluster = SparkCluster(spark)

    def rounds(self, session: Session, settings: Settings) -> Rounds:
        """Implement `Machine.rounds`."""
        rounds = cleaning.Rounds(self._cluster, settings)
        return RoundsOnCluster(settings, rounds, in_bulk=session.engine.is_large_for(SIFT))

    def place(self, session: Session, to: str, stack: ExitStack) -> Place:
        """Implement `Machine.place`; in a store files appear one by one, README.txt last."""
        here = path_here(to)
        if here is None:
            return stack.enter_context(new_in_store(to, session.inputs.scope.paths))
        made = place_here(session, here, stack)
        assert isinstance(made, DiskPlace)
        return SharedPlace(made.path)


def run(master: str | None, **given: Any) -> None:
    """Run the program; arguments are its parameters."""
    if changes_of(given).are_some:
        raise click.UsageError(
            "a cluster does a round and no more: give its --to to offsets-log clean, which takes the rest out "
            "(--deep, --drop-…, --keep-group, --until-…)"
        )
    try:
        with open_spark(master, default="local[*]", registers=False) as spark:
            cli.clean.run(Cluster(spark), **given)
    except OffsetsLogError as error:
        fail(error)


MASTER = click.Option(["--master"], metavar="URL", help="Where Spark runs; by default what spark-submit says.")

command = click.Command(
    "clean",
    params=[*cli.clean.command.params, MASTER],
    callback=gather("asked", FolderOptions, ())(run),
    help=f"{cli.clean.command.help}\n\nDIR may also be a URL of a store. Tasks do a round and no more.",
    epilog="Example: python -m spark_jobs clean s3://backup/kafka --to s3://backup/cleaned --master yarn",
)
