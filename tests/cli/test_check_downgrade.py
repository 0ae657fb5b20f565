"""`check --loads-on` an older release than that of the data directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offsets_log.events import Event
from offsets_log.kafka_releases import METADATA_VERSIONS, row_of
from offsets_log.kafka_releases import newest_metadata_version as newest_level
from offsets_log.pipeline import iter_events
from tests.builders import record_bytes
from tests.cli.runs import ROOT, batch_of, rows, run, write_partition
from tests.conftest import BulkFrom, read_partitions

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


STORED, FAILED = "stored_description_topology_epoch", "failed_description_topology_epoch"


def lost_by(folder: Path, releases: str, *more: str) -> dict[str, Any]:
    """Return group → which releases lose what."""
    found = [
        row for row in rows("check", folder, "--loads-on", releases, "-o", "jsonl", *more) if row["rule"] == "K44-14"
    ]
    assert all(row["severity"] == "note" for row in found)
    return {row["group"]: (row["releases"], row["detail"], row["problem"]) for row in found}


def last_values(folder: Path) -> dict[str, dict[str, Any]]:
    """Return of each streams group whose last record has an epoch of a description, or which has static members, both.

    Of the latest records alone, as if compacted.
    """
    latest: dict[tuple[int, str, str | None], dict[str, Any] | None] = {}
    for log in read_partitions(folder).values():
        for event in iter_events(log):
            record = event.decoded if isinstance(event, Event) else None
            if record is not None and record.record_type in (17, 19):
                latest[record.record_type, record.group, record.key.get("member_id")] = record.value
    found: dict[str, dict[str, Any]] = {}
    for (number, group, _), value in latest.items():
        if value is not None and number == 17:
            found[group] = {STORED: value[STORED], FAILED: value[FAILED], "static_members": []}
    for (number, group, _), value in latest.items():
        if value is not None and number == 19 and value["instance_id"] is not None:
            found[group]["static_members"] = sorted([*found[group]["static_members"], value["instance_id"]])
    return {group: lost for group, lost in found.items() if list(lost.values()) != [-1, -1, []]}


@pytest.mark.parametrize("is_bulk", [False, True])
def test_what_an_older_release_loses_of_streams_groups_is_told(
    *, is_bulk: bool, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    """``K44-14``: descriptions and static members, of groups that are there at the end."""
    folder = recording("kafka-4.4-modern-groups") / "log"
    if is_bulk:
        bulk_from(0)
    found = lost_by(folder, "4.3.1,3.9.1,4.1.2,4.4.0")
    assert {group: detail for group, (_, detail, _) in found.items()} == last_values(folder)
    assert found.keys() == {"streams-desert", "streams-fixed-desert", "streams-silent-desert"}
    assert all(releases == ["4.3.1", "4.1.2"] for releases, _, _ in found.values())
    assert "2 static members" in found["streams-fixed-desert"][2]
    assert "static" not in found["streams-desert"][2]
    assert lost_by(folder, "4.3.1", "-g", "streams-desert", "-t", "none").keys() == {"streams-desert"}
    assert lost_by(folder, "4.4.0,3.9.1") == {}
    assert "K44-14" not in run("check", folder, "-o", "jsonl").stdout, "only of releases that were asked for"


def test_each_loss_is_told_alone(tmp_path: Path) -> None:
    """A description that was refused, a member that is static; a group with neither loses nothing."""
    group = {"epoch": 1, "metadata_hash": 0}
    member = {"instance_id": None, "client_id": "c", "client_host": "/h", "topology_epoch": 0, "process_id": "p"}
    member |= {"client_tags": []}
    records = [
        *(record_bytes(17, {"group_id": name}, group, 0) for name in ("dynamic", "static")),
        record_bytes(17, {"group_id": "refused"}, group | {FAILED: 7}, 0),
        record_bytes(19, {"group_id": "dynamic", "member_id": "a"}, member, 0),
        record_bytes(19, {"group_id": "static", "member_id": "b"}, member | {"instance_id": "node"}, 0),
    ]
    found = lost_by(write_partition(tmp_path, [batch_of(*records)]), "4.2.0")
    assert {group: [*detail.values()] for group, (_, detail, _) in found.items()} == {
        "refused": [-1, 7, []],
        "static": [-1, -1, ["node"]],
    }
    assert "description" in found["refused"][2]
    assert "static" not in found["refused"][2]
    assert "description" not in found["static"][2]
