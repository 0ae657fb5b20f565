"""`check` where no release is asked for: which are tried, and which of them decide the exit status."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from offsets_log.kafka_releases import NEWEST
from offsets_log.replay.profile import RELEASES
from offsets_log.replay.releases import known_releases, release_named
from tests.cli.checked import SAMPLE, Recording, run


@pytest.mark.parametrize(
    ("name", "first", "previews"),
    [
        ("kafka-4.3-mixed", "4.1", 0),  # value version 4
        ("kafka-4.4-mixed", "4.1", 0),
        ("kafka-2.8", "2.3", 3),
        ("kafka-3.9-classic", "2.3", 3),
        ("kafka-3.7-preview", "3.7-java", 3),
        ("kafka-0.8.2", None, 3),
    ],
)
def test_by_default_releases_are_tried_from_the_writers_on(
    name: str, first: str | None, previews: int, recording: Recording
) -> None:
    """The recordings' writers are later than what their records tell, or the same."""
    result = run(recording(name) / "log", "-o", "json")
    tried = list(json.loads(result.stdout)["releases"])
    assert len([one for one in tried if one.endswith("-java")]) == previews
    if first is None:
        assert tried == list(RELEASES)
        assert "the files do not show which release wrote them: all are tried" in result.stderr
        return
    assert tried[0] == first
    assert tried[-1] == NEWEST.name
    later = [one.name for one in known_releases() if one.version > release_named(first).version]
    assert tried[1:] == later
    assert f"tried from Kafka {first} on: " in result.stderr
    assert set(tried) < set(
        json.loads(run(recording(name) / "log", "--all-releases", "-o", "json").stdout)["releases"]
    ) | {first}


def test_the_release_that_the_brokers_have_is_the_writers(tmp_path: Path) -> None:
    """By the cluster's metadata, which is sure where the records are those of many releases."""
    with tarfile.open(Path(__file__).parents[1] / "data_directories" / "kafka-3.9-one.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    result = run(tmp_path / "copies" / "stopped", "-o", "json")
    assert list(json.loads(result.stdout)["releases"])[:2] == ["3.9", "4.0"]
    assert "tried from Kafka 3.9 on: the cluster's metadata says so of its brokers" in result.stderr


def test_a_load_that_fails_on_the_writers_release_counts_though_the_newest_loads(recording: Recording) -> None:
    """The default's exit status: what an older release refuses does not count, what its own does."""
    folder = recording("load-fails") / "log"
    document = json.loads(run(folder, "-o", "json").stdout)
    failing = {name for loads in document["loads"].values() for name, load in loads.items() if not load["ok"]}
    assert failing
    assert run(folder).exit_code == 3
    assert run(SAMPLE, "--all-releases").exit_code == 0, "before the writer's release it is only told"
