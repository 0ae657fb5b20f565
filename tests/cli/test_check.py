"""`check`: the dry run of a load against what brokers of several releases really did, its releases and outputs."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from offsets_log import events
from offsets_log.checking.findings import CHECK_NAMES
from offsets_log.checking.partition_check import PartitionCheck
from offsets_log.kafka_releases import NEWEST
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.profile import CLASSIC, MODERN, RELEASES
from offsets_log.replay.releases import known_releases, release_named
from offsets_log_cli.main import main
from tests.cli.checked import (
    ANSWERS,
    FIRST_FILE,
    ROOT,
    SAMPLE,
    G,
    Json,
    Recording,
    batch,
    check,
    commit,
    deletion,
    findings,
    run,
    transaction,
    write,
)
from tests.conftest import BulkFrom, json_lines, log_directories, read_json, read_partitions

# ------------------------------------------------------------------------------------------------ against real brokers


@pytest.fixture(scope="module")
def load_fails(recording: Recording) -> Json:
    document = check(recording("load-fails") / "log", "--loads-on", ",".join(ANSWERS), status=3)
    assert len(document["loads"]) == 50
    return document


CUT_BY_RECOVERY = 48
"""The brokers started over it as after a crash and cut the log at the wrong checksum, so the second plain commit is
gone; `check` reads on behind it and says so."""

NOT_ITS_GROUP = 47
"""The offset of a group that belongs to partition 48: a Scala broker answers it under that one, a Java broker does not
(``B-5``)."""

WHY = {
    r"Unknown (offset|group metadata) message version|UnknownRecordVersionException": {
        "J-3",
        "records:Y4",
        "records:Y6",
    },
    r"should not be null|NullPointerException.*getShort": {"L-16"},
    r"BufferUnderflow|Error reading byte array|serialized as null|allocate a collection|Could not read": {"J-3"},
    r"tombstone record to delete": {"J-17"},
    r"Cannot set the epoch": {"J-20"},
    r"is not a (share|streams|consumer) group": {"J-19"},
    r"Static member with groupInstanceId": {"L-31"},
    r"Unexpected unload of active group": {"L-39"},
}
"""What a broker logged → the rule that says so."""


@pytest.mark.parametrize("release", ANSWERS)
def test_verdicts_are_what_each_release_did(release: str, load_fails: Json, recording: Recording) -> None:
    """All 50 cases: loads or fails, what is served then, at which record and why (``L-42``, ``J-3``, ``B-4``)."""
    places = reasons = 0
    for answer in read_json(recording("load-fails") / "answers" / ANSWERS[release]):
        verdict = load_fails["loads"][str(answer["partition"])][release]
        assert verdict["ok"] == answer["loaded"], answer["what"]
        if answer["partition"] != CUT_BY_RECOVERY:
            assert (verdict["served"] == "all") == answer["kept"], answer["what"]
        log_lines = " ".join(answer["log_lines"])
        named = {int(a or b) for a, b in re.findall(r"at offset (\d+)|DefaultRecord\(offset=(\d+)", log_lines)}
        if named:
            places += 1
            assert {verdict["record_offset"]} == named, answer["what"]
        rules = {rule for pattern, rules in WHY.items() if re.search(pattern, log_lines) for rule in rules}
        if rules and not verdict["ok"]:
            reasons += 1
            assert verdict["rule"] in rules, (answer["what"], log_lines)
        if not verdict["ok"] and verdict["rule"] != "L-39":
            assert verdict["file"].endswith(f"__consumer_offsets-{answer['partition']}/{FIRST_FILE}")
            assert verdict["position"] > 0
    assert reasons >= 16
    assert places >= (0 if release == "3.9.1" else 20), "the Scala coordinator names no record"


@pytest.mark.parametrize("release", ANSWERS)
def test_what_is_served_after_the_load_is_what_each_release_answered(release: str, recording: Recording) -> None:
    """``B-4``, ``J-3``, ``L-42``: with `as_broker`, the offsets of every partition."""
    folder = recording("load-fails")
    answers = {answer["partition"]: answer for answer in read_json(folder / "answers" / ANSWERS[release])}
    profile = release_named(release).profile
    for partition, log in read_partitions(folder / "log").items():
        if partition in (NOT_ITS_GROUP, CUT_BY_RECOVERY):
            continue
        state = finish(replay(iter_events(log), profile, on_damage=lambda damage: None)).as_broker()
        assert {(v.group, v.topic, v.partition, v.committed_offset) for v in state.iter_served()} == {
            (row["group"], row["topic"], row["partition"], row["committed_offset"])
            for row in answers[partition]["offsets"]
        }, answers[partition]["what"]


def test_a_load_that_ends_in_an_error_can_be_served_all_the_same(load_fails: Json) -> None:
    """Case 45, ``B-4``: the offsets are in the cache before 3.9.1 complains."""
    verdict = load_fails["loads"]["45"]["3.9.1"]
    assert (verdict["ok"], verdict["served"], verdict["rule"]) == (False, "all", "L-39")
    assert load_fails["loads"]["45"]["4.3.0"]["ok"]


def test_what_is_skipped_is_counted_by_type(load_fails: Json) -> None:
    """``records:Y3``, ``L-21``: case 1 everywhere, types 17 up to 4.0, types 3 to 16 by the Scala coordinator."""
    skipped = {
        (row["offsets_partition"], row["detail"]["record_type"]): row
        for row in findings(load_fails, severity="skipped")
    }
    assert skipped[1, 99]["releases"] == list(ANSWERS)
    assert skipped[37, 17]["releases"] == ["3.9.1", "4.0.0"]
    assert skipped[43, 3]["releases"] == ["3.9.1"]
    assert skipped[28, 8]["detail"] == {"record_type": 8, "records": 2}
    assert (skipped[28, 8]["record_offset"], skipped[28, 8]["group"]) == (4, "g191")
    assert [row["offsets_partition"] for row in findings(load_fails, severity="doubt", rule="records:Y3")] == [1]


def test_other_findings_of_the_hand_made_partitions(load_fails: Json) -> None:
    """``H1`` case 47, ``J-15`` case 46, ``L-7`` case 48, the open transaction of case 45 (``C-1``)."""
    (wrong,) = findings(load_fails, rule="records:H1")
    assert (wrong["offsets_partition"], wrong["group"], wrong["detail"]) == (
        47,
        "g90",
        {"expected_partition": 48, "partitions": 50},
    )
    (orphan,) = findings(load_fails, rule="J-15")
    assert (orphan["offsets_partition"], orphan["releases"]) == (46, ["4.0.0", "4.1.1", "4.2.0", "4.3.0"])
    (damage,) = findings(load_fails, rule="L-7")
    assert (damage["offsets_partition"], damage["position"]) == (48, 105)
    (open_transaction,) = findings(load_fails, rule="C-1")
    assert (open_transaction["offsets_partition"], open_transaction["detail"]["producer_id"]) == (45, 77)


@pytest.mark.parametrize(
    ("release", "answer"),
    [
        ("4.3.0", "restart.json"),
        ("4.0.0", "restart-4.0.0.json"),
        ("3.9.1-java", "restart-3.9.1-java.json"),
        ("3.7.2-java", "restart-3.7.2-java.json"),
    ],
)
def test_random_logs_fail_where_the_java_coordinators_failed(release: str, answer: str, recording: Recording) -> None:
    """``B-9``, ``J-18``, ``J-19``: the partitions that each release refused, and no others."""
    folder = recording("random-java")
    failed = {row["offsets_partition"] for row in read_json(folder / "answers" / answer)["failed"]}
    document = check(folder / "log", "--loads-on", release, status=3)
    assert {int(name) for name, verdicts in document["loads"].items() if not verdicts[release]["ok"]} == failed
    assert document["partitions"] == {"count": 40, "source": "data"}
    assert findings(document, rule="records:H1") == []


# ------------------------------------------------------------------------------------------------------------ releases


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("0.8.2.2", "0.8.2"),
        ("0.9.0.1", "0.9"),
        ("0.10", "0.10.0"),
        ("0.10.0.1", "0.10.0"),
        ("0.10.2.2", "0.10.1"),
        ("1.1.1", "0.11"),
        ("2.0", "2.0"),
        ("2.2.1", "2.1"),
        ("2.4.0", "2.3"),
        ("2.8.2", "2.4.1"),
        ("3.4.0", "3.0"),
        ("3.4.1", "3.4.1"),
        ("3.9.1", "3.4.1"),
        ("3.7.2-java", "3.7-java"),
        ("3.9.1-java", "3.9-java"),
        ("4.0.1", "4.0"),
        ("4.3", "4.3"),
        ("4.3.1", "4.3"),
        ("4.4.0", "4.4"),
        ("99.0.1", NEWEST.name),
    ],
)
def test_a_release_has_the_rules_of_the_last_entry_before_it(name: str, rules: str) -> None:
    assert release_named(name).rules == rules


@pytest.mark.parametrize(
    "name", ["0.8.1", "0.7", "0.12", "1.2", "2.9", "3.6-java", "3.10", "4.0-java", "5.0-java", "4.four", "new", ""]
)
def test_a_release_that_never_was_is_wrong_usage(name: str) -> None:
    result = run(SAMPLE, "--loads-on", f"4.3,{name}")
    assert result.exit_code == 2
    assert f"{name!r} is no release of Kafka" in result.stderr


def test_a_release_newer_than_all_is_answered_as_the_newest_known_and_every_verdict_says_so() -> None:
    """A decoder must not stop at an upgrade, nor pass off what it does not know."""
    name = f"99.1.0 (as {NEWEST.name}, not verified)"
    document = check(SAMPLE, "--loads-on", "99.1.0", status=0)
    assert document["releases"] == {name: NEWEST.name}
    assert all(list(verdicts) == [name] for verdicts in document["loads"].values())
    result = run(SAMPLE, "--loads-on", "99.1.0", "-o", "table")
    assert name in result.stdout
    assert f"99.1.0 is newer than the releases that are known here: it is answered as {NEWEST.name}" in result.stderr


def test_all_known_rules_are_tried_where_that_is_asked_for() -> None:
    document = check(SAMPLE, "--all-releases", status=0)
    assert document["releases"] == {name: name for name in RELEASES}
    assert all(list(verdicts) == list(RELEASES) for verdicts in document["loads"].values())
    assert {release.profile for release in known_releases()} == set(RELEASES.values())
    assert release_named("3.9.1").profile is CLASSIC
    assert release_named(NEWEST.name).profile is MODERN


def test_loads_on_may_be_repeated_and_names_each_once() -> None:
    document = check(SAMPLE, "--loads-on", "4.3.0, 3.9.1", "--loads-on", "4.3.0", status=0)
    assert document["releases"] == {"4.3.0": "4.3", "3.9.1": "3.4.1"}


def test_old_releases_refuse_what_is_new_to_them() -> None:
    """``M1``, ``Y4``, ``L-21``; what 0.8.2 to 0.10.0 read before is served (``L-10``)."""
    log = ROOT / "samples" / "kafka-lifetime" / "log"
    document = check(log, "-p", "2", "--loads-on", "0.8.2,0.9,0.10.0,0.10.2,1.1,2.2,2.8", status=3)
    verdicts = document["loads"]["2"]
    assert {name: (row["rule"], row["served"]) for name, row in verdicts.items()} == {
        "0.8.2": ("L-21", "some"),
        "0.9": ("records:M1", "some"),
        "0.10.0": ("records:Y4", "some"),
        "0.10.2": ("records:M1", "nothing"),
        "1.1": ("records:Y4", "nothing"),
        "2.2": ("records:Y4", "nothing"),
        "2.8": (None, "all"),
    }
    assert verdicts["2.2"]["detail"] == {"answers": "empty"}


# ---------------------------------------------------------------------------------------------- exit status and output


def test_the_exit_status_is_about_the_releases_asked_for(tmp_path: Path) -> None:
    """Without --loads-on about the newest: an old release that cannot read a new log is no fault of the log."""
    assert run(SAMPLE).exit_code == 0
    assert run(SAMPLE, "--loads-on", "3.9.1,4.3.0").exit_code == 0
    assert run(SAMPLE, "--loads-on", "2.8").exit_code == 3
    write(tmp_path, [batch(commit(G)), batch((b"\x00\x63", b"x"), first=1)])
    assert run(tmp_path).exit_code == 3, "a record type that is unknown to all"


def test_rows_of_both_kinds_have_the_same_columns() -> None:
    arguments = (SAMPLE, "--loads-on", "3.9.1,4.3.0")
    rows = list(json_lines(run(*arguments, "-o", "jsonl").stdout))
    assert all(set(row) == set(CHECK_NAMES) for row in rows)
    assert [row["releases"] for row in rows if row["kind"] == "load"] == [["3.9.1"], ["4.3.0"]] * 4
    document = check(*arguments, status=0)
    assert [row for row in rows if row["kind"] == "finding"] == document["findings"]
    for row in rows:
        if row["kind"] == "load":
            verdict = document["loads"][str(row["offsets_partition"])][row["releases"][0]]
            assert verdict.items() <= row.items()
    table = list(csv.DictReader(io.StringIO(run(*arguments, "-o", "csv").stdout, newline="")))
    assert len(table) == len(rows)
    assert tuple(table[0]) == CHECK_NAMES


def test_the_size_of_a_load_is_estimated() -> None:
    """``J-1``: all bytes from the log start to its end."""
    sizes = {row["offsets_partition"]: row["detail"] for row in findings(check(SAMPLE, status=0), rule="J-1")}
    assert sizes[3] == {"size_bytes": 25624, "batches": 75, "records": 157}
    assert list(sizes) == [0, 1, 2, 3]


def test_a_table_shows_first_what_the_newest_releases_meet() -> None:
    table = run(SAMPLE, "--all-releases", "-p", "1", "-o", "table").stdout.split("\n\n")[1]
    lines = [line.split() for line in table.split("\n")]
    findings = [(line[0], " ".join(line)) for line in lines if line and line[0] in ("fails", "skipped", "note")]
    assert [severity for severity, _ in findings][-3:] == ["fails"] * 3, "those of releases before 3.0"
    assert "records:M1" in findings[-1][1]
    assert findings[0][0] == "note"
    assert NEWEST.name in findings[0][1] or "all" in findings[0][1]
    rows = run(SAMPLE, "--all-releases", "-o", "table").stdout.split("\n\n")[1].splitlines()[3:]
    of_newest = [row for row in rows if "  all  " in row or f"… {NEWEST.name}  " in row]
    assert of_newest == rows[: len(of_newest)], "those of every partition before any of old releases"
    assert {row.split()[1] for row in of_newest} == {"0", "1"}, "open transactions of two, and all loads in one line"


def test_a_group_that_is_not_there_is_told() -> None:
    assert "nothing here fits -g nobody:" in run(SAMPLE, "-g", "nobody").stderr
    assert "nothing here fits" not in run(SAMPLE, "-g", "metrics-*").stderr


def test_tables_for_people_name_runs_of_releases(tmp_path: Path) -> None:
    result = run(SAMPLE, "--all-releases", "-p", "2", "-o", "table")
    lines = [line.split() for line in result.stdout.split("\n")]
    assert ["2", "3.4.1", "…", NEWEST.name, "0.8.2", "…", "3.0"] in lines
    assert "4 partitions" not in result.stdout
    write(tmp_path, [batch(commit(G))])
    assert ["0", "all"] in [
        line.split() for line in run(tmp_path, "-o", "table", "--loads-on", "4.3").stdout.split("\n")
    ]


def test_a_prefix_can_be_checked() -> None:
    document = check(SAMPLE, "-p", "1", "--until-offset", "1:230", "--loads-on", "3.7.2-java", status=0)
    assert document["loads"]["1"]["3.7.2-java"]["ok"]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_pieces_make_no_difference(size: int, recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load in pieces is the load of the whole."""
    folder = recording("random-java")
    releases = [release_named(name) for name in ("3.9.1", "3.9.1-java", "4.0.0", "4.3.0")]
    monkeypatch.setattr(events, "PIECE", size)
    for log in read_partitions(folder / "log").values():
        in_pieces = PartitionCheck(log, releases)
        in_pieces.read(iter_events(log), lambda damage: None)
        whole = [
            finish(replay(iter_events(log), release.profile, on_damage=lambda damage: None)).failure
            for release in releases
        ]
        assert [(load.failure and load.failure.record_offset) for load in in_pieces.loads] == [
            (failure and failure.record_offset) for failure in whole
        ]


