"""``translate`` as a user has it: copies of two clusters, what is told of each offset, and what of the others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from click.testing import CliRunner, Result

from offsets_log.replay.partition_for import partition_for
from offsets_log.restore.plan import decode_plan
from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.translation.logs import Said, log_of, with_header

RECORDS = [Said(1_700_000_000_000 + number, b"k%d" % (number % 5), b"v%d" % number) for number in range(100)]
SHIFT = 1000
DATA = Path(__file__).parents[2] / "samples" / "kafka-4.3-data-directory"


def write_log(folder: Path, records: Sequence[Said | None], first_offset: int = 0, **facts: Any) -> Path:
    """A partition's directory."""
    folder.mkdir(parents=True, exist_ok=True)
    log = log_of(enumerate(records, first_offset), **facts)
    (folder / f"{first_offset:020}.log").write_bytes(bytes(log.segments[0].buffer))
    return folder


def write_source(folder: Path, committed: dict[tuple[str, str, int], int], **value: Any) -> Path:
    """A data directory with these offsets of groups."""
    builder = LogBuilder()
    for (group, topic, partition), offset in committed.items():
        builder.commit(offset, group=group, topic=topic, partition=partition, leader_epoch=5, metadata="m", **value)
    place = folder / "__consumer_offsets-0"
    place.mkdir(parents=True)
    (place / f"{0:020}.log").write_bytes(b"".join(builder.batches))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Groups that are at the beginning, in the middle, and at the end of a topic."""
    folder = write_source(tmp_path / "source", {(f"at-{at}", "orders", 0): at for at in (0, 42, 100)})
    write_log(folder / "orders-0", RECORDS)
    return folder


def run(source: Path, tmp_path: Path, *more: object) -> tuple[Result, list[dict[str, Any]]]:
    """The command's result, and the rows of its translation.jsonl."""
    plan = tmp_path / "plan"
    arguments = ["translate", str(source), "--to", str(plan), "--partitions", "1", *map(str, more)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    file = plan / "translation.jsonl"
    return result, [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def told(rows: list[dict[str, Any]]) -> dict[str, tuple[str, int, str, int]]:
    return {
        row["group"]: (row["target_topic"], row["target_offset"], row["how"], row["reread_at_most"]) for row in rows
    }


def left_out(tmp_path: Path) -> list[tuple[str, str]]:
    rows = map(json.loads, (tmp_path / "plan" / "left-out.jsonl").read_text().splitlines())
    return [(row["group"], row["reason"]) for row in rows if row["tool"] == "translate"]


def test_a_mirrored_topic(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    write_log(target / "us.orders-0", RECORDS, SHIFT, batch=7, codec="zstd")
    result, rows = run(source, tmp_path, "--target", target, "--policy", "default:us", "--rename-group", "at-0=new")
    assert result.exit_code == 0, result.output
    assert told(rows) == {
        "at-0": ("us.orders", 1000, "exact", 0),
        "at-42": ("us.orders", 1042, "exact", 0),
        "at-100": ("us.orders", 1100, "exact", 0),
    }
    assert "3 offsets: 3 exact, 0 not told" in result.stderr
    plan = tmp_path / "plan" / "plan.json"
    offsets = decode_plan(plan.read_bytes(), "plan.json")
    assert [
        (row["group"], row["topic"], row["committed_offset"], row["leader_epoch"], row["metadata"]) for row in offsets
    ] == [
        ("at-100", "us.orders", 1100, None, "m"),
        ("at-42", "us.orders", 1042, None, "m"),
        ("new", "us.orders", 1000, None, "m"),
    ]
    assert json.loads(plan.read_bytes())["topics"] == {"us.orders": 1}
    assert "offsets of another cluster" in (tmp_path / "plan" / "README.txt").read_text()


def test_times_of_the_targets_own_and_another_magic(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42})
    write_log(source / "orders-0", RECORDS, magic=1)
    write_log(tmp_path / "target" / "orders-0", RECORDS, SHIFT, timestamp_type="log_append")
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, told(rows)) == (0, {"g": ("orders", 1042, "exact", 0)})


def test_values_that_were_changed(source: Path, tmp_path: Path) -> None:
    changed = [Said(one.time_ms, one.key, b"changed") for one in RECORDS]
    write_log(tmp_path / "target" / "orders-0", changed, SHIFT)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target", "-g", "at-42")
    assert (result.exit_code, told(rows)) == (0, {"at-42": ("orders", 1042, "by time", 0)})


def test_headers_where_the_source_is_gone(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42})
    records = [with_header(one, "x-original-offset", at.to_bytes(8, "little")) for at, one in enumerate(RECORDS)]
    write_log(tmp_path / "target" / "orders-0", records, SHIFT)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, told(rows)) == (0, {"g": ("orders", 1042, "exact", 0)})


