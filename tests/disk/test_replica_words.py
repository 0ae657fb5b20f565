"""What is said of copies of a partition."""

import json

import pytest
from click.testing import CliRunner

from offsets_log.disk.alike import TOLD
from offsets_log.disk.reader import open_logs
from offsets_log.disk.replicas import choose_replica
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.conftest import NEVER
from tests.disk.logs import NEW, OLD, b_beside, batch, damaged, name, offsets, partition, parts_of, replicas, segment


@pytest.fixture(autouse=True, params=["batch by batch", "by a kernel"])
def engine(request, bulk_from):
    bulk_from(0 if request.param == "by a kernel" else NEVER)


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


OTHERS = [segment(1), segment(0, 1, value=b"w"), batch(0) + batch(1, **OLD), segment(0) + damaged(1)]


@pytest.mark.parametrize("other", [*OTHERS, segment(0, 1) + bytes(9)])
def test_partitions_whose_copies_differ_have_a_line_each_and_a_count_before_them(tmp_path, other):
    for count in range(1, TOLD + 2):
        partition(tmp_path / "a", count, {name(0): segment(0, 1)})
        partition(tmp_path / "b", count, {name(0): other})
        with open_logs([str(tmp_path)]) as disk:
            assert [len(log.notes) for log in disk.logs] == [1] * count
            assert disk.notes == (
                [] if count <= TOLD else [f"{count} partitions have copies that differ, of each one line tells how"]
            )


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


def test_copies_without_a_batch_in_common_may_be_of_two_clusters_and_no_checkpoint_of_one_judges_the_other(tmp_path):
    partition(tmp_path / "b", 3, {name(0): segment(0, 1, value=b"w")})
    (tmp_path / "b" / "replication-offset-checkpoint").write_text("0\n1\n__consumer_offsets 3 9\n")
    for one in (segment(0, 1, 2), segment(0, 2), segment(0, 1)):
        partition(tmp_path / "a", 3, {name(0): one})
        with open_logs([str(tmp_path)]) as disk:
            told = parts_of(disk.logs[0].notes)
            assert told[2:4] == [
                "it has no batch in common with the chosen copy, and may be of another cluster",
                "it holds other records from offset 0 on: no cleaner does that",
            ]
            assert disk.logs[0].checkpoints.high_watermark is None
    partition(tmp_path / "a", 3, {name(0): batch(0, **NEW) + batch(1, **NEW)})
    with open_logs([str(tmp_path)]) as disk:
        told = parts_of(disk.logs[0].notes)
        assert [part.partition(",")[0] for part in told[2:]] == [
            "it has no batch in common with the chosen copy",
            "it has leader epoch 0 from offset 0 on where the chosen copy has 5: a cluster would have "
            "truncated it there",
        ]
    partition(tmp_path / "a", 3, {name(0): segment(0) + segment(1, value=b"w")})
    with open_logs([str(tmp_path)]) as disk:
        assert "in common" not in disk.logs[0].notes[0]
        assert disk.logs[0].checkpoints.high_watermark == 9


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
            "the chosen copy lacks 2 batches of offsets between 1 and 3 (taken by a cleaner, or lost)",
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
        f"it has offset 1 undamaged, where the chosen copy is damaged at position {size} of /a/{name(0)}: offsets-log "
        "records /b --until-offset 3:2 | tail -n 1 shows it",
    ]
    shown = CliRunner().invoke(main, ["decode", f"{tmp_path}/b/__consumer_offsets-3", "--until-offset", "3:2"])
    assert json.loads(shown.stdout.splitlines()[-1])["record_offset"] == 1


def test_a_copy_that_begins_later_is_told_by_itself(tmp_path):
    partition(tmp_path / "a", 3, {name(0): segment(0, 1)})
    partition(tmp_path / "b", 3, {name(1): segment(1)})
    with open_logs([str(tmp_path)]) as disk:
        assert disk.notes == []
        assert parts_of(disk.logs[0].notes)[2:] == ["it has the same batches"]


def test_a_copy_of_which_nothing_can_be_read_is_not_of_another_cluster(tmp_path):
    size = len(batch(0))
    assert b_beside(tmp_path, segment(0, 1), damaged(0))[1] == [
        f"no whole batch, damaged at offset 0 (position 0 of /b/{name(0)}), {size} bytes"
    ]


def test_damaged_copies_are_told_one_by_one_though_equal(tmp_path):
    for broker, content in (("a", segment(0, 1)), ("b", segment(0) + damaged(1)), ("c", segment(0) + damaged(1))):
        partition(tmp_path / broker, 3, {name(0): content})
    with open_logs([str(tmp_path)]) as disk:
        told = [part.partition(", damaged at")[0].replace(str(tmp_path), "") for part in parts_of(disk.logs[0].notes)]
    same = "it has the same batches where both reach"
    assert told[1:] == ["/b is left out: offsets 0 to 0", same, "/c is left out: offsets 0 to 0", same]


def test_of_three_copies_the_least_alike_decides_what_is_said_together(tmp_path):
    for count in range(1, TOLD + 2):
        for broker, content in (("a", segment(0, 1)), ("b", segment(0, 1)), ("c", segment(0))):
            partition(tmp_path / broker, count, {name(0): content})
    with open_logs([str(tmp_path)]) as disk:
        (note,) = disk.notes
        assert (
            f"copies that end earlier than others and have the same batches up to there: read in {tmp_path}/a" in note
        )


