"""What a page says first: from when to when, how old that is, of whom, and whether all of it could be read."""

from __future__ import annotations

from collections.abc import Iterable

from offsets_log.checking.findings import DAMAGE, DOUBT, FAILS
from offsets_log.data_directory.directory import Identity
from offsets_log.words import shown_span, shown_time

WHOLE = "Everything was read. No damage was found."
LACKING = "A part of the log is damaged or missing. A commit in it is not shown, and an older one may stand for it."
DOUBTFUL = "Everything here was read. Whether it is all of the log is not certain, as the problems below say."
UNLOADED = "A broker does not load all of this log. Of a partition that it does not load it serves no group."
NO_TIMES = "No record here has a time."
NOBODYS = "Which broker and cluster these files are of is not known: no meta.properties lies beside them."


def when_in_words(begin_ms: int | None, end_ms: int | None, made_ms: int) -> str:
    """Return of when the records are, and how long before the page the last one was written."""
    if begin_ms is None or end_ms is None:
        return NO_TIMES
    age = f" The last one is {shown_span(made_ms - end_ms)} older than this page." if made_ms >= end_ms else ""
    return f"Records from {_second(begin_ms)} to {_second(end_ms)}: {shown_span(end_ms - begin_ms)}.{age}"


def _second(time_ms: int) -> str:
    return shown_time(time_ms - time_ms % 1000).replace(".000Z", "Z")


def whose_in_words(identities: Iterable[Identity]) -> str:
    """Return which brokers and clusters the files are of."""
    homes: dict[str | None, set[int]] = {}
    for identity in identities:
        if identity.node_id is not None:
            homes.setdefault(identity.cluster_id, set()).add(identity.node_id)
    said = [
        f"broker{'s' if len(nodes) > 1 else ''} {', '.join(map(str, sorted(nodes)))} of "
        + ("a cluster that is not told" if cluster is None else f"cluster {cluster}")
        for cluster, nodes in homes.items()
    ]
    return f"Of {' and '.join(said)}." if said else NOBODYS


def trust_in_words(*, is_loaded: bool, is_lacking: bool, is_doubtful: bool) -> tuple[str, str | None]:
    """Return whether all was read and what follows, and how bad that is: a severity of findings, None if it is not.

    Args:
        is_loaded: whether a broker loads all partitions.
        is_lacking, is_doubtful: whether something is damaged or missing, or may be.
    """
    read = LACKING if is_lacking else DOUBTFUL if is_doubtful else WHOLE if is_loaded else ""
    severity = FAILS if not is_loaded else DAMAGE if is_lacking else DOUBT if is_doubtful else None
    return f"{'' if is_loaded else UNLOADED} {read}".strip(), severity
