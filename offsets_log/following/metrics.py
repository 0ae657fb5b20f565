"""Say what is worth measuring while logs are followed: samples of the state that is kept, made when they are asked for.

There is a sample for each key, group or partition at most, so their number is bounded by these and not by records.
Times are epoch seconds and ages are left to whoever asks, as Prometheus recommends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from offsets_log.following.keeping import KeptPartition
from offsets_log.following.lags import KnownEnds
from offsets_log.replay.group import CLASSIC, Group
from offsets_log.rows.tables import Row

GAUGE, COUNTER = "gauge", "counter"
KEY = ("group", "topic", "partition", "offsets_partition")
OF_GROUP = ("group", "offsets_partition")
OF_PARTITION = ("offsets_partition",)
OF_PULLED = ("topic", "partition")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    Attributes:
        name: without ``offsets_log_`` before it, and without ``_total`` behind that of a counter.
        kind: `GAUGE` or `COUNTER`.
        labels: what tells its samples apart.
        means: what it says.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    means: str

    @property
    def shown_name(self) -> str:
        """The name that Prometheus stores."""
        return f"offsets_log_{self.name}" + ("_total" if self.kind == COUNTER else "")


Sample = tuple[Metric, tuple[object, ...], float]
"""A metric, the values of its labels, and its own."""

COMMITTED_OFFSET = Metric("committed_offset", GAUGE, KEY, "the committed offset that is served")
COMMIT_TIME = Metric("commit_timestamp_seconds", GAUGE, KEY, "when it was committed")
LAG = Metric("lag", GAUGE, KEY, "records from the committed offset to the log's end, where that is known")
PENDING = Metric("pending_offsets", GAUGE, OF_GROUP, "offsets of the group that wait for the end of a transaction")
MEMBERS = Metric("group_members", GAUGE, OF_GROUP, "members of the group in the log")
GENERATION = Metric(
    "group_generation", GAUGE, OF_GROUP, "generation of a classic group, group epoch of others: rebalances raise it"
)
STATE = Metric("group_state", GAUGE, (*OF_GROUP, "type", "state"), "1 for the state that the group is in")
ACTIVITY = Metric("group_activity_timestamp_seconds", GAUGE, OF_GROUP, "time of the newest record the group wrote")
GROUP_BYTES = Metric(
    "group_bytes",
    COUNTER,
    OF_GROUP,
    "bytes that the group's records take in the log, read so far; again if it was gone",
)
GROUP_RECORDS = Metric("group_records", COUNTER, OF_GROUP, "records of the group, read so far; again if it was gone")
REBALANCES = Metric("rebalances", COUNTER, OF_GROUP, "generations of the group, reported so far")
STORMS = Metric("rebalances_in_storms", COUNTER, OF_GROUP, "those of them that are part of a storm")
COMMITS = Metric("commits", COUNTER, OF_PARTITION, "commits, reported so far")
REWINDS = Metric(
    "rewinds",
    COUNTER,
    OF_PARTITION,
    "those of them after which the offset that is served went back, at once or after a deletion",
)
TRANSACTIONS = Metric("open_transactions", GAUGE, OF_PARTITION, "producers with offsets in an open transaction")
OLDEST_TRANSACTION = Metric(
    "oldest_open_transaction_timestamp_seconds", GAUGE, OF_PARTITION, "when the oldest of these offsets was committed"
)
LOAD_FAILS = Metric("load_fails", GAUGE, OF_PARTITION, "1 if a coordinator would not load the partition")
POSITION = Metric("next_offset", GAUGE, OF_PARTITION, "the record offset up to which the log was read")
BYTES_BEHIND = Metric("behind_bytes", GAUGE, OF_PARTITION, "bytes of the log that were seen, and not read yet")
DELAY = Metric("delay_seconds", GAUGE, (), "how long ago all logs were read to their ends")
ALERTS = Metric("alerts", COUNTER, ("rule",), "alerts that were raised")
DAMAGE = Metric("damage", COUNTER, (), "pieces of the logs that could not be read")
PULLED_END = Metric("pulled_end_offset", GAUGE, OF_PULLED, "where the copy of the partition ends")
PULLED_HIGH_WATERMARK = Metric("pulled_high_watermark", GAUGE, OF_PULLED, "the high watermark the broker said last")
PULLED_STABLE = Metric("pulled_last_stable_offset", GAUGE, OF_PULLED, "the last stable offset the broker said last")
PULLED_BEHIND = Metric("pulled_behind_records", GAUGE, OF_PULLED, "offsets from the copy's end to the high watermark")
PULLED_DELAY = Metric("pulled_delay_seconds", GAUGE, OF_PULLED, "how long ago the copy reached the high watermark")
PULLED_BYTES = Metric("pulled_bytes", COUNTER, OF_PULLED, "bytes that this run has added to the copy")
PULLED_PROBLEM = Metric("pulled_problem", GAUGE, OF_PULLED, "1 if the copy is not continued")

METRICS = (
    COMMITTED_OFFSET, COMMIT_TIME, LAG, PENDING, MEMBERS, GENERATION, STATE, ACTIVITY, GROUP_BYTES, GROUP_RECORDS,
    REBALANCES, STORMS, COMMITS, REWINDS, TRANSACTIONS, OLDEST_TRANSACTION, LOAD_FAILS, POSITION, BYTES_BEHIND, DELAY,
    ALERTS, DAMAGE, PULLED_END, PULLED_HIGH_WATERMARK, PULLED_STABLE, PULLED_BEHIND, PULLED_DELAY, PULLED_BYTES,
    PULLED_PROBLEM,
)  # fmt: skip
"""All that there are."""


def state_samples(
    kept: KeptPartition, shows_group: Callable[[str], bool], shows_topic: Callable[[str], bool], ends: KnownEnds | None
) -> Iterator[Sample]:
    """Yield what the state of a partition's offsets says."""
    partition = kept.offsets_partition
    for value in kept.served():
        if shows_group(value.group) and shows_topic(value.topic):
            labels = (*value.key, partition)
            yield COMMITTED_OFFSET, labels, value.committed_offset
            yield COMMIT_TIME, labels, value.commit_timestamp_ms / 1000
            end = None if ends is None else ends.end_of(value)
            if end is not None:
                yield LAG, labels, end - value.committed_offset
    pending: dict[str, int] = {}
    producers: set[int] = set()
    oldest_ms: int | None = None
    for value in kept.iter_pending():
        if shows_group(value.group) and shows_topic(value.topic):
            pending[value.group] = pending.get(value.group, 0) + 1
            producers.add(value.producer_id)
            time_ms = value.commit_timestamp_ms
            oldest_ms = time_ms if oldest_ms is None else min(oldest_ms, time_ms)
    for group_id, count in pending.items():
        yield PENDING, (group_id, partition), count
    yield TRANSACTIONS, (partition,), len(producers)
    if oldest_ms is not None:
        yield OLDEST_TRANSACTION, (partition,), oldest_ms / 1000
    yield LOAD_FAILS, (partition,), float(kept.failure is not None)


def group_samples(row: Row, group: Group | None) -> Iterator[Sample]:
    """Yield what a group's row of `groups` says, and which generation it is in."""
    labels = row["group"], row["offsets_partition"]
    yield MEMBERS, labels, row["members"]
    yield STATE, (*labels, row["type"], row["state"]), 1.0
    if row["last_activity_timestamp_ms"] is not None:
        yield ACTIVITY, labels, row["last_activity_timestamp_ms"] / 1000
    if group is not None:
        yield GENERATION, labels, group.generation if group.kind == CLASSIC else group.group_epoch


def counted_samples(
    metric: Metric, counts: Mapping[str, int], shows_group: Callable[[str], bool], offsets_partition: int | None
) -> Iterator[Sample]:
    """Yield a counter of each group that is shown."""
    return ((metric, (group, offsets_partition), count) for group, count in counts.items() if shows_group(group))
