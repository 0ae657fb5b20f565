"""Copies that are not whole: clients are told, and so is whoever serves them, on standard error and by exit status."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offsets_log.protocol.error_codes import CORRUPT_MESSAGE, UNKNOWN_SERVER_ERROR
from offsets_log.protocol.list_offsets import MAX_TIMESTAMP
from offsets_log.replay.partition_count import PartitionCount
from offsets_log.replay.partition_for import partition_for
from offsets_log.serving.state import Ends, OffsetsPartitions, Served
from offsets_log.session.moments import offsets_partitions_of
from tests.builders import LogBuilder
from tests.data_directories.copies import Recorded, data_directories, recorded
from tests.restore.rescued import doubts, rescue, write_log
from tests.serving.client import (
    CONSUMER_GROUPS,
    DESCRIBE_GROUPS,
    DESCRIBING,
    FIND_COORDINATOR,
    GROUP_ID_NOT_FOUND,
    LIST_GROUPS,
    LIST_OFFSETS,
    OFFSET_FETCH,
    SHARE_OFFSETS,
    ask,
    moments,
)
from tests.serving.test_records import FETCH, Files, asking, batch, served_of
from tests.serving.test_serve import asked, serving

__all__ = ["recorded"]
DESCRIBE_LOG_DIRS = 35


def said(*arguments: object, status: int) -> str:
    """What a server that ends at once says on standard error."""
    with serving(*arguments) as run:
        return run.end(status)


def codes(state: Served, group: str) -> dict[str, list[Any]]:
    """Error codes and messages of a group in all that is asked about groups, old versions too."""
    offsets = {"member_id": None, "member_epoch": -1, "topics": None}
    asked = [{"name": "t", "partition_indexes": [3]}]
    found = {
        **{
            f"describe {kind}": ask(state, key, {"groups" if key == DESCRIBE_GROUPS else "group_ids": [group]})[
                "groups"
            ]
            for kind, key in DESCRIBING.items()
        },
        "offsets": ask(state, OFFSET_FETCH, {"groups": [{"group_id": group} | offsets]})["groups"],
        "offsets 2": [ask(state, OFFSET_FETCH, {"group_id": group, "topics": asked}, 2)],
        "offsets 1": ask(state, OFFSET_FETCH, {"group_id": group, "topics": asked}, 1)["topics"][0]["partitions"],
        "share": ask(state, SHARE_OFFSETS, {"groups": [{"group_id": group, "topics": None}]})["groups"],
        "find": ask(state, FIND_COORDINATOR, {"key_type": 0, "coordinator_keys": [group]})["coordinators"],
        "find 0": [ask(state, FIND_COORDINATOR, {"key": group}, 0)],
    }
    return {what: [row["error_code"], row.get("error_message")] for what, (row,) in found.items()}


def test_a_group_of_a_partition_that_is_not_here_is_not_said_to_be_none(recorded: Recorded) -> None:
    """Of two directories of a broker one: clients are not told that a group does not exist, nor to ask again."""
    both = data_directories(recorded("kafka-4.3-three"), "broker-1")
    with moments(*both) as (asked_at, session):
        whole = asked_at.load(session)
    with moments(both[0]) as (asked_at, session):
        half = asked_at.load(session)
    assert list(half.offsets_partitions.absent()) == [1, 2, 6, 7]
    lost = whole.groups.keys() - half.groups.keys()
    assert len(lost) == 9
    for group in lost:
        message = f"Group {group} belongs to offsets partition {half.offsets_partitions.lack(group)}, which is not in"
        for what, (code, said) in codes(half, group).items():
            assert code == UNKNOWN_SERVER_ERROR, what
            assert said is None or said.startswith(message), what
    assert {row["group_id"] for row in ask(half, LIST_GROUPS, {})["groups"]} == set(half.groups)
    nobody = next(name for name in map(str, range(99)) if half.offsets_partitions.lack(name) is None)
    found = codes(half, nobody)
    assert found["describe consumer"][0] == GROUP_ID_NOT_FOUND
    assert (found["offsets"][0], found["find"][0]) == (0, 0)


def test_partitions_that_are_not_here_are_told_at_the_start(recorded: Recorded) -> None:
    both = data_directories(recorded("kafka-4.3-three"), "broker-1")
    words = "4 offsets partitions of 8 (1, 2, 6, 7) are not in this copy: groups in there are not served"
    assert words in said(both[0], status=3)
    assert "not in this copy" not in said(*both, status=0)
    words = "7 offsets partitions of 8 (0, 1, 2, 4, 5, 6, 7) are not in this copy"
    assert words in said(*both, "--offsets-partition", "3", status=0)


def test_a_partition_that_only_a_checkpoint_names_is_told(recorded: Recorded, tmp_path: Path) -> None:
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    copy = tmp_path / "data"
    shutil.copytree(directory, copy)
    with moments(copy) as (asked_at, session):
        group = next(iter(asked_at.load(session).groups))
        number = OffsetsPartitions(asked_at.load(session).offsets_partitions.count).lack(group)
    shutil.rmtree(copy / f"__consumer_offsets-{number}")
    words = said(copy, status=3)
    assert f"missing: offsets partition {number}:" in words
    assert f"({number}) is not in this copy" in words
    with moments(copy) as (asked_at, session):
        (row,) = ask(asked_at.load(session), CONSUMER_GROUPS, {"group_ids": [group]})["groups"]
    assert row["error_code"] == UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("count", [None, 0])
def test_without_the_number_of_partitions_nobody_knows_what_lacks(count: int | None) -> None:
    there = OffsetsPartitions(count, {0})
    assert (there.lack("g"), list(there.absent())) == (None, [])


@pytest.fixture
def cut(recorded: Recorded, tmp_path: Path) -> Path:
    """A directory after an orderly stop: orders-1 is cut off behind offset 75, orders-0 has a wrong byte."""
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    copy = tmp_path / "data"
    shutil.copytree(directory, copy)
    log = copy / "orders-1" / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[:1500])
    with (copy / "orders-0" / f"{0:020}.log").open("r+b") as stream:
        stream.seek(100)
        stream.write(b"XYZ")
    return copy


def test_a_log_that_is_cut_off_is_told_and_refused_where_it_ends(cut: Path) -> None:
    """The end is that of the checkpoint; a consumer would wait for what follows for ever."""
    with serving(cut) as run:
        port, _ = run.listener()
        (row,) = asked(port, FETCH, asking({1: 74}, "orders"), 12)["responses"][0]["partitions"]
        assert (row["error_code"], row["high_watermark"]) == (0, 116)
        assert row["records"]
        for offset in (75, 100, 115, 100):
            (row,) = asked(port, FETCH, asking({1: offset}, "orders"), 12)["responses"][0]["partitions"]
            assert row["error_code"] == CORRUPT_MESSAGE
        (row,) = asked(port, FETCH, asking({1: 116}, "orders", max_wait_ms=0), 12)["responses"][0]["partitions"]
        assert row["error_code"] == 0
        words = run.end(3)
    assert "orders-1: the log ends at offset 75 and had reached 116, the high watermark noted" in words
    assert words.count("orders-1 cannot be read on: ") == 1
    assert "the log ends at offset 75: what should follow is not in this copy" in words


def test_a_wrong_checksum_is_told_and_its_bytes_are_given(cut: Path) -> None:
    raw = (cut / "orders-0" / f"{0:020}.log").read_bytes()
    with moments(cut) as (asked_at, session):
        state = asked_at.load(session)
        assert not session.account.is_wrong
        for _ in range(2):
            answer = ask(state, FETCH, asking({0: 0}, "orders"))
            assert raw.startswith(answer["responses"][0]["partitions"][0]["records"])
        assert session.account.is_wrong
        assert len(state.logs.told) == 1
        assert "orders-0/00000000000000000000.log, position 0: the checksum is" in next(iter(state.logs.told))
        session.account.is_wrong = False


def test_a_time_behind_what_is_no_batch_is_not_said_to_be_none() -> None:
    files = Files({0: batch(0) + batch(2)[:8] + b"\0\0\0\1" + bytes(range(40)), 9: batch(9)})
    state = served_of({0: (files, Ends(0, 11))})
    for time, code in ((1000, 0), (5000, UNKNOWN_SERVER_ERROR), (MAX_TIMESTAMP, UNKNOWN_SERVER_ERROR)):
        asked_for = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": time}]
        (topic,) = ask(state, LIST_OFFSETS, {"topics": [{"name": "t", "partitions": asked_for}]})["topics"]
        assert topic["partitions"][0]["error_code"] == code


def test_sizes_of_logs_are_those_of_their_files(recorded: Recorded) -> None:
    """In each directory, of internal topics too; of those asked for, or all."""
    both = data_directories(recorded("kafka-4.3-three"), "broker-1")
    with moments(*both) as (asked_at, session):
        state = asked_at.load(session)
        told = ask(state, DESCRIBE_LOG_DIRS, {"topics": None})["results"]
        some = {"topics": [{"topic": "orders", "partitions": [1]}]}
        first = ask(state, DESCRIBE_LOG_DIRS, some, 1)["results"]
    sizes = {
        f"{row['log_dir']}/{topic['name']}-{one['partition_index']}": one["partition_size"]
        for row in told
        for topic in row["topics"]
        for one in topic["partitions"]
    }
    files = {str(path.parent) for one in both for path in one.glob("*/*.log") if "__cluster_" not in str(path)}
    assert sizes == {one: sum(path.stat().st_size for path in Path(one).glob("*.log")) for one in files}
    assert [len(row["topics"]) for row in first] == [1]


def test_share_groups_without_their_log_are_told(recorded: Recorded, tmp_path: Path) -> None:
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    copy = tmp_path / "data"
    shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("__share_group_state-*"))
    words = "of 2 share groups no offsets are served: __share_group_state is not in this copy"
    assert words in said(copy, status=3)
    assert "no offsets are served: they are told at the end of the logs only" in said(
        directory, "--at", "2026-11-22T16:42Z", status=0
    )


def test_offsets_that_depend_on_who_wrote_the_log_are_told(
    recorded: Recorded, recording: Callable[[str], Path]
) -> None:
    (directory,) = data_directories(recorded("kafka-3.9-one"), "stopped")
    assert "--profile" not in said(directory, status=0), "the cluster's metadata tells its release"
    untold = recording("kafka-3.9-classic") / "log"
    assert "would be answered otherwise (tx-tomb-fleet T/0: none, or 90)" in said(untold, status=3)
    assert "would be answered otherwise" not in said(untold, "--profile", "classic", status=0)


def test_filters_and_bounds_without_anything_are_told(recorded: Recorded) -> None:
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    assert "no group fits --group" in said(directory, "--group", "nosuch", status=0)
    assert "no offset is of a topic that fits --topic" in said(directory, "--topic", "nosuch", status=0)
    with serving(directory, "--until-offset", "3") as run:
        assert run.listener()[1] == "at --until-offset"
        run.end()


def test_how_many_partitions_there_are_is_known_unless_that_is_a_guess() -> None:
    """Of a file that does not tell its partition it is not known which are absent."""
    assert offsets_partitions_of([7], PartitionCount(50, "guess")).count is None
    assert offsets_partitions_of([7, None], PartitionCount(50, "default")).count is None
    known = offsets_partitions_of([7], PartitionCount(8, "metadata"))
    assert (known.count, known.present) == (8, {7})


def test_a_group_that_belongs_elsewhere_is_refused_where_one_group_shows_how_many_there_are(tmp_path: Path) -> None:
    """A broker makes 50: of what is in another of these, other commands say the same."""
    log = LogBuilder().commit(5, group="g")
    directory = write_log(tmp_path / "log", {partition_for("g", 50): log})
    other = next(name for name in map(str, range(999)) if partition_for(name, 50) != partition_for("g", 50))
    with moments(directory) as (asked_at, session):
        state = asked_at.load(session)
    assert (codes(state, other)["offsets"][0], codes(state, "g")["offsets"][0]) == (UNKNOWN_SERVER_ERROR, 0)


def test_partitions_that_only_checkpoints_name_count(recorded: Recorded, tmp_path: Path) -> None:
    """A cluster with ZooKeeper, of which a disk is not there: the groups of the others would fit half as many, too."""
    (directory,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    lost = [f"__consumer_offsets-{number}" for number in (4, 5, 6, 7)]
    shutil.copytree(directory, tmp_path / "data", ignore=shutil.ignore_patterns("__cluster_metadata-0", *lost))
    with moments(tmp_path / "data") as (asked_at, session):
        found = asked_at.load(session).offsets_partitions
    assert (found.count, list(found.absent())) == (8, [4, 5, 6, 7])
    plan = rescue(tmp_path / "rescued", tmp_path / "data", status=3)
    assert plan["offsets_partitions"] == {"count": 8, "source": "checkpoints", "absent": [4, 5, 6, 7]}
    assert doubts(plan, "offsets partitions that are absent, 4 of 8: 4, 5, 6, 7;")
    assert len(doubts(plan, "offsets partition 5: ")) == 1
