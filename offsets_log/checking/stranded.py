"""What the brokers' logs beside the offsets topic say of its offsets: findings of `check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from offsets_log.checking.findings import DOUBT, NOTE, Finding
from offsets_log.checking.places import FindingPlace
from offsets_log.data_directory.stranded import BELOW, Stranded, in_words
from offsets_log.words import DAY_MS

IDLE_MS = DAY_MS
"""Without a commit for so long a group is taken to be out of use: a consumer that fetches below the log start is sent
elsewhere at once, and commits from there."""


def stranded_findings(found: Iterable[Stranded], now_ms: int | None = None) -> Iterator[Finding]:
    """One for each group, topic and rule, in this order; its detail has all partitions with their numbers.

    Offsets below the log start (``DD-2``) of a group that is out of use are a note: retention does that to each of
    these.

    Args:
        now_ms: the time at which a group is in use or not; None where that is not known.
    """
    ordered = sorted(found, key=lambda one: (one.value.group, one.value.topic, one.rule, one.value.partition))
    together: dict[tuple[str, str, str], list[Stranded]] = {}
    for one in ordered:
        together.setdefault((one.value.group, one.value.topic, one.rule), []).append(one)
    for (group, topic, rule), some in together.items():
        is_idle = rule == BELOW and now_ms is not None and all(_is_idle(one, now_ms) for one in some)
        yield Finding(
            severity=NOTE if is_idle else DOUBT,
            rule=rule,
            problem=in_words(rule, some) + ("; not committed for more than a day" if is_idle else ""),
            place=FindingPlace(record_offset=some[0].value.record_offset, group=group),
            detail={"topic": topic, "offsets": [{"partition": one.value.partition} | one.detail for one in some]},
        )


def _is_idle(one: Stranded, now_ms: int) -> bool:
    return 0 <= one.value.commit_timestamp_ms < now_ms - IDLE_MS
