"""Commits of all groups over time, counted from samples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from offsets_log.report.lines import Numbers, ranks
from offsets_log.report.samples import COMMIT_LINE, line_numbers
from offsets_log.tables import Row

BARS = 120
GROUPS_APART = 7
"""The busiest groups, each with bars of its own."""
IN_PLOT = (0.0005, 0.9995)
"""Quantiles of the commits' times between which they are counted: some times may be far off, and hide the rest."""
NEAR = 4
"""All are in the plot if it is not longer by more than that."""


def commit_bars(commits: pa.Table) -> Row:
    """``bars`` from ``begin_ms`` on, each ``width_ms`` wide: ``commits`` of a ``group``, the last for all others.

    Commits are counted when the sample was written that they belong to. ``outside`` counts those that are in no bar.

    Args:
        commits: of `samples.Sampled`.
    """
    if not len(commits):
        return {"begin_ms": 0, "width_ms": 1, "bars": [], "outside": 0}
    times, records = commits["time_ms"].to_numpy(), commits["records"].to_numpy()
    begin, end = _bounds(times, records)
    width = -(-(end - begin + 1) // BARS)
    is_inside = (times >= begin) & (times <= end)
    places = (times[is_inside] - begin) // width
    numbers, first = line_numbers(commits, COMMIT_LINE[:1])
    busiest = np.argsort(ranks(np.bincount(numbers, records)))[:GROUPS_APART]
    names: list[str | None] = [*commits["group"].take(pa.array(first[busiest])).to_pylist(), None]
    bar_of_group = np.full(len(first), len(busiest))
    bar_of_group[busiest] = np.arange(len(busiest))
    bars = bar_of_group[numbers[is_inside]]
    counts = np.bincount(bars * BARS + places, records[is_inside], len(names) * BARS).astype(np.int64)
    return {
        "begin_ms": begin,
        "width_ms": width,
        "bars": [
            {"group": name, "commits": row} for name, row in zip(names, counts.reshape(-1, BARS).tolist(), strict=True)
        ],
        "outside": int(records[~is_inside].sum()),
    }


def _bounds(times: Numbers, records: Numbers) -> tuple[int, int]:
    order = np.argsort(times)
    so_far = np.cumsum(records[order])
    found = np.searchsorted(so_far, np.array(IN_PLOT) * so_far[-1])
    begin, end = times[order[np.minimum(found, len(order) - 1)]].tolist()
    first, last = int(times[order[0]]), int(times[order[-1]])
    return (first, last) if last - first <= NEAR * (end - begin + 1) else (begin, end)
