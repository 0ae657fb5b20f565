import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from cli.main import main
from offsets_log.disk import extents
from offsets_log.disk.alike import TOLD
from offsets_log.disk.reader import leader_of, open_logs
from offsets_log.disk.replicas import Leader, choose_replica
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from tests.conftest import NEVER
from tests.disk.logs import batch, name, offsets, partition, segment

OLD, NEW = {"leader_epoch": 4}, {"leader_epoch": 5}


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
        notes = [note.replace(str(tmp_path), "") for note in (*disk.notes, *log.notes)]
        return chosen, offsets(log), notes


def parts_of(notes):
    """The parts of the only sentence, without what begins each of them."""
    (note,) = notes
    return note.replace("/__consumer_offsets-3", "").split("; ")


def damaged(at):
    raw = bytearray(batch(at))
    raw[-1] ^= 1
    return bytes(raw)


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
            "it goes on to offset 5, which the one read does not have",
            "it has the same batches where both reach",
        ]


def test_choose_replica_end_counts_only_good_batches(tmp_path):
    assert replicas(tmp_path, segment(0, 1) + damaged(2), segment(0, 1, 2))[0] == "b"
    assert replicas(tmp_path / "x", segment(0, 1, 2), segment(0, 1, 2) + damaged(3))[0] == "a"


def test_choose_replica_tie_takes_less_damage_then_bytes_then_first(tmp_path):
    assert replicas(tmp_path / "1", damaged(0) + segment(1), segment(1))[0] == "b"
    assert replicas(tmp_path / "2", segment(2), segment(0, 1, 2))[0] == "b"
    assert replicas(tmp_path / "3", segment(0, 1), segment(0, 1))[0] == "a"


def test_copies_with_the_same_batches_are_told_together(tmp_path):
    for broker, partitions in {"a": (3, 4, 5, 6), "b": (3, 4, 5, 6), "c": (5,)}.items():
        for number in partitions:
            partition(tmp_path / broker, number, {name(0): segment(0, 1)})
    partition(tmp_path / "b", 6, {name(0): segment(0, 1) + damaged(2)})
    with open_logs([str(tmp_path)]) as disk:
        assert [note.replace(str(tmp_path), "") for note in disk.notes] == [
            "2 partitions have copies with the same batches: read in /a, left out in /b",
            "1 partition has copies with the same batches: read in /a, left out in /b, /c",
        ]
        assert [len(log.notes) for log in disk.logs] == [0, 0, 0, 1], "damage is told where it is"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (segment(0, 1), "that end earlier than others and have the same batches up to there"),
        (batch(0) + batch(1, 2, kept=1) + batch(3), "that differ only by what a cleaner takes"),
    ],
)
def test_many_partitions_whose_copies_agree_are_told_together_and_few_one_by_one(tmp_path, content, sentence):
    for count in range(1, TOLD + 2):
        partition(tmp_path / "a", count, {name(0): content})
        partition(tmp_path / "b", count, {name(0): batch(0) + batch(1, 2) + batch(3)})
        if content == segment(0, 1):
            partition(tmp_path / "b", count, {name(0): segment(0, 1, 2)})
        with open_logs([str(tmp_path)]) as disk:
            if count <= TOLD:
                assert [note.startswith(f"2 replicas: {tmp_path}/b/") for note in disk.notes] == [True] * count
            else:
                assert disk.notes == [
                    f"{count} partitions have copies {sentence}: read in {tmp_path}/b, left out in {tmp_path}/a"
                ]
            assert [log.notes for log in disk.logs] == [()] * count


def test_partitions_whose_copies_differ_have_a_line_each_and_a_count_before_them(tmp_path):
    for count in range(1, TOLD + 2):
        partition(tmp_path / "a", count, {name(0): segment(0, 1)})
        partition(tmp_path / "b", count, {name(0): segment(0, 1, value=b"w")})
        with open_logs([str(tmp_path)]) as disk:
            assert [len(log.notes) for log in disk.logs] == [1] * count
            assert disk.notes == (
                [] if count <= TOLD else [f"{count} partitions have copies that differ, of each one line tells how"]
            )


def test_small_partitions_are_large_together(tmp_path, monkeypatch, bulk_from):
    for broker in "ab":
        for number in range(3):
            partition(tmp_path / broker, number, {name(0): segment(0, 1)})
    bulk_from(12 * len(batch(0)))
    asked = []
    monkeypatch.setattr(extents, "batch_rows", lambda log, in_bulk: asked.append(in_bulk) or ())
    with open_logs([str(tmp_path)]):
        assert asked == [True] * 6


def test_choose_replica_three_are_told_in_one_sentence(tmp_path):
    chosen, _, notes = replicas(tmp_path, segment(0), segment(0, 1), segment(1))
    assert chosen == "b"
    size = len(batch(0))
    assert parts_of(notes) == [
        "3 replicas: /b is read, its whole batches end before offset 2",
        f"/a is left out: offsets 0 to 0, undamaged, {size} bytes",
        "it has the same batches where both reach",
        f"/c is left out: offsets 0 to 1, undamaged, {size} bytes",
        "it lacks the batch of offset 0 (taken by a cleaner, or lost)",
    ]