def test_records_with_other_headers_of_tools_are_the_same(source: Path, tmp_path: Path) -> None:
    records = [with_header(one, "x-source-cluster", b"east") for one in RECORDS]
    write_log(tmp_path / "target" / "orders-0", records, SHIFT)
    _, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert {row["how"] for row in rows} == {"exact"}


def test_a_map(source: Path, tmp_path: Path) -> None:
    file = tmp_path / "map.csv"
    file.write_text("topic,partition,source_offset,target_offset\norders,0,0,7\norders,0,50,57\n")
    result, rows = run(source, tmp_path, "--map", file, "--rename", "orders=o2")
    assert result.exit_code == 0
    assert told(rows) == {
        "at-0": ("o2", 7, "exact", 0),
        "at-42": ("o2", 49, "by count", 0),
        "at-100": ("o2", 58, "at least", 49),
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rename-group", "s/at-(42|100)/both/"], "at-100 and at-42 would both be both"),
        (["--rename", "s/.*/one/"], "orders and payments would both be one"),
        (["--rename", "orders=payments"], "orders and payments would both be payments"),
    ],
)
def test_names_that_would_become_one_are_refused(tmp_path: Path, words: list[str], said: str) -> None:
    committed = {("at-42", "orders", 0): 42, ("at-100", "orders", 0): 100, ("at-42", "payments", 0): 1}
    source = write_source(tmp_path / "source", committed)
    write_log(tmp_path / "target" / "orders-0", RECORDS, SHIFT)
    result, _ = run(source, tmp_path, "--target", tmp_path / "target", *words)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "plan").exists()


def test_partitions_that_became_one_go_on_at_the_earlier_place(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42, ("g", "orders", 1): 45})
    records = [
        with_header(with_header(one, "x-original-offset", b"%d" % (at // 2)), "x-source-partition", b"%d" % (at % 2))
        for at, one in enumerate(RECORDS)
    ]
    write_log(tmp_path / "target" / "orders-0", records, SHIFT)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, told(rows)) == (3, {"g": ("orders", 1084, "at least", None)})
    ((group, reason),) = left_out(tmp_path)
    assert group == "g"
    assert "earlier offset 1084 stands for both; its own would be 1091" in reason


def test_a_filter_that_nothing_fits_is_said(source: Path, tmp_path: Path) -> None:
    write_log(tmp_path / "target" / "orders-0", RECORDS, SHIFT)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target", "-t", "nosuch")
    assert (result.exit_code, rows) == (3, [])
    assert "nothing here fits" in result.stderr


@pytest.mark.parametrize("order", ["little", "big"])
def test_the_form_of_headers_is_seen(tmp_path: Path, order: Literal["little", "big"]) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42, ("h", "orders", 1): 7})
    for number in range(2):
        records = [
            with_header(
                with_header(one, "x-original-offset", at.to_bytes(8, order)),
                "x-source-partition",
                number.to_bytes(4, order),
            )
            for at, one in enumerate(RECORDS)
        ]
        write_log(tmp_path / "target" / f"orders-{number}", records, SHIFT)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert result.exit_code == 0
    assert told(rows) == {"g": ("orders", 1042, "exact", 0), "h": ("orders", 1007, "exact", 0)}


def test_headers_of_no_known_form_tell_nothing(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42})
    write_log(
        tmp_path / "target" / "orders-0", [with_header(one, "x-original-offset", b"\x7fabcdefg") for one in RECORDS]
    )
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, rows) == (3, [])
    assert "numbers in no form that is known" in left_out(tmp_path)[0][1]


def test_a_map_that_the_records_contradict(source: Path, tmp_path: Path) -> None:
    write_log(tmp_path / "target" / "orders-0", RECORDS, SHIFT)
    file = tmp_path / "map.csv"
    file.write_text("topic,partition,source_offset,target_offset\norders,0,42,1050\n")
    result, rows = run(source, tmp_path, "--target", tmp_path / "target", "--map", file)
    assert told(rows)["at-42"] == ("orders", 1042, "exact", 0)
    words = "the map is not used for orders-0: it has the record of offset 42 at 1050, and it was found at 1042"
    assert words in result.stderr


