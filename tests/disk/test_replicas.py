from types import SimpleNamespace

import pytest

from offsets_log.disk import extents
from offsets_log.disk.extents import first_difference
from offsets_log.disk.reader import leader_of, open_logs
from offsets_log.disk.replicas import Leader, choose_replica
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from tests.conftest import NEVER
from tests.disk.logs import batch, name, offsets, partition, segment


@pytest.fixture(autouse=True, params=["batch by batch", "by a kernel"])
def engine(request, bulk_from):
    bulk_from(0 if request.param == "by a kernel" else NEVER)


def replicas(tmp_path, *contents):
    """Open brokers a, b, … with one segment each of partition 3; return who was chosen, offsets and notes."""
    for broker, content in zip("abc", contents, strict=False):
        partition(tmp_path / broker, 3, {name(0): content})
    with open_logs([str(tmp_path)]) as disk:
        (log,) = disk.logs
        chosen = log.segments[0].file.removeprefix(f"{tmp_path}/")[0]
        return chosen, offsets(log), [note.replace(str(tmp_path), "") for note in log.notes]


def damaged(at):
    raw = bytearray(batch(at))
    raw[-1] ^= 1
    return bytes(raw)


def test_choose_replica_longest_is_read(tmp_path):
    chosen, read, notes = replicas(tmp_path, segment(0, 1), segment(0, 1, 2))
    assert (chosen, read) == ("b", [0, 1, 2])
    assert notes == [
        "2 replicas: /b/__consumer_offsets-3 is read, its whole batches end before offset 3",
        f"/a/__consumer_offsets-3 is left out: offsets 0 to 1, undamaged, {2 * len(batch(0))} bytes",
    ]


def test_choose_replica_with_the_begin_is_read_and_what_another_has_beyond_is_told(tmp_path):
    partition(tmp_path / "a", 3, {name(0): segment(0, 1), name(2): segment(2, 3)})
    partition(tmp_path / "b", 3, {name(2): segment(2, 3, 4, 5)})
    with open_logs([str(tmp_path)]) as disk:
        (log,) = disk.logs
        assert offsets(log) == [0, 1, 2, 3]
        assert any("goes on to offset 5" in note for note in log.notes)


def test_choose_replica_end_counts_only_good_batches(tmp_path):
    assert replicas(tmp_path, segment(0, 1) + damaged(2), segment(0, 1, 2))[0] == "b"
    assert replicas(tmp_path / "x", segment(0, 1, 2), segment(0, 1, 2) + damaged(3))[0] == "a"


def test_choose_replica_tie_takes_less_damage_then_bytes_then_first(tmp_path):
    assert replicas(tmp_path / "1", damaged(0) + segment(1), segment(1))[0] == "b"
    assert replicas(tmp_path / "2", segment(2), segment(0, 1, 2))[0] == "b"
    assert replicas(tmp_path / "3", segment(0, 1), segment(0, 1))[0] == "a"


def test_choose_replica_difference_is_noted_with_first_offset(tmp_path):
    notes = replicas(tmp_path, segment(0) + segment(1, 2, value=b"w"), segment(0, 1, 2, 3))[2]
    assert notes[2] == (
        "/b/__consumer_offsets-3 and /a/__consumer_offsets-3 differ from record offset 1 on; one may be compacted"
    )


def test_copies_with_the_same_batches_are_told_together(tmp_path):
    for broker, partitions in {"a": (3, 4, 5, 6), "b": (3, 4, 5, 6), "c": (5,)}.items():
        for number in partitions:
            epoch = {"leader_epoch": ord(broker)}
            partition(tmp_path / broker, number, {name(0): batch(0, **epoch) + batch(1, **epoch)})
    partition(tmp_path / "b", 6, {name(0): segment(0, 1) + damaged(2)})
    with open_logs([str(tmp_path)]) as disk:
        assert [note.replace(str(tmp_path), "") for note in disk.notes] == [
            "2 partitions have copies with the same batches: read in /a, left out in /b",
            "1 partition has copies with the same batches: read in /a, left out in /b, /c",
        ]
        assert [len(log.notes) for log in disk.logs] == [0, 0, 0, 2], "damage is told where it is"


