"""The tables of a check, for people: loads of each partition, and below them what was found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Set
from typing import TYPE_CHECKING, Any

from offsets_log.checking.findings import DAMAGE, DOUBT, FAILS, NOTE, SKIPPED
from offsets_log.checking.report import EVERYTHING, is_unexplained
from offsets_log.release_names import NOT_VERIFIED
from offsets_log.rows.needed import Needed
from offsets_log.rows.tables import partition_name
from offsets_log.words import counted

if TYPE_CHECKING:
    from offsets_log.checking.report import Report
    from offsets_log.rows.tables import Row

LOADS_COLUMNS = (
    "offsets_partition", "shutdown", "loads_on", "fails_on", "never_ends_on", "does_not_start", "served",
    "log_end_offset", "missing_offsets",
)  # fmt: skip
COUNTED = re.compile(r"\d+ (\w+?)(?:e?s)?\b")
"""A number and what there is of it, without the ending of more than one."""
ANY = "any"
"""What stands for the stop before if it makes no difference."""
FINDINGS_COLUMNS = (
    "severity", "offsets_partition", "record_offset", "group", "rule", "releases", "problem", "file", "position",
)  # fmt: skip
FINDINGS_NEEDED = Needed(("severity", "offsets_partition", "rule", "problem"), ("group", "record_offset", "releases"))


KINDS_COLUMNS = ("verdict", "releases", "shutdown", "served", "partitions", "offsets_partitions")
RELEASES_COLUMNS = ("releases", "partitions", "load", "fail", "never_end", "do_not_start")
FINDING_KINDS_COLUMNS = ("severity", "rule", "findings", "partitions", "problem", "offsets_partitions")
FINDING_KINDS_NEEDED = Needed((), ("severity", "rule", "findings", "problem"))


def kinds_table(found: Report, judged: Set[str]) -> list[Row]:
    """Return rows of `KINDS_COLUMNS`: the loads of judged releases that come to the same, the worst first."""
    names = [release.name for release in found.releases]
    kinds: dict[tuple[str, str | None, str | None], list[Row]] = {}
    for load in found.loads:
        if load["releases"][0] in judged:
            served = _served([load], names)
            kinds.setdefault((_verdict(load), load["shutdown"], served), []).append(load)
    order = list(VERDICTS.values())
    return [
        {
            "verdict": verdict,
            "releases": _shown_releases(list(dict.fromkeys(load["releases"][0] for load in loads)), names),
            "shutdown": shutdown,
            "served": served,
            **_partitions(loads),
        }
        for (verdict, shutdown, served), loads in sorted(kinds.items(), key=lambda item: -order.index(item[0][0]))
    ]


def releases_table(found: Report) -> list[Row]:
    """Return rows of `RELEASES_COLUMNS`: on how many partitions each release comes to what, neighbours alike joined."""
    names = [release.name for release in found.releases]
    alike: list[tuple[list[Any], list[str]]] = []
    for name in names:
        loads = [load for load in found.loads if load["releases"][0] == name]
        of_all = len({load["offsets_partition"] for load in loads})
        counts = [
            of_all,
            *(len({load["offsets_partition"] for load in loads if is_so(load)}) or None for is_so in COMES_TO.values()),
        ]
        if alike and alike[-1][0] == counts:
            alike[-1][1].append(name)
        else:
            alike.append((counts, [name]))
    return [dict(zip(RELEASES_COLUMNS, (_shown_releases(some, names), *counts), strict=True)) for counts, some in alike]


def finding_kinds_table(found: Report, judged: Set[str]) -> list[Row]:
    """Return rows of `FINDING_KINDS_COLUMNS`: findings that judged releases meet, of one rule as one row."""
    names = [release.name for release in found.releases]
    kinds: dict[tuple[str, str | None], list[Row]] = {}
    for row in _judged_first(found.findings, judged, names):
        if not judged.isdisjoint(row["releases"] or names):
            kinds.setdefault((row["severity"], row["rule"]), []).append(row)
    return [
        {"severity": severity, "rule": rule, "findings": len(rows), "problem": rows[0]["problem"], **_partitions(rows)}
        for (severity, rule), rows in kinds.items()
    ]


def _partitions(rows: list[Row]) -> Row:
    """Return how many offsets partitions rows are of, and which."""
    found = sorted({row["offsets_partition"] for row in rows if row["offsets_partition"] is not None})
    return {"partitions": len(found), "offsets_partitions": ", ".join(map(str, found)) or None}


def _verdict(load: Row) -> str:
    """Return what a load comes to, as of `VERDICTS`."""
    return next(VERDICTS[name] for name, is_so in COMES_TO.items() if is_so(load))


def loads_table(found: Report) -> list[Row]:
    """Return rows of `LOADS_COLUMNS`."""
    return _load_table(found, [release.name for release in found.releases])


def findings_table(found: Report, judged: Set[str]) -> list[Row]:
    """Return rows of `FINDINGS_COLUMNS`.

    Args:
        judged: names of the releases that decide the exit status.
    """
    names = [release.name for release in found.releases]
    return [
        row | {"releases": _shown_releases(row["releases"] or names, names)}
        for row in _alike_joined(_judged_first(found.findings, judged, names))
    ]


def _judged_first(findings: list[Row], judged: Set[str], names: list[str]) -> list[Row]:
    """Return findings of all partitions: first what judged releases meet, then newer before older.

    Among these what counts comes before what is only skipped, and notes are last.
    """
    weight = (FAILS, DAMAGE, DOUBT, SKIPPED, NOTE)
    newest = {name: place for place, name in enumerate(names)}

    def order(row: Row) -> tuple[int, int]:
        releases = row["releases"] or names
        is_met = not judged.isdisjoint(releases)
        age = 0 if is_met else len(names) - max(newest[name] for name in releases)
        return age, weight.index(row["severity"])

    return sorted(findings, key=order)


def _alike_joined(findings: list[Row]) -> list[Row]:
    """Return findings with notes of one rule, group and wording as one: the first of them, and how many more there are.

    Notes are of one wording if they differ only in numbers.
    """
    joined: dict[Hashable, list[Row]] = {}
    for place, row in enumerate(findings):
        words = re.sub(r"\d+", "0", COUNTED.sub(r"0 \1", row["problem"]))
        is_note = row["severity"] == NOTE
        kind = (row["rule"], row["group"], tuple(row["releases"] or ()), words) if is_note else place
        joined.setdefault(kind, []).append(row)
    return [
        first | ({"problem": f"{first['problem']}; {counted(len(more), 'more note')} of this kind"} if more else {})
        for first, *more in joined.values()
    ]


def _load_table(found: Report, names: list[str]) -> list[Row]:
    """Return rows for each partition, and for each stop before if it matters.

    If the stop matters anywhere, rows tell what is served and where the log ends then; if only something is missing,
    what is served, which otherwise looks like all that there was.
    """
    missing = _missing(found)
    rows: dict[tuple[int | None, str | None], list[Row]] = {}
    for load in found.loads:
        rows.setdefault((load["offsets_partition"], load["shutdown"]), []).append(load)
    is_stopped = any(shutdown for _, shutdown in rows)
    return [
        {
            "offsets_partition": partition_name(offsets_partition),
            "shutdown": (shutdown or ANY) if is_stopped else None,
            **{column: _shown_releases(_named(some, is_so), names) for column, is_so in COMES_TO.items()},
            "served": _served(some, names) if is_stopped or missing else None,
            "log_end_offset": _end(some, names) if is_stopped else None,
            "missing_offsets": missing[offsets_partition] or None,
        }
        for (offsets_partition, shutdown), some in rows.items()
    ]


def _missing(found: Report) -> Counter[int | None]:
    """Return offsets partition → how many offsets are missing there, and nothing explains it."""
    missing: Counter[int | None] = Counter()
    for finding in found.findings:
        if is_unexplained(finding):
            missing[finding["offsets_partition"]] += finding["detail"]["missing_offsets"]
    return missing


COMES_TO: dict[str, Callable[[Row], bool]] = {
    "loads_on": lambda load: load["ok"],
    "fails_on": lambda load: load["starts"] and load["ends"] and not load["ok"],
    "never_ends_on": lambda load: not load["ends"],
    "does_not_start": lambda load: not load["starts"],
}
"""Column → tells which loads' releases it names."""
VERDICTS = {
    "loads_on": "loads",
    "fails_on": "fails",
    "never_ends_on": "never ends",
    "does_not_start": "does not start",
}
"""Column of `COMES_TO` → the word for one load, the best first."""


