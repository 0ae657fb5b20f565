"""Count the commits of all groups over time, from samples."""

from __future__ import annotations

import numpy as np

from offsets_log.columnar.folds.samples import lines_of
from offsets_log.columnar.folds.sampling import RECORDS, TIME
from offsets_log.report.lines import groups_of, ranks
from offsets_log.report.samples import Lines, Numbers
from offsets_log.rows.tables import Row

BARS = 120
GROUPS_APART = 7
"""Number of busiest groups that have bars of their own."""
IN_PLOT = (0.0005, 0.9995)
"""Quantiles of the commits' times that bound the plot, since a few times may be far off and would hide the rest."""
NEAR = 4
"""If the plot with all times is at most this many times as long, all are in it."""


def commit_bars(commits: Lines) -> Row:
    """Return bars from ``begin_ms`` on, each ``width_ms`` wide: ``commits`` of a ``group``, the last one for all
    others.

    A commit counts at the time of the sample that it belongs to. ``outside`` counts the commits that are in no bar.

    Args:
        commits: the commits of `samples.Sampled`.
    """
    if not commits.names:
        return {"begin_ms": 0, "width_ms": 1, "bars": [], "outside": 0}
    times, records = commits.samples[:, TIME], commits.samples[:, RECORDS]
    begin, end = _bounds(times, records)
    width = -(-(end - begin + 1) // BARS)
    groups, group_of = groups_of(commits.names)
    lines = lines_of(commits.samples)
    of_groups = np.bincount(group_of, np.bincount(lines, records, len(group_of)))
    busiest = np.argsort(ranks(of_groups))[:GROUPS_APART]
    names: list[str | None] = [*(groups[number] for number in busiest.tolist()), None]
    bar_of_group = np.full(len(groups), len(busiest))
    bar_of_group[busiest] = np.arange(len(busiest))
    is_inside = (times >= begin) & (times <= end)
    places = (bar_of_group[group_of] * BARS)[lines[is_inside]]
    del lines
    places += (times[is_inside] - begin) // width
    counts = np.bincount(places, records[is_inside], len(names) * BARS).astype(np.int64)
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
