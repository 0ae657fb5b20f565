"""Look for a group's name in the bytes of a log, without decoding it."""

from __future__ import annotations

import re

from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.messages.registry import RECORD_TYPES

_LAST_TYPE = max(RECORD_TYPES)


def names_group(log: PartitionLog, group: str) -> bool:
    """Whether the key of a record, in a batch that is not compressed, begins with this group.

    Segments that a store would have to be asked for are passed over, so False means that nobody knows.
    """
    name = group.encode("utf-8", "surrogatepass")
    if len(name) > 0x7FFF:
        return False
    key = re.compile(b"\0[\0-%c]" % _LAST_TYPE + re.escape(len(name).to_bytes(2, "big") + name), re.DOTALL)
    return any(not segment.is_fetched and key.search(segment.buffer) for segment in log.segments)