@pytest.mark.parametrize(("kept", "is_told_there"), [(1, False), (None, True)])
def test_what_the_copy_that_is_read_lacks_is_a_cleaners_only_if_it_cleaned_there(tmp_path, kept, is_told_there):
    partition(tmp_path / "a", 3, {name(0): batch(0) + batch(1, 2) + batch(3)})
    partition(tmp_path / "b", 3, {name(0): batch(1, 2, kept=kept) + batch(3) + batch(4)})
    with open_logs([str(tmp_path)]) as disk:
        assert (len(disk.logs[0].notes), len(disk.notes)) == (int(is_told_there), int(not is_told_there))
        why = "what a cleaner leaves" if kept else "taken by a cleaner, or lost"
        assert (*disk.notes, *disk.logs[0].notes)[0].endswith(f"({why})")


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
    one = b"".join(damaged(at) if at % 2 else batch(at) for at in range(2 * TOLD))
    told = b_beside(tmp_path / "3", one + batch(100), segment(*range(2 * TOLD)))[1]
    assert (len(told), "more places" in told[-1]) == (1 + TOLD, False)
    one = b"".join(damaged(at) if at % 2 else batch(at) for at in range(2 * TOLD + 4))
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


@pytest.mark.parametrize("behind", [bytes(100), batch(2)[:-1]])
def test_equal_copies_with_the_same_behind_their_batches_are_alike(tmp_path, behind):
    notes = replicas(tmp_path, segment(0, 1) + behind, segment(0, 1) + behind)[2]
    assert notes == ["1 partition has copies with the same batches: read in /a, left out in /b"]
    notes = replicas(tmp_path / "2", segment(0, 1, 2) + batch(3)[:-1], segment(0, 1))[2]
    assert parts_of(notes)[-1] == "it has the same batches where both reach"


def test_a_later_epoch_in_a_copy_without_the_beginning_is_told(tmp_path):
    one = batch(0, **OLD) + batch(1, **OLD) + batch(2, **OLD)
    partition(tmp_path / "a", 3, {name(0): one})
    partition(tmp_path / "b", 3, {name(1): batch(1, **OLD) + batch(2, value=b"w", **NEW)})
    with open_logs([str(tmp_path)]) as disk:
        assert offsets(disk.logs[0]) == [0, 1, 2]
        assert parts_of(disk.logs[0].notes)[2:] == [
            "it begins later, but has leader epoch 5 from offset 2 on where the chosen copy has 4: a cluster would "
            "have truncated the chosen copy there"
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
        ["it has leader epoch 4 from offset 0 on where the chosen copy has 5: a cluster would have truncated it there"],
    )


def test_sentences_of_single_partitions_stop_no_others(tmp_path):
    partition(tmp_path / "a", 1, {name(0): segment(0, 1)})
    partition(tmp_path / "b", 1, {name(0): segment(0)})
    for broker in "ab":
        partition(tmp_path / broker, 2, {name(0): segment(0)})
    with open_logs([str(tmp_path)]) as disk:
        assert [note.partition(": ")[0] for note in disk.notes] == [
            "2 replicas",
            "1 partition has copies with the same batches",
        ]


def test_the_cleaners_checkpoint_of_the_copy_that_is_read_explains_what_that_lacks(tmp_path):
    partition(tmp_path / "a", 3, {name(0): segment(0, 1, 2)})
    partition(tmp_path / "b", 3, {name(0): segment(0, 2, 3)})
    for broker, why in (("a", "taken by a cleaner, or lost"), ("b", "what a cleaner leaves")):
        (tmp_path / broker / "cleaner-offset-checkpoint").write_text("0\n1\n__consumer_offsets 3 2\n")
        with open_logs([str(tmp_path)]) as disk:
            notes = [*disk.notes, *disk.logs[0].notes]
            assert parts_of(notes)[2:] == [f"the chosen copy lacks the batch of offset 1 ({why})"]


def test_of_equal_copies_the_highest_high_watermark_counts():
    for marks in ((5, 9), (9, 5)):
        logs = [
            PartitionLog(3, (Segment(f"{place}/x", 0, segment(0)),), checkpoints=Checkpoints(high_watermark=mark))
            for place, mark in zip("ab", marks, strict=True)
        ]
        logs.append(PartitionLog(3, (Segment("c/x", 0, segment(0, 1)),)))
        assert choose_replica(logs).checkpoints.high_watermark == 9


@pytest.mark.parametrize(
    ("content", "contradicts"),
    [
        (segment(0, 1), False),
        (segment(0), False),
        (segment(0) + batch(1, value=b"w", **NEW), False),
        (segment(0) + segment(1, value=b"w"), True),
        (batch(0, **OLD) + batch(1, **NEW), True),
    ],
    ids=["same", "shorter", "of a later leader epoch", "other records", "other epochs"],
)
def test_copies_that_cannot_both_be_right(tmp_path, content, contradicts):
    partition(tmp_path / "a", 3, {name(0): batch(0) + batch(1)})
    partition(tmp_path / "b", 3, {name(0): content})
    with open_logs([str(tmp_path)]) as disk:
        assert disk.copies_in_doubt == contradicts


def test_copies_that_contradict_each_other_decide_the_exit_status(tmp_path):
    committed = [LogBuilder().commit(offset, group="g").log.segments[0].buffer for offset in (1, 1, 2)]
    for broker, content in zip("abc", committed, strict=True):
        partition(tmp_path / broker, 3, {name(0): content})
    for brokers, status in ("ab", 0), ("ac", 3):
        for command in ("compact", "info", "check"):
            result = CliRunner().invoke(main, [command, *(str(tmp_path / broker) for broker in brokers)])
            assert (command, result.exit_code) == (command, status), result.stderr
