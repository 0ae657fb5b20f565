"""From what a user names to the logs of offsets partitions: the only way into the files.

data directory ─┐
partition, glob ┼─► `Folder`s, on disk or in memory ─► segments (`records:L2`) ─► replicas ─► `PartitionLog`s
archive, pipe  ─┘

Everything is opened read-only; `DiskLogs` holds the mappings and ends them.
"""

from __future__ import annotations

import base64
import binascii
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Self

from offsets_log.disk.archives import unpack, unpack_one
from offsets_log.disk.folder import (
    CHECKPOINT,
    METADATA,
    SEGMENT,
    DirectoryName,
    Folder,
    Opener,
    cleaned_until,
    matters,
    matters_in,
    never_a_segment,
)
from offsets_log.disk.local import expand, input_errors, list_directory, map_file, spool
from offsets_log.disk.replicas import choose_replica
from offsets_log.disk.segments import select_segments
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog, Segment

STDIN = "-"
MAX_DEPTH = 2
"""How far below a given directory a data directory may lie."""

_TOPIC_ID = re.compile(rb"topic_id:\s*([A-Za-z0-9_-]{22})\s*$", re.MULTILINE)


class DiskLogs:
    """Open logs; a context manager. After its end their buffers are gone.

    Attributes:
        logs: by offsets partition, those of an unknown one last.
        notes: what was left out, one sentence each. What concerns a log is in its own notes.
        files: real paths of the files that were opened: what no output may replace.
    """

    def __init__(
        self,
        logs: list[PartitionLog],
        notes: list[str],
        files: list[str],
        topic_files: Sequence[tuple[str, Opener]],
        stack: ExitStack,
    ) -> None:
        self.logs = logs
        self.notes = notes
        self.files = files
        self._topic_files = topic_files
        self._stack = stack

    @cached_property
    def topic_ids(self) -> dict[bytes, str]:
        """Topic id (16 bytes) → name, from the ``partition.metadata`` of other topics; unreadable ones say nothing."""
        found: dict[str, bytes] = {}
        for topic, read in self._topic_files:
            if topic not in found and (topic_id := _topic_id(read)):
                found[topic] = topic_id
        return {topic_id: topic for topic, topic_id in found.items()}

    def close(self) -> None:
        """End the mappings."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_logs(
    paths: Sequence[str], *, as_partition: int | None = None, partitions: Collection[int] = ()
) -> DiskLogs:
    """Find and open all segments in data directories, partition directories, files, globs, archives and ``-``.

    Args:
        as_partition: offsets partition of files whose directory's name tells none.
        partitions: offsets partitions to open; empty for all.

    Raises:
        InputError: nothing was found, or something cannot be read.
    """
    with ExitStack() as stack:
        finder = _Finder(partitions, stack)
        for path in dict.fromkeys(paths):
            finder.add(path)
        by_partition: dict[int | None, list[PartitionLog]] = defaultdict(list)
        found: set[int | None] = set()
        for folder in finder.chosen_folders():
            number = DirectoryName.parse(folder.name)
            offsets_partition = number.partition if number.is_offsets else as_partition
            found.add(offsets_partition)
            if not partitions or offsets_partition in partitions:
                by_partition[offsets_partition] += _logs_in(folder, offsets_partition)
        logs = by_partition.pop(None, [])
        logs = [choose_replica(by_partition[number]) for number in sorted(by_partition, key=_number)] + logs
        ...
    raise NotImplementedError
