"""Turn samples to lines of a plot, few enough for a page: fine for the busiest groups, coarse for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from offsets_log.columnar.folds import samples as t
from offsets_log.columnar.folds import sampling as s
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.report.samples import Lines, Name, Numbers
from offsets_log.rows.tables import Row

LineName = tuple[str, str, int, int | None]
"""Group, topic, partition, offsets partition."""


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a page some groups get: the number of groups, lines of each, points of all their lines together."""

    groups: int
    lines: int
    points: int


SHARES = (Share(groups=100, lines=12, points=120_000), Share(groups=1 << 62, lines=2, points=200_000))
"""Shares of the groups with the most commits, and of all others."""


def offset_lines(commits: Lines, served: Mapping[LineName, OffsetAndMetadata]) -> dict[str, Row]:
    """Return group → ``count`` of its lines, and ``lines``: those with the most commits, by topic and partition.

    A line has ``topic``, ``partition``, ``commits``, ``times_ms`` and ``offsets``, which end with the served offset, or
    with null if none is served.

    Args:
        commits: the commits of `samples.Sampled`.
    """
    groups, group_of = groups_of(commits.names)
    numbers = t.lines_of(commits.samples)
    records = np.bincount(numbers, commits.samples[:, s.RECORDS], len(commits.names))
    rank_of_group = ranks(np.bincount(group_of, records))[group_of]
    rank_in_group = _ranks_within(group_of, records)
    counts = np.bincount(group_of).tolist()
    found: dict[str, Row] = {name: {"count": count, "lines": []} for name, count in zip(groups, counts, strict=True)}
    begin = 0
    for share in SHARES:
        chosen = (rank_of_group >= begin) & (rank_of_group < begin + share.groups) & (rank_in_group < share.lines)
        begin += share.groups
        for name, line in _iter_lines(commits.names, _thinned(commits.samples[chosen[numbers]], share.points)):
            found[name[0]]["lines"].append(_ended(line, served.get(name)))
    return found


def groups_of(names: Sequence[Name]) -> tuple[list[str], Numbers]:
    """Return the groups of lines in order, and for each line the number of its group."""
    groups = list(dict.fromkeys(name[0] for name in names))
    numbers = {group: number for number, group in enumerate(groups)}
    return groups, np.array([numbers[name[0]] for name in names], np.int64)


def ranks(amounts: Numbers) -> Numbers:
    """Return the rank of each amount; 0 for the largest."""
    ranks = np.empty(len(amounts), np.int64)
    ranks[np.argsort(-amounts, kind="stable")] = np.arange(len(amounts))
    return ranks


def _ranks_within(group_of: Numbers, amounts: Numbers) -> Numbers:
    """Return the rank of each amount within its group; 0 for the largest."""
    order = np.lexsort((-amounts, group_of))
    starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return ranks


def _thinned(samples: t.Samples, points: int) -> t.Samples:
    """Reduce samples to buckets of a width that leaves few enough; each line keeps at least one sample."""
    count, _ = t.thin(samples, 0, points, first_shift=1)
    return t.by_record(samples[:count])


def _iter_lines(names: Sequence[Name], samples: t.Samples) -> Iterator[tuple[Name, Row]]:
    """Yield name and row for each line; samples must be in the order of lines."""
    numbers = t.lines_of(samples)
    bounds = [*np.flatnonzero(np.diff(numbers, prepend=-1)).tolist(), len(samples)]
    times, record_offsets, records = (samples[:, column].tolist() for column in (s.TIME, s.RECORD_OFFSET, s.RECORDS))
    offsets = values(samples)
    for begin, end in pairwise(bounds):
        name = names[int(numbers[begin])]
        yield (
            name,
            {
                "topic": name[1],
                "partition": name[2],
                "commits": sum(records[begin:end]),
                "times_ms": times[begin:end],
                "offsets": offsets[begin:end],
                "record_offsets": record_offsets[begin:end],
            },
        )


def values(samples: t.Samples) -> list[int | None]:
    """Return the value of each sample; None for a tombstone."""
    found: list[int | None] = samples[:, s.VALUE].tolist()
    for place in np.flatnonzero(samples[:, s.TAG] & 1).tolist():
        found[place] = None
    return found


def _ended(line: Row, served: OffsetAndMetadata | None) -> Row:
    """End a line with the served offset, whatever rules of the coordinator led to it."""
    record_offsets = line.pop("record_offsets")
    if served is None:
        if line["offsets"][-1] is not None:
            line["times_ms"].append(line["times_ms"][-1])
            line["offsets"].append(None)
    elif (record_offsets[-1], line["offsets"][-1]) != (served.record_offset, served.committed_offset):
        line["times_ms"].append(max(line["times_ms"][-1], served.commit_timestamp_ms))
        line["offsets"].append(served.committed_offset)
    return line


# ------------------------------------------------------------------------------------------ generations


def generation_lines(generations: Lines) -> dict[str, Row]:
    """Return group → ``times_ms``, ``generations`` (null where its metadata was deleted) and ``rebalances``.

    A generation is that of a classic group, or the epoch of a newer one. Rebalances are the generations begun since the
    first one seen, including those between two samples.

    Args:
        generations: the generations of `samples.Sampled`.
    """
    samples, found = generations.samples, dict[str, Row]()
    numbers, times = t.lines_of(samples).tolist(), samples[:, s.TIME].tolist()
    for number, time_ms, generation in zip(numbers, times, values(samples), strict=True):
        line = found.setdefault(generations.names[number][0], {"times_ms": [], "generations": [], "rebalances": 0})
        if generation is not None and line["generations"]:
            before = line["generations"][-1] or 0
            line["rebalances"] += generation - before if generation >= before else max(generation, 0)
        line["times_ms"].append(time_ms)
        line["generations"].append(generation)
    return found