def test_a_load_that_fails_early_has_the_end_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recovery, which sets it, is over before the load begins."""
    monkeypatch.setattr(events, "PIECE", 1)
    log = write(tmp_path, [batch(commit(G), first=i) for i in range(9)])
    document = check(log, "--loads-on", "0.10.0,4.3.0", status=3)
    assert {name: load["log_end_offset"] for name, load in document["loads"]["0"].items()} == {"0.10.0": 9, "4.3.0": 9}


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "load-fails", "kafka-4.3-cleaned"])
def test_large_logs_are_checked_alike(name: str, recording: Recording, bulk_from: BulkFrom) -> None:
    """Whatever is read in bulk."""
    folder = log_directories(recording(name))[0]
    one_by_one = run(folder, "-o", "json")
    bulk_from(0)
    in_bulk = run(folder, "-o", "json")
    assert in_bulk.stdout == one_by_one.stdout
    assert in_bulk.exit_code == one_by_one.exit_code
    assert [line for line in in_bulk.stderr.split("\n") if "compiling" not in line] == one_by_one.stderr.split("\n")


@pytest.mark.parametrize("is_bulk", [False, True])
def test_each_release_keeps_pending_what_its_own_rules_do(
    *, is_bulk: bool, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """``J-12``, ``L-18``: behind a plain tombstone Scala and 3.7 hold the offset, Java from 3.8 on does not."""
    if is_bulk:
        bulk_from(0)
    log = write(tmp_path, [transaction(commit(G), first=0), batch(deletion(G), first=1)])
    document = check(log, "--loads-on", "3.4.1,3.7-java,4.3.0", status=0)
    pending = {tuple(row["releases"]): row["detail"]["pending"] for row in findings(document, rule="C-1")}
    assert pending == {("3.4.1", "3.7-java"): 1, ("4.3.0",): 0}


def test_a_bound_makes_no_gap_of_what_was_not_read(recording: Callable[[str], Path]) -> None:
    log = recording("kafka-4.3-cleaned") / "log-before"
    result = CliRunner().invoke(main, ["check", str(log), "-p", "1", "--until-offset", "700", "--loads-on", "4.3"])
    rows = [json.loads(line) for line in result.stdout.split("\n") if line]
    assert rows
    assert not [row for row in rows if row["rule"] == "D-10"]
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("3.7.2", "3.7.2 is the Scala coordinator, which is the default; 3.7.2-java is the preview of the Java one"),
        ("3.9.1-java", "3.9.1-java is the preview of the Java coordinator; 3.9.1 is the Scala one"),
        ("3.6.1", None),
        ("4.0.0", None),
    ],
)
def test_of_releases_with_two_coordinators_the_one_tried_is_said(release: str, words: str | None) -> None:
    said = run(SAMPLE, "-p", "2", "--loads-on", release).stderr
    assert words in said if words is not None else "coordinator" not in said
