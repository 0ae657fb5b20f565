"""Our round is that of Kafka's own cleaner, byte for byte, in each recorded case."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from offsets_log.cleaner.bounds import Bounds
from offsets_log.cleaner.retention import LAST_OF_ROUND
from tests.cleaner.cases import all_cases, differences, run

RELEASES = ("4.4.0", "4.3.0", "3.9.1", "3.7.2")

RECORDED = [(name, release) for name, case in all_cases().items() for release in RELEASES if release in case.results]

RULES = {
    "CL-2": "checkpoint-above-end checkpoint-below-start log-start",
    "CL-3": "transactions-mixed-r1 high-watermark min-lag edge-lag-0 edge-lag-1 edge-lag-mtime-0",
    "CL-4": "transactions-mixed-r1 high-watermark kafka-4.3-cleaned-later-p0",
    "CL-6": "plain-1",
    "CL-7": "bad-record bad-length legacy-last-tombstone",
    "CL-8": "map-full-1 map-full-2",
    "CL-9": "dirty-from-30 abort-before-dirty",
    "CL-10": "transactions-r1 transactions-mixed-r1",
    "CL-12": "map-full-1 map-full-1-next map-full-2 map-full-3",
    "CL-13": "transactions-mixed-r1 transactions-mixed-r2",
    "CL-14": "stale-txnindex edge-log-start-aborts",
    "CL-15": "transactions-edge-r1 abort-before-dirty",
    "CL-16": "transactions-r1 empty-batches-r1",
    "CL-17": "transactions-r1 transactions-r2 transactions-r3 control-types-r1",
    "CL-20": "transactions-edge-r2 transactions-edge-r3",
    "CL-21": "last-aborted-r1 last-empty last-marker producers-expired idempotent-r1",
    "CL-22": "plain-1 no-key map-full-2",
    "CL-23": "tombstones-edge-r1 tombstones-edge-r2 edge-legacy-tombstones legacy-r2",
    "CL-24": "legacy-last-tombstone legacy-last-without-key",
    "CL-26": "tombstones-r1 horizons-set transactions-r2",
    "CL-27": "producers-expired edge-expired-0 edge-expired-1 no-snapshot",
    "CL-28": "holes-r1 transactions-v2-r1",
    "CL-29": "tombstones-r1 append-time timestamps",
    "CL-30": "append-time timestamps",
    "CL-31": "codecs-r1 empty-keys-and-headers record-attributes",
    "CL-32": "last-empty empty-batches-r1 idempotent-r1",
    "CL-33": "legacy-r1 legacy-compressed-r1 legacy-holes",
    "CL-37": "grouping-bytes grouping-index grouping-span edge-group-bytes-0 edge-group-index-1 edge-span-0",
    "CL-39": "overflowed-segment",
    "CL-40": "big-batches small-buffers bad-crc bad-cut-batch",
    "CL-41": "big-batches grouping-index",
    "CL-42": "timestamps edge-same-time",
    "CL-43": "transactions-r1 transactions-mixed-r1",
    "CL-45": "grouping-bytes leader-epochs",
    "CL-50": "log-start kafka-4.3-cleaned-p2",
    "CL-57": "no-snapshot producers-expired",
}
"""Rule → cases in which it decides."""


@cache
def found(name: str, release: str) -> list[str]:
    """What our round does otherwise."""
    return differences(all_cases()[name], release)


@pytest.mark.parametrize(("name", "release"), RECORDED)
def test_a_round_is_that_of_kafka(name: str, release: str) -> None:
    assert found(name, release) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_holds_in_its_cases(rule: str) -> None:
    for name in RULES[rule].split():
        for release in all_cases()[name].results:
            assert found(name, release) == [], name


@pytest.mark.parametrize(("release", "cleaned", "failed"), [("4.3.0", 155, 14), ("4.4.0", 156, 13)])
def test_there_are_cases_of_every_outcome(release: str, cleaned: int, failed: int) -> None:
    outcomes = Counter(case.outcome(release) for case in all_cases().values())
    assert outcomes == {"cleaned": cleaned, "failed": failed, "aborted": 1, "not started": 4}


@pytest.mark.parametrize(("name", "opens"), [("ffff", ["4.3.0"]), ("00ff", ["4.3.0"]), ("0100", [])])
def test_since_4_4_an_aborted_transaction_has_version_0(name: str, opens: list[str]) -> None:
    """``K44-21``; before, its first byte is asked alone, and the entry stays as it is."""
    case = all_cases()[f"txnindex-version-{name}"]
    for release in ("4.3.0", "4.4.0"):
        assert found(f"txnindex-version-{name}", release) == []
        assert (case.results[release]["outcome"] != "not loaded") == (release in opens)
    if opens:
        written = (data for file, data in case.folders["after"].items() if file.endswith(".txnindex"))
        assert bytes.fromhex(name) in {data[:2] for data in written}


def test_since_4_4_the_high_watermark_keeps_a_batch_without_records() -> None:
    """``K44-30``: where the round ends there, and nowhere else; before, every round keeps one."""
    differing = {name for name, case in all_cases().items() if "after-4.4.0" in case.folders}
    looked_at = differing | {name for name, case in all_cases().items() if case.case["kind"] == "high watermark"}
    assert (len(differing), len(looked_at)) == (13, 20)
    for name in looked_at:
        bounds = bounds_by(name, "4.4.0")
        assert (bounds.first_uncleanable < bounds.high_watermark) == (name in differing)
        assert keeps_one(name, "4.3.0")
        assert keeps_one(name, "4.4.0") == (name not in differing)


def bounds_by(name: str, release: str) -> Bounds:
    """Those of our round."""
    return run(all_cases()[name].log, all_cases()[name].settings(release))[0].bounds


def keeps_one(name: str, release: str) -> bool:
    """Whether our round, which is the recorded one, keeps a last batch without records, or fails to write it."""
    assert found(name, release) == []
    done, _, _ = run(all_cases()[name].log, all_cases()[name].settings(release))
    return LAST_OF_ROUND in done.kept.reasons or "an empty batch" in str(done.problem)