def _served(loads: list[Row], names: list[str]) -> str:
    """Say how much is served, and of what where that is not everything."""
    served = str(_by_release(loads, lambda load: load["served"], names))
    of = loads[0]["served_of"]
    return f"{served} of {of}" if of != EVERYTHING and served in ("all", "some") else served


def _end(loads: list[Row], names: list[str]) -> Any:
    """Return where the log ends on brokers that start."""
    return _by_release(loads, lambda load: load["log_end_offset"] if load["starts"] else None, names)


def _by_release(loads: list[Row], tell: Callable[[Row], Any], names: list[str]) -> Any:
    """Return what is told of the loads, with the releases if they differ; None is not told.

    Args:
        names: of all releases that are asked for.
    """
    releases: dict[Any, list[str]] = {}
    for load in loads:
        if (told := tell(load)) is not None:
            releases.setdefault(told, []).append(load["releases"][0])
    if len(releases) < 2:
        return next(iter(releases), None)
    return "; ".join(f"{told}: {_shown_releases(some, names)}" for told, some in releases.items())


def _named(loads: list[Row], is_so: Callable[[Row], bool]) -> list[str]:
    return [load["releases"][0] for load in loads if is_so(load)]


def _shown_releases(some: list[str], names: list[str]) -> str | None:
    """Return ``all``, or names of releases, with three or more in sequence as ``first … last``.

    Where one is not verified, ``all`` would not say so.
    """
    if not some:
        return None
    if len(some) == len(names) and not any(NOT_VERIFIED in name for name in names):
        return "all"
    runs: list[list[str]] = []
    for name in some:
        if runs and names.index(name) == names.index(runs[-1][-1]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(f"{run[0]} … {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)