def test_copies_that_are_equal_beside_one_that_differs_are_named_together(tmp_path):
    for broker, content in zip("abcd", (segment(0, 1), segment(0, 1), segment(0), segment(0)), strict=True):
        partition(tmp_path / broker, 3, {name(0): content})
    partition(tmp_path / "e", 3, {name(0): segment(0) + segment(1, value=b"w")})
    with open_logs([str(tmp_path)]) as disk:
        told = "; ".join(parts_of([disk.logs[0].notes[0].replace(str(tmp_path), "")]))
    size = len(batch(0))
    assert told == (
        "5 replicas: /a is read, its whole batches end before offset 2; "
        f"/b is left out: offsets 0 to 1, undamaged, {2 * size} bytes; it has the same batches; "
        f"/c, /d (equal to each other) are left out: offsets 0 to 0, undamaged, {size} bytes; "
        "it has the same batches where both reach; "
        f"/e is left out: offsets 0 to 1, undamaged, {2 * size} bytes; "
        "it holds other records from offset 1 on: no cleaner does that"
    )


def b_beside(tmp_path, one, other):
    """Which is read of two copies, and what is said of the other one behind its extent."""
    chosen, _, notes = replicas(tmp_path, one, other)
    return chosen, [part.partition(" is left out: ")[2] or part for part in parts_of(notes)[1:]]


def test_other_records_are_not_called_compacted(tmp_path):
    one = segment(0, 1, 2, 3)
    assert b_beside(tmp_path / "1", one, segment(0) + segment(1, value=b"w") + segment(2, 3))[1][1:] == [
        "it holds other records in the batch of offset 1: no cleaner does that"
    ]
    assert b_beside(tmp_path / "2", one, segment(0) + segment(1, value=b"w") + segment(2) + segment(3, value=b"w"))[1][
        1:
    ] == ["it holds other records in 2 batches of offsets between 1 and 3: no cleaner does that"]
    assert b_beside(tmp_path / "3", one, segment(0, 1) + segment(2, 3, value=b"w"))[1][1:] == [
        "it holds other records from offset 2 on: no cleaner does that"
    ]
    assert b_beside(tmp_path / "4", one, segment(0) + batch(1, 2) + segment(3))[1][1:] == [
        "it holds other records in 2 batches of offsets between 1 and 2: no cleaner does that"
    ]


def test_what_a_cleaner_leaves_is_told_from_what_is_only_not_there(tmp_path):
    whole = batch(0) + batch(1, 2) + batch(3) + batch(4)
    cleaned = batch(1, 2, kept=1) + batch(3) + batch(4)
    assert b_beside(tmp_path / "1", whole, cleaned)[1][1:] == [
        "it lacks the batch of offset 0 and holds fewer records in the batch of offsets 1 to 2 (what a cleaner leaves)"
    ]
    assert b_beside(tmp_path / "2", whole, batch(0) + batch(1, 2) + batch(4))[1][1:] == [
        "it lacks the batch of offset 3 (taken by a cleaner, or lost)"
    ]
    assert b_beside(tmp_path / "3", whole, batch(0) + batch(4) + batch(5)) == (
        "b",
        [
            f"offsets 0 to 4, undamaged, {len(whole)} bytes",
            "the one read lacks 2 batches of offsets between 1 and 3 (taken by a cleaner, or lost)",
        ],
    )


def test_below_the_cleaners_checkpoint_a_cleaner_took_what_is_not_there(tmp_path):
    partition(tmp_path / "a", 3, {name(0): segment(0, 1, 2)})
    partition(tmp_path / "b", 3, {name(0): segment(0, 2)})
    for until, why in ((1, "taken by a cleaner, or lost"), (2, "what a cleaner leaves")):
        (tmp_path / "b" / "cleaner-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets 3 {until}\n")
        with open_logs([str(tmp_path)]) as disk:
            notes = [*disk.notes, *disk.logs[0].notes]
            assert parts_of(notes)[2:] == [f"it lacks the batch of offset 1 ({why})"]


def test_what_another_copy_holds_of_a_damaged_piece_is_told_with_how_to_see_it(tmp_path):
    one = segment(0) + damaged(1) + segment(2, 3)
    other = segment(0, 1) + damaged(2)
    chosen, told = b_beside(tmp_path, one, other)
    assert chosen == "a"
    size = len(batch(0))
    assert told == [
        f"offsets 0 to 1, damaged at offset 2 (position {2 * size} of /b/{name(0)}), {3 * size} bytes",
        f"it has offset 1 undamaged, where the one read is damaged at position {size} of /a/{name(0)}: offsets-log "
        "decode /b --until-offset 3:2 | tail -n 1 shows it",
    ]
    shown = CliRunner().invoke(main, ["decode", f"{tmp_path}/b/__consumer_offsets-3", "--until-offset", "3:2"])
    assert json.loads(shown.stdout.splitlines()[-1])["record_offset"] == 1


