"""Which of several copies of a partition's log counts, and what is said of it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsets_log.data_directory.cluster_image import TopicImage
from offsets_log.data_directory.copied_logs import CopiedLogs, LeaderCopies, Opener
from offsets_log.data_directory.log_ends import LogEnds
from offsets_log.data_directory.metadata_copies import leader_copies, read_copies
from offsets_log.disk.reader import open_logs
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.primitives import Uuid
from offsets_log.messages.internal_topics import CLUSTER_METADATA
from offsets_log_cli.main import main
from tests.data_directories.copies import Recorded, data_directories, partition_folders
from tests.data_directories.test_log_ends import Files, answers, record

KEY = ("t", 0)


@dataclass
class Copy(Files):
    """A copy in memory."""

    above: Mapping[str, Opener] = field(default_factory=dict)
    epochs: bytes | None = None
    dated_from = 0

    def read(self, name: str) -> bytes | None:
        return self.epochs if name == "leader-epoch-checkpoint" else None


def copy_of(path: str, *runs: tuple[int, int], noted: int | None = None, is_damaged: bool = False) -> Copy:
    """Args:
    runs: leader epoch and how many records were written in it.
    noted: the last epoch of the leader-epoch-checkpoint.
    """
    log, offset, last = b"", 0, 0
    for epoch, count in runs:
        last = len(log)
        log += build_batch([record(offset + n) for n in range(count)], partition_leader_epoch=epoch)
        offset += count
    log = log[: last + 8] + bytes(4) + log[last + 12 :] if is_damaged else log  # the last batch has no length
    return Copy({0: log}, shown_path=path, epochs=None if noted is None else f"0\n1\n{noted} 0\n".encode())


LED = LeaderCopies(1, 5, frozenset({"one"}))
ABSENT = LeaderCopies(1, 5)


@pytest.mark.parametrize(
    ("copies", "leader", "counts", "said"),
    [
        ([copy_of("one", (3, 4)), copy_of("two", (3, 6))], None, "two", []),
        ([copy_of("one", (3, 4)), copy_of("two", (3, 6))], LED, "one", ["what two has up to 6 was written in an earl"]),
        ([copy_of("one", (5, 4)), copy_of("two", (5, 6))], LED, "two", ["led it last in leader epoch 5, ends at 4"]),
        ([copy_of("one", (5, 6)), copy_of("two", (5, 6))], LED, "one", []),
        ([copy_of("two", (5, 6)), copy_of("one", (5, 6))], LED, "one", []),
        ([copy_of("one", (3, 4)), copy_of("two", (3, 4), (6, 1))], LED, "two", ["ends at 4"]),
        ([copy_of("one", (5, 2), (5, 2), is_damaged=True), copy_of("two", (4, 9))], LED, "one", ["has up to 9"]),
        ([copy_of("one", (4, 2), (4, 2), is_damaged=True), copy_of("two", (4, 9))], LED, "two", ["ends at 2"]),
        ([copy_of("two", (3, 9)), copy_of("three", (4, 5))], ABSENT, "three", ["two has up to 9"]),
        ([copy_of("two", (3, 9), noted=3), copy_of("three", (3, 5), noted=4)], None, "three", ["two has up to 9"]),
    ],
)  # fmt: skip
def test_the_latest_leader_epoch_then_the_longest_counts(
    copies: list[Copy], leader: LeaderCopies | None, counts: str, said: list[str]
) -> None:
    """The leader's copy, undamaged, is of the epoch it led in, in whatever order they are given."""
    for order in (copies, copies[::-1]):
        logs = CopiedLogs(order, None if leader is None else {KEY: leader})
        ends = logs.ends(*KEY)
        assert ends is not None
        assert ends.directory == counts
        notes = [note for note in logs.notes if "cannot be read" not in note]
        assert [note.startswith(f"t-0: {counts} counts, which ends at {ends.log_end_offset}; ") for note in notes] == [
            True for _ in said
        ]
        assert all(part in note for part, note in zip(said, notes, strict=True))
        logs.look_at({KEY: [1]})
        is_leaders = leader is not None and counts in leader.directories
        assert (logs.of_leaders, logs.of_others) == (is_leaders, not is_leaders)


