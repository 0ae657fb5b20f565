"""The benchmark's logs are what they say: readable whole, the same for the same options, with a truth that is true."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba")

from benchmarks import as_peer, commands, generator_formats, inputs, serving, subjects
from benchmarks.generate import Options, generate
from offsets_log.disk.reader import open_logs
from offsets_log.errors import Damage
from offsets_log.events import BatchEnd, Event
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.profile import MODERN

SMALL = Options(bytes=150_000, groups=60, topics=2, partitions=10, transactions=0.3, aborts=0.4, tombstones=0.02)


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def fail(damage: Damage) -> None:
    raise damage.error


def events_of(folder: Path) -> list[Any]:
    """All events of all partitions; the first damage is raised."""
    with open_logs([str(folder)]) as opened:
        found = [event for log in opened.logs for event in iter_events(log)]
    for event in found:
        match event:
            case (Damage() as damage) | Event(damage=Damage() as damage):
                fail(damage)
    return found


def served(folder: Path) -> dict[str, int]:
    """As the project's own replay has it."""
    offsets: list[int] = []
    with open_logs([str(folder)]) as opened:
        for log in opened.logs:
            state = finish(replay(iter_events(log), MODERN, on_damage=fail))
            assert not state.problems
            assert not state.pending
            offsets += [value.committed_offset for value in state.iter_served()]
    return {"keys": len(offsets), "sum": sum(offsets)}


@pytest.mark.parametrize("codec", CODEC_NAMED)
def test_every_record_decodes_and_the_truth_is_that_of_a_replay(codec: str, tmp_path: Path) -> None:
    options = replace(SMALL, codec=codec)
    truth = generate(tmp_path / "log", options)
    assert truth == json.loads((tmp_path / "log" / "truth.json").read_bytes())
    assert served(tmp_path / "log") == truth["served"] != truth["in_record_order"]
    events = events_of(tmp_path / "log")
    batches = [event.batch for event in events if isinstance(event, BatchEnd)]
    assert {batch.compression for batch in batches if not batch.is_control} == {codec}
    assert {batch.compression for batch in batches if batch.is_control} == {"none"}
    assert len(batches) == truth["batches"]
    assert sum(isinstance(event, Event) for event in events) == truth["records"] == batches[-1].next_offset
    assert sum(batch.size_bytes for batch in batches) == truth["bytes"]
    assert options.bytes <= truth["uncompressed_bytes"] < options.bytes + 10_000


def test_a_seed_makes_one_log_and_a_codec_changes_no_record(tmp_path: Path) -> None:
    first, again = generate(tmp_path / "a", SMALL), generate(tmp_path / "b", SMALL)
    assert first == again
    assert files(tmp_path / "a") == files(tmp_path / "b")
    other = generate(tmp_path / "c", replace(SMALL, seed=2))
    assert other["served"] != first["served"]
    packed = generate(tmp_path / "d", replace(SMALL, codec="lz4"))
    assert {name for name in first if packed[name] != first[name]} == {"options", "bytes"}
    assert packed["bytes"] < first["bytes"]


def test_modern_mix(tmp_path: Path) -> None:
    """A fifth is of newer groups, and a coordinator loads it."""
    truth = generate(tmp_path / "log", replace(SMALL, bytes=600_000, mix="modern"))
    events = events_of(tmp_path / "log")
    decoded = [event.decoded for event in events if isinstance(event, Event) and event.decoded is not None]
    newer = [record for record in decoded if record.record_type > 2]
    assert len(newer) == truth["newer_records"]
    assert len(newer) / len(decoded) == pytest.approx(0.2, rel=0.3)
    state = finish(replay(iter(events), MODERN, on_damage=fail))
    assert not state.problems
    assert {group.kind for group in state.groups.values()} == {"classic", "consumer", "share", "streams"}
    assert served(tmp_path / "log") == truth["served"]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_old_mix(codec: str, tmp_path: Path) -> None:
    """Messages of magic 0 and 1, plain and compressed, and a coordinator loads them."""
    truth = generate(tmp_path / "log", replace(SMALL, bytes=3_000_000, mix="old", codec=codec))
    events = events_of(tmp_path / "log")
    batches = [event.batch for event in events if isinstance(event, BatchEnd)]
    assert {batch.magic for batch in batches} == {0, 1}
    assert {batch.compression for batch in batches} == ({"none", "gzip", "snappy"} if codec == "none" else {codec})
    assert len(batches) == truth["batches"]
    assert sum(isinstance(event, Event) for event in events) == truth["records"]
    assert served(tmp_path / "log") == truth["served"]


