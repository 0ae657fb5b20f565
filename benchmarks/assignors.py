"""The assignors over a large group: 1,000 members, 10,000 partitions of 100 topics."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator

from benchmarks.timing import seconds_of
from offsets_log.rebalance.assignors import ASSIGNORS
from offsets_log.rebalance.assignors.assignor import NEWEST, Assignment, Metadata, Subscription
from offsets_log.rebalance.consumer_bytes import sticky_user_data

MEMBERS, TOPICS, PARTITIONS = 1000, 100, 100
RUNS = 5
BOUNDS = {"range": 1.0, "roundrobin": 1.0, "sticky": 3.0, "cooperative-sticky": 3.0}
"""Seconds that an assignment may take."""

HEAD = (
    f"| {MEMBERS:,} members, {TOPICS * PARTITIONS:,} partitions, median of {RUNS} | s | at most |",
    "|---|--:|--:|",
)


def large_group(name: str) -> dict[str, Callable[[], Assignment]]:
    """What is assigned by one assignor: a new group; and one where 50 members have gone and 50 others come."""
    metadata = Metadata({f"topic-{number}": PARTITIONS for number in range(TOPICS)})
    topics = tuple(metadata.partition_counts)
    fresh = {f"member-{number:04}": Subscription(topics=topics) for number in range(MEMBERS)}
    assignor = ASSIGNORS[name](NEWEST)
    before = assignor.assign(metadata, fresh)
    changed = {
        member_id: Subscription(
            topics=topics, owned_partitions=tuple(units), generation=1, user_data=sticky_user_data(units, 1)
        )
        for member_id, units in list(before.items())[50:]
    } | {f"newcomer-{number:04}": Subscription(topics=topics) for number in range(50)}
    return {
        f"{name}, new group": lambda: assignor.assign(metadata, fresh),
        f"{name}, 50 of its members new": lambda: assignor.assign(metadata, changed),
    }


def iter_lines(only: re.Pattern[str]) -> Iterator[str]:
    """The table; nothing if none of the names is asked for."""
    lines = [
        f"| {what} | {statistics.median(seconds_of(assign) for _ in range(RUNS)):.3f} | {BOUNDS[name]:.0f} |"
        for name in ASSIGNORS
        for what, assign in large_group(name).items()
        if only.search(what)
    ]
    if lines:
        yield from (*HEAD, *lines)
