import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from offsets_log.disk import extents
from offsets_log.disk.reader import leader_of, open_logs
from offsets_log.disk.replicas import Leader, choose_replica
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment, batches_of
from tests.conftest import NEVER
from tests.disk.logs import NEW, OLD, b_beside, batch, damaged, name, offsets, partition, parts_of, replicas, segment


@pytest.fixture(autouse=True, params=["batch by batch", "by a kernel"])
def engine(request, bulk_from):
    bulk_from(0 if request.param == "by a kernel" else NEVER)


def test_choose_replica_longest_is_read(tmp_path):
    chosen, read, notes = replicas(tmp_path, segment(0, 1), segment(0, 1, 2))
    assert (chosen, read) == ("b", [0, 1, 2])
    assert notes == [
        "2 replicas: /b/__consumer_offsets-3 is read, its whole batches end before offset 3; /a/__consumer_offsets-3 "
        f"is left out: offsets 0 to 1, undamaged, {2 * len(batch(0))} bytes; it has the same batches where both reach"
    ]


def test_choose_replica_with_the_begin_is_read_and_what_another_has_beyond_is_told(tmp_path):
    partition(tmp_path / "a", 3, {name(0): segment(0, 1), name(2): segment(2, 3)})
    partition(tmp_path / "b", 3, {name(2): segment(2, 3, 4, 5)})
    with open_logs([str(tmp_path)]) as disk:
        (log,) = disk.logs
        assert offsets(log) == [0, 1, 2, 3]
        assert parts_of(log.notes)[2:] == [
            "it goes on to offset 5, which the chosen copy does not have: give it alone to read it",
            "it has the same batches where both reach",
        ]
        assert disk.copies_in_doubt


def test_choose_replica_lacks_nothing_that_begins_at_its_log_start(tmp_path):
    partition(tmp_path / "a", 3, {name(0): segment(0, 1), name(2): segment(2, 3)})
    partition(tmp_path / "b", 3, {name(2): segment(2, 3, 4, 5)})
    for log_start, expected in (1, [0, 1, 2, 3]), (2, [2, 3, 4, 5]), (3, [2, 3, 4, 5]):
        checkpoint = f"0\n1\n__consumer_offsets 3 {log_start}\n"
        (tmp_path / "b" / "log-start-offset-checkpoint").write_text(checkpoint)
        with open_logs([str(tmp_path)]) as disk:
            assert offsets(disk.logs[0]) == expected
            assert disk.copies_in_doubt == (log_start == 1)


def test_choose_replica_end_counts_only_good_batches(tmp_path):
    assert replicas(tmp_path, segment(0, 1) + damaged(2), segment(0, 1, 2))[0] == "b"
    assert replicas(tmp_path / "x", segment(0, 1, 2), segment(0, 1, 2) + damaged(3))[0] == "a"


def test_choose_replica_tie_takes_less_damage_then_bytes_then_first(tmp_path):
    assert replicas(tmp_path / "1", damaged(0) + segment(1), segment(1))[0] == "b"
    assert replicas(tmp_path / "2", segment(2), segment(0, 1, 2))[0] == "b"
    assert replicas(tmp_path / "3", segment(0, 1), segment(0, 1))[0] == "a"


def test_small_partitions_are_large_together(tmp_path, monkeypatch, bulk_from):
    for broker in "ab":
        for number in range(3):
            partition(tmp_path / broker, number, {name(0): segment(0, 1)})
    bulk_from(12 * len(batch(0)))
    asked = []
    monkeypatch.setattr(extents, "batch_rows", lambda log, in_bulk: asked.append(in_bulk) or ())
    with open_logs([str(tmp_path)]):
        assert asked == [True] * 6


def test_leader_epochs_decide_without_metadata_and_what_would_be_gone_is_told(tmp_path):
    longer = batch(0, **OLD) + batch(1, **OLD) + batch(2, **OLD)
    chosen, told = b_beside(tmp_path, longer, batch(0, **OLD) + batch(1, value=b"w", **NEW))
    assert (chosen, told[1:]) == (
        "b",
        ["it has leader epoch 4 from offset 1 on where the chosen copy has 5: a cluster would have truncated it there"],
    )
    other_epoch = batch(0, leader_epoch=3) + batch(1, value=b"w", **NEW)
    assert b_beside(tmp_path / "2", batch(0, **OLD) + batch(1, **OLD), other_epoch)[1][1] == (
        "it has leader epoch 4 from offset 0 on where the chosen copy has 3: a cluster would have truncated it there"
    )


