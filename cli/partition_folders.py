"""Options that `clean` and `repair` share, and the new directory of partition folders that they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.options import (
    AS_PARTITION,
    OFFSETS_PARTITION,
    QUIET,
    SHOW_PROGRESS,
    ReadOptions,
    gather,
    report_option,
)
from offsets_log.words import counted

if TYPE_CHECKING:
    from contextlib import ExitStack

    from offsets_log.cleaner.folder import FolderFile
    from offsets_log.cleaner.round import Round
    from offsets_log.disk.folders import Place
    from offsets_log.log_format.partition_log import Checkpoints, PartitionLog
    from offsets_log.rows.tables import Row
    from offsets_log.session.account import Account
    from offsets_log.session.session import Session


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderOptions:
    """The value of `folder_options`: what is read, the new directory, and the report about each partition.

    Attributes:
        to: the directory; None with `dry_run`.
        topic_id: the topic's id in the cluster that gets the folders.
        output: the format of the report.
    """

    paths: tuple[str, ...]
    to: str | None
    dry_run: bool
    topic_id: str | None
    offsets_partition: tuple[int, ...]
    as_partition: int | None
    output: str | None
    progress: bool | None
    quiet: bool

    def check_target(self) -> None:
        """Fail unless there is either a directory to write or --dry-run."""
        if self.to is not None and self.dry_run:
            raise click.UsageError("--dry-run and --to exclude each other: one writes nothing, the other a directory")
        if self.to is None and not self.dry_run:
            raise click.UsageError("give --to DIR, or --dry-run to write nothing")

    def reading(self, **more: Any) -> ReadOptions:
        """Return what is to be read, and how; more of it as a command's own options say."""
        return ReadOptions(
            paths=self.paths,
            as_partition=self.as_partition,
            offsets_partition=self.offsets_partition,
            input_format="segments",
            progress=self.progress,
            quiet=self.quiet,
            **more,
        )


folder_options = gather(
    "asked",
    FolderOptions,
    (OFFSETS_PARTITION, AS_PARTITION, report_option("table", "jsonl", "csv"), SHOW_PROGRESS, QUIET),
)
"""Options of commands that write folders of partitions; PATH, --to, --dry-run and --topic-id are the command's own."""


def partition_of(log: PartitionLog) -> int:
    """Return the offsets partition of a log that is to have a folder.

    Raises:
        InputError: nothing tells it.
    """
    from offsets_log.errors import InputError

    if log.offsets_partition is None:
        raise InputError("no directory tells its partition: give --as-partition", file=log.segments[0].file)
    return log.offsets_partition


def folder_name(partition: int) -> str:
    """Return the name of an offsets partition's folder."""
    from offsets_log.messages.internal_topics import OFFSETS_TOPIC

    return f"{OFFSETS_TOPIC}-{partition}"


def place_here(session: Session, to: str, stack: ExitStack) -> Place:
    """Make a directory for partition folders outside of the inputs, which appears whole or not at all.

    Args:
        stack: the directory appears when it closes.
    """
    from offsets_log.disk.folders import DiskPlace, refuse_inside_inputs
    from offsets_log.disk.writer import atomic_directory, left_beside

    refuse_inside_inputs(to, session.inputs.scope.paths, session.inputs.files)
    for left in left_beside(to):
        session.account.say(f"{left} is of a run that was killed, or that is still at work; it is left as it is")
    return DiskPlace(str(stack.enter_context(atomic_directory(to))))


class PartitionFolders:
    """The folders of a run, in a new directory beside the inputs.

    Args:
        place: the directory; None to write nothing, as with --dry-run.
        topic_id: the topic's id in the cluster that gets the folders.
    """

    def __init__(self, place: Place | None, topic_id: str | None) -> None:
        self.place, self._topic_id = place, topic_id
        self._told: list[tuple[int, Checkpoints]] = []
        self._without_id: list[int] = []

    def of_topic(self, log: PartitionLog, session: Session) -> PartitionLog:
        """Return a log whose ``partition.metadata`` has the asked topic id, else that of the metadata beside it."""
        from offsets_log.broker.hand_over import of_topic
        from offsets_log.data_directory.identity import topic_id_of
        from offsets_log.rows.tables import partition_name

        known = session.inputs.offsets_topic_id
        if self._topic_id is not None or known in (None, topic_id_of(log.beside)):
            return of_topic(log, self._topic_id)
        name = partition_name(log.offsets_partition)
        session.account.say(f"offsets partition {name} gets the topic id that the cluster's metadata has, {known}")
        return of_topic(log, str(known))

    def folder(self, partition: int) -> Path | None:
        """Return where a partition's folder is made; None if nothing is written."""
        from offsets_log.disk.folders import DiskPlace

        return Path(self.place.path, folder_name(partition)) if isinstance(self.place, DiskPlace) else None

    def begin(self, partition: int) -> Callable[[FolderFile], None]:
        """Begin a partition's folder; return a function that writes a file of it."""
        place = self.place
        if place is None:
            return lambda file: None
        name = folder_name(partition)
        return lambda file: place.write(f"{name}/{file.name}", file.pieces, file.modified_ms)

    def write_others(self, partition: int, log: PartitionLog, done: Round) -> None:
        """Write all files of a folder except a round's new segments."""
        from offsets_log.cleaner.folder import other_files

        if self.place is not None:
            write = self.begin(partition)
            for file in other_files(log, done):
                write(file)

    def end(self, partition: int, checkpoints: Checkpoints, log: PartitionLog) -> None:
        """Note that a partition's folder is complete, and its lines for the checkpoints.

        Args:
            log: what it was made of.
        """
        from offsets_log.log_format.file_names import PARTITION_METADATA

        self._told.append((partition, checkpoints))
        if PARTITION_METADATA not in log.beside:
            self._without_id.append(partition)

    def write_beside(self, account: Account) -> None:
        """Write the checkpoints of a data directory, and how to put the folders under a broker."""
        from offsets_log.broker.hand_over import README, hand_over
        from offsets_log.cleaner.checkpoints import checkpoint_texts
        from offsets_log.disk.folder import CHECKPOINTS
        from offsets_log.messages.internal_topics import OFFSETS_TOPIC

        if self.place is None:
            return
        for name, text in checkpoint_texts(CHECKPOINTS, self._told).items():
            self.place.write(name, [text.encode()])
        partitions = [partition for partition, _ in self._told]
        self.place.write(README, [hand_over(partitions, self._topic_id, self._without_id).encode()])
        if self._without_id:
            account.say(
                f"{counted(len(self._without_id), 'folder')} without partition.metadata, as the source has none: a "
                "broker takes such a folder for a stray one and begins with an empty partition; give --topic-id, which "
                f"kafka-topics.sh --describe --topic {OFFSETS_TOPIC} shows"
            )


def tell(
    rows: Iterable[Row], columns: Sequence[str], output: str | None, shown_as: Mapping[str, Callable[[Row], str]]
) -> None:
    """Write a row a partition to standard output.

    Args:
        output: the format that was asked for.
        shown_as: columns that hold lists → how one item of the list is put in words, in a table.
    """
    from cli.options import Output
    from cli.output import chosen_format, destination, write_rows

    to_stdout = Output(output=output, to=None)
    format_name = chosen_format(to_stdout)
    if format_name == "table":
        rows = [
            row | {name: "; ".join(map(words, row[name])) for name, words in shown_as.items() if row[name] is not None}
            for row in rows
        ]
    with destination(to_stdout) as stream:
        write_rows(stream, rows, columns, format_name)