@pytest.mark.parametrize("given", [("broker-1", "broker-2"), ("broker-3", "broker-2", "broker-1")])
def test_of_recorded_brokers_the_last_leaders_copies_count(given: tuple[str, ...], recorded: Recorded) -> None:
    """With one among them that is older: its copies count nowhere, and the ends are those that brokers answered."""
    folder = recorded("kafka-4.3-three")
    paths = [str(path) for copy in given for path in data_directories(folder, copy)]
    latest = answers(folder, "broker-1", "latest")
    with open_logs(paths) as opened:
        leaders = leader_copies(opened.user_partitions, lambda: opened.clusters.metadata)
        logs = CopiedLogs(opened.user_partitions, leaders)
        found = {key: logs.ends(*key) for key in latest}
        assert {key: ends.end_offset for key, ends in found.items() if ends is not None} == latest
        several = {key: leader for key, leader in leaders.items() if key in latest}
        assert len(several) > 5
        for key, leader in several.items():
            ends = found[key]
            assert ends is not None
            assert (ends.directory in leader.directories) == bool(leader.directories)
        assert logs.of_leaders == sum(bool(leader.directories) for leader in several.values())
        assert logs.of_others == sum(not leader.directories for leader in several.values())
        assert logs.notes == []


def test_a_copy_of_the_metadata_that_cannot_be_opened_is_told_and_those_behind_it_are_read(
    recorded: Recorded, tmp_path: Path
) -> None:
    (whole,) = partition_folders(recorded("kafka-4.3-one"), "running", CLUSTER_METADATA)
    places = (tmp_path / "gone", whole)
    copies, problems = read_copies(UserPartition(CLUSTER_METADATA, 0, place, {}) for place in places)
    assert [copy.directory for copy in copies] == [str(whole)]
    assert [str(tmp_path / "gone") in problem for problem in problems] == [True]


def test_two_clusters_of_one_id_are_told(recorded: Recorded, tmp_path: Path) -> None:
    """By partitions that two directories of one broker hold, by metadata logs that differ; and by the status."""
    (one,) = data_directories(recorded("kafka-4.3-one"), "running")
    (blocked,) = data_directories(recorded("kafka-4.3-blocked"), "running")
    other = shutil.copytree(blocked, tmp_path / "other", ignore=shutil.ignore_patterns("partition.metadata", "*index"))
    (later,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    with open_logs([str(one), str(other)]) as opened:
        same, different = opened.clusters.namesakes
        assert "are of broker 1 of cluster" in same
        assert "both hold __consumer_offsets-0 and 26 more partitions" in same
        assert "have different batches at offset 0 of epoch 1" in different
        assert opened.clusters.are_mixed
        assert opened.clusters.metadata is None
        assert {same, different} <= set(opened.notes)
    for given in ((one, later), data_directories(recorded("kafka-4.3-three"), "broker-1")):
        with open_logs([str(path) for path in given]) as opened:
            assert opened.clusters.namesakes == []
    assert CliRunner().invoke(main, ["top", str(one), str(other)]).exit_code == 3


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "cleaner-offset-checkpoint", "meta.properties"])
def test_of_one_broken_file_all_commands_end_with_one_status(name: str, recorded: Recorded, tmp_path: Path) -> None:
    (source,) = data_directories(recorded("kafka-4.3-one"), "stopped")
    data = tmp_path / "data"
    shutil.copytree(source, data, ignore=shutil.ignore_patterns("*.timeindex", "*.index"))
    (data / name).write_text("0\n2\nversion=\\u00")
    for words in (
        ("compact",), ("history", "-g", "g-done"), ("history", "--table", "share-offsets", "-g", "*"), ("decode",),
        ("info",), ("top",), ("report", "--to", str(tmp_path / "page.html")),
    ):  # fmt: skip
        done = CliRunner().invoke(main, [words[0], str(data), *words[1:]], catch_exceptions=False)
        assert (done.exit_code, name in done.stderr) == (3, True), words


# ------------------------------------------------------------------------------------------------------ one copy's ends


