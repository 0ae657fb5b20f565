"""All offsets of groups, packed for a page: served and pending ones, with their lag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from offsets_log.coordinator_document import Memory
from offsets_log.rows.tables import Row

MOST_OFFSETS = 100_000
"""How many a page has; groups that come later in the order have theirs left out."""
Key = tuple[str, str, int]
"""Group, topic, partition."""


def packed_offsets(memory: Memory, lags: Mapping[Key, int | None], groups: Iterable[str]) -> Row:
    """Return ``topics``, the names, and ``groups``: group → rows of topic's number, partition, committed offset, its
    time, lag, and the newest offset that an open transaction holds. A group that is not there has too many.

    Args:
        groups: those that the page names, the most important first.
    """
    found: dict[str, dict[tuple[str, int, int | None], Row]] = {}
    for part in memory.parts:
        place = part.log.offsets_partition
        for value in part.state.iter_served():
            row = {"offset": value.committed_offset, "time": value.commit_timestamp_ms}
            found.setdefault(value.group, {})[value.topic, value.partition, place] = row
        for value in sorted(part.state.pending, key=lambda value: value.record_offset):
            of_group = found.setdefault(value.group, {})
            of_group.setdefault((value.topic, value.partition, place), {})["pending"] = value.committed_offset
    topics: dict[str, int] = {}
    packed: dict[str, list[list[int | None]]] = {}
    left = MOST_OFFSETS
    for group in groups:
        of_group = found.get(group, {})
        left -= len(of_group)
        if left < 0:
            break
        packed[group] = [
            [
                topics.setdefault(topic, len(topics)), partition, row.get("offset"), row.get("time"),
                lags.get((group, topic, partition)), row.get("pending"),
            ]
            for (topic, partition, _), row in sorted(of_group.items(), key=lambda item: item[0][:2])
        ]  # fmt: skip
    return {"topics": list(topics), "groups": packed}
