"""Whose rules are followed where nobody chose: what files tell, and what is said where they tell nothing."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from offsets_log.data_directory.cluster_image import BrokerImage
from offsets_log.data_directory.whose_rules import WhoseRules, whose_rules
from offsets_log.disk.reader import open_logs
from offsets_log.kafka_releases import METADATA_VERSIONS, NEWEST
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.words import DAY_MS
from tests.builders import LogBuilder, record_bytes
from tests.cli.runs import run
from tests.conftest import NEVER, RECORDINGS, BulkFrom, json_lines, read_json

TOLD = {
    "kafka-0.8.2": "classic",
    "kafka-0.10.2": "classic",
    "kafka-0.11-compacted": "classic",
    "kafka-1.1": "classic",
    "kafka-2.8": None,
    "kafka-3.7-preview": "modern-3.7",
    "kafka-3.9-classic": None,
    "kafka-4.3-cleaned": "modern",
    "kafka-4.3-compressed": "modern",
    "kafka-4.3-expired": "modern",
    "kafka-4.3-live-copy": "modern",
    "kafka-4.3-mixed": "modern",
    "kafka-4.3-modern-groups": "modern",
    "kafka-4.4-mixed": "modern",
    "kafka-4.4-modern-groups": "modern",
    "kafka-lifetime": "classic",
    "load-fails": "modern",
    "random-java": "modern",
    "random-scala": "modern",
}
"""Recording → what its files tell, None for nothing: values of version 3 are written by 2.1 to 4.0.

