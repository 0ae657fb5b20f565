"""What a log lacks at its beginning and why: segments that a broker has marked for deletion, and the topic's policy.

A segment that retention deletes is renamed to ``.deleted`` and removed ``file.delete.delay.ms`` later, or at the next
start. Until then it holds what it held.

References: ``LocalLog.java`` (``deleteSegmentFiles``), ``LogLoader.java`` (``removeTempFilesAndCollectSwapFiles``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from offsets_log.data_directory.directory import Opener
from offsets_log.data_directory.metadata_copies import ClusterMetadata
from offsets_log.disk.folder import Folder
from offsets_log.disk.segments import next_offset
from offsets_log.errors import InputError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.words import counted

_DELETED = re.compile(r"([0-9]{20})\.log\.deleted")


def with_set_aside(log: PartitionLog, folder: Folder) -> PartitionLog:
    """Return a log that knows which files beside it hold what is before it."""
    begin = log.segments[0].base_offset
    words = _held_before(begin, folder.beside, folder.shown_path) if begin and log.selection is None else ""
    return replace(log, begins_late=words)


def with_policy(log: PartitionLog, metadata: ClusterMetadata | None) -> PartitionLog:
    """Return a log that knows whether its topic's records are deleted; notes say what no offset shows as missing."""
    begin = log.segments[0].base_offset if log.segments else None
    if not begin or log.selection is not None:
        return log
    policy = "" if metadata is None else metadata.deletes(OFFSETS_TOPIC)
    words = "; ".join(filter(None, (policy, log.begins_late)))
    notes = log.notes
    if words and begin <= (log.checkpoints.log_start_offset or 0):
        notes = (*notes, f"offsets partition {log.offsets_partition}: the log begins at {begin}: {words}")
    return replace(log, begins_late=words, notes=notes)


def _held_before(begin: int, beside: Mapping[str, Opener], path: str) -> str:
    """Say which files hold what is before a log's begin, and what reads them; nothing if none do."""
    names = sorted(name for name in beside if (match := _DELETED.fullmatch(name)) and int(match[1]) < begin)
    ends = [(name, end) for name in names if (end := _end_of(beside[name], int(name[:20]))) is not None]
    if not ends:
        return ""
    (first, _), (last, end) = ends[0], ends[-1]
    which = first if len(ends) == 1 else f"{first} to {last} ({counted(len(ends), 'file')})"
    archive, _, inside = path.rpartition("!")
    place = shlex.quote(inside or path)
    unpack = f"unpack {archive}, then " if archive else ""
    return (
        f"{which} beside it, which a broker's start removes, {'holds' if len(ends) == 1 else 'hold'} record offsets "
        f"{int(first[:20])} to {end - 1}: {unpack}offsets-log offsets {place}/*.log.deleted {place}/*.log reads "
        "them, too"
    )


def _end_of(read: Opener, base_offset: int) -> int | None:
    """Return the offset behind a segment's last batch; None if it holds none or cannot be read."""
    try:
        end = next_offset(read(), base_offset)
    except InputError:
        return None
    return end if end is not None and end > base_offset else None
