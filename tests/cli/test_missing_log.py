"""Log that is not there, of copies of real brokers' folders: every command tells it, and none ends with 0."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from offsets_log_cli.main import main
from tests.conftest import BulkFrom, json_lines, log_directories, read_json

Recording = Callable[[str], Path]
Harm = Callable[[Path], None]

CLEANED, MIXED, OLD = "kafka-4.3-cleaned", "kafka-4.3-mixed", "kafka-0.11-compacted"
NOW = "2026-12-24"

COMMANDS: dict[str, tuple[str, ...]] = {
    "compact": (),
    "compact -o parquet": ("--to", "{to}"),
    "decode": (),
    "decode --as dump-log": (),
    "decode -o parquet": ("--to", "{to}"),
    "info": (),
    "rebuild": (),
    "check": (),
    "expire": ("--now", NOW),
    "rescue": ("--to", "{to}"),
    "diff": ("--from-offset", "20"),
    "groups": ("--now", NOW),
    "history": ("-g", "*"),
    "top": (),
    "top --per client": (),
    "report": ("--to", "{to}"),
    "rebalances": (),
    "where": (),
}
"""What reads a log → what it needs beside the log."""


def run(command: str, log: Path, *more: str, to: Path | None = None) -> Result:
    given = [argument.format(to=to) for argument in COMMANDS.get(command, ())]
    paths = ["--of", str(log)] if command == "where" else [str(log)]
    return CliRunner().invoke(main, [*command.split(), *paths, *given, *more], catch_exceptions=False)


def segment(partition: int, base_offset: int) -> str:
    return f"__consumer_offsets-{partition}/{base_offset:020}.log"


def told(result: Result) -> list[str]:
    """What is missing, as standard error has it."""
    return [line for line in result.stderr.splitlines() if line.startswith("missing: ")]


# ------------------------------------------------------------------------------------------ the damages


def last_segment(log: Path) -> None:
    (log / segment(1, 1249)).unlink()


def last_segment_without_checkpoints(log: Path) -> None:
    """Of folders alone: the index and the snapshot of what is gone lie there."""
    for checkpoint in log.glob("*-checkpoint"):
        checkpoint.unlink()
    last_segment(log)


def first_segment(log: Path) -> None:
    (log / segment(1, 0)).unlink()


def middle_segment(log: Path) -> None:
    (log / segment(1, 369)).unlink()


def active_cut(log: Path) -> None:
    os.truncate(log / segment(3, 0), 20_000)


def partition_absent(log: Path) -> None:
    shutil.rmtree(log / "__consumer_offsets-2")


def partition_emptied(log: Path) -> None:
    """All its files vanished under the hands of whoever copied them."""
    (log / segment(2, 0)).unlink()


def copied_while_cleaned(log: Path) -> None:
    """Files that were listed had been renamed when their turn came; a new active one holds nothing yet."""
    (log / segment(1, 0)).rename(log / f"{segment(1, 0)}.cleaned")
    (log / segment(1, 1313)).unlink()
    (log / segment(1, 1331)).touch()


DAMAGES: dict[str, tuple[Harm, str, str, int, list[tuple[int, int]]]] = {
    "last segment": (last_segment, CLEANED, "log-before", 1, [(1249, 1290)]),
    "last segment, by its index": (last_segment_without_checkpoints, CLEANED, "log-before", 1, [(1249, 1290)]),
    "first segment": (first_segment, CLEANED, "log-before", 1, [(0, 171)]),
    "middle segment, never cleaned": (middle_segment, CLEANED, "log-before", 1, [(369, 525)]),
    "active segment cut": (active_cut, MIXED, "log", 3, [(123, 156)]),
    "offsets partition absent": (partition_absent, MIXED, "log", 2, [(0, 35)]),
    "offsets partition without a segment": (partition_emptied, MIXED, "log", 2, [(0, 35)]),
    "live copy while the cleaner ran": (copied_while_cleaned, CLEANED, "log-later", 1, [(0, 1330)]),
}
"""What is done to a copy of which recording, and the offsets of a partition that are missing then."""


EACH = [
    (command, [*DAMAGES][(turn + shift) % len(DAMAGES)]) for turn, command in enumerate(COMMANDS) for shift in (0, 3)
]
"""Every command with two of the damages, every damage with four commands or more: all learn of them from one place."""


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, recording: Recording, tmp_path: Path) -> tuple[Path, list[str]]:
    """A copy with damage, and how the line on each missing part begins."""
    harm, name, folder, partition, missing = DAMAGES[request.param]
    log = tmp_path / "data"
    shutil.copytree(recording(name) / folder, log)
    harm(log)
    beginning = f"missing: offsets partition {partition}: offsets"
    return log, [
        f"{beginning} {first} to {last} are missing ({last - first + 1} of the log): " for first, last in missing
    ]


def begins(lines: list[str], expected: list[str]) -> bool:
    return len(lines) == len(expected) and all(map(str.startswith, lines, expected))


@pytest.mark.parametrize(
    ("turn", "command", "damaged"), [(n, *each) for n, each in enumerate(EACH)], indirect=["damaged"]
)
def test_lost_log_is_told_once_with_status_3(
    turn: int, command: str, damaged: tuple[Path, list[str]], tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """Every third time by both engines, in the same words."""
    log, expected = damaged
    result = run(command, log, to=tmp_path / "out")
    assert result.exit_code == 3
    if turn % 3 == 0:
        bulk_from(0)
        in_bulk = run(command, log, to=tmp_path / "in-bulk")
        assert (in_bulk.exit_code, told(in_bulk)) == (3, told(result))
    assert begins(told(result), expected), result.stderr
    ending = "*.log reads them, too" if any(log.glob("*/*.log.deleted")) else "nothing here explains it"
    assert all(line.endswith(ending) for line in told(result)), result.stderr
    assert "not all of the log is there" in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_of_these_copies_is_missing_before_the_damage(
    command: str, recording: Recording, tmp_path: Path
) -> None:
    """Of the folder that the command is asked about with its first damage."""
    (damage, *_) = [damage for asked, damage in EACH if asked == command]
    _, name, folder, *_ = DAMAGES[damage]
    result = run(command, recording(name) / folder, to=tmp_path / "out")
    assert (result.exit_code, told(result)) == (0, []), result.stderr


def test_quiet_silences_the_words_and_strict_ends_with_an_error(
    damaged: tuple[Path, list[str]], tmp_path: Path
) -> None:
    log, expected = damaged
    quiet = run("compact", log, "--quiet")
    assert (quiet.exit_code, quiet.stderr) == (3, "")
    strict = run("compact", log, "--strict", "--to", str(tmp_path / "out"))
    assert strict.exit_code == 1
    assert f"offsets-log: error: {expected[0].removeprefix('missing: ')}" in strict.stderr
    assert not (tmp_path / "out").exists()


def test_an_archive_tells_the_same(damaged: tuple[Path, list[str]], tmp_path: Path) -> None:
    log, expected = damaged
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as archive:
        archive.add(log, "data")
    result = run("compact", tmp_path / "data.tar.gz")
    assert result.exit_code == 3
    assert begins(told(result), expected)


def test_the_page_of_info_shows_it(damaged: tuple[Path, list[str]]) -> None:
    log, expected = damaged
    lines = [
        f"missing: {line}" for line in run("info", log, "-o", "table").stdout.splitlines() if "are missing" in line
    ]
    assert begins(lines, expected)


def test_check_has_a_finding_for_each(damaged: tuple[Path, list[str]]) -> None:
    log, expected = damaged
    rows = list(json_lines(run("check", log).stdout))
    found = [row for row in rows if row["rule"] == "D-10"]
    assert [(row["kind"], row["severity"]) for row in found] == [("finding", "doubt")] * len(expected)
    for row, line in zip(found, expected, strict=True):
        assert f"missing: {row['problem']}".startswith(line)
        detail = row["detail"]
        assert detail["missing_offsets"] == detail["last_offset"] - detail["first_offset"] + 1
        assert detail["explained_by"] is None


def test_a_copy_that_lost_all_does_not_look_like_an_empty_one(recording: Recording, tmp_path: Path) -> None:
    shutil.copytree(recording(CLEANED) / "log-later", tmp_path / "data")
    copied_while_cleaned(tmp_path / "data")
    result = run("compact", tmp_path / "data", "-p", "1")
    assert result.stdout == ""
    assert "0 offsets of 0 groups" in result.stderr
    assert result.exit_code == 3


def test_the_tail_of_a_cut_log_is_not_called_normal(recording: Recording, tmp_path: Path) -> None:
    shutil.copytree(recording(MIXED) / "log", tmp_path / "data")
    active_cut(tmp_path / "data")
    for command, words in (("compact", "stderr"), ("info", "stdout"), ("check", "stdout")):
        result = run(command, tmp_path / "data")
        assert "the log was cut, 34 offsets of it were here or behind" in getattr(result, words)
        assert "normal at the end of a log" not in result.output


@pytest.mark.parametrize("order", [("data", "whole"), ("whole", "data")])
def test_either_copy_of_a_comparison_counts(order: tuple[str, str], recording: Recording, tmp_path: Path) -> None:
    for name in order:
        shutil.copytree(recording(MIXED) / "log", tmp_path / name)
    active_cut(tmp_path / "data")
    result = CliRunner().invoke(main, ["diff", *(str(tmp_path / name) for name in order)])
    assert result.exit_code == 3
    assert len(told(result)) == 1


# ------------------------------------------------------------------------------------- what is explained


def test_no_recording_of_a_broker_lacks_anything(recording: Recording) -> None:
    count = 0
    for name in (CLEANED, MIXED, OLD, "kafka-4.3-live-copy", "kafka-lifetime", "kafka-3.9-classic", "kafka-0.8.2"):
        for log in log_directories(recording(name)):
            result = run("compact", log, "--profile", "modern")
            assert (result.exit_code, told(result)) == (0, []), result.stderr
            count += 1
    assert count == 11


def test_what_the_cleaner_took_is_told_by_info_and_check_only(recording: Recording) -> None:
    log = recording(OLD) / "log"
    assert "missing" not in run("compact", log).stderr
    (row,) = [row for row in json_lines(run("info", log).stdout) if row["missing"]]
    (gap,) = row["missing"]
    assert (row["offsets_partition"], gap["first_offset"], gap["last_offset"]) == (3, 5, 124)
    assert gap["explained_by"] == "the cleaner had come to 185"
    assert "offsets partition 3: offsets 5 to 124 are missing" in run("info", log, "-o", "table").stdout
    (note,) = [row for row in json_lines(run("check", log).stdout) if row["rule"] == "D-10"]
    assert (note["severity"], note["detail"]["explained_by"]) == ("note", gap["explained_by"])


def test_without_a_checkpoint_a_cleaned_file_beside_a_gap_explains_it(recording: Recording, tmp_path: Path) -> None:
    name = "__consumer_offsets-3"
    shutil.copytree(recording(OLD) / "log" / name, tmp_path / name)
    (row,) = json_lines(run("info", tmp_path / name).stdout)
    assert row["missing"][0]["explained_by"] == "a file beside them was cleaned"
    assert run("compact", tmp_path / name).exit_code == 0


def test_cleaned_segments_do_not_explain_the_loss_of_the_first_that_is_not(
    recording: Recording, tmp_path: Path
) -> None:
    shutil.copytree(recording(CLEANED) / "log", tmp_path / "data")
    (tmp_path / "data" / segment(0, 734)).unlink()
    result = run("compact", tmp_path / "data")
    assert result.exit_code == 3
    (line,) = told(result)
    assert "offsets 734 to 735 are missing (2 of the log)" in line
    assert "the cleaner had come to 734 only" in line


def test_a_new_replica_of_a_cleaned_log_has_gaps_that_its_own_cleaner_has_not_made(
    recording: Recording, tmp_path: Path
) -> None:
    shutil.copytree(recording(OLD) / "log", tmp_path / "data")
    (tmp_path / "data" / "cleaner-offset-checkpoint").write_text("0\n1\n__consumer_offsets 3 3\n")
    result = run("compact", tmp_path / "data")
    assert (result.exit_code, told(result)) == (0, [])
    row = next(row for row in json_lines(run("info", tmp_path / "data").stdout) if row["offsets_partition"] == 3)
    assert [gap["explained_by"] for gap in row["missing"]] == ["a file beside them was cleaned"]


def test_a_log_start_explains_a_later_begin(recording: Recording, tmp_path: Path) -> None:
    """A broker whose DeleteRecords moved the log start has an entry; without one a log begins at 0 (``CL-48``)."""
    shutil.copytree(recording(CLEANED) / "log-before", tmp_path / "data")
    first_segment(tmp_path / "data")
    start = tmp_path / "data" / "log-start-offset-checkpoint"
    start.write_text("0\n1\n__consumer_offsets 1 172\n")
    assert run("compact", tmp_path / "data").exit_code == 0
    start.write_text("0\n1\n__consumer_offsets 1 100\n")
    (line,) = told(run("compact", tmp_path / "data"))
    assert "offsets 100 to 171 are missing (72 of the log): the first segment begins at 172 instead of 100" in line


def test_what_a_bound_or_a_filter_leaves_out_is_not_missing(recording: Recording, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(recording(CLEANED) / "log-before", data)
    middle_segment(data)
    last_segment(data)
    shutil.rmtree(data / "__consumer_offsets-2")
    assert len(told(run("compact", data))) == 3
    assert run("compact", data, "-p", "1", "-p", "3", "--until-offset", "1:369").exit_code == 0
    (line,) = told(run("compact", data, "-p", "1", "--until-offset", "400"))
    assert "offsets 369 to 399 are missing" in line
    bounded = run("compact", data, "-p", "1", "--until-time", str(time_of(data, 200)))
    assert (bounded.exit_code, told(bounded)) == (0, [])
    assert run("compact", data, "-p", "0", "-p", "3").exit_code == 0
    assert run("compact", data / "__consumer_offsets-0").exit_code == 0
    (line,) = told(run("compact", data, "-p", "0", "-p", "2"))
    assert "offsets partition 2" in line


def time_of(data: Path, record_offset: int) -> int:
    result = run("decode", data, "-p", "1", "--until-offset", str(record_offset + 1))
    return max(int(row["timestamp_ms"]) for row in json_lines(result.stdout))


def test_files_that_are_named_are_a_choice_unless_they_are_all(recording: Recording, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "__consumer_offsets-1"
    shutil.copytree(recording(CLEANED) / "log-before", tmp_path / "data")
    some = [str(folder / f"{base:020}.log") for base in (172, 369)]
    assert CliRunner().invoke(main, ["compact", *some]).exit_code == 0
    first_segment(tmp_path / "data")
    result = CliRunner().invoke(main, ["compact", str(folder / "*.log")])
    assert result.exit_code == 3
    assert begins(told(result), ["missing: offsets partition 1: offsets 0 to 171 are missing"])


def test_a_partition_that_another_data_directory_has_is_not_absent(recording: Recording, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(recording(MIXED) / "log", tmp_path / name)
    shutil.rmtree(tmp_path / "a" / "__consumer_offsets-0")
    shutil.rmtree(tmp_path / "b" / "__consumer_offsets-1")
    both = [str(tmp_path / name) for name in ("a", "b")]
    assert CliRunner().invoke(main, ["compact", *both]).exit_code == 0
    (tmp_path / "a" / "__consumer_offsets-1").rename(tmp_path / "a" / "__consumer_offsets-1.0a1b-delete")
    assert run("compact", tmp_path / "a", "-p", "1", "-p", "2").exit_code == 0, "a broker was deleting it"


def test_a_replica_that_lags_is_measured_by_the_highest_watermark(recording: Recording, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(recording(MIXED) / "log", tmp_path / name)
        active_cut(tmp_path / name)
    (tmp_path / "a" / "recovery-point-offset-checkpoint").unlink()
    (tmp_path / "a" / "replication-offset-checkpoint").write_text("0\n1\n__consumer_offsets 3 123\n")
    both = [str(tmp_path / name) for name in ("a", "b")]
    result = CliRunner().invoke(main, ["compact", "-p", "3", *both])
    assert begins(told(result), ["missing: offsets partition 3: offsets 123 to 156 are missing"]), result.stderr


def test_of_another_topic_records_may_be_deleted(recording: Recording, tmp_path: Path) -> None:
    folder = tmp_path / "orders-1"
    shutil.copytree(recording(CLEANED) / "log-before" / "__consumer_offsets-1", folder)
    (folder / Path(segment(1, 0)).name).unlink()
    assert told(run("info", folder)) == []


def test_a_dump_is_as_long_as_what_was_printed(recording: Recording, tmp_path: Path) -> None:
    shutil.copytree(recording(CLEANED) / "log-before", tmp_path / "data")
    first_segment(tmp_path / "data")
    text = run("decode --as dump-log", tmp_path / "data", "-p", "1").stdout
    result = CliRunner().invoke(main, ["compact", "-"], input=text)
    assert (result.exit_code, told(result)) == (0, [])


def test_what_could_not_be_read_is_damage_and_not_missing(recording: Recording, tmp_path: Path) -> None:
    """The last batch of the log, and the last of a segment in the middle."""
    data = tmp_path / "data"
    shutil.copytree(recording(CLEANED) / "log-before", data)
    for name in (segment(1, 369), segment(1, 1249)):
        with (data / name).open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\xff")
    result = run("compact", data)
    assert result.exit_code == 3
    assert told(result) == []
    assert result.stderr.count("corrupt: ") == 2
    (row,) = [row for row in json_lines(run("info", data).stdout) if row["offsets_partition"] == 1]
    assert {gap["explained_by"] for gap in row["missing"]} == {"they may be in what could not be read there"}


def test_rescue_has_the_facts(recording: Recording, tmp_path: Path) -> None:
    shutil.copytree(recording(MIXED) / "log", tmp_path / "data")
    active_cut(tmp_path / "data")
    result = run("rescue", tmp_path / "data", to=tmp_path / "out")
    assert result.exit_code == 3
    assert any("the log was cut" in doubt for doubt in read_json(tmp_path / "out" / "plan.json")["doubts"])
