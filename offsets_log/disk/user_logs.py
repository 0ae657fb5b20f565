"""The whole logs of topics that users write to: found in copies of any form, and opened."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import ExitStack

from offsets_log.data_directory.copied_logs import CopiedLogs, CopiedPartition
from offsets_log.data_directory.metadata_copies import Clusters, leader_copies
from offsets_log.disk.finder import Finder
from offsets_log.disk.folder import SEGMENT, DirectoryName
from offsets_log.disk.local import Place, expand, list_directory, segment_of
from offsets_log.disk.stored import read_ahead
from offsets_log.disk.urls import without_secrets
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.log_format.segment import Buffer


def find_user_topics(paths: Sequence[str], stack: ExitStack) -> tuple[CopiedLogs, Clusters]:
    """Find the partitions in data directories, in directories of partitions, or given themselves.

    Returns:
        The logs, and what the data directories say of their clusters.

    Raises:
        InputError: there is none.
    """
    finder = Finder((), stack)
    found: list[CopiedPartition] = []
    for given in paths:
        finder.add(given)
    found += finder.user_partitions
    known = {partition.shown_path for partition in found}
    for path in (place for one in paths for place in expand(one) if place.is_dir()):
        found += [one for one in _partitions_in(path) if one.shown_path not in known]
    if not any(not partition.topic.startswith("__") for partition in found):
        raise InputError(
            f"no partition of a topic that users write to was found in {', '.join(map(without_secrets, paths[:3]))}"
        )
    return CopiedLogs(found, leader_copies(found, lambda: finder.clusters.metadata)), finder.clusters


def _partitions_in(path: Place) -> list[UserPartition]:
    """Return the partitions that a directory holds or is, whatever lies beside them."""
    _, directories, _ = list_directory(path)
    places = [path, *(path / name for name in directories)]
    parsed = [(place, DirectoryName.parse(place.absolute().name)) for place in places]
    named = [(place, name) for place, name in parsed if name.topic and not name.leftover]
    return [
        UserPartition(name.topic, name.partition, place, {})
        for place, name in named
        if any(SEGMENT.fullmatch(file) for file in list_directory(place)[0])
    ]


def whole(copy: CopiedPartition) -> UserPartition:
    """Return a copy that has all of its log here. Raises InputError where it has the end only."""
    if not isinstance(copy, UserPartition):
        raise InputError("of other topics an archive gives the ends only: unpack it", file=copy.shown_path)
    return copy


def open_user_log(copy: CopiedPartition, stack: ExitStack) -> PartitionLog:
    """Open all segments of a partition.

    Raises:
        InputError: one cannot be read, or only the end of the log is here.
    """
    here = whole(copy)
    segments = []
    for base_offset in here.base_offsets():
        name = f"{base_offset:020}.log"
        contents, zeros = segment_of(here.path / name, stack)
        segments.append(Segment(f"{here.shown_path}/{name}", base_offset, contents, zeros_behind=zeros))
    read_ahead(segments)
    return PartitionLog(here.partition, tuple(segments))


def release(buffer: Buffer, begin: int, end: int) -> None:
    """Tell the system that bytes of a mapped segment need no memory any more; whoever reads them again gets them."""
    mapping = buffer.obj if isinstance(buffer, memoryview) else None
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        first = begin - begin % mmap.PAGESIZE
        if end > first:
            mapping.madvise(mmap.MADV_DONTNEED, first, end - first)
