"""Logs of the coordinators' own topics that a data directory's checkpoint names and that are not in the copy.

A copy without any folder of another topic is one of the offsets topic alone: a choice, and nothing is missing from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from offsets_log.data_directory.checkpoints import decode_offset_checkpoint
from offsets_log.data_directory.copied_logs import CopiedLogs, CopiedPartition
from offsets_log.data_directory.directory import DataDirectory
from offsets_log.errors import Damage, MissingLogError, OffsetsLogError
from offsets_log.log_format.file_names import HIGH_WATERMARKS
from offsets_log.messages.internal_topics import OFFSETS_TOPIC


def iter_lacking(
    topic: str, directories: Iterable[DataDirectory], partitions: Collection[CopiedPartition], copies: CopiedLogs
) -> Iterator[Damage]:
    """Yield a `MissingLogError` for each partition of a topic that held records and of which no copy has a segment.

    Args:
        partitions: all folders in the data directories.
    """
    for directory in directories:
        own = {one.topic for one in partitions if one.above is directory.files}
        if HIGH_WATERMARKS not in directory.files or own <= {OFFSETS_TOPIC}:
            continue
        try:
            noted = decode_offset_checkpoint(directory.files[HIGH_WATERMARKS](), HIGH_WATERMARKS)
        except OffsetsLogError:  # told where checkpoints are: it says nothing of any partition
            continue
        for (name, partition), reached in sorted(noted.items()):
            if name == topic and reached > 0 and copies.ends(topic, partition) is None:
                problem = f"no segment of it is there, and its log had reached {reached}, as {HIGH_WATERMARKS} says"
                place = f"{directory.shown_path.rstrip('/')}/{topic}-{partition}"
                yield Damage(MissingLogError(problem, file=place), b"")
