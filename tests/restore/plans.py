"""Small rows and plans for tests."""

from __future__ import annotations

from typing import Any

from offsets_log.restore.plan import FORMAT, FORMAT_VERSION
from offsets_log.restore.rescue import partitions_needed
from offsets_log.rows.tables import Row


def row(group: str, topic: str = "orders", partition: int = 0, offset: int = 5, **values: Any) -> Row:
    """A row of compact."""
    return {
        "group": group,
        "topic": topic,
        "partition": partition,
        "committed_offset": offset,
        "leader_epoch": None,
        "metadata": "",
        "commit_timestamp_ms": 1000,
        "expire_timestamp_ms": None,
        "topic_id": None,
        "record_offset": 7,
        "offsets_partition": 0,
    } | values


def plan_of(*rows: Row, **values: Any) -> Row:
    """A plan with these offsets and nothing else."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "profile": "modern",
        "as_broker": False,
        "until": {"time_ms": None, "offsets": []},
        "filters": {"groups": [], "topics": [], "offsets_partitions": []},
        "offsets_partitions": {"count": 50, "source": "default", "absent": []},
        "end_offsets": {},
        "loads": {},
        "history": {},
        "groups": [],
        "topics": partitions_needed(rows, []),
        "offsets": list(rows),
        "pending": [],
        "orphans": [],
        "duplicates": [],
        "doubts": [],
        "problems": [],
    } | values
