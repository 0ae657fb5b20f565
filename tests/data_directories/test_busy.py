"""Copies of a broker written to without pause: what it said directly before and after bounds what they tell."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.decisions import Outcomes
from offsets_log.data_directory.transactions import DECIDED, HANGING, replay_transaction_log
from offsets_log.disk.reader import open_logs
from offsets_log.disk.state_topics import open_topic
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.partition_log import PartitionLog, iter_log
from offsets_log.log_format.record import Record, iter_records
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.profile import PROFILES
from offsets_log_cli.main import main
from tests.conftest import read_json
from tests.data_directories.copies import Recorded
from tests.data_directories.test_lag_words import described
from tests.data_directories.test_share_offsets import WORDS as SHARE_WORDS

NAMES = ("kafka-3.9-busy", "kafka-4.3-busy")
REBORN = "hot"
"""The topic that was deleted and made again all the time."""
TO_AND_FRO = (REBORN, "g-hot", "g-fresh")
"""Topics and groups whose offsets do not only grow."""

Words = dict[str, Any]


def copies(folder: Path) -> list[str]:
    """Those that have words."""
    return sorted(path.parent.name for path in (folder / "words").glob("*/before.json"))


def words(folder: Path, copy: str) -> tuple[Words, Words]:
    """What AdminClient said before and after."""
    said = (read_json(folder / "words" / copy / f"{when}.json") for when in ("before", "after"))
    before, after = said
    return before, after


def data(folder: Path, copy: str) -> str:
    return str(folder / "copies" / copy / "data")


def lines(*arguments: str) -> list[dict[str, Any]]:
    """Rows of a run. Of a copy that took seconds the checkpoints are newer than logs, which is told as missing."""
    done = CliRunner().invoke(main, [*arguments, "-o", "jsonl"], catch_exceptions=False)
    assert done.exit_code == 0 or "as replication-offset-checkpoint says" in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_log_ends_lie_between_what_the_broker_said_before_and_after(name: str, recorded: Recorded) -> None:
    """Starts too, but where records were deleted by request: that is noted every few seconds only."""
    folder = recorded(name)
    for copy in copies(folder):
        before, after = words(folder, copy)
        with open_logs([data(folder, copy)]) as opened:
            logs = CopiedLogs(opened.user_partitions)
            both = [key for key in before["offsets"] if key in after["offsets"] and not key.startswith(REBORN)]
            assert len(both) > 20
            for key in both:
                topic, _, partition = key.rpartition("-")
                ends = logs.ends(topic, int(partition))
                (first, last), (first_then, last_then) = before["offsets"][key], after["offsets"][key]
                assert ends is not None
                assert last <= ends.end_offset <= last_then, (copy, key)
                assert ends.log_start_offset <= first_then
                assert first <= ends.log_start_offset or topic == "cut", (copy, key)
            assert logs.damages == []
            assert all("by the running broker" in note for note in logs.notes)


@pytest.mark.parametrize("name", NAMES)
def test_offsets_lie_between_too_and_lag_is_the_rest(name: str, recorded: Recorded) -> None:
    """``DD-4``: of a topic made again, lag is told where the copy is of the topic that the offset was committed for."""
    folder = recorded(name)
    for copy in copies(folder):
        before, after = words(folder, copy)
        rows = {
            (row["group"], f"{row['topic']}-{row['partition']}"): row for row in lines("compact", data(folder, copy))
        }
        for group, offsets in before["group_offsets"].items():
            for place, offset in offsets.items() if not group.startswith(TO_AND_FRO) else ():
                row = rows[group, place]
                assert offset <= row["committed_offset"] <= after["group_offsets"][group][place]
                assert row["lag"] == row["log_end_offset"] - row["committed_offset"]
        for row in (row for (group, _), row in rows.items() if group == "g-hot" and row["topic_id"] is not None):
            folder_of = Path(data(folder, copy)) / f"{REBORN}-{row['partition']}" / "partition.metadata"
            is_same = folder_of.exists() and folder_of.read_text().endswith(row["topic_id"])
            assert (row["lag"] is not None) == is_same


@pytest.mark.parametrize("name", NAMES)
def test_when_all_rests_the_tool_says_the_same(name: str, recorded: Recorded) -> None:
    folder = recorded(name)
    said = described(folder, "tools-held")
    found = lines("compact", data(folder, "held"))
    assert len(said) > 20
    assert {
        (row["group"], row["topic"], row["partition"]): (row["committed_offset"], row["log_end_offset"], row["lag"])
        for row in found
    } == said


def test_share_groups_lie_between_and_at_rest_are_what_the_tool_says(recorded: Recorded) -> None:
    """At rest two members hold records that they were given and have not acknowledged."""
    folder = recorded("kafka-4.3-busy")
    for copy in copies(folder):
        before, after = words(folder, copy)
        rows = lines("compact", data(folder, copy), "--table", "share-offsets")
        assert len(rows) == 5
        for row in rows:
            place = f"{row['topic']}-{row['partition']}"
            start, _ = before["share_offsets"][row["group"]].get(place) or (0, None)
            assert start <= row["start_offset"] <= after["share_offsets"][row["group"]][place][0]
    text = (folder / "words" / "tools-held" / "share-groups-offsets.txt").read_text()
    said = {(m[1], m[2], *(int(number) for number in m.groups()[2:])) for m in SHARE_WORDS.finditer(text)}
    columns = ("group", "topic", "partition", "leader_epoch", "start_offset", "lag")
    found = lines("compact", data(folder, "held"), "--table", "share-offsets")
    assert {tuple(row[column] for column in columns) for row in found} == said
    assert sum(row["archived"] for row in found) > 0


Markers = dict[tuple[int | None, int], list[tuple[int, str]]]


def markers(logs: list[PartitionLog]) -> Markers:
    """Offsets partition and producer → where its transactions ended, and how."""
    found: Markers = defaultdict(list)
    for log in logs:
        for _, item in iter_log(log):
            if isinstance(item, RecordBatch) and item.is_control:
                (marker,) = (one for one in iter_records(item) if isinstance(one, Record))
                assert marker.key is not None
                how = "committed" if marker.key[3] == 1 else "aborted"
                found[log.offsets_partition, item.producer_id].append((item.base_offset, how))
    return found


def pending_of(log: PartitionLog) -> list[OffsetAndMetadata]:
    return list(replay(iter_events(log), PROFILES["modern"], on_damage=lambda damage: None).iter_pending())


@pytest.mark.parametrize("name", NAMES)
def test_no_transaction_is_decided_wrongly_however_far_apart_both_logs_were_copied(
    name: str, recorded: Recorded
) -> None:
    """``DD-5``: the coordinator's log of each copy beside the offsets of each other; later markers tell the truth."""
    folder, found = recorded(name), Counter[tuple[str, str]]()
    with ExitStack() as stack:
        opened = {copy: stack.enter_context(open_logs([data(folder, copy)])).logs for copy in copies(folder)}
        pending = {copy: [(log, pending_of(log)) for log in logs] for copy, logs in opened.items()}
        truth = markers(stack.enter_context(open_logs([data(folder, "stopped")])).logs)
        for copy in opened:
            logs = stack.enter_context(open_topic([data(folder, copy)], "__transaction_state")).logs
            states = replay_transaction_log(logs)
            for log, values in (one for of_copy in pending.values() for one in of_copy):
                cells = Outcomes(states, None, lambda log: "").cells(log, values)
                for value in values:
                    ended = truth[log.offsets_partition, value.producer_id]
                    how = next(how for offset, how in ended if offset > value.record_offset)
                    found[str(cells[value.producer_id]["outcome"]), how] += 1
    assert found.total() > 90
    assert all(outcome == how for outcome, how in found if outcome in DECIDED)
    assert HANGING not in {outcome for outcome, _ in found}
