"""One group in several offsets partitions: its own answers, the others are told, whichever command is asked."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from offsets_log.replay.partition_for import partition_for
from tests.cli.runs import batch_of, commit, rows, run, write_partition
from tests.conftest import NEVER, BulkFrom

GROWN = Path(__file__).parent.parent / "data_directories" / "offsets-topic-grown.tar.gz"
SERVED = {
    "grp-0": [5, 6, 30], "grp-1": [11, 21, 31], "grp-2": [5, 6, 32], "grp-3": [13, 23, 33], "grp-4": [5, 6],
    "grp-6": [5, 6], "grp-8": [5, 6, 38], "grp-9": [19, 29, 39], "grp-10": [5, 6, 40], "grp-11": [21, 31, 41],
}  # fmt: skip
"""What the broker answered after the topic had grown."""


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grown")
    with tarfile.open(GROWN) as archive:
        archive.extractall(folder, filter="data")
    return folder / "data"


@pytest.fixture(params=[0, NEVER], ids=["bulk", "small"])
def engine(request: pytest.FixtureRequest, bulk_from: BulkFrom) -> None:
    bulk_from(request.param)


def by_group(found: list[dict[str, object]]) -> dict[str, list[object]]:
    answers: dict[str, list[object]] = {}
    for row in sorted(found, key=lambda row: str(row["partition"])):
        answers.setdefault(str(row["group"]), []).append(row["committed_offset"])
    return answers


@pytest.mark.usefixtures("engine")
def test_a_grown_topic_is_answered_as_its_broker_did(grown: Path, tmp_path: Path) -> None:
    assert by_group(rows("compact", grown, status=3)) == SERVED
    file = tmp_path / "offsets.parquet"
    result = run("compact", grown, "-o", "parquet", "--to", file)
    assert result.exit_code == 3
    assert by_group(pq.read_table(file).to_pylist()) == SERVED
    words = run("compact", grown).stderr
    assert words == result.stderr, "both paths say the same"
    assert "2 groups (grp-4, grp-6) have records in more than one offsets partition" in words
    assert "6 offsets of others are left out, 4 older than what is shown, 2 of keys that are not shown" in words
    assert "2 groups (grp-5, grp-7) are only in an offsets partition that is not their own" in words
    assert "of 8, as the cluster's metadata says" in words


@pytest.mark.usefixtures("engine")
def test_the_commands_that_are_named_show_what_was_left_out(grown: Path) -> None:
    words = run("compact", grown).stderr
    assert "offsets-log offsets -p 0 -p 2 shows them" in words
    found = by_group(rows("compact", grown, "-p", "0", "-p", "2", status=3))
    assert (found["grp-4"], found["grp-6"]) == ([14, 24, 34], [16, 26, 36])
    assert "Their own, where a broker looks, was not read" in run("compact", grown, "-p", "0", "-p", "2").stderr


@pytest.mark.usefixtures("engine")
def test_what_is_in_its_place_ends_well(grown: Path) -> None:
    asked = ("-g", "grp-0", "-g", "grp-1")
    assert by_group(rows("compact", grown, *asked)) == {name: SERVED[name] for name in ("grp-0", "grp-1")}
    assert run("history", grown, *asked).exit_code == 0
    assert run("groups", grown, *asked).exit_code == 0


@pytest.mark.parametrize("command", [("groups",), ("expire",), ("rebuild", "--table", "groups")])
@pytest.mark.usefixtures("engine")
def test_every_group_is_shown_once(grown: Path, command: tuple[str, ...]) -> None:
    found = rows(command[0], grown, *command[1:], status=3)
    groups = [row["group"] for row in found if row.get("kind") in (None, "group")]
    assert sorted(groups) == sorted(SERVED)


@pytest.mark.usefixtures("engine")
def test_the_rules_of_one_cache_keep_what_its_own_partition_lacks(grown: Path) -> None:
    """``D-11``."""
    old = {"grp-5": [15, 25, 35], "grp-7": [17, 27, 37]}
    assert by_group(rows("compact", grown, "--profile", "classic", status=3)) == SERVED | old
    assert "a broker that leads both answers with this" in run("compact", grown, "--profile", "classic").stderr


@pytest.mark.usefixtures("engine")
def test_history_goes_by_time_and_tells_the_step_back(grown: Path) -> None:
    found = rows("history", grown, "-g", "grp-4", "-t", "orders", "--topic-partition", "0", status=3)
    assert [(row["committed_offset"], row["change"], row["offsets_partition"]) for row in found] == [
        (14, "new", 0),
        (5, "rewound", 4),
    ]
    assert "rows of a key are in the order of their times" in run("history", grown, "-g", "grp-4").stderr
    only = rows("history", grown, "-g", "grp-5", status=3)
    assert [row["change"] for row in only] == ["new"] * 3
    assert len(rows("history", grown, "-g", "*", "--rewinds", status=3)) == 12


def test_diff_compares_a_group_wherever_it_is(grown: Path, tmp_path: Path) -> None:
    for number in range(4):
        folder = f"__consumer_offsets-{number}"
        (tmp_path / folder).symlink_to(grown / folder)
    for copies in ((grown, "--from-time", "2026-11-27T10:23:40Z"), (tmp_path, grown)):
        result = run("diff", *copies, "-g", "grp-4", "-o", "csv")
        assert result.exit_code == 3
        changes = list(csv.DictReader(io.StringIO(result.stdout)))
        told = [(row["partition"], row["change"], row["from_offset"], row["to_offset"]) for row in changes]
        assert told == [("0", "rewound", "14", "5"), ("1", "rewound", "24", "6"), ("2", "deleted", "34", "")]


def test_rescue_offers_what_only_another_partition_has_and_says_so(grown: Path, tmp_path: Path) -> None:
    result = run("rescue", grown, "--to", tmp_path / "to")
    assert (
        'only in an offsets partition that is not theirs, where no broker looks: 6 of "grp-5", "grp-7"' in result.stderr
    )
    assert result.exit_code == 3
    assert run("rescue", grown, "-g", "grp-0", "--to", tmp_path / "sound").exit_code == 0


def test_where_lists_what_lies_in_a_directory_and_tells_what_is_not_in_its_place(grown: Path) -> None:
    found = rows("where", "grp-4", "grp-5", "--of", grown, status=3)
    assert [(row["group"], row["offsets_partition"]) for row in found] == [("grp-4", 0), ("grp-4", 4), ("grp-5", 1)]
    words = run("where", "grp-4", "grp-5", "--of", grown).stderr
    assert "1 group (grp-4) has records in more than one offsets partition: groups are shown wherever they are" in words
    assert "1 group (grp-5) is only in an offsets partition that is not its own" in words
    assert run("where", "grp-0", "--of", grown).exit_code == 0


@pytest.mark.usefixtures("engine")
def test_where_the_number_of_partitions_is_a_guess_both_rows_stay_and_are_told(tmp_path: Path) -> None:
    home = partition_for("g", 50)
    write_partition(tmp_path, [batch_of(commit("g", offset=1))], home)
    write_partition(tmp_path, [batch_of(commit("g", offset=2)), batch_of(commit("h"), first=1)], (home + 1) % 50)
    assert by_group(rows("compact", tmp_path, status=3)) == {"g": [1, 2], "h": [1]}
    words = run("compact", tmp_path).stderr
    assert "1 group (g) is in more than one log, and nothing here tells which counts: 2 offsets" in words
    assert by_group(rows("compact", tmp_path, "--partitions", "50", "-g", "g", status=3)) == {"g": [1]}


def test_a_copy_renamed_by_hand_is_told(tmp_path: Path) -> None:
    """A folder with a partition's name that is not its own."""
    groups = [name for name in map("g{}".format, range(400)) if partition_for(name, 50) == 3]
    batches = [batch_of(*(commit(group, offset=number) for group in groups)) for number in (7,)]
    write_partition(tmp_path, batches, 3)
    write_partition(tmp_path, [batch_of(*(commit(group, offset=4) for group in groups))], 8)
    found = rows("compact", tmp_path, "--partitions", "50", status=3)
    assert {row["committed_offset"] for row in found} == {7}
    assert len(found) == len(groups)


