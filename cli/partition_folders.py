"""What `clean` and `repair` share: options, and the new directory of partition folders that they write."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from cli.session import Session
    from offsets_log.cleaner.folder import FolderFile
    from offsets_log.cleaner.round import Round
    from offsets_log.disk.folders import Place
    from offsets_log.log_format.partition_log import Checkpoints, PartitionLog

_OPTIONS = (
    click.option(
        "-p", "--offsets-partition", metavar="N", type=click.IntRange(min=0), multiple=True,
        help="Only these partitions of __consumer_offsets; repeatable.",
    ),
    click.option(
        "--as-partition", metavar="N", type=click.IntRange(min=0),
        help="The offsets partition of a lone file whose directory does not tell.",
    ),
    click.option(
        "-o", "--output", type=click.Choice(("table", "jsonl", "csv")),
        help="Format of what is told, a row a partition; by default table on a terminal and jsonl in a pipe.",
    ),
    click.option("--progress/--no-progress", default=None, help="How far it is."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error but errors."),
)  # fmt: skip


def folder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def partition_of(log: PartitionLog) -> int:
    """The offsets partition of a log that is to have a folder.

    Raises:
        InputError: nothing tells it.
    """
    from offsets_log.errors import InputError

    if log.offsets_partition is None:
        raise InputError("no directory tells its partition: give --as-partition", file=log.segments[0].file)
    return log.offsets_partition


def folder_name(partition: int) -> str:
    """The folder of an offsets partition."""
    from offsets_log.disk.folder import OFFSETS_TOPIC

    return f"{OFFSETS_TOPIC}-{partition}"


class PartitionFolders:
    """The folders of a run, in a new directory beside the inputs.

    Args:
        to: the directory; None, as with --dry-run, for none at all: nothing is written then.
        topic_id: that the topic has in the cluster that gets the folders.
        stack: at its end the directory appears.

    Attributes:
        place: the directory, or None.
    """

    def __init__(self, session: Session, to: str | None, topic_id: str | None, stack: ExitStack) -> None:
<<<<<<< 776c4989a97ff5c2d3ca14dc9c487bd954739546
        self._topic_id = topic_id
        self._told: list[tuple[int, Checkpoints]] = []
        self.place: Place | None = None if to is None else session.place(to, stack)
=======
        from offsets_log.disk.folders import refuse_inside_inputs
        from offsets_log.disk.writer import atomic_directory, left_beside

        self._topic_id = topic_id
        self._told: list[tuple[int, Checkpoints]] = []
        self._directory: Path | None = None
        if to is not None:
            refuse_inside_inputs(to, session.reading.paths, session.files)
            for left in left_beside(to):
                session.say(f"{left} is of a run that was killed, or that is still at work; it is left as it is")
            self._directory = stack.enter_context(atomic_directory(to))

    @property
    def are_written(self) -> bool:
        """Whether there is a directory."""
        return self._directory is not None
>>>>>>> 1ba88bc3138081d406a0eb53f77c92f1196b27d2

    def folder(self, partition: int) -> Path | None:
        """Where a partition's folder is made; None where nothing is written."""
        from offsets_log.disk.folder import OFFSETS_TOPIC

        return None if self._directory is None else self._directory / f"{OFFSETS_TOPIC}-{partition}"

    def begin(self, partition: int) -> Callable[[FolderFile], None]:
<<<<<<< 776c4989a97ff5c2d3ca14dc9c487bd954739546
        """What writes a file of a partition's folder."""
        place = self.place
        if place is None:
            return lambda file: None
        name = folder_name(partition)
        return lambda file: place.write(f"{name}/{file.name}", file.pieces, file.modified_ms)

    def write_others(self, partition: int, log: PartitionLog, done: Round) -> None:
        """All files of a folder but those of a round's new segments."""
        from offsets_log.cleaner.folder import other_files

        if self.place is not None:
            write = self.begin(partition)
            for file in other_files(log, done):
                write(file)
=======
        """Make a partition's folder; what writes a file there."""
        from offsets_log.disk.folders import write_file

        folder = self.folder(partition)
        if folder is None:
            return lambda file: None
        folder.mkdir()
        return lambda file: write_file(folder / file.name, file.pieces, file.modified_ms)
>>>>>>> 1ba88bc3138081d406a0eb53f77c92f1196b27d2

    def end(self, partition: int, checkpoints: Checkpoints) -> None:
        """A partition's folder is whole; what checkpoints are to say of it."""
        self._told.append((partition, checkpoints))

    def write_beside(self) -> None:
        """The checkpoints of a data directory, and how to put the folders under a broker."""
        from offsets_log.broker.hand_over import README, hand_over
        from offsets_log.cleaner.checkpoints import checkpoint_texts
        from offsets_log.disk.folder import CHECKPOINTS

        if self.place is None:
            return
        for name, text in checkpoint_texts(CHECKPOINTS, self._told).items():
            self.place.write(name, [text.encode()])
        partitions = [partition for partition, _ in self._told]
        self.place.write(README, [hand_over(partitions, self._topic_id).encode()])


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """What a run has begun to write goes away too when it is asked to end, as by Ctrl-C."""

    def stop(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), stop) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def counted(count: int, noun: str, many: str | None = None) -> str:
    """``1 piece``, ``2,000 pieces``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or noun + 's'}"


def check_target(to: str | None, *, dry_run: bool) -> None:
    """Fail unless there is either a directory to write or --dry-run."""
    if (to is None) != dry_run:
        raise click.UsageError("give --to DIR, or --dry-run to write nothing")