@pytest.mark.parametrize(
    ("start", "end", "high_watermark", "is_clean", "is_short", "end_offset"),
    [
        (2, 9, None, True, False, 9),
        (2, 9, 8, False, False, 9),
        (2, 9, 8, True, False, 8),
        (2, 9, 9, True, False, 9),
        (2, 9, 10, False, True, 10),
        (2, 9, 10, True, True, 10),
        (2, 9, 2, True, False, 2),
        (2, 9, 1, True, False, 9),
    ],
)
def test_the_end_of_a_log_is_its_high_watermark_after_an_orderly_stop_or_where_that_is_beyond(
    start: int, end: int, high_watermark: int | None, is_clean: bool, is_short: bool, end_offset: int
) -> None:
    """One below the log's start is of another log."""
    ends = LogEnds(log_start_offset=start, log_end_offset=end, high_watermark=high_watermark, is_clean=is_clean)
    assert (ends.is_short, ends.end_offset) == (is_short, end_offset)
    assert ends.is_by_high_watermark is (ends.end_offset == high_watermark and (is_clean or is_short))


NOW, OLD = Uuid(b"\1" * 16), Uuid(b"\2" * 16)
MADE = (TopicImage("t", NOW, created_at_ms=100), TopicImage("t", OLD, created_at_ms=50), TopicImage("u", OLD))


class Identified(Copy):
    """A copy that tells its topic's id."""

    def read(self, name: str) -> bytes | None:
        return f"version: 0\ntopic_id: {NOW}\n".encode() if name == "partition.metadata" else None


@pytest.mark.parametrize(
    ("committed_ms", "topic_id", "made_ms"),
    [
        (None, None, None), (0, None, None), (-1, None, None), (1, None, 100), (99, None, 100), (100, None, None),
        (101, None, None), (49, OLD, 50), (50, OLD, None), (99, OLD, None), (99, Uuid(b"\3" * 16), None),
    ],
)  # fmt: skip
def test_a_commit_before_its_topic_was_made_is_for_a_former_one(
    committed_ms: int | None, topic_id: Uuid | None, made_ms: int | None
) -> None:
    """``DD-4``."""
    logs = CopiedLogs([Identified({0: build_batch([record(0)])}, shown_path="p")], made=lambda: MADE)
    assert logs.made_after(*KEY, committed_ms, topic_id) == made_ms
    assert (logs.newest_made_ms("t"), logs.newest_made_ms("u"), logs.newest_made_ms("v")) == (100, -1, -1)
    if topic_id is None:
        assert (logs.ends_for(*KEY, None, committed_ms) is None) is (made_ms is not None)
    for one, is_of_copy in ((NOW, True), (OLD, False)):
        assert (logs.ends_for(*KEY, str(one), committed_ms) is not None) is is_of_copy
    assert CopiedLogs([copy_of("p", (0, 1))]).ends_for(*KEY, str(OLD)) is not None, "a copy that tells no id"


@pytest.mark.parametrize(("dated_from", "dated"), [(0, [0, 3, 5]), (3, [3, 5]), (4, [5])])
def test_records_are_dated_from_where_all_of_a_copy_is_there(dated_from: int, dated: list[int]) -> None:
    copy = copy_of("p", (0, 6))
    copy.dated_from = dated_from
    logs = CopiedLogs([copy])
    logs.look_at({KEY: [0, 3, 5]})
    ends = logs.ends(*KEY)
    assert ends is not None
    assert sorted(ends.first_timestamps) == dated


def test_topics_and_partitions_that_have_a_copy() -> None:
    copies = [copy_of(f"p{number}", (0, 1)) for number in range(3)]
    for number, copy in enumerate(copies):
        copy.topic, copy.partition = ("t", 2 - number) if number else ("__transaction_state", 0)
    logs = CopiedLogs(copies)
    assert logs.topics == {"t", "__transaction_state"}
    assert logs.partitions() == [("__transaction_state", 0), ("t", 0), ("t", 1)]
    assert [logs.partition_count(topic) for topic in ("t", "__transaction_state", "u")] == [2, 1, 0]
    assert [copy.shown_path for copy in logs.chosen("t")] == ["p2", "p1"]
    found = logs.copy_that_counts("t", 1)
    assert found is not None
    assert found.shown_path == "p1"
    assert (logs.copy_that_counts("u", 0), logs.ends("u", 0)) == (None, None)
    assert [bool(CopiedLogs(some)) for some in (copies, copies[:1], [])] == [True, False, False]