def test_small_partitions_are_large_together(tmp_path, monkeypatch, bulk_from):
    for broker in "ab":
        for number in range(3):
            partition(tmp_path / broker, number, {name(0): segment(0, 1)})
    bulk_from(12 * len(batch(0)))
    asked = []
    monkeypatch.setattr(extents, "batch_rows", lambda log, in_bulk: asked.append(in_bulk) or ())
    with open_logs([str(tmp_path)]):
        assert asked == [True] * 6


def test_choose_replica_three_are_told_one_by_one(tmp_path):
    chosen, _, notes = replicas(tmp_path, segment(0), segment(0, 1), segment(1))
    assert chosen == "b"
    assert [note.split(" ")[0] for note in notes] == [
        "3",
        "/a/__consumer_offsets-3",
        "/c/__consumer_offsets-3",
        "/b/__consumer_offsets-3",
    ]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (segment(0, 1), segment(0, 1, 2), None),
        (batch(0, leader_epoch=1), batch(0, leader_epoch=7), None),
        (segment(0, 1, 2), segment(0, 2), 1),
        (segment(2), segment(0, 1, 2), 0),
        (batch(0, 1), batch(0, 2), 0),
        (b"", segment(0), None),
    ],
)
def test_first_difference_leader_epoch_is_ignored_rest_is_not(tmp_path, one, other, expected):
    for broker, content in (("a", one), ("b", other)):
        partition(tmp_path / broker, 3, {name(0): content})
    with open_logs([str(tmp_path / "a")]) as a, open_logs([str(tmp_path / "b")]) as b:
        for in_bulk in (False, True):
            one, other = a.logs[0], b.logs[0]
            assert first_difference(one, other, in_bulk=in_bulk) == expected
            assert first_difference(other, one, in_bulk=in_bulk) == expected


def test_first_difference_later_beginning_is_no_difference(tmp_path):
    partition(tmp_path / "a", 3, {name(0): segment(0, 1, 2, 3)})
    partition(tmp_path / "b", 3, {name(2): segment(2, 3)})
    with open_logs([str(tmp_path / "a")]) as a, open_logs([str(tmp_path / "b")]) as b:
        assert first_difference(a.logs[0], b.logs[0], in_bulk=False) is None


def led(leader, *contents):
    """Which of some logs is read where a leader is known, and the first note."""
    logs = [
        PartitionLog(3, (Segment(f"{place}/x", 0, content),)) for place, content in zip("abc", contents, strict=False)
    ]
    chosen = choose_replica(logs, leader)
    return chosen.segments[0].file[0], chosen.notes[0].partition("; ")[2]


@pytest.mark.parametrize(
    ("file", "base_offset", "place"),
    [("d/a.log", 0, "d"), ("d/dump", None, "d/dump"), ("a.log", 0, "a.log"), ("dump", None, "dump")],
)
def test_a_replica_is_told_by_its_folder_or_by_the_file_that_was_named(file, base_offset, place):
    other = PartitionLog(3, (Segment("b/x", 0, segment(0)),))
    chosen = choose_replica([PartitionLog(3, (Segment(file, base_offset, segment(0, 1)),)), other])
    assert chosen.notes[0] == f"2 replicas: {place} is read, its whole batches end before offset 2"


OLD, NEW = {"leader_epoch": 4}, {"leader_epoch": 5}


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
    assert led(None, batch(0, **OLD) + batch(1, **OLD), batch(0, **NEW))[0] == "a"


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
    assert (chosen.notes[0], len(chosen.notes)) == ("note 0", 3)
    assert choose_replica(logs[1:]) is logs[1], "of one there is no choice"


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
