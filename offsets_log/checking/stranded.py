"""What the brokers' logs beside the offsets topic say of its offsets: findings of `check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from offsets_log.checking.findings import DOUBT, Finding
from offsets_log.checking.places import FindingPlace
from offsets_log.data_directory.stranded import Stranded, in_words


def stranded_findings(found: Iterable[Stranded]) -> Iterator[Finding]:
    """One for each group, topic and rule, in this order; its detail has all partitions with their numbers."""
    ordered = sorted(found, key=lambda one: (one.value.group, one.value.topic, one.rule, one.value.partition))
    together: dict[tuple[str, str, str], list[Stranded]] = {}
    for one in ordered:
        together.setdefault((one.value.group, one.value.topic, one.rule), []).append(one)
    for (group, topic, rule), some in together.items():
        yield Finding(
            severity=DOUBT,
            rule=rule,
            problem=in_words(rule, some),
            place=FindingPlace(record_offset=some[0].value.record_offset, group=group),
            detail={"topic": topic, "offsets": [{"partition": one.value.partition} | one.detail for one in some]},
        )
