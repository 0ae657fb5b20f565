"""The new directory of partition folders that an action writes, and how a broker gets them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from offsets_log.broker.hand_over import README, hand_over
from offsets_log.cleaner.checkpoints import checkpoint_texts
from offsets_log.data_directory.identity import of_topic, topic_id_of
from offsets_log.disk.folder import CHECKPOINTS
from offsets_log.disk.folders import DiskPlace, refuse_inside_inputs
from offsets_log.disk.writer import atomic_directory, left_beside
from offsets_log.errors import InputError
from offsets_log.log_format.file_names import PARTITION_METADATA
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.rows.tables import partition_name
from offsets_log.words import counted

if TYPE_CHECKING:
    from contextlib import ExitStack

    from offsets_log.cleaner.folder import FolderFile
    from offsets_log.disk.folders import Place
    from offsets_log.log_format.partition_log import Checkpoints, PartitionLog
    from offsets_log.session.account import Account
    from offsets_log.session.session import Session


def partition_of(log: PartitionLog) -> int:
    """Return the offsets partition of a log that is to have a folder.

    Raises:
        InputError: nothing tells it.
    """
    if log.offsets_partition is None:
        raise InputError("no directory tells its partition: give --as-partition", file=log.segments[0].file)
    return log.offsets_partition


def folder_name(partition: int) -> str:
    """Return the name of an offsets partition's folder."""
    return f"{OFFSETS_TOPIC}-{partition}"


def place_here(session: Session, to: str, stack: ExitStack) -> Place:
    """Make a directory for partition folders outside of the inputs, which appears whole or not at all.

    Args:
        stack: the directory appears when it closes.
    """
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

    def topic_id_of(self, log: PartitionLog, session: Session) -> str | None:
        """Return the topic id that a folder gets: the asked one, else one told beside it; None for its own."""
        known, own = session.inputs.offsets_topic_id, topic_id_of(log.beside)
        name = partition_name(log.offsets_partition)
        if own is None and PARTITION_METADATA in log.beside:
            session.account.is_wrong = True
            session.account.say(f"offsets partition {name}: {PARTITION_METADATA} holds no topic id (ST-6)")
        if self._topic_id is not None or known is None or known[0] == own:
            return self._topic_id
        topic_id, who_has_it = known
        session.account.say(f"offsets partition {name} gets the topic id that {who_has_it}, {topic_id}")
        return topic_id

    def of_topic(self, log: PartitionLog, session: Session) -> PartitionLog:
        """Return a log whose ``partition.metadata`` has that topic id."""
        return of_topic(log, self.topic_id_of(log, session))

    def folder(self, partition: int) -> Path | None:
        """Return where a partition's folder is made; None if nothing is written."""
        return Path(self.place.path, folder_name(partition)) if isinstance(self.place, DiskPlace) else None

    def begin(self, partition: int) -> Callable[[FolderFile], None]:
        """Begin a partition's folder; return a function that writes a file of it."""
        place = self.place
        if place is None:
            return lambda file: None
        name = folder_name(partition)
        return lambda file: place.write(f"{name}/{file.name}", file.pieces, file.modified_ms)

    def end(self, partition: int, checkpoints: Checkpoints, *, has_metadata: bool) -> None:
        """Note that a partition's folder is complete, and its lines for the checkpoints.

        Args:
            has_metadata: whether ``partition.metadata`` is in it.
        """
        self._told.append((partition, checkpoints))
        if not has_metadata:
            self._without_id.append(partition)

    def write_beside(self, account: Account) -> None:
        """Write the checkpoints of a data directory, and how to put the folders under a broker."""
        if self.place is None:
            return
        for name, text in checkpoint_texts(CHECKPOINTS, self._told).items():
            self.place.write(name, [text.encode()])
        partitions = [partition for partition, _ in self._told]
        self.place.write(README, [hand_over(partitions, self._topic_id, self._without_id).encode()])
        if self._without_id:
            account.say(
                f"{counted(len(self._without_id), 'folder')} without partition.metadata, as the source has none: a "
                "broker would ignore such a folder and start empty. Give --topic-id, which "
                f"kafka-topics.sh --describe --topic {OFFSETS_TOPIC} shows"
            )
