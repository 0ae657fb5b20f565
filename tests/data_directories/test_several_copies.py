"""Which of several copies of a partition's log counts, and what is said of it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from offsets_log.data_directory.copied_logs import CopiedLogs, LeaderCopies, Opener
from offsets_log.data_directory.metadata_copies import leader_copies
from offsets_log.disk.reader import open_logs
from offsets_log.log_format.building import build_batch
from tests.data_directories.copies import Recorded, data_directories
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


def test_two_clusters_of_one_id_are_told(recorded: Recorded, tmp_path: Path) -> None:
    """By partitions that two directories of one broker hold, by metadata logs that differ; and by the status."""
    (one,) = data_directories(recorded("kafka-4.3-one"), "running")
    (other,) = data_directories(recorded("kafka-4.3-blocked"), "running")
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
