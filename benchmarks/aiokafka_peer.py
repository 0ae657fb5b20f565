"""A reader as it is written with a Kafka client library: aiokafka's parser of batches (C), then struct.

``python -m benchmarks.aiokafka_peer SEGMENT...`` checks every batch's checksum, decodes every key and value and keeps
the newest commit of each group, topic and partition. It knows nothing of transactions, and of group metadata only
the fields before the members.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

from aiokafka.record.memory_records import MemoryRecords

INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
COMMIT_HEAD = struct.Struct(">hqih")  # version 3: offset, leader epoch, length of the metadata
INT64 = struct.Struct(">q")
OFFSET_COMMIT, GROUP_METADATA = 1, 2


def text_at(data: bytes, at: int) -> tuple[str, int]:
    """A string, and where it ends."""
    start = at + 2
    end = start + max(INT16.unpack_from(data, at)[0], 0)
    return data[start:end].decode(), end


def commit_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic, partition."""
    group, at = text_at(key, 2)
    topic, at = text_at(key, at)
    return group, topic, INT32.unpack_from(key, at)[0]


def commit_value(value: bytes) -> tuple[int, int, str, int]:
    """Offset, leader epoch, metadata, timestamp."""
    version, offset, leader_epoch, size = COMMIT_HEAD.unpack_from(value)
    if version != 3:
        raise ValueError(f"value version {version}")
    end = COMMIT_HEAD.size + size
    return offset, leader_epoch, value[COMMIT_HEAD.size : end].decode(), INT64.unpack_from(value, end)[0]


def group_head(value: bytes) -> tuple[str, int, str, str]:
    """Protocol type, generation, protocol, leader."""
    protocol_type, at = text_at(value, 2)
    (generation,) = INT32.unpack_from(value, at)
    protocol, at = text_at(value, at + 4)
    return protocol_type, generation, protocol, text_at(value, at)[0]


class Newest:
    """What is left when every record replaces the one before it."""

    def __init__(self) -> None:
        self.records = 0
        self.commits: dict[tuple[str, str, int], tuple[int, int, str, int]] = {}
        self.groups: dict[str, tuple[str, int, str, str]] = {}

    def read(self, data: bytes) -> None:
        """All batches of a segment."""
        batches = MemoryRecords(data)
        while batches.has_next():
            batch = batches.next_batch()
            if not batch.validate_crc():
                raise ValueError("a checksum is wrong")
            for record in batch:
                self.records += 1
                if not batch.is_control_batch:
                    self.add(record.key, record.value)

    def add(self, key: bytes, value: bytes | None) -> None:
        """One record."""
        (record_type,) = INT16.unpack_from(key)
        if record_type == OFFSET_COMMIT:
            _put(self.commits, commit_key(key), None if value is None else commit_value(value))
        elif record_type == GROUP_METADATA:
            _put(self.groups, text_at(key, 2)[0], None if value is None else group_head(value))


def _put(table: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def main() -> None:
    """Print records, keys and the sum of the offsets as JSON."""
    if "_crecords" not in MemoryRecords.__module__:
        sys.exit("aiokafka is installed without its parser in C")
    newest = Newest()
    for name in sys.argv[1:]:
        newest.read(Path(name).read_bytes())
    total = sum(commit[0] for commit in newest.commits.values())
    sys.stdout.write(json.dumps({"records": newest.records, "keys": len(newest.commits), "sum": total}) + "\n")


if __name__ == "__main__":
    main()
