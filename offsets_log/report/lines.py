"""Samples as lines of a plot, few enough for a page: those of the busiest groups fine, those of the others coarse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsets_log.messages.registry import decode_coordinator_record
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.report.samples import COMMIT_LINE, GENERATION_LINE, last_in_buckets, line_numbers
from offsets_log.tables import Row

Numbers = npt.NDArray[Any]
LineName = tuple[str, str, int, int | None]
"""Group, topic, partition, offsets partition."""


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a page some groups get: so many of them, lines of each, points of all their lines together."""

    groups: int
    lines: int
    points: int


SHARES = (Share(groups=100, lines=12, points=120_000), Share(groups=1 << 62, lines=2, points=200_000))
"""Of the groups with the most commits, and of all others."""
POINTS_OF_GENERATIONS = 20_000


def offset_lines(commits: pa.Table, served: Mapping[LineName, OffsetAndMetadata]) -> dict[str, Row]:
    """Group → ``count`` of its lines, and ``lines``: those with the most commits, by topic and partition.

    A line has ``topic``, ``partition``, ``commits``, ``times_ms`` and ``offsets``, which end with what is served, or
    with null if nothing is.

    Args:
        commits: of `samples.Sampled`.
    """
    numbers, first = line_numbers(commits, COMMIT_LINE)
    group_numbers, group_first = line_numbers(commits, COMMIT_LINE[:1])
    group_of = group_numbers[first]
    records = np.bincount(numbers, commits["records"].to_numpy(), len(first))
    rank_of_group = ranks(np.bincount(group_of, records))[group_of]
    rank_in_group = _ranks_within(group_of, records)
    names = commits["group"].take(pa.array(group_first)).to_pylist()
    counts = np.bincount(group_of).tolist()
    found: dict[str, Row] = {name: {"count": count, "lines": []} for name, count in zip(names, counts, strict=True)}
    begin = 0
    for share in SHARES:
        chosen = (rank_of_group >= begin) & (rank_of_group < begin + share.groups) & (rank_in_group < share.lines)
        begin += share.groups
        for name, line in _iter_lines(_thinned(commits.filter(pa.array(chosen[numbers])), share.points)):
            found[name[0]]["lines"].append(_ended(line, served.get(name)))
    return found


def ranks(amounts: Numbers) -> Numbers:
    """0 for the largest."""
    ranks = np.empty(len(amounts), np.int64)
    ranks[np.argsort(-amounts, kind="stable")] = np.arange(len(amounts))
    return ranks


def _ranks_within(group_of: Numbers, amounts: Numbers) -> Numbers:
    """The same within each group."""
    order = np.lexsort((-amounts, group_of))
    starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return ranks


def _thinned(commits: pa.Table, points: int) -> pa.Table:
    """Wider buckets until there are few enough samples; each line keeps one at least."""
    width_ms = 1
    while len(commits) > points and width_ms < 1 << 40:
        width_ms *= 2
        commits = last_in_buckets(commits, COMMIT_LINE, width_ms)
    return commits


def _iter_lines(commits: pa.Table) -> Iterator[tuple[LineName, Row]]:
    numbers, first = line_numbers(commits, COMMIT_LINE)
    if not len(first):
        return
    names = zip(*(commits[name].take(pa.array(first)).to_pylist() for name in COMMIT_LINE), strict=True)
    rows = commits.take(pa.array(np.argsort(numbers, kind="stable")))
    bounds = np.append(0, np.cumsum(np.bincount(numbers))).tolist()
    times, offsets, record_offsets, records = (
        rows[name].to_pylist() for name in ("time_ms", "committed_offset", "record_offset", "records")
    )
    for name, (begin, end) in zip(names, pairwise(bounds), strict=True):
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


def _ended(line: Row, served: OffsetAndMetadata | None) -> Row:
    """With what is served as its end, whatever the rules of the coordinator made of it."""
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


def generation_lines(generations: pa.Table, release: tuple[int, int] | None) -> dict[str, Row]:
    """Group → ``times_ms``, ``generations`` (null where its metadata was deleted) and ``rebalances``.

    A generation is that of a classic group, or the epoch of a newer one. Rebalances are the generations begun since the
    first one seen: what lies between two samples is counted too.

    Args:
        generations: of `samples.Sampled`.
    """
    numbers, _ = line_numbers(generations, GENERATION_LINE)
    rows = generations.take(pa.array(np.argsort(numbers, kind="stable"))).to_pylist()
    found: dict[str, Row] = {}
    for row in rows:
        line = found.setdefault(row["group"], {"times_ms": [], "generations": [], "rebalances": 0})
        generation = _generation(row["key"], row["value"], release)
        if generation is not None and line["generations"]:
            before = line["generations"][-1] or 0
            line["rebalances"] += generation - before if generation >= before else max(generation, 0)
        line["times_ms"].append(row["time_ms"])
        line["generations"].append(generation)
    return found


def _generation(key: bytes, value: bytes | None, release: tuple[int, int] | None) -> int | None:
    fields = decode_coordinator_record(key, value, release).value
    if fields is None:
        return None
    generation: int = fields["generation"] if "generation" in fields else fields["epoch"]
    return generation