The segments of random-scala are those of random-java, with records that only 4.1 writes.
"""
ANSWERED = [name for name, told in TOLD.items() if told and name not in ("random-scala", "load-fails")]
EMPTY = {"protocol_type": "", "generation": 0, "protocol": None, "leader": None, "members": []}
DIRECTORIES = Path(__file__).parent.parent / "data_directories"
COMMANDS = (
    ("compact",), ("groups",), ("history", "-g", "tx-*"), ("rebuild",), ("rescue",), ("diff", "--from-offset", "20"),
    ("expire",), ("report",),
)  # fmt: skip


def told_by(*paths: Path) -> WhoseRules:
    with open_logs(list(map(str, paths))) as opened:
        return whose_rules(opened.clusters, opened.logs)


def test_every_recording_is_listed() -> None:
    assert sorted(TOLD) == RECORDINGS


@pytest.mark.parametrize("name", TOLD)
def test_recordings_tell_who_wrote_them(name: str, recording: Callable[[str], Path]) -> None:
    found = told_by(recording(name) / "log")
    assert (found.profile if found.is_sure else None) == TOLD[name]
    assert bool(found.why) == found.is_sure


@pytest.mark.parametrize("name", ANSWERED)
def test_where_files_tell_each_recording_is_answered_as_its_own_broker_did(
    name: str, recording: Callable[[str], Path]
) -> None:
    folder = recording(name)
    names = ("group", "topic", "partition", "committed_offset", "metadata")
    lines = run("compact", folder / "log", "--as-broker", "-o", "jsonl").stdout
    result = [tuple(row[column] for column in names) for row in json_lines(lines)]
    answer = read_json(folder / "answers" / "restart.json")
    if name == "kafka-0.8.2":  # its answers never name topics that did not exist (recordings' README)
        known = {row["topic"] for row in answer["offsets"]}
        result = [row for row in result if row[1] in known]
    assert sorted(result) == sorted(tuple(row[column] for column in names) for row in answer["offsets"])


@pytest.mark.parametrize(("name", "profile"), [("kafka-3.9-one", "classic"), ("kafka-4.3-one", "modern")])
def test_data_directories_tell_their_brokers_release(name: str, profile: str, tmp_path: Path) -> None:
    with tarfile.open(DIRECTORIES / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    found = told_by(tmp_path / "copies" / "stopped")
    assert (found.profile, found.is_sure) == (profile, True)
    assert f"its brokers are of Kafka {name[6:9]}" in (found.why or "")


def cluster(*levels: int, level: int | None = None, versions: tuple[int, ...] = (1,)) -> Any:
    """Clusters of brokers that support these levels of metadata.version."""
    brokers = {
        number: BrokerImage(
            broker_id=number, broker_epoch=0, incarnation_id=ZERO_UUID, rack=None, fenced=False,
            in_controlled_shutdown=False, end_points={}, log_dirs=(), features={"metadata.version": (1, newest)},
        )
        for number, newest in enumerate(levels)
    }  # fmt: skip
    image = SimpleNamespace(brokers=brokers, metadata_version=level)
    identities = [SimpleNamespace(node_id=9, meta=SimpleNamespace(version=version)) for version in versions]
    metadata = SimpleNamespace(replay=SimpleNamespace(image=image)) if levels or level else None
    return SimpleNamespace(metadata=metadata, identities=identities)


OF_3_9, OF_4_0 = METADATA_VERSIONS.index("3.9-IV0") + 1, METADATA_VERSIONS.index("4.0-IV3") + 1


@pytest.mark.parametrize(
    ("given", "profile"),
    [
        (cluster(OF_3_9, OF_3_9), "classic"),
        (cluster(OF_4_0), "modern"),
        (cluster(OF_3_9, OF_4_0), None),  # half way through an upgrade
        (cluster(OF_4_0, level=OF_3_9), "modern"),  # not finalized
        (cluster(level=OF_4_0), "modern"),
        (cluster(level=OF_3_9), None),  # brokers of 4.0 run at this level too
        (cluster(versions=(0,)), "classic"),
        (cluster(versions=(0, 1)), None),
        (cluster(), None),
    ],
)
def test_what_a_cluster_tells(given: Any, profile: str | None) -> None:
    found = whose_rules(given, [LogBuilder().commit(5, version=3).log])
    assert (found.profile if found.is_sure else None) == profile


@pytest.mark.parametrize(
    ("log", "profile"),
    [
        (LogBuilder().commit(5, version=3).commit(6, version=4), "modern"),
        (LogBuilder().commit(5, version=4).commit(6, version=3), "modern"),
        (LogBuilder().commit(5, version=3), None),
        (LogBuilder().commit(5, version=1), None),  # as an explicit retention is written to this day
        (LogBuilder().commit(5, type_=0), "classic"),
        (LogBuilder().commit(None), None),
        (LogBuilder(), None),
    ],
)
def test_what_records_tell(log: LogBuilder, profile: str | None) -> None:
    found = whose_rules(cluster(), [log.log])
    assert (found.profile if found.is_sure else None) == profile


def test_what_an_old_release_wrote_long_ago_tells_nothing_of_the_last_one() -> None:
    def log(time_ms: int, version: int) -> PartitionLog:
        return LogBuilder().add(record_bytes(2, {"group": "g"}, EMPTY, version), times=(time_ms,)).log

    assert whose_rules(cluster(), [log(DAY_MS, 2)]).profile == "classic"
    assert whose_rules(cluster(), [log(DAY_MS, 2), log(DAY_MS, 3)]).profile == "classic"
    assert not whose_rules(cluster(), [log(DAY_MS, 2), log(2 * DAY_MS, 3)]).is_sure


@pytest.mark.parametrize("arguments", COMMANDS)
def test_where_nothing_tells_it_offsets_that_depend_on_it_are_named(
    arguments: tuple[str, ...], recording: Callable[[str], Path], tmp_path: Path
) -> None:
    """A Scala coordinator serves an offset of these files that a Java one deletes (J-12, L-18)."""
    asked = (arguments[0], recording("kafka-3.9-classic") / "log", *arguments[1:])
    result = run(*asked, "--to", tmp_path / "to")
    assert result.exit_code == 3
    assert "1 offset of 1 group would be answered otherwise (tx-tomb-fleet T/0: none, or 90)" in result.stderr
    assert "--release 3.9 shows the other answer" in result.stderr
    told = run(*asked, "--release", "3.9", "--to", tmp_path / "release")
    assert re.search("by the rules of Kafka (up to )?3.9", told.stderr)
    assert "--release" not in told.stderr
    assert run(*asked, "--profile", "classic", "--to", tmp_path / "classic").stdout == told.stdout


@pytest.mark.parametrize("least_bytes", [0, NEVER])
def test_a_large_log_is_not_loaded_twice(
    recording: Callable[[str], Path],
    tmp_path: Path,
    bulk_from: BulkFrom,
    monkeypatch: pytest.MonkeyPatch,
    least_bytes: int,
) -> None:
    """That it may matter is said, and how to see it; which offsets, would cost a second load."""
    bulk_from(least_bytes)
    monkeypatch.setattr("offsets_log.session.rules.BOTH_BELOW_BYTES", 0)
    file = tmp_path / "offsets.parquet"
    result = run("compact", recording("kafka-3.9-classic") / "log", "-o", "parquet", "--to", file)
    assert (result.exit_code, len(pq.read_table(file))) == (0, 118)
    assert f"shown is --release {NEWEST.name}; compare it with --release 3.9" in result.stderr


def test_nothing_is_said_where_both_rules_agree(recording: Callable[[str], Path]) -> None:
    result = run("compact", recording("kafka-2.8") / "log")
    assert result.exit_code == 0
    assert "profile" not in result.stderr
    assert "profile" not in run("compact", recording("kafka-4.3-mixed") / "log").stderr


def test_rules_that_matter_are_said_with_what_tells_them(recording: Callable[[str], Path]) -> None:
    words = run("compact", recording("kafka-1.1") / "log").stderr
    assert words.endswith(
        "; by the rules of Kafka up to 3.9: late records are as only releases before 4.0 write them\n"
    )


@pytest.mark.parametrize(
    ("release", "profile"),
    [("0.8.2", "classic"), ("3.9.1", "classic"), ("3.7-java", "modern-3.7"), ("3.8-java", "modern"), ("4.3", "modern")],
)
def test_a_release_has_the_rules_of_its_coordinator(
    release: str, profile: str, recording: Callable[[str], Path]
) -> None:
    log = recording("kafka-3.9-classic") / "log"
    asked = run("compact", log, "--release", release)
    assert asked.exit_code == 0
    assert f"by the rules of Kafka {release}" in asked.stderr
    assert asked.stdout == run("compact", log, "--profile", profile).stdout


@pytest.mark.parametrize("command", ["compact", "groups", "expire", "vote"])
def test_whose_rules_is_said_once(command: str, recording: Callable[[str], Path]) -> None:
    log = [] if command == "vote" else [recording("kafka-2.8") / "log"]
    asked = run(command, *log, "--release", "3.9", "--profile", "classic")
    assert asked.exit_code == 2
    assert "--release" in asked.stderr