def test_a_copy_that_cannot_be_named_alone_is_given_alone():
    logs = [
        PartitionLog(None, (Segment("a.tar!x/1", 0, damaged(0) + segment(1)),)),
        PartitionLog(None, (Segment("b.tar!x/1", 0, segment(0)),)),
    ]
    assert choose_replica(logs).notes[0].endswith(": give this copy alone to read it")


def test_many_pieces_are_counted(tmp_path):
    one = b"".join(damaged(at) if at % 2 else batch(at) for at in range(2 * TOLD + 4))
    told = b_beside(tmp_path, one + batch(100), segment(*range(2 * TOLD + 4)))[1]
    assert len(told) == 1 + TOLD + 1
    assert told[-1] == "it has what is damaged there at 2 more places"
    told = b_beside(tmp_path / "2", segment(*range(101)), one)[1]
    size = len(batch(0))
    assert told == [
        f"offsets 0 to {2 * TOLD + 2}, {TOLD + 2} damaged pieces, the first at offset 1 (position {size} of "
        f"/b/{name(0)}), {len(one)} bytes"
    ]


def test_a_copy_that_ends_inside_a_batch_says_so(tmp_path):
    chosen, told = b_beside(tmp_path, segment(0, 1), segment(0, 1)[:-5])
    size = len(batch(0))
    assert (chosen, told) == (
        "a",
        [
            f"offsets 0 to 0, cut inside a batch at offset 1 (position {size} of its last file), {2 * size - 5} bytes",
            "it has the same batches where both reach",
        ],
    )


def test_of_equal_copies_not_the_one_with_zeros_behind_is_read(tmp_path):
    chosen, told = b_beside(tmp_path, segment(0, 1) + bytes(100), segment(0, 1))
    size = 2 * len(batch(0))
    assert (chosen, told) == (
        "b",
        [
            f"offsets 0 to 1, undamaged, 100 bytes of zeros behind its batches, {size + 100} bytes",
            "it has the same batches",
        ],
    )


def test_leader_epochs_decide_without_metadata_and_what_would_be_gone_is_told(tmp_path):
    longer = batch(0, **OLD) + batch(1, **OLD) + batch(2, **OLD)
    chosen, told = b_beside(tmp_path, longer, batch(0, **OLD) + batch(1, value=b"w", **NEW))
    assert (chosen, told[1:]) == (
        "b",
        ["it has leader epoch 4 from offset 1 on where the one read has 5: a cluster would have truncated it there"],
    )


def test_a_checkpoint_of_leader_epochs_tells_of_an_epoch_without_batches(tmp_path):
    for broker, count in (("a", 3), ("b", 2)):
        content = b"".join(batch(at, **OLD) for at in range(count))
        partition(tmp_path / broker, 3, {name(0): content})
    for noted, chosen in (("5 2", "b"), ("5 3", "a"), ("x", "a"), ("3 2", "a")):
        (tmp_path / "b" / "__consumer_offsets-3" / "leader-epoch-checkpoint").write_text(f"0\n1\n{noted}\n")
        with open_logs([str(tmp_path)]) as disk:
            assert disk.logs[0].segments[0].file.startswith(f"{tmp_path}/{chosen}/"), noted


def test_a_later_epoch_in_a_copy_without_the_beginning_is_told(tmp_path):
    one = batch(0, **OLD) + batch(1, **OLD) + batch(2, **OLD)
    partition(tmp_path / "a", 3, {name(0): one})
    partition(tmp_path / "b", 3, {name(1): batch(1, **OLD) + batch(2, value=b"w", **NEW)})
    with open_logs([str(tmp_path)]) as disk:
        assert offsets(disk.logs[0]) == [0, 1, 2]
        assert parts_of(disk.logs[0].notes)[2:] == [
            "it begins later, but has leader epoch 5 from offset 2 on where the one read has 4: a cluster would have "
            "truncated the one read there"
        ]


def test_leader_epochs_that_differ_in_equal_batches_are_told(tmp_path):
    old = batch(0, **OLD) + batch(1, **OLD)
    words = "in the batch of offset 1, all else of which is the same: no broker writes that"
    chosen, told = b_beside(tmp_path / "1", old + batch(2, **OLD), batch(0, **OLD) + segment(1) + batch(2, **OLD))
    assert (chosen, told[1:]) == ("a", [f"it has leader epoch 0 and not 4 {words}"])
    chosen, told = b_beside(tmp_path / "2", old, batch(0, **OLD) + batch(1, **NEW))
    assert (chosen, told[1:]) == ("b", [f"it has leader epoch 4 and not 5 {words}"])
    chosen, told = b_beside(tmp_path / "3", batch(0, **OLD) + batch(1, **OLD), batch(0, **NEW))
    assert (chosen, told[1:]) == (
        "b",
        ["it has leader epoch 4 from offset 0 on where the one read has 5: a cluster would have truncated it there"],
    )


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
