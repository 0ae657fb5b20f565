"""The segments of a partition as they were written, opened again."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from offsets_log.actions.partition_folders import folder_name
from offsets_log.disk.local import map_file
from offsets_log.disk.scratch import mapped
from offsets_log.log_format.partition_log import PartitionLog, Segment

if TYPE_CHECKING:
    from offsets_log.actions.partition_folders import PartitionFolders
    from offsets_log.cleaner.folder import FolderFile


class WrittenSegments:
    """The segments of a partition as they were written, opened again."""

    def __init__(self, folders: PartitionFolders, partition: int, stack: ExitStack) -> None:
        self._partition, self._stack = partition, stack
        self._write, self._folder = folders.begin(partition), folders.folder(partition)
        self._segments: list[Segment] = []

    @property
    def log(self) -> PartitionLog:
        """The log of all segments that were written."""
        return PartitionLog(self._partition, tuple(self._segments), selection="as it was written")

    def write(self, file: FolderFile) -> None:
        """Write one file of the folder."""
        self._write(file)
        if not file.name.endswith(".log"):
            return
        if self._folder is None:
            buffer = mapped(self._stack, file.pieces)
        else:
            buffer = map_file(self._folder / file.name, self._stack)
        name = f"{folder_name(self._partition)}/{file.name}"
        self._segments.append(Segment(name, int(file.name[:20]), buffer))
