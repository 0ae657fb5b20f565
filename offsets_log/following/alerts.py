"""State what is worth an alert while a log is followed; the rules themselves are those of the questions asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from offsets_log.following.keeping import KeptPartition
from offsets_log.rows.tables import Row, partition_name
from offsets_log.words import shown_time

REWOUND, LOAD_FAILS, TRANSACTION_OPEN, GROUP_EMPTY, REBALANCE_STORM, BEYOND_END, LAG = (
    "rewound", "load-fails", "transaction-open", "group-empty", "rebalance-storm", "beyond-end", "lag",
)  # fmt: skip

Rules = Mapping[str, int]
"""Rule → how long it must last, in milliseconds, or how many records it takes; 0 for rules that take no number."""

Identity = tuple[object, ...]


def alert_row(
    rule: str,
    what: str,
    *,
    group: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    offsets_partition: int | None = None,
    record_offset: int | None = None,
) -> Row:
    """Return the row of an alert; null where it is about no group, topic or record."""
    return {
        "event": "alert",
        "rule": rule,
        "group": group,
        "topic": topic,
        "partition": partition,
        "offsets_partition": offsets_partition,
        "record_offset": record_offset,
        "what": what,
    }


@dataclass(slots=True)
class Lasting:
    """Alerts about what lasts: each is raised once, and again only when it was over in between."""

    _raised: set[Identity] = field(default_factory=set)

    def new(self, found: Iterable[tuple[Identity, Row]]) -> Iterator[Row]:
        """Yield those found now that were not found the last time."""
        now = dict(found)
        yield from (row for identity, row in now.items() if identity not in self._raised)
        self._raised = set(now)


def of_partition(
    kept: KeptPartition, rules: Rules, shows_group: Callable[[str], bool], now_ms: int
) -> Iterator[tuple[Identity, Row]]:
    """Yield what is to be said of a partition's load, and of open transactions of the groups that are shown."""
    failure = kept.failure if LOAD_FAILS in rules else None
    if failure is not None:
        where = f"the load of offsets partition {partition_name(kept.offsets_partition)} ends"
        yield (
            (LOAD_FAILS, kept.offsets_partition, failure.record_offset),
            alert_row(
                LOAD_FAILS, f"{where} at record offset {failure.record_offset}: {failure.problem} ({failure.rule})",
                group=failure.group, offsets_partition=kept.offsets_partition, record_offset=failure.record_offset,
            ),
        )  # fmt: skip
    for value in kept.iter_pending() if TRANSACTION_OPEN in rules else ():
        if shows_group(value.group) and value.commit_timestamp_ms <= now_ms - rules[TRANSACTION_OPEN]:
            yield (
                (TRANSACTION_OPEN, value.key, value.producer_id, value.record_offset),
                alert_row(
                    TRANSACTION_OPEN,
                    f"producer id {value.producer_id} committed {value.committed_offset} in a transaction that is "
                    f"open since {shown_time(value.commit_timestamp_ms)}",
                    group=value.group, topic=value.topic, partition=value.partition,
                    offsets_partition=kept.offsets_partition, record_offset=value.record_offset,
                ),
            )  # fmt: skip
