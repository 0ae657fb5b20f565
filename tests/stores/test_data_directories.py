"""Whole data directories in a store: the copies that count, and how little is read of users' logs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.log_ends import find_log_ends
from offsets_log.data_directory.metadata_copies import leader_copies
from offsets_log.disk.reader import open_logs
from offsets_log.disk.stored import BLOCK_BYTES, StorePath
from offsets_log.disk.stores import Store
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.errors import InputError
from tests.data_directories.copies import Recorded, data_directories, recorded
from tests.data_directories.test_log_ends import batches, index_of
from tests.disk.logs import batch, name, partition
from tests.waiting import PATIENCE_S

__all__ = ["recorded"]

OPEN, WHOLE = "kafka-3.9-blocked", "kafka-4.3-one"


def stored(folder: Path) -> UserPartition:
    """A directory as if it was in a store."""
    return UserPartition("t", 0, StorePath.of(f"local://{folder}"), {})


def test_of_several_brokers_in_a_store_the_same_copies_count(recorded: Recorded) -> None:
    """Those of the last leaders, by the cluster's metadata, of the offsets topic and of others; and all is said."""
    folder = recorded("kafka-4.3-three")
    paths = [str(path) for copy in ("broker-3", "broker-1", "broker-2") for path in data_directories(folder, copy)]
    with open_logs([f"local://{path}" for path in paths]) as there, open_logs(paths) as here:
        assert [segment.file.removeprefix("local://") for log in there.logs for segment in log.segments] == [
            segment.file for log in here.logs for segment in log.segments
        ]
        for log, expected in zip(there.logs, here.logs, strict=True):
            assert [note.replace("local://", "") for note in log.notes] == list(expected.notes)
            assert log.checkpoints == expected.checkpoints
        assert there.topic_ids == here.topic_ids
        told = []
        for disk_logs in (there, here):
            partitions, clusters = disk_logs.user_partitions, disk_logs.clusters
            logs = CopiedLogs(partitions, leader_copies(partitions, lambda: clusters.metadata))  # noqa: B023
            places = sorted((one.topic, one.partition) for one in partitions)
            ends = [str(logs.ends(*place)).replace("local://", "") for place in places]
            told.append((places, ends, [note.replace("local://", "") for note in logs.notes], logs.of_leaders))
        assert told[0] == told[1]


def test_in_a_store_leader_epochs_decide_and_other_topics_are_refused(recorded: Recorded, tmp_path: Path) -> None:
    old = {"leader_epoch": 4}
    partition(tmp_path / "a", 3, {name(0): batch(0, **old) + batch(1, **old) + batch(2, **old)})
    noted = {"leader-epoch-checkpoint": b"0\n1\n5 2\n"}
    partition(tmp_path / "b", 3, {name(0): batch(0, **old) + batch(1, **old), **noted})
    one, other = data_directories(recorded(WHOLE), "running")[0], data_directories(recorded(OPEN), "running")[0]
    with open_logs([f"local://{tmp_path}"]) as opened:
        (log,) = opened.logs
        assert [segment.file for segment in log.segments] == [f"local://{tmp_path}/b/__consumer_offsets-3/{name(0)}"]
    with pytest.raises(InputError, match="folders of 2 topics, and no replicas of one"):
        open_logs([f"local://{one}", f"local://{other}"])


def harmed(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :]


@pytest.mark.parametrize("harm", [None, 70, -20, -100, 5])
def test_little_is_read_of_a_log_in_a_store(harm: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two segments the last batch, and what dates the offsets that are asked about."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    for base in (0, 9000):
        made = batches(base, 3000)
        raw = b"".join(made)
        raw = raw if harm is None else harmed(raw, harm % len(raw))
        (folder / f"{base:020}.log").write_bytes(raw)
        (folder / f"{base:020}.index").write_bytes(index_of(made, 3, 40))
    read = []
    read_at = Store.read

    def counted(store: Store, path: str, position: int, size: int) -> bytes:
        read.append(size)
        return read_at(store, path, position, size)

    monkeypatch.setattr(Store, "read", counted)
    for asked in ([], [4, 8000], [17_999], [9001, 18_000], list(range(0, 18_000, 7))):
        read.clear()
        found = find_log_ends(stored(folder), dating=asked)
        assert found is not None
        expected = find_log_ends(UserPartition("t", 0, folder, {}), dating=asked)
        assert expected is not None
        assert found == replace(expected, directory=f"local://{folder}")
        if harm is None and len(asked) < 3:
            assert sum(read) <= (2 + 3 * len(asked)) * 2 * BLOCK_BYTES
    assert found.log_end_offset == 18_000 or harm is not None


def test_partitions_in_a_store_wait_for_the_network_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No index is read before all are asked for."""
    folders = [tmp_path / f"t-{number}" for number in range(4)]
    for folder in folders:
        folder.mkdir()
        made = batches(0, 300)
        (folder / f"{0:020}.log").write_bytes(b"".join(made))
        (folder / f"{0:020}.index").write_bytes(index_of(made, 3, 40))
    together = Barrier(len(folders), timeout=PATIENCE_S)
    read_at = Store.read

    def waiting(store: Store, path: str, position: int, size: int) -> bytes:
        if path.endswith(".index"):
            together.wait()
        return read_at(store, path, position, size)

    monkeypatch.setattr(Store, "read", waiting)
    with ThreadPoolExecutor(len(folders)) as pool:
        found = list(pool.map(find_log_ends, map(stored, folders)))
    assert [ends.log_end_offset for ends in found if ends is not None] == [900] * 4
