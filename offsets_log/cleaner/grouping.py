"""Groups of segments that become one segment each."""

from __future__ import annotations

from collections.abc import Sequence

from offsets_log.broker.log_file import LogFile
from offsets_log.cleaner.settings import Settings
from offsets_log.log_format.batch import MAX_OFFSETS_IN_SEGMENT


def groups_of(files: Sequence[LogFile], first_uncleanable: int, settings: Settings) -> list[list[LogFile]]:
    """Return runs of segments whose sizes before cleaning fit into one (``CL-37``)."""
    groups: list[list[LogFile]] = []
    ends = [file.base_offset - 1 for file in files[1:]] + [first_uncleanable - 1]
    for file, end in zip(files, ends, strict=True):
        if groups and _fits(groups[-1], file, end, settings):
            groups[-1].append(file)
        else:
            groups.append([file])
    return groups


def _fits(group: list[LogFile], file: LogFile, end: int, settings: Settings) -> bool:
    together = [*group, file]
    return (
        sum(one.size_bytes for one in together) <= settings.segment_bytes
        and sum(one.index.size_bytes for one in together) <= settings.segment_index_bytes
        and sum(one.times.size_bytes for one in together) <= settings.segment_index_bytes
        and (not file.size_bytes or end - group[0].base_offset < MAX_OFFSETS_IN_SEGMENT)
    )
