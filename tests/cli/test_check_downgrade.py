"""`check --loads-on` an older release than that of the data directory."""

from __future__ import annotations

import json

import pytest

from offsets_log.kafka_releases import METADATA_VERSIONS, row_of
from offsets_log.kafka_releases import newest_metadata_version as newest_level
from tests.cli.runs import ROOT, run

DIRECTORY = ROOT / "samples" / "kafka-4.3-data-directory"


@pytest.mark.parametrize(
    ("release", "level"),
    [
        ("2.8.2", 0), ("3.2.3", 3), ("3.9.1", 23), ("4.0.2", 26), ("4.1.2", 29), ("4.2.2", 30), ("4.3.1", 31),
        ("4.4.0", 34),
    ],
)  # fmt: skip
def test_the_newest_level_that_a_release_knows(release: str, level: int) -> None:
    """Of 3.9 and later as their own classes say it."""
    assert newest_level(row_of(tuple(map(int, release.split("."))))) == level
    assert METADATA_VERSIONS[32] == "4.4-IV2"


def test_a_release_that_does_not_know_the_metadata_version_is_told() -> None:
    """``K44-15``: the sample's cluster has level 30, which 4.2 knows and 4.1 does not."""
    result = run("check", DIRECTORY, "--loads-on", "4.1.2,4.2.0,2.8.2", "-o", "jsonl")
    (found,) = [row for row in map(json.loads, result.stdout.splitlines()) if row["rule"] == "K44-15"]
    assert (found["severity"], found["releases"], found["detail"]) == ("note", ["4.1.2"], {"level": 30})
    assert "4.3-IV0, level 30" in found["problem"]
    assert "4.1.2 up to 29" in found["problem"]
    assert "K44-15" not in run("check", DIRECTORY, "-o", "jsonl").stdout, "only of releases that were asked for"
