"""What is told where an answer is empty, or what was given is no log: a line that says what to do next."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from offsets_log_cli.main import main
from tests.cli.checked import Recording
from tests.conftest import NEVER, BulkFrom

LOG = str(Path(__file__).parents[2] / "samples" / "kafka-4.3-mixed" / "log")
DATA = str(Path(__file__).parents[2] / "samples" / "kafka-4.3-data-directory")
NOTHING_FITS = "nothing here fits -g nosuch: offsets-log groups and offsets-log info show what is here"


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize(
    "command",
    [
        "compact",
        "decode",
        "expire",
        "groups",
        "history",
        "rebalances",
        "rebuild",
        "rescue",
        "report",
        "top",
        "translate",
    ],
)
def test_a_group_that_is_not_there_is_told(command: str, tmp_path: Path) -> None:
    to = ("--to", str(tmp_path / "to")) if command in ("rescue", "report", "translate") else ()
    target = ("--target", LOG) if command == "translate" else ()
    result = run(command, LOG, "-g", "nosuch", *to, *target)
    status = 3 if command in ("rescue", "translate") else 0
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (status, NOTHING_FITS)
    if status:
        assert f"{tmp_path / 'to'} is not written" in result.stderr
        assert not (tmp_path / "to").exists(), "which somebody would take for a rescue"


def test_a_rescue_before_the_first_record_is_not_written(tmp_path: Path) -> None:
    """Whatever it is that leaves nothing: who goes on with it would restore nothing."""
    result = run("rescue", LOG, "--until-time", "2005-01-02", "--to", str(tmp_path / "to"))
    assert (result.exit_code, (tmp_path / "to").exists()) == (3, False)
    assert f"{tmp_path / 'to'} is not written" in result.stderr


def test_a_share_group_is_rescued_without_an_offset_of_its_own(tmp_path: Path) -> None:
    result = run("rescue", DATA, "-g", "s-half", "--to", str(tmp_path / "to"))
    assert result.stderr.splitlines()[-1].startswith("3 starts of share groups of 1 group, 8 partitions;")
    assert (tmp_path / "to" / "share-groups" / "offsets.json").exists()


def test_a_group_that_has_pending_offsets_alone_is_there(tmp_path: Path, bulk_from: BulkFrom) -> None:
    """No answer of OffsetFetch, and yet not nothing: where they are shown is said, by every engine."""
    told = [
        "1 offset exists only in open transactions, and not in this answer: offsets-log rebuild --table pending shows "
        "them",
        "0 offsets of 0 groups, 8 partitions",
    ]
    assert run("compact", DATA, "-g", "g-tx-open").stderr.splitlines() == told
    for least_bytes in (NEVER, 0):
        bulk_from(least_bytes)
        result = run("compact", DATA, "-g", "g-tx-open", "-o", "parquet", "--to", str(tmp_path / "o.parquet"))
        assert [line for line in result.stderr.splitlines() if not line.startswith("compiling")] == told
    assert "fits" not in run("rescue", DATA, "-g", "g-tx-open", "--to", str(tmp_path / "to")).stderr


@pytest.mark.parametrize("command", ["compact", "diff"])
def test_a_time_beyond_the_logs_is_told_with_their_own(command: str) -> None:
    option = "--until-time" if command == "compact" else "--from-time"
    begin, end = "2026-11-21 05:35:55.833Z", "2026-11-21 05:37:20.058Z"
    for asked, where in (
        (begin, None),
        (end, None),
        ("2026-11-21T05:35:55.832Z", f"before the logs begin, at {begin}"),
        ("2026-11-21T05:37:20.059Z", f"after the logs end, at {end}"),
    ):
        told = [line for line in run(command, LOG, option, asked).stderr.splitlines() if "the logs " in line]
        assert [line.partition(" is ")[2] for line in told] == ([where] if where else [])


@pytest.mark.parametrize(
    ("bound", "told"), [("3:157", ""), ("3:158", "the log ends"), ("283", ""), ("284", "all logs end")]
)
def test_an_offset_beyond_the_logs_is_told(bound: str, told: str) -> None:
    said = [line for line in run("compact", LOG, "--until-offset", bound).stderr.splitlines() if "no effect" in line]
    assert said == ([f"--until-offset {bound} has no effect: {told} before"] if told else [])


@pytest.mark.parametrize(
    ("bound", "told"), [("7:60", "no such offsets partition was found"), ("3:9999", "the log ends before"), ("3:9", "")]
)
def test_no_change_since_a_place_that_is_not_there_is_told(bound: str, told: str) -> None:
    said = [line for line in run("diff", LOG, "--from-offset", bound).stderr.splitlines() if "no effect" in line]
    assert said == ([f"--from-offset {bound} has no effect: {told}"] if told else [])


def without_partition(place: Path) -> Path:
    """A copy of which offsets partition 2 of 4 is gone, and the checkpoints know it."""
    shutil.copytree(LOG, place)
    shutil.rmtree(place / "__consumer_offsets-2")
    return place


@pytest.mark.parametrize(
    "words", [("compact", "-g"), ("groups", "-g"), ("history", "-g"), ("diff", "--from-offset", "9", "-g"), ("where",)]
)
def test_of_a_group_of_a_missing_partition_it_is_said_where_it_belongs(words: tuple[str, ...], tmp_path: Path) -> None:
    """Nobody concludes that there was no such group."""
    log = str(without_partition(tmp_path / "log"))
    paths = ["--of", log] if words == ("where",) else [log]
    result = run(words[0], *paths, *words[1:], "tx-metrics")
    told = "tx-metrics belongs to offsets partition 2 of 4 (as the data directory shows), which was not read"
    assert told in result.stderr.splitlines()
    assert result.exit_code == 3
    several = run(words[0], *paths, *words[1:], "alive-metrics", *words[-1:] * (words != ("where",)), "tx-metrics")
    assert told in several.stderr.splitlines()
    assert "belongs to" not in run(words[0], *paths, *words[1:], "alive-metrics").stderr
    assert "belongs to" not in run(words[0], *paths, *words[1:], "tx-metric*").stderr


FOLDER = f"{LOG}/__consumer_offsets-3"


@pytest.mark.parametrize(
    "words",
    [
        *(
            (command, *chosen, "-g")
            for command in ("compact", "groups", "history")
            for chosen in [(FOLDER,), (LOG, "-p3")]
        ),
        ("where", "--of", FOLDER),
    ],
    ids=" ".join,
)
def test_of_a_group_of_a_partition_that_was_not_chosen_it_is_said_where_it_belongs(words: tuple[str, ...]) -> None:
    """The groups of the chosen partition show how many there are; all that was chosen was read."""
    result = run(*words, "tx-metrics")
    told = "tx-metrics belongs to offsets partition 2 of 4 (as the groups here show), which was not read"
    assert (result.exit_code, result.stdout) == (0, "")
    assert told in result.stderr.splitlines()


def test_the_number_of_partitions_that_where_is_given_outranks_what_groups_show() -> None:
    told = "tx-metrics belongs to offsets partition 42 of 50 (as --partitions says), which was not read"
    assert told in run("where", "tx-metrics", "--of", FOLDER, "--partitions", "50").stderr.splitlines()


def test_a_rescue_says_once_where_a_group_belongs(tmp_path: Path) -> None:
    """By the number of partitions that it was given, as its README.txt and its plan do."""
    said = run("rescue", FOLDER, "-g", "tx-metrics", "--partitions", "50", "--to", str(tmp_path / "to")).stderr
    assert [line for line in said.splitlines() if "tx-metrics" in line and "fits" not in line] == [
        'group "tx-metrics" lives in offsets partition 42, which was not read'
    ]


def test_too_few_groups_do_not_show_where_another_belongs() -> None:
    said = run("compact", f"{LOG}/__consumer_offsets-2", "-g", "nosuch", "-g", "no[rt]h").stderr.splitlines()
    assert said[1] == (
        "how many partitions __consumer_offsets has is not known, so a group may belong to one that was not read: "
        "offsets-log where GROUP --partitions N says to which"
    )
    assert "belong" not in run("compact", f"{LOG}/__consumer_offsets-2", "-g", "no*").stderr


def test_a_directory_in_a_groups_place_is_told() -> None:
    result = run("where", "--of", "billing", LOG)
    assert result.exit_code == 1
    assert f"billing: no such file or directory. --of takes the directory: offsets-log where --of {LOG} billing" in (
        result.stderr
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("where", "nosuch", "--of", LOG), "nosuch"),
        (("where", "b c", "a", "--of", LOG), "a 'b c'"),
        (("diff", LOG, LOG, "-g", "nosuch"), "-g nosuch"),
        (("diff", LOG, LOG, "--table", "groups", "-g", "nosuch"), "-g nosuch"),
        (("diff", LOG, LOG, "--until-time", "2005-01-01"), "--until-time 2005-01-01T00:00:00.000Z"),
        (
            ("history", LOG, "-g", "*", "--from-time", "2005-01-01", "--until-time", "2005-01-02"),
            "--from-time 2005-01-01T00:00:00.000Z --until-time 2005-01-02T00:00:00.000Z",
        ),
        (("history", LOG, "--topic-partition", "99", "-g", "tx-metrics"), "--topic-partition 99"),
    ],
)
def test_names_and_bounds_that_leave_nothing_are_told(words: tuple[str, ...], named: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (0, NOTHING_FITS.replace("-g nosuch", named))


def test_no_change_is_an_answer() -> None:
    assert "fits" not in run("diff", LOG, LOG, "-g", "tx-*").stderr


@pytest.mark.parametrize(
    "words",
    [
        ("info", "-t", "nosuch"),
        ("groups", "-t", "nosuch"),
        ("rebuild", "-t", "nosuch"),
        ("compact", "-g", "tx-metrics", "-p", "3"),
    ],
    ids=" ".join,
)
def test_all_that_chooses_is_named(words: tuple[str, ...]) -> None:
    """A group that is there is not said to be absent, if another filter is what leaves nothing."""
    told = run(words[0], LOG, *words[1:]).stderr.splitlines()[-1]
    assert told.startswith(f"nothing here fits {' '.join(words[1:])}: ")


@pytest.mark.parametrize("least_bytes", [NEVER, 0])
@pytest.mark.parametrize(
    "command",
    [
        "check",
        "compact",
        "decode",
        "expire",
        "groups",
        "history",
        "info",
        "rebalances",
        "rebuild",
        "report",
        "rescue",
        "top",
    ],
)
def test_one_of_several_groups_that_is_not_there_is_told(
    command: str, least_bytes: int, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """A rescue without one of the groups asked for would be taken for whole; globs that overlap all fit."""
    bulk_from(least_bytes)
    places = (("--to", str(tmp_path / str(i))) if command in ("rescue", "report") else () for i in range(2))
    told = "nothing here fits -g nosuch, what is shown fits the others"
    one_of_two = run(command, LOG, "-g", "alive-*", "-g", "nosuch", *next(places))
    assert one_of_two.stderr.splitlines()[-1] == told
    assert one_of_two.exit_code == 3 or command != "rescue"
    result = run(command, LOG, "-g", "*", "-g", "alive-*", "-g", "alive-metrics", *next(places))
    assert "nothing here fits" not in result.stderr


@pytest.mark.parametrize("command", ["compact", "groups", "history", "rebalances"])
def test_a_group_that_never_came_is_told(command: str) -> None:
    result = run(command, LOG, "-g", "nosuch", "--follow", "--until-idle", "1ms")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (0, NOTHING_FITS)


def test_an_alert_that_cannot_come_true_is_told() -> None:
    words = ("--follow", "--until-idle", "1ms", "--alert", "lag:5", "--alert", "beyond-end")
    told = "--alert lag, beyond-end: no other topic's partition lies beside these, without which it never comes true"
    assert told in run("compact", LOG, *words).stderr
    assert "never comes true" not in run("compact", DATA, *words).stderr


@pytest.mark.parametrize(("command", "option"), [("rebalances", "-t"), ("check", "-t")])
def test_a_filter_that_a_command_does_not_heed_is_told(command: str, option: str) -> None:
    assert f"{option} has no effect: " in run(command, LOG, option, "nosuch").stderr
    assert "no effect" not in run(command, LOG).stderr


def test_topics_are_named_where_no_offsets_partition_is(tmp_path: Path) -> None:
    for name, file in (("orders-0", "0" * 20 + ".log"), ("backup-2026", "notes.txt")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_bytes(b"x")
    result = run("compact", str(tmp_path))
    assert result.exit_code == 1
    assert "Here are other topics only (orders): try each directory of the broker's log.dirs" in result.stderr
    (tmp_path / "orders-0" / ("0" * 20 + ".log")).unlink()
    assert "Give a broker's data directory (log.dirs)" in run("compact", str(tmp_path)).stderr


@pytest.mark.parametrize(
    ("to", "why"), [("no/file", "make it first"), (".", "not an empty directory"), ("lone.log", "one of the inputs")]
)
def test_a_place_that_cannot_be_written_is_told_before_anything_is_read(to: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "lone.log"
    file.write_bytes((Path(LOG) / "__consumer_offsets-1" / ("0" * 20 + ".log")).read_bytes())
    (told,) = run("compact", str(file), "--to", str(tmp_path / to)).stderr.splitlines()
    assert told.startswith("offsets-log: error: ")
    assert why in told


@pytest.mark.parametrize("command", ["vote", "assign"])
def test_a_word_where_options_are_meant_names_them(command: str) -> None:
    result = run(command, "range")
    assert (result.exit_code, "give either --members" in result.stderr) == (2, True)


def test_a_file_without_a_partition_is_not_said_to_be_checked_against_one(tmp_path: Path) -> None:
    (tmp_path / "lone.log").write_bytes((Path(LOG) / "__consumer_offsets-1" / ("0" * 20 + ".log")).read_bytes())
    assert "--partitions N says otherwise" in run("check", LOG, "-o", "json").stderr
    told = run("check", str(tmp_path / "lone.log"), "-o", "json").stderr
    assert "--partitions N" not in told
    assert "--as-partition N says which" in told


def test_every_filter_and_bound_is_named_as_it_may_be_given() -> None:
    result = run("compact", LOG, "-g", "no such", "-t", "*", "--until-time", "1999-01-01")
    assert "nothing here fits -g 'no such' --until-time 1999-01-01T00:00:00.000Z: " in result.stderr


def test_an_answer_and_a_log_without_records_need_no_such_line(tmp_path: Path) -> None:
    assert "fits" not in run("compact", LOG, "-g", "tx-*").stderr
    (tmp_path / "__consumer_offsets-0").mkdir()
    (tmp_path / "__consumer_offsets-0" / "00000000000000000000.log").touch()
    assert "fits" not in run("compact", str(tmp_path)).stderr


@pytest.mark.parametrize("command", ["compact", "check", "info"])
@pytest.mark.parametrize("content", [b"this is a text\n", bytes(range(256)) * 20], ids=["text", "binary"])
def test_a_file_that_is_no_log_is_told(command: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "notes.log"
    file.write_bytes(content)
    result = run(command, str(file))
    assert (result.exit_code, result.stdout) == (1, "")
    words = "(this is text, and no form|no batch of Kafka is in it: this is no log).*"
    assert re.fullmatch(f"offsets-log: error: {re.escape(str(file))}: {words}", result.stderr.splitlines()[-1])
    beside = run(command, LOG, str(file), "-q")
    assert (beside.exit_code, bool(beside.stdout)) == (3, True), "among logs it is damage"


def test_a_dump_of_which_some_can_be_read_is_a_log(recording: Recording) -> None:
    dump = recording("kafka-0.8.2") / "answers" / "dump-log" / "0.txt.gz"
    assert "bytes printed as text" in (told := run("decode", str(dump)).stderr)
    assert "no batch was found" not in told


@pytest.mark.parametrize("name", ["00000000000000000000.log", "__consumer_offsets-7/00000000000000000000.log"])
def test_a_log_that_loads_because_nothing_is_left_of_it_is_told(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(bytes(range(256)) * 20)
    told = "nothing is left of it: a broker would serve none of its bytes"
    assert told in run("check", str(file), "--loads-on", "4.3.0").stderr
    assert told not in run("check", LOG, "--loads-on", "4.3.0").stderr


def test_a_load_that_does_not_fail_and_serves_nothing_is_told(tmp_path: Path) -> None:
    """Behind a gap lies an empty last segment."""
    folder = tmp_path / "__consumer_offsets-2"
    folder.mkdir()
    segment = Path(LOG) / "__consumer_offsets-2" / f"{0:020}.log"
    (folder / segment.name).write_bytes(segment.read_bytes())
    told = "on 4.3.0 the load does not fail, but nothing is served of what can be read here"
    assert told not in run("check", str(tmp_path), "--loads-on", "4.3.0").stderr
    (folder / f"{50:020}.log").touch()
    result = run("check", str(tmp_path), "--loads-on", "4.3.0")
    assert (result.exit_code, told in result.stderr) == (3, True)


def test_a_file_that_is_no_segment_is_not_followed_instead_of_those_beside_it(tmp_path: Path) -> None:
    segment = Path(LOG) / "__consumer_offsets-0" / "00000000000000000000.log"
    for name in ("lone.log", segment.name):
        (tmp_path / name).write_bytes(segment.read_bytes())
    result = run("compact", str(tmp_path / "lone.log"), "--follow", "--until-idle", "1s")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "only directories are followed" in result.stderr


@pytest.mark.parametrize(("word", "told"), [("compat", " (Did you mean: 'compact'?)"), ("xyz", "")])
def test_an_unknown_command_names_those_that_are_near(word: str, told: str) -> None:
    result = run(word)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, f"Error: No such command '{word}'.{told}")


def test_a_port_that_cannot_be_is_wrong_usage(tmp_path: Path) -> None:
    for server in ("localhost", "localhost:99999"):
        result = run("pull", "--bootstrap-server", server, "--to", str(tmp_path / "copy"))
        assert result.exit_code == 2
        assert f"{server} is not HOST:PORT, such as localhost:9092" in result.stderr


def test_groups_that_are_not_in_the_given_partitions_are_named() -> None:
    result = run("where", "--of", LOG, "nosuch", "tx-metrics", "--profile", "modern")
    assert result.stderr.splitlines() == [
        "not among the groups of these partitions: nosuch", "1 group with 5 offsets, 4 partitions; profile modern",
    ]  # fmt: skip