NAMES = [f"consumer-{number}" for number in range(40)]


@pytest.fixture(params=["folders", "checkpoints"])
def outgrown(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Groups where 4 partitions would put them, and 8 partitions, the others without a record."""
    for number in range(4):
        batches = [
            batch_of(commit(group), first=at) for at, group in enumerate(NAMES) if partition_for(group, 4) == number
        ]
        write_partition(tmp_path, batches, number)
    if request.param == "folders":
        for number in range(4, 8):
            write_partition(tmp_path, [], number)
    else:
        lines = [f"__consumer_offsets {number} 0" for number in range(8)]
        (tmp_path / "replication-offset-checkpoint").write_text("\n".join(["0", "8", *lines, ""]))
    return tmp_path


def test_groups_that_fit_fewer_partitions_than_there_are_are_misplaced_for_every_command(outgrown: Path) -> None:
    astray = [group for group in NAMES if partition_for(group, 8) != partition_for(group, 4)]
    assert astray
    checked = run("check", outgrown, "-o", "json")
    document = json.loads(checked.stdout)
    assert (checked.exit_code, document["partitions"]) == (3, {"count": 8, "source": "checkpoints"})
    assert "against 8 partitions of __consumer_offsets, as the data directory shows" in checked.stderr
    misplaced = {row["group"] for row in document["findings"] if row["rule"] == "records:H1"}
    assert misplaced == set(astray)
    for command in ("compact", "groups", "expire"):
        result = run(command, outgrown)
        assert (result.exit_code, result.stderr.count("not their own (of 8")) == (3, 1), command
    told = rows("compact", outgrown, "--partitions", "8", status=3)
    assert rows("compact", outgrown, status=3) == told
    as_broker = rows("compact", outgrown, "--as-broker", status=3)
    for asked in ((), ("--partitions", "8")):
        as_broker_words = run("compact", outgrown, "--as-broker", *asked).stderr
        assert as_broker_words.count("that is not their own (of 8") == 1
    assert {row["group"] for row in as_broker} == set(NAMES) - set(astray)
    where = run("where", *astray[:1], outgrown)
    assert f'"offsets_partition":{partition_for(astray[0], 8)}' in where.stdout.replace(" ", "")


def test_with_a_gap_among_them_the_number_is_not_known_and_a_doubt_says_so_once(outgrown: Path) -> None:
    for place in (outgrown / "__consumer_offsets-5",):
        if place.exists():
            (place / f"{0:020}.log").unlink()
            place.rmdir()
    checkpoint = outgrown / "replication-offset-checkpoint"
    if checkpoint.exists():
        text = checkpoint.read_text().replace("__consumer_offsets 5 0\n", "")
        checkpoint.write_text(text.replace("0\n8\n", "0\n7\n", 1))
    for command in ("compact", "groups", "history", "rebuild"):
        asked = ("-g", "*") if command == "history" else ("--as-broker",) if command == "rebuild" else ()
        result = run(command, outgrown, *asked)
        assert (result.exit_code, result.stderr.count("8 at least: the topic was given more")) == (3, 1), command
    assert {row["group"] for row in rows("compact", outgrown, status=3)} == set(NAMES), "nothing is left out"
    checked = run("check", outgrown)
    assert checked.exit_code == 3
    assert "the fewest that there can be" in checked.stderr


@pytest.fixture
def untold(grown: Path, tmp_path: Path) -> Path:
    """The grown topic of a broker, without the cluster's metadata: groups are where 4 or 8 put them."""
    for folder in grown.glob("__consumer_offsets-*"):
        shutil.copytree(folder, tmp_path / folder.name)
    return tmp_path


@pytest.mark.usefixtures("engine")
def test_groups_that_went_on_in_a_grown_topic_show_that_it_has_grown(untold: Path) -> None:
    for asked in ((), ("--as-broker",), ("--as-broker", "--partitions", "8")):
        assert by_group(rows("compact", untold, *asked, status=3)) == SERVED, asked
        assert "not their own (of 8, as " in run("compact", untold, *asked).stderr, asked


@pytest.fixture
def half_moved(tmp_path: Path) -> Path:
    """3 partitions that became 7, after which every fourth group committed again; all 7 have a folder."""
    for number in range(7):
        old = [commit(group, offset=1) for group in NAMES if partition_for(group, 3) == number]
        new = [commit(group, offset=2) for group in NAMES[::4] if partition_for(group, 7) == number]
        write_partition(tmp_path, [batch_of(*batch, first=at) for at, batch in ((0, old), (99, new)) if batch], number)
    return tmp_path


@pytest.mark.usefixtures("engine")
def test_a_few_groups_that_went_on_show_how_many_partitions_there_are(half_moved: Path) -> None:
    unmoved = {group: [1] for group in NAMES if partition_for(group, 3) == partition_for(group, 7)}
    own = unmoved | {group: [2] for group in NAMES[::4]}
    for asked in ((), ("--as-broker",), ("--partitions", "7")):
        assert by_group(rows("compact", half_moved, *asked, status=3)) == own, asked
    document = json.loads(run("check", half_moved, "-o", "json").stdout)
    assert document["partitions"] == {"count": 7, "source": "checkpoints"}


def test_where_a_folder_is_not_here_the_number_is_offered_and_nothing_left_out(half_moved: Path) -> None:
    shutil.rmtree(half_moved / "__consumer_offsets-4")
    for asked in ((), ("--as-broker",)):
        result = run("compact", half_moved, *asked)
        assert (result.exit_code, result.stderr.count("there are, as --partitions 7")) == (3, 1)
        assert {row["group"] for row in rows("compact", half_moved, *asked, status=3)} == set(NAMES)


@pytest.fixture
def swapped(recording: Callable[[str], Path], tmp_path: Path) -> Path:
    """Two folders of a broker with each other's names, and no checkpoints."""
    log = recording("kafka-4.3-mixed") / "log"
    for number, name in enumerate((1, 0, 2, 3)):
        shutil.copytree(log / f"__consumer_offsets-{number}", tmp_path / "data" / f"__consumer_offsets-{name}")
    return tmp_path / "data"


@pytest.mark.usefixtures("engine")
def test_groups_that_fit_no_number_of_partitions_are_told_by_every_command(swapped: Path, tmp_path: Path) -> None:
    for command in (
        ("compact",), ("compact", "--as-broker"), ("groups",), ("expire",), ("rebuild",), ("history", "-g", "*"),
        ("rescue", "--to", str(tmp_path / "to")), ("diff", str(swapped)), ("check",),
    ):  # fmt: skip
        result = run(command[0], swapped, *command[1:])
        assert (result.exit_code, command) == (3, command)
        words = result.stdout if command == ("check",) else result.stderr
        assert words.count("no single number of offsets partitions puts the ") == 1, command
        assert "in offsets partitions 0, 1, 2, 3, where they are" in words, command
    assert len(rows("compact", swapped, status=3)) == 129, "nothing is left out"
    (found,) = (row for row in rows("check", swapped, status=3) if row["rule"] == "records:H1")
    assert (found["severity"], found["offsets_partition"]) == ("doubt", None)


def test_a_few_groups_in_two_partitions_fit_no_number(tmp_path: Path) -> None:
    for number in range(3):
        write_partition(tmp_path, [batch_of(commit("g", offset=number))], number)
    assert "puts the 1 group here, in offsets partitions 0, 1, 2," in run("compact", tmp_path, "--as-broker").stderr
    assert run("compact", tmp_path, "--as-broker").exit_code == 3


def test_a_number_that_nothing_confirms_is_called_the_default_only_if_it_is(tmp_path: Path) -> None:
    write_partition(tmp_path, [batch_of(commit("consumer-1"))], 59)
    words = run("check", tmp_path).stderr
    assert "60 partitions of __consumer_offsets, as many as are named, which these few groups do not confirm" in words