@pytest.fixture(scope="module")
def diverged(tmp_path_factory):
    """What `record_diverged.py` recorded of real brokers."""
    folder = tmp_path_factory.mktemp("diverged")
    with tarfile.open(Path(__file__).parent / "diverged.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("has_checkpoints", [False, True])
def test_of_brokers_that_diverged_the_copy_is_read_to_which_the_other_was_truncated(
    diverged, tmp_path, has_checkpoints
):
    """The broker that came back then held the same bytes."""
    folder = "__consumer_offsets-0"
    for broker in ("broker-2", "broker-3"):
        unwanted = shutil.ignore_patterns() if has_checkpoints else shutil.ignore_patterns("leader-epoch-checkpoint")
        shutil.copytree(diverged / "before" / broker, tmp_path / broker, ignore=unwanted)
    after = [(diverged / "after" / broker / folder / name(0)).read_bytes() for broker in ("broker-2", "broker-3")]
    before = [(tmp_path / broker / folder / name(0)).read_bytes() for broker in ("broker-2", "broker-3")]
    assert after == [before[1], before[1]]
    assert len(before[0]) > len(before[1])
    own = PartitionLog(0, (Segment("x", 0, before[0]),)), PartitionLog(0, (Segment("x", 0, before[1]),))
    starts = [[(item.base_offset, item.crc) for item in batches_of(log)] for log in own]
    first = next(one for one, other in zip(*starts, strict=False) if one != other)[0]
    with open_logs([str(tmp_path)]) as disk:
        (log,) = disk.logs
        assert bytes(log.segments[0].buffer) == before[1]
        told = log.notes[0].split("; ")
        assert told[-1].startswith(f"it has leader epoch 0 from offset {first} on where the chosen copy has ")
        assert told[-1].endswith(": a cluster would have truncated it there")
    assert led_by_nobody(tmp_path / "broker-3", tmp_path / "broker-2") == before[1], "in any order"


def led_by_nobody(*paths):
    with open_logs([str(path) for path in paths]) as disk:
        return bytes(disk.logs[0].segments[0].buffer)


def test_a_checkpoint_of_leader_epochs_tells_of_an_epoch_without_batches(tmp_path):
    for broker, count in (("a", 3), ("b", 2)):
        content = b"".join(batch(at, **OLD) for at in range(count))
        partition(tmp_path / broker, 3, {name(0): content})
    for noted, chosen in (("5 2", "b"), ("5 3", "a"), ("x", "a"), ("3 2", "a")):
        (tmp_path / "b" / "__consumer_offsets-3" / "leader-epoch-checkpoint").write_text(f"0\n1\n{noted}\n")
        with open_logs([str(tmp_path)]) as disk:
            assert disk.logs[0].segments[0].file.startswith(f"{tmp_path}/{chosen}/"), noted


def led(leader, *contents):
    """Which of some logs is read where a leader is known, and the first note."""
    logs = [
        PartitionLog(3, (Segment(f"{place}/x", 0, content),)) for place, content in zip("abc", contents, strict=False)
    ]
    chosen = choose_replica(logs, leader)
    return chosen.segments[0].file[0], chosen.notes[0].split("; ")[1]


@pytest.mark.parametrize(
    ("file", "base_offset", "place"),
    [("d/a.log", 0, "d"), ("d/dump", None, "d/dump"), ("a.log", 0, "a.log"), ("dump", None, "dump")],
)
def test_a_replica_is_told_by_its_folder_or_by_the_file_that_was_named(file, base_offset, place):
    other = PartitionLog(3, (Segment("b/x", 0, segment(0)),))
    chosen = choose_replica([PartitionLog(3, (Segment(file, base_offset, segment(0, 1)),)), other])
    assert chosen.notes[0].startswith(f"2 replicas: {place} is read, its whole batches end before offset 2; ")


def test_the_last_leaders_copy_is_read_though_another_has_more_that_was_never_committed():
    leader = Leader(2, 5, {1})
    assert led(leader, batch(0, **OLD) + batch(1, **OLD), batch(0, **OLD)) == (
        "b",
        "broker 2 led the partition last, in leader epoch 5, and this is its copy",
    )


def test_what_the_leader_wrote_in_its_epoch_counts_where_its_own_copy_is_older():
    more = batch(0, **OLD) + batch(1, **NEW)
    assert led(Leader(2, 5, {1}), more, batch(0, **OLD)) == (
        "a",
        "broker 2 led the partition last, in leader epoch 5, but its copy is older",
    )
    assert led(Leader(2, 5, {1}), more, more)[0] == "b"


def test_where_a_copy_has_the_leaders_epoch_or_a_later_one_it_tells_where_that_begins():
    """The leader's own copy is older than its epoch then, wherever it ends."""
    for epoch in (5, 6):
        more = batch(0, **OLD) + batch(1, **OLD) + batch(2, leader_epoch=epoch)
        assert led(Leader(2, 5, {1}), more, batch(0, **OLD))[0] == "a"
    older = segment(0, 1, magic=1), segment(0, magic=1)
    assert led(Leader(2, 5, {1}), *older)[0] == "a", "of magic 1, which has no epochs"
    more = batch(0, **OLD) + batch(1, **OLD) + batch(2, **NEW)
    assert led(Leader(2, 5, {1}), more, batch(0, **OLD), more[: 2 * len(batch(0))])[0] == "a"


def test_a_damaged_copy_is_no_better_for_being_the_leaders():
    whole = batch(0, **OLD) + batch(1, **OLD)
    raw = bytearray(whole)
    raw[-1] ^= 1
    assert led(Leader(2, 5, {0}), bytes(raw), whole) == (
        "b",
        "broker 2 led the partition last, in leader epoch 5, but its copy is damaged",
    )


def test_without_the_leaders_copy_the_later_epoch_goes_before_the_longer_log():
    words = "broker 2 led the partition last, in leader epoch 5, and no copy of it was given"
    assert led(Leader(2, 5), batch(0, **OLD) + batch(1, **OLD), batch(0, **NEW)) == ("b", words)
    assert led(None, batch(0, **OLD) + batch(1, **OLD), batch(0, **NEW))[0] == "b"


@pytest.mark.parametrize(
    ("base_offset", "later", "read"),
    [
        (None, (2, 3), [0, 1, 2, 3]),
        (None, (7,), [0, 1, 7]),
        (None, (1, 2, 3), [0, 1]),
        (2, (2, 3), [0, 1]),
    ],
)
def test_files_without_offsets_in_their_names_are_one_log_unless_they_overlap(base_offset, later, read):
    """In the order of their offsets; one whose name tells where it begins is a log of its own."""
    logs = [
        PartitionLog(3, (Segment("b", base_offset, segment(*later)),)),
        PartitionLog(3, (Segment("a", None, segment(0, 1)),)),
    ]
    assert offsets(choose_replica(logs, None)) == read


@pytest.mark.parametrize(
    ("marks", "highest"), [((5, 9), 9), ((9, 5), 9), ((None, 5), 5), ((5, None), 5), ((None, None), None)]
)
def test_the_high_watermark_is_the_highest_that_a_replica_tells_and_all_else_the_chosen_ones(marks, highest):
    facts = [Checkpoints(high_watermark=mark, cleaned_until=at) for at, mark in enumerate(marks)]
    contents = (segment(0, 1, 2), segment(0, 1))
    logs = [
        PartitionLog(3, (Segment(f"{at}/x", 0, content),), notes=(f"note {at}",), checkpoints=fact)
        for at, (content, fact) in enumerate(zip(contents, facts, strict=True))
    ]
    chosen = choose_replica(logs)
    assert chosen.checkpoints == Checkpoints(high_watermark=highest, cleaned_until=0)
    assert (chosen.notes[0], len(chosen.notes)) == ("note 0", 2)
    assert choose_replica(logs[1:]) is logs[1], "of one there is no choice"


@pytest.mark.parametrize(("mark", "highest"), [(1, 1), (2, 1), (None, None)])
def test_a_high_watermark_of_what_a_cluster_would_have_truncated_does_not_count(mark, highest):
    old = (Segment("a/x", 0, batch(0, **OLD) + batch(1, **OLD)),)
    logs = [
        PartitionLog(3, old, checkpoints=Checkpoints(high_watermark=mark)),
        PartitionLog(3, (Segment("b/x", 0, batch(0, **OLD) + batch(1, value=b"w", **NEW)),)),
    ]
    chosen = choose_replica(logs)
    assert (chosen.segments[0].file, chosen.checkpoints.high_watermark) == ("b/x", highest)


def clusters_led_by(leader, epoch=5):
    """Clusters whose metadata says who led partition 3 last; None if it does not know the partition."""
    found = None if leader is None else SimpleNamespace(last_leader=leader, last_leader_epoch=epoch)
    return SimpleNamespace(metadata=SimpleNamespace(partition=lambda topic, number: found))


def test_the_last_leader_is_told_by_metadata_and_its_copies_by_their_directories():
    logs = [PartitionLog(3, (Segment(file, 0, segment(0)),)) for file in "abc"]
    of_broker = {"meta.properties": lambda: b"version=1\nnode.id=0\ncluster.id=c\n"}
    above = {id(logs[0]): {}, id(logs[1]): of_broker}
    assert leader_of(logs, above, clusters_led_by(0)) == Leader(0, 5, {1})
    assert leader_of(logs, above, clusters_led_by(7)) == Leader(7, 5, set())
    for others in (clusters_led_by(None), clusters_led_by(-1), SimpleNamespace(metadata=None)):
        assert leader_of(logs, above, others) is None
    assert leader_of(logs[1:2], above, clusters_led_by(0)) is None, "one copy is read, whoever led"
    unknown = [PartitionLog(None, log.segments) for log in logs]
    assert leader_of(unknown, above, clusters_led_by(0)) is None
