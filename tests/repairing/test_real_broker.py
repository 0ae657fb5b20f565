"""Folders that `clean` and `repair` made, under a real broker: it serves what was there, appends, and starts again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsets_log.messages.internal_topics import OFFSETS_TOPIC
from offsets_log.replay.partition_for import partition_for
from offsets_log_cli.main import main
from tests.conftest import json_lines
from tests.coordinator import broker
from tests.repairing.repaired import batches_of
from tests.repairing.trials import Trials
from tests.repairing.under_broker import answers, put_under, topic_id

PARTITIONS = 4
CLEANED, REPAIRED = (0, 1), (2, 3)
"""Partitions that come from `clean` of one recording, and from `repair` of another."""
NEW_GROUP, NEW_OFFSET = "committed afterwards", 17


def command(*words: str | Path) -> str:
    result = CliRunner().invoke(main, [*map(str, words), "--quiet"])
    assert result.exit_code in (0, 3), result.output
    return result.stdout


def damaged(log: Path, folder: Path) -> Path:
    """A copy with a broken batch, a torn tail, and a segment that overlaps."""
    shutil.copytree(log, folder)
    third = folder / f"{OFFSETS_TOPIC}-3" / f"{0:020}.log"
    data = bytearray(third.read_bytes())
    data[9000] ^= 0xFF
    third.write_bytes(data)
    second = folder / f"{OFFSETS_TOPIC}-2" / f"{0:020}.log"
    data = bytearray(second.read_bytes())
    (second.parent / f"{1:020}.log").write_bytes(bytes(data) + bytes(data)[:100])
    return folder


def damaged_apart(log: Path, folders: tuple[Path, Path]) -> None:
    """Two copies: every fifth batch broken in one, others in the other; one lacks a segment, the other the end."""
    for turn, folder in enumerate(folders):
        shutil.copytree(log, folder)
        for partition in folder.glob(f"{OFFSETS_TOPIC}-*"):
            first, *others = sorted(partition.glob("*.log"))
            data = bytearray(first.read_bytes())
            for number, batch in enumerate(batches_of(bytes(data))):
                if number % 5 == 1 + 2 * turn:
                    data[batch.position + batch.size_bytes // 2] ^= 0xFF
            first.write_bytes(data)
            if turn == 0 and len(others) > 1:
                others[0].unlink()
            elif turn == 1 and others and others[-1].stat().st_size:
                others[-1].write_bytes(others[-1].read_bytes()[:-20])


TRIED = ("kafka-lifetime/log", "kafka-4.3-cleaned/log-before", "kafka-4.3-modern-groups/log")


@pytest.mark.kafka
def test_a_real_broker_answers_as_before_from_all_that_is_made_of_a_log(
    tmp_path: Path, recording: Callable[[str], Path], record_property: pytest.RecordProperty
) -> None:
    """Cleaned, cleaned deeply, repaired, without a group: loaded, appended to, cleaned by the broker, loaded again."""
    try:
        trials = Trials(broker.jars(), broker.VERSION, tmp_path / "work")
    except broker.NotAvailableError as reason:
        pytest.skip(f"no real broker: {reason}")
    for name, rotation in zip(TRIED, (0, 1, 3), strict=True):
        folder, _, log = name.partition("/")
        trials.add(recording(folder) / log, [rotation])
    trials.run()
    assert not trials.mismatches
    assert trials.counts["brokers"] == 2 * len(TRIED)  # one more over each log as it was given
    assert trials.counts["offsets compared, second start"] > 150
    assert trials.counts["partitions cleaned by the broker"] > len(TRIED)
    for name, number in trials.counts.items():
        record_property(name, number)


@pytest.mark.kafka
def test_a_real_broker_serves_cleaned_and_repaired_folders(
    tmp_path: Path, recording: Callable[[str], Path], record_property: pytest.RecordProperty
) -> None:
    """By the steps of README.txt (``CL-54``)."""
    try:
        libs = broker.jars()
    except broker.NotAvailableError as reason:
        pytest.skip(f"no real broker: {reason}")
    real = broker.Broker(libs, tmp_path, PARTITIONS)
    with real.running():
        real.ask({"nobody": []})
    identity = topic_id(real.data)
    grown = recording("kafka-4.3-cleaned") / "log-before"
    broken = damaged(recording("kafka-4.3-mixed") / "log", tmp_path / "broken")
    command("clean", grown, "--to", tmp_path / "cleaned", "--topic-id", identity)
    command("repair", broken, "--to", tmp_path / "repaired", "--topic-id", identity, "--drop-unloadable", "4.3.0")
    put_under(real.data, tmp_path / "cleaned", CLEANED, tmp_path / "old-1")
    put_under(real.data, tmp_path / "repaired", REPAIRED, tmp_path / "old-2")
    expected = answers(command("compact", grown, "-o", "jsonl"), CLEANED)
    expected |= answers(command("compact", broken, "-o", "jsonl"), REPAIRED)
    assert len(expected) > 40
    questions = {group: [] for group, *_ in expected} | {NEW_GROUP: []}
    new = (NEW_GROUP, OFFSETS_TOPIC, 0, NEW_OFFSET, "", None)
    with real.running():
        first = real.ask(questions, commits={NEW_GROUP: NEW_OFFSET})
    with real.running():
        second = real.ask(questions)
    assert {tuple(row) for row in first["offsets"]} == expected | {new}
    assert {tuple(row) for row in second["offsets"]} == expected | {new}
    assert not list(real.data.glob("*-stray"))
    written = answers(command("compact", real.data, "-o", "jsonl"), range(PARTITIONS))
    assert written == expected | {new}
    assert partition_for(NEW_GROUP, PARTITIONS) in range(PARTITIONS)
    record_property("offsets", len(expected))


@pytest.mark.kafka
@pytest.mark.parametrize("name", ["kafka-4.3-mixed/log", "kafka-4.3-cleaned/log-before"])
def test_a_real_broker_serves_all_that_two_damaged_copies_have(
    name: str, tmp_path: Path, recording: Callable[[str], Path], record_property: pytest.RecordProperty
) -> None:
    try:
        libs = broker.jars()
    except broker.NotAvailableError as reason:
        pytest.skip(f"no real broker: {reason}")
    folder, _, log = name.partition("/")
    whole, copies = recording(folder) / log, (tmp_path / "one", tmp_path / "other")
    damaged_apart(whole, copies)
    real = broker.Broker(libs, tmp_path, PARTITIONS)
    with real.running():
        real.ask({"nobody": []})
    identity = topic_id(real.data)
    told = command("repair", *copies, "--to", tmp_path / "mended", "--topic-id", identity, "-o", "jsonl")
    rows = json_lines(told)
    assert all(row["taken"] and not row["left_out"] for row in rows)
    found = [row["offsets_partition"] for row in rows]
    put_under(real.data, tmp_path / "mended", found, tmp_path / "old")
    expected = answers(command("compact", whole, "-o", "jsonl"), found)
    questions = {group: [] for group, *_ in expected}
    with real.running():
        answered = real.ask(questions)
    assert {tuple(row) for row in answered["offsets"]} == expected
    assert not list(real.data.glob("*-stray"))
    record_property("offsets", len(expected))