def test_leader_epochs_of_the_target(source: Path, tmp_path: Path) -> None:
    folder = write_log(tmp_path / "target" / "orders-0", RECORDS, SHIFT)
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n3 1000\n8 1042\n")
    run(source, tmp_path, "--target", tmp_path / "target", "--leader-epochs", "target")
    offsets = decode_plan((tmp_path / "plan" / "plan.json").read_bytes(), "plan.json")
    assert {row["group"]: row["leader_epoch"] for row in offsets} == {"at-0": None, "at-42": 3, "at-100": 8}


@pytest.mark.parametrize(
    ("topic", "records", "reason"),
    [
        ("us.orders", RECORDS, "the target's copy has no topic orders, but us.orders: see --policy and --rename"),
        ("orders", [Said(5, b"x", b"other")] * 9, "no record of the target is one of the source's"),
    ],
)
def test_what_cannot_be_told_is_left_out(
    source: Path, tmp_path: Path, topic: str, records: list[Said], reason: str
) -> None:
    write_log(tmp_path / "target" / f"{topic}-0", records)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, rows) == (3, [])
    assert {why for _, why in left_out(tmp_path)} == {reason}
    assert reason in result.stderr


def test_partitions_that_were_assigned_anew_are_left_out(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42, ("g", "orders", 1): 3})
    more = [Said(one.time_ms, one.key, b"of 1") for one in RECORDS]
    write_log(source / "orders-0", RECORDS)
    write_log(source / "orders-1", more)
    for number in (0, 1):
        mixed = [one for some in zip(RECORDS[number::2], more[number::2], strict=True) for one in some]
        write_log(tmp_path / "target" / f"orders-{number}", mixed)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, rows) == (3, [])
    assert all("again" in why for _, why in left_out(tmp_path))


def test_offsets_of_a_former_topic_are_left_out(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42}, topic_id=bytes(range(16)))
    (write_log(source / "orders-0", RECORDS) / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 21}g\n")
    write_log(tmp_path / "target" / "orders-0", RECORDS)
    result, _ = run(source, tmp_path, "--target", tmp_path / "target")
    assert (result.exit_code, left_out(tmp_path)) == (
        3,
        [("g", "it was committed for a former topic of the same name")],
    )


def test_an_offset_committed_before_its_topic_was_made_is_left_out(tmp_path: Path) -> None:
    """``DD-4`` of an offset without a topic id, as releases before 4.1 commit them."""
    source = tmp_path / "source"
    shutil.copytree(DATA, source)
    log = LogBuilder().commit(7, group="g5", topic="orders", version=3)
    log.commit(7, group="g5", topic="orders", partition=1, version=3, commit_timestamp=4_000_000_000_000)
    folder = source / f"__consumer_offsets-{partition_for('g5', 8)}"
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"".join(log.batches))
    _, rows = run(source, tmp_path, "--target", DATA, "-g", "g5", "--partitions", 8)
    assert [(row["partition"], row["how"]) for row in rows] == [(1, "exact")]
    assert left_out(tmp_path) == [("g5", "it was committed for a former topic of the same name")]


def test_an_empty_target_is_read_from_its_end(source: Path, tmp_path: Path) -> None:
    """What a group has read may still follow there."""
    folder = tmp_path / "target" / "orders-0"
    folder.mkdir(parents=True)
    (folder / f"{500:020}.log").write_bytes(b"")
    result, rows = run(source, tmp_path, "--target", tmp_path / "target", "-g", "at-0", "-g", "at-42")
    assert result.exit_code == 0
    assert told(rows) == {"at-0": ("orders", 500, "exact", 0), "at-42": ("orders", 500, "at least", None)}


