"""`rescue` of what a person has pasted: texts of Kafka's own tools tell less than segments, and the plan says what."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.builders import TIME, LogBuilder, member
from tests.cli.runs import run
from tests.conftest import read_json
from tests.dumps.runs import DATA, Row, rows, without
from tests.investigate.test_dumps import Recordings, text_of
from tests.restore.rescued import rescue, write_log


def test_a_rescue_of_formatters_lines_says_what_is_not_told(tmp_path: Path) -> None:
    plan = rescue(tmp_path / "out", DATA / "offsets-formatter-2.8.2-of-kafka-2.8.txt.gz")
    assert plan["offsets"]
    assert {(row["state"], row["members"]) for row in plan["groups"]} == {(None, None)}
    assert plan["offsets_partitions"]["absent"] is None
    text = (tmp_path / "out/README.txt").read_text()
    for words in (
        "no transaction markers are told",
        "whether a group had members is not told",
        "partitions are absent, with their groups, is not known",
        "Which had some is not told: stop all of them first",
    ):
        assert words in text
    assert "No group had members then" not in text
    assert not [sentence for sentence in plan["doubts"] if "that are absent" in sentence]


def test_a_rescue_of_older_text_has_what_it_tells(recording: Recordings, tmp_path: Path) -> None:
    folder = recording("kafka-2.8")
    plan = rescue(tmp_path / "text-out", text_of(folder, tmp_path / "text"))
    expected = rescue(tmp_path / "out", folder / "log")
    columns = ("leader_epoch", "commit_timestamp_ms", "expire_timestamp_ms")
    assert without(plan["offsets"], *columns) == without(expected["offsets"], *columns)
    assert {row["leader_epoch"] for row in plan["offsets"]} == {None}
    assert any("leader epochs are not told" in sentence for sentence in plan["doubts"])
    assert [row["state"] for row in plan["groups"]] == [row["state"] for row in expected["groups"]]


def test_a_paste_from_the_middle_is_said_to_lack_its_beginning(recording: Recordings, tmp_path: Path) -> None:
    text = gzip.decompress((recording("kafka-4.3-mixed") / "answers/dump-log/1.txt.gz").read_bytes())
    pasted = tmp_path / "pasted"
    lines = text.splitlines(keepends=True)
    begin = next(i for i, line in enumerate(lines) if line.startswith(b"baseOffset: 60 "))
    pasted.write_bytes(b"".join(lines[begin:]))
    plan = rescue(tmp_path / "out", pasted, status=3)
    assert any("begins at record offset 60: files before it are missing" in doubt for doubt in plan["doubts"])


def test_the_same_offset_in_two_texts_without_places_is_taken_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"[g,t,0]::OffsetAndMetadata[1,NO_METADATA,5]\n")
    group = {home: LogBuilder().commit(9, group="g") for home in (1, 2)}
    log = write_log(tmp_path / "log", group)
    plan = rescue(tmp_path / "out", tmp_path / "a", tmp_path / "b", log, "--partitions", "50", status=3)
    assert len(plan["offsets"]) == 1
    assert len(plan["duplicates"]) == 3


def test_notes_on_what_was_read_are_doubts_of_the_plan(tmp_path: Path) -> None:
    """A replica that differs is told of before reading; who restores must know."""
    first, second = LogBuilder().commit(1).commit(2), LogBuilder().commit(5)
    a, b = write_log(tmp_path / "a", {0: first}), write_log(tmp_path / "b", {0: second})
    result = run("rescue", a, b, "--to", tmp_path / "out")
    plan: Row = read_json(tmp_path / "out" / "plan.json")
    differing = [sentence for sentence in plan["doubts"] if str(b) in sentence]
    assert differing
    assert result.stderr.count(differing[0]) == 1


def test_a_time_that_bounds_nothing_is_told(tmp_path: Path, recording: Recordings) -> None:
    log = recording("kafka-0.8.2") / "log"
    expected = rows("compact", log)
    result = run("compact", log, "--until-time", "2005-01-01", "-o", "jsonl")
    assert [json.loads(line) for line in result.stdout.split("\n") if line] == expected
    assert "records without a time (before Kafka 0.10), which are read whatever time is asked for" in result.stderr
    rescued = run("rescue", log, "--until-time", "2005-01-01", "--to", tmp_path / "out")
    plan: Row = read_json(tmp_path / "out" / "plan.json")
    (doubt,) = [sentence for sentence in plan["doubts"] if "partition 0 has records without a time" in sentence]
    assert rescued.stderr.count(doubt) == 1
    modern = write_log(tmp_path / "log", {0: LogBuilder().group(member("m"))})
    assert "without a time" not in run("compact", modern, "--until-time", TIME - 5).stderr
