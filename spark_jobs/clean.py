"""``python -m spark_jobs clean``: the command ``clean`` of offsets-log, a partition a task.

A task does the round of this machine, and writes the partition's folder into a place that all machines see, or a store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from inspect import cleandoc
from typing import Any

import click

import offsets_log_cli.clean
from offsets_log.actions.clean_rounds import Machine, Rounds
from offsets_log.actions.partition_folders import folder_name, partition_of, place_here
from offsets_log.cleaner.partition import Cleaned, CleanOrder, clean_partition
from offsets_log.disk.folders import DiskPlace
from offsets_log.disk.urls import is_url
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format.partition_log import Checkpoints
from offsets_log.rows.tables import Row
from offsets_log.session.session import Session
from offsets_log_cli.clean_options import changes_of
from offsets_log_cli.options import gather
from offsets_log_cli.partition_folders import FolderOptions
from offsets_log_cli.terminal import fail
from spark_jobs.directories import Directory
from spark_jobs.files import LogFiles
from spark_jobs.jobs import ask_tasks, told_by
from spark_jobs.session import Opening, session

Work = tuple[LogFiles, CleanOrder, str]
"""The files of a partition, what is asked, and the folder's name."""


class Cluster(Machine):
    """A cluster, which cleans partitions of its stores and of a disk that all of it sees."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def place(self, session: Session, to: str, stack: ExitStack) -> Directory:
        """Implement `Machine.place`; in a store files appear one by one, README.txt last."""
        if is_url(to):
            made = Directory(to)
            made.check_free()
            made.refuse_inside(session.inputs.scope.paths)
            stack.push(lambda kind, error, trace: made.remove() if kind else None)
            return made
        here = place_here(session, Directory(to).open()[1], stack)
        assert isinstance(here, DiskPlace)
        return Directory(here.path)

    def clean(self, rounds: Rounds, stack: ExitStack) -> Iterator[Cleaned]:
        """Implement `Machine.clean`."""
        place = rounds.folders.place
        assert place is None or isinstance(place, Directory)
        works = [(LogFiles.of(log), order, folder_name(partition_of(log))) for log, order in rounds.works]
        for one in told_by(ask_tasks(self._opening.result(), len(works), partial(_clean, works, place))):
            for words, is_wrong in one["said"]:
                rounds.say(words, is_wrong=is_wrong)
            checkpoints = None if one["checkpoints"] is None else Checkpoints(**one["checkpoints"])
            yield Cleaned(one["row"], checkpoints, one["has_metadata"])
        if place is not None:
            place.tidy()


def _clean(works: Sequence[Work], place: Directory | None, number: int) -> Row:
    files, order, name = works[number]
    said: list[tuple[str, bool]] = []

    def say(words: str, *, is_wrong: bool = False) -> None:
        said.append((words, is_wrong))

    def write(file: Any) -> None:
        if place is not None:
            place.write(f"{name}/{file.name}", file.pieces, file.modified_ms)

    with ExitStack() as stack:
        done = clean_partition(files.open(stack), order, write, say)
    return asdict(done) | {"said": said}


def run(master: str | None, **given: Any) -> None:
    """Run the program; arguments are its parameters."""
    if changes_of(given).are_some:
        raise click.UsageError(
            "a cluster does a round and no more: give its --to to offsets-log clean, which takes the rest out "
            "(--deep, --drop-…, --keep-group, --until-…)"
        )
    try:
        opening = Opening(master or "local[*]", is_quiet=given["asked"].quiet)
        with session(opening):
            offsets_log_cli.clean.run(Cluster(opening), **given)
    except OffsetsLogError as error:
        fail(error)


MASTER = click.Option(["--master"], metavar="URL", help="Where Spark runs; by default what spark-submit says.")

command = click.Command(
    "clean",
    params=[*offsets_log_cli.clean.command.params, MASTER],
    callback=gather("asked", FolderOptions, ())(run),
    help=cleandoc(offsets_log_cli.clean.command.help or "")
    + "\n\nDIR may also be a URL of a store. Tasks do a round and no more.",
    epilog="Example: python -m spark_jobs clean s3://backup/kafka --to s3://backup/cleaned --master yarn",
)