def test_damage_in_the_target_moves_back(source: Path, tmp_path: Path) -> None:
    folder = write_log(tmp_path / "target" / "orders-0", RECORDS, SHIFT, batch=10)
    file = folder / f"{SHIFT:020}.log"
    data = bytearray(file.read_bytes())
    data[len(data) * 44 // 100] ^= 1
    file.write_bytes(data)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target", "-g", "at-42")
    assert result.exit_code == 3
    assert "the checksum is" in result.stderr
    assert told(rows) == {"at-42": ("orders", 1040, "at least", None)}
    words = "offsets from 1040 to 1049 could not be read"
    assert words in (tmp_path / "plan" / "README.txt").read_text()
    assert "the checksum is" in json.dumps(json.loads((tmp_path / "plan" / "plan.json").read_bytes())["problems"])


def write_segments(folder: Path, kept: Sequence[int], lacking: int | None = None) -> Path:
    """The target's partition in segments of 20 records, of which one is empty."""
    for at in range(0, 100, 20):
        records = [] if at == lacking else RECORDS[at : at + 20]
        if at in kept:
            write_log(folder, records, SHIFT + at)
    return folder


@pytest.mark.parametrize(("kept", "lacking"), [((0, 20, 40, 60, 80), 40), ((0, 20, 60, 80), None)])
def test_what_may_lack_in_the_target_moves_back(
    source: Path, tmp_path: Path, kept: Sequence[int], lacking: int | None
) -> None:
    write_segments(tmp_path / "target" / "orders-0", kept, lacking)
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert result.exit_code == 3
    assert told(rows) == {
        "at-0": ("orders", 1000, "exact", 0),
        "at-42": ("orders", 1040, "at least", None),
        "at-100": ("orders", 1100, "exact", 0),
    }
    words = "the target's copy of orders-0: offsets from 1040 to 1059 are in no segment"
    assert words in result.stderr
    assert words in (tmp_path / "plan" / "README.txt").read_text()


def test_what_the_cleaner_took_between_segments_moves_nothing(source: Path, tmp_path: Path) -> None:
    folder = write_segments(tmp_path / "target" / "orders-0", (0, 20, 60))
    cleaned = log_of([(SHIFT + at, RECORDS[at]) for at in range(80, 100, 3)])
    (folder / f"{SHIFT + 80:020}.log").write_bytes(bytes(cleaned.segments[0].buffer))
    result, rows = run(source, tmp_path, "--target", tmp_path / "target", "-g", "at-42")
    assert (result.exit_code, told(rows)) == (0, {"at-42": ("orders", 1060, "exact", 0)})


def test_a_target_whose_end_or_beginning_lacks(source: Path, tmp_path: Path) -> None:
    write_segments(tmp_path / "target" / "orders-0", (20, 40, 60))
    result, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert told(rows)["at-100"] == ("orders", 1080, "at least", None)
    assert "the target's copy of orders-0 begins at offset 1020" in result.stderr


def test_headers_of_a_damaged_target_move_back_too(tmp_path: Path) -> None:
    source = write_source(tmp_path / "source", {("g", "orders", 0): 42, ("behind", "orders", 0): 120})
    records = [with_header(one, "x-original-offset", b"%d" % at) for at, one in enumerate(RECORDS)]
    file = write_log(tmp_path / "target" / "orders-0", records, SHIFT, batch=10) / f"{SHIFT:020}.log"
    data = bytearray(file.read_bytes())
    data[len(data) * 44 // 100] ^= 1
    file.write_bytes(data)
    _, rows = run(source, tmp_path, "--target", tmp_path / "target")
    assert told(rows) == {"g": ("orders", 1040, "at least", None), "behind": ("orders", 1100, "at least", None)}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "give --target COPY"),
        (["--target", "nowhere"], 1, "no such file or directory"),
        (["--map", "MAP"], 1, "its first line must name"),
        (["--map", "MAP", "--policy", "other"], 2, "--policy other"),
        (["--map", "MAP", "--rename", "orders"], 2, "OLD=NEW"),
        (["--map", "MAP", "--rename", "s/[/x/"], 2, "--rename s/[/x/"),
        (["--map", "MAP", "--rename-group", "=x"], 2, "--rename-group =x"),
        (["--map", "MAP", "--offset-header", ":le"], 2, "--offset-header"),
        (["--map", "MAP", "--offset-header", "h:xx"], 2, "--offset-header"),
        (["--target", "EMPTY"], 1, "no partition of a topic"),
    ],
)
def test_wrong_usage(source: Path, tmp_path: Path, words: list[str], status: int, said: str) -> None:
    (tmp_path / "map").write_text("a,b\n")
    (tmp_path / "empty").mkdir()
    places = {"MAP": tmp_path / "map", "EMPTY": tmp_path / "empty"}
    result, _ = run(source, tmp_path, *(places.get(word, word) for word in words))
    assert (result.exit_code, said in result.stderr) == (status, True), result.stderr
    assert not (tmp_path / "plan").exists()