def test_damaged_mix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Some batches are broken; all others are those of a whole log."""
    monkeypatch.setattr(generator_formats, "BREAK_EVERY", 40)
    truth = generate(tmp_path / "log", replace(SMALL, mix="damaged"))
    whole = generate(tmp_path / "whole", SMALL)
    assert {name for name in truth if truth[name] != whole[name]} == {"options", "bytes", "broken"}
    with open_logs([str(tmp_path / "log")]) as opened:
        (log,) = opened.logs
        found = list(iter_events(log))
        state = finish(replay(iter(found), MODERN, on_damage=lambda damage: None))
    assert sum(isinstance(event, Damage) for event in found) == truth["broken"] == truth["batches"] // 40
    assert sum(isinstance(event, BatchEnd) for event in found) == truth["batches"]
    offsets = [value.committed_offset for value in state.iter_served()]
    assert {"keys": len(offsets), "sum": sum(offsets)} == truth["served"]


def test_shares_are_respected(tmp_path: Path) -> None:
    options = Options(
        bytes=400_000, groups=50, batch=8, transactions=0.1, groups_metadata=0.03, tombstones=0.04, with_metadata=0.4
    )
    truth = generate(tmp_path / "log", options)
    events = [event for event in events_of(tmp_path / "log") if isinstance(event, Event)]
    decoded = [event.decoded for event in events if event.decoded is not None]
    commits = [record for record in decoded if record.is_offset_commit and record.value is not None]
    tombstones = [record for record in decoded if record.value is None]
    metadata = [record for record in decoded if record.record_type == 2]
    controls = [event.control.type for event in events if event.control is not None]
    data_batches = truth["batches"] - len(controls)
    assert [len(commits), len(tombstones), len(metadata)] == [
        truth["offset_commits"],
        truth["tombstones"],
        truth["group_metadata"],
    ]
    assert len(tombstones) / len(decoded) == pytest.approx(options.tombstones, rel=0.4)
    assert len(metadata) / len(decoded) == pytest.approx(options.groups_metadata, rel=0.4)
    assert truth["transactional_batches"] / data_batches == pytest.approx(options.transactions, rel=0.4)
    assert (len(decoded) - len(metadata)) / (data_batches - len(metadata)) == pytest.approx(options.batch, rel=0.15)
    assert controls.count("ABORT") == truth["transactions_aborted"] > 0
    assert controls.count("COMMIT") == truth["transactions_committed"]
    with_text = {record.group for record in commits if record.value and record.value["metadata"]}
    assert len(with_text) / options.groups == pytest.approx(options.with_metadata, rel=0.2)
    assert all(len(record.value["members"]) == 3 for record in metadata if record.value)
    last: dict[Any, int] = {}
    for record in commits:
        assert record.value is not None
        place = tuple(record.key.values())
        assert record.value["offset"] > last.get(place, -1)
        last[place] = record.value["offset"]
    times = [event.record.timestamp_ms for event in events]
    assert times == sorted(times)


@pytest.mark.parametrize("version", [0, 1, 2, 4])
def test_other_versions_of_values(version: int, tmp_path: Path) -> None:
    truth = generate(tmp_path / "log", replace(SMALL, bytes=10_000, value_version=version))
    assert served(tmp_path / "log") == truth["served"]
    decoded = [event.decoded for event in events_of(tmp_path / "log") if isinstance(event, Event) and event.decoded]
    commits = [record for record in decoded if record.is_offset_commit and record.value is not None]
    assert {record.value_version for record in commits} == {version}
    assert not any(record.key_trailing or record.value_trailing for record in decoded)


def test_segments_roll_and_groups_are_in_their_partitions(tmp_path: Path) -> None:
    truth = generate(tmp_path / "log", replace(SMALL, offsets_partitions=3, segment_bytes=8_000))
    sizes = [path.stat().st_size for path in (tmp_path / "log").rglob("*.log")]
    assert len(sizes) == truth["segments"] > 8
    assert max(sizes) <= 8_000
    assert served(tmp_path / "log") == truth["served"]
    groups = [event for event in events_of(tmp_path / "log") if isinstance(event, Event) and event.decoded]
    assert {event.offsets_partition for event in groups} == {0, 1, 2}
    assert all(partition_for(event.decoded.group, 3) == event.offsets_partition for event in groups if event.decoded)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    with pytest.raises(FileExistsError):
        generate(tmp_path, SMALL)
    assert list(files(tmp_path)) == ["kept"]


LAG_ROW = "compact --lag of a data directory"


def test_a_row_knows_right_answers_from_wrong_ones(tmp_path: Path) -> None:
    chosen = [subject for subject in subjects.SUBJECTS if subject.what in (subjects.BASE, "memcpy", "decode", LAG_ROW)]
    rows = list(subjects.measure(chosen, tmp_path, 30_000, 1))
    assert [row["agrees"] for row in rows] == [None, True, True, True]
    assert len(list(subjects.iter_lines(rows))) == len(subjects.HEAD) + 4
    log = inputs.generated_log(tmp_path, "none", 30_000)
    wrong = inputs.Log(log.folder, log.truth | {"served": {"keys": 1, "sum": 1}})
    assert commands.construct_path(log, 1).agrees
    assert not commands.construct_path(wrong, 1).agrees


def test_compact_as_a_reader_of_other_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = generate(tmp_path, Options(bytes=300_000))
    as_peer.main([str(path) for path in sorted(tmp_path.glob("*/*.log"))])
    said = json.loads(capsys.readouterr().out)
    assert {"keys": said["keys"], "sum": said["checksum"]} == truth["served"]
    assert said["inner_seconds"] > 0


def test_a_server_under_load_answers_all_and_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUESTS", 300)
    measured = serving.under_load(inputs.Log(tmp_path / "log", generate(tmp_path / "log", SMALL)), 1)
    assert measured.agrees
