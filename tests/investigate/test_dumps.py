"""The questions asked of what a person has pasted: the answers of the segments, and null or a refusal for the rest.

The texts are those of Kafka's own tools, of several releases; what they are of is in the recordings.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offsets_log.dumps.formats import build_segments
from offsets_log.investigate.copies import by_partition, partitions_of
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.partition_for import partition_for
from offsets_log.replay.profile import MODERN
from tests.builders import TIME, LogBuilder
from tests.cli.runs import run
from tests.conftest import read_json
from tests.dumps.runs import DATA, captured, rows, without
from tests.restore.rescued import write_log

Recordings = Callable[[str], Path]

DUMPED = ["kafka-2.8", "kafka-3.9-classic", "kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-lifetime"]
"""Recordings whose text tells the keys of tombstones."""
FORMATTED = [("2.4.1", "kafka-1.1"), ("3.7.2", "kafka-2.8"), ("0.10.2.2", "kafka-0.10.2")]


def text_of(folder: Path, to: Path) -> Path:
    """kafka-dump-log's text of a recording as a file."""
    files = sorted(folder.glob("answers/dump-log/[0-9].txt.gz"))
    to.write_bytes(b"".join(gzip.decompress(file.read_bytes()) for file in files))
    return to


def console(folder: Path, kind: str) -> bytes:
    return gzip.decompress((folder / f"answers/console/{kind}.json.gz").read_bytes())


# ------------------------------------------------------------------------------------------------ diff


@pytest.mark.parametrize("table", ["offsets", "groups", "members"])
@pytest.mark.parametrize("name", DUMPED)
def test_text_and_the_segments_it_is_of_do_not_differ(
    name: str, table: str, recording: Recordings, tmp_path: Path
) -> None:
    folder = recording(name)
    text = text_of(folder, tmp_path / "text")
    for pair in ((folder / "log", text), (text, folder / "log"), (text, text)):
        result = run("diff", *pair, "--table", table, "--profile", "modern", "-o", "jsonl")
        assert (result.exit_code, result.stdout) == (0, "")
        assert " 0 unchanged" not in result.stderr
        assert ("not compared, because the inputs do not tell it: " in result.stderr) == (
            name in ("kafka-2.8", "kafka-lifetime")
        )


@pytest.mark.parametrize("name", ["kafka-4.3-cleaned", "random-java"])
def test_records_of_decode_do_not_differ_from_their_segments(name: str, recording: Recordings, tmp_path: Path) -> None:
    log, records = recording(name) / "log", tmp_path / "records.jsonl"
    records.write_bytes(run("decode", log, "-o", "jsonl").stdout_bytes)
    result = run("diff", log, records, "-o", "jsonl")
    assert result.stdout == ""
    assert "the older copy" not in result.stderr  # though the last batches of some may hold no records


@pytest.mark.parametrize("name", ["kafka-2.8", "kafka-4.3-mixed"])
def test_diff_of_text_until_a_time_is_that_of_the_segments(name: str, recording: Recordings, tmp_path: Path) -> None:
    folder = recording(name)
    bounds = ("--from-offset", "30", "--until-offset", "60", "--why")
    expected = rows("diff", folder / "log", *bounds)
    found = rows("diff", text_of(folder, tmp_path / "text"), *bounds)
    assert len(expected) > 10
    if name == "kafka-2.8":
        assert {row["to_timestamp_ms"] for row in found} == {None}
        expected = [row for row in expected if row["change"] != "metadata"]
        for row in expected:  # by an expire timestamp of its own, which the text does not tell
            row["change"] = row["change"].replace("expired", "deleted")
        found = [row for row in found if row["change"] != "metadata"]
        columns = ("from_timestamp_ms", "to_timestamp_ms", "rule", "reason")
        expected, found = without(expected, *columns), without(found, *columns)
    assert found == expected


@pytest.mark.parametrize(("release", "name"), FORMATTED)
def test_formatters_lines_differ_from_the_segments_in_transactions_only(
    release: str, name: str, recording: Recordings
) -> None:
    log = recording(name) / "log"
    text = DATA / f"offsets-formatter-{release}-of-{name}.txt.gz"
    of_transactions = {row["key"]["group"] for row in rows("decode", log) if row["is_transactional"] and row.get("key")}
    found = rows("diff", log, text)
    assert {row["group"] for row in found} <= of_transactions
    assert all(row["to_record_offset"] is None for row in found)
    assert run("diff", log, text, "--table", "groups").exit_code == 1
    groups = DATA / f"groups-formatter-{release}-of-{name}.txt.gz"
    changed = run("diff", groups, log, "--table", "members", "-o", "jsonl")
    assert changed.stdout == ""
    assert "are taken to be where their names belong among 4 partitions" in changed.stderr


def test_groups_that_only_offsets_make_are_not_new_to_a_text_without_offsets(recording: Recordings) -> None:
    log = recording("kafka-2.8") / "log"
    text = DATA / "groups-formatter-3.7.2-of-kafka-2.8.txt.gz"
    made_by_offsets = {row["group"] for row in rows("rebuild", log, "--table", "groups") if row["generation"] == 0}
    assert made_by_offsets
    result = run("diff", text, log, "--table", "groups", "-o", "jsonl")
    assert not made_by_offsets & {json.loads(line)["group"] for line in result.stdout.split("\n") if line}


def test_a_text_of_one_partition_is_compared_with_that_partition_only(recording: Recordings, tmp_path: Path) -> None:
    folder = recording("kafka-4.3-mixed")
    text = gzip.decompress((folder / "answers/dump-log/1.txt.gz").read_bytes())
    headless = tmp_path / "pasted"
    headless.write_bytes(b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"Dumping")))
    result = run("diff", folder / "log", headless, "-o", "jsonl")
    assert (result.exit_code, result.stdout) == (3, "")
    for partition in (0, 2, 3):
        assert f"offsets partition {partition} is only in {folder / 'log'}" in result.stderr
    assert run("diff", headless, headless, "-o", "jsonl").exit_code == 0


def test_groups_without_a_partition_are_put_where_their_names_belong() -> None:
    text = b"".join(b"[g%d,t,0]::OffsetAndMetadata[%d,NO_METADATA,5]\n" % (i, i) for i in range(40))
    (log,) = build_segments("x", text, "formatter").logs()
    state = finish(replay(iter_events(log), MODERN, on_damage=lambda damage: pytest.fail(str(damage))))
    known = {home: LogBuilder() for home in range(4)}
    for i in range(40):
        known[partition_for(f"g{i}", 4)].commit(i, group=f"g{i}")
    others = [(built.log, built.load(MODERN)) for built in known.values()]
    for home, (built, _) in enumerate(others):
        object.__setattr__(built, "offsets_partition", home)
    count = partitions_of([(log, state)], others)
    assert count is not None
    assert count.number == 4
    held = by_partition([(log, state)], count)
    assert {home: set(part.state.groups) for home, part in held.items()} == {
        home: set(loaded.groups) for home, (_, loaded) in enumerate(others)
    }
    assert partitions_of(others) is partitions_of([(log, state)]) is None


@pytest.mark.parametrize(
    ("build", "change", "record_offset"),
    [
        (lambda log: log.commit(None), "deleted", 1),
        (lambda log: log.commit(8).commit(None), "deleted", 2),
        (lambda log: log.commit(None).commit(8), "advanced", None),
        (lambda log: log.group(gone=True).commit(None), "deleted", 2),
    ],
)
def test_removals_are_found_in_a_log_that_the_copy_before_tells_no_places_of(
    build: Any, change: str, record_offset: int | None, tmp_path: Path
) -> None:
    before = tmp_path / "before"
    before.write_bytes(b"[g,t,0]::OffsetAndMetadata[7,NO_METADATA,%d]\n" % TIME)
    after = write_log(tmp_path / "after", {partition_for("g", 50): build(LogBuilder().commit(7))})
    (row,) = rows("diff", before, after, "--why", "--retention", "1ms")
    assert (row["change"], row["removed_record_offset"]) == (change, record_offset)
    if change == "deleted":
        assert "not told by what was read" in row["reason"]  # nothing is called expired by a commit time of -1


# ------------------------------------------------------------------------------------- history, top, groups


@pytest.mark.parametrize("name", ["kafka-2.8", "kafka-4.3-mixed"])
def test_history_of_text(name: str, recording: Recordings, tmp_path: Path) -> None:
    folder = recording(name)
    expected = rows("history", folder / "log", "-g", "*")
    found = rows("history", text_of(folder, tmp_path / "text"), "-g", "*")
    assert any(row["member_id"] for row in found)
    if name == "kafka-2.8":
        missing_columns = ("commit_timestamp_ms", "leader_epoch", "client_id", "host", "group_instance_id")
        assert all(row[column] is None for row in found for column in missing_columns)
        expected, found = without(expected, *missing_columns), without(found, *missing_columns)
    assert found == expected


def test_history_of_formatters_lines(recording: Recordings) -> None:
    found = rows("history", "-", "-g", "*", stdin=captured("offsets-formatter-2.8.2-of-kafka-2.8"))
    log = recording("kafka-2.8") / "log"
    records = [row for row in rows("decode", log) if row["record_type"] == 1]
    told = [(row["group"], row["topic"], row["partition"], row["committed_offset"]) for row in found]
    key = ("group", "topic", "partition")
    assert sorted(map(str, told)) == sorted(
        str((*(row["key"][name] for name in key), row["value"] and row["value"]["offset"])) for row in records
    )
    for column in ("record_offset", "timestamp_ms", "effective_record_offset", "transaction", "producer_id"):
        assert {row[column] for row in found} == {None}
    assert run("history", "-", "-g", "*", stdin=captured("groups-formatter-2.8.2-of-kafka-2.8")).exit_code == 1


@pytest.mark.parametrize("name", DUMPED)
@pytest.mark.parametrize("per", ["group", "partition", "hour", "member"])
def test_top_of_text(name: str, per: str, recording: Recordings, tmp_path: Path) -> None:
    """Bytes only where the text has the very sizes of the batches."""
    folder = recording(name)
    expected = rows("top", folder / "log", "--per", per)
    result = run("top", text_of(folder, tmp_path / "text"), "--per", per, "-o", "jsonl")
    found = [json.loads(line) for line in result.stdout.split("\n") if line]
    bytes_ = ("bytes", "bytes_share", "garbage_bytes", "garbage_ratio")
    if name in ("kafka-2.8", "kafka-lifetime"):
        assert "bytes not known" in result.stderr
        assert all(row[column] is None for row in found for column in bytes_)
        missing_columns = [*bytes_, *(("client_id", "host", "group_instance_id") if per == "member" else ())]
        missing_columns += ["noop_commits"] * (
            name == "kafka-lifetime"
        )  # keys of type 0 and 1 look the same in the text
        expected, found = without(expected, *missing_columns), without(found, *missing_columns)
    assert sorted(map(str, found)) == sorted(map(str, expected))
    if bytes_[0] not in found[0]:
        assert [row["records"] for row in found] == sorted((row["records"] for row in found), reverse=True)


REFUSED = [
    (("top", "--by", "bytes"), "bytes"),
    (("top", "--by", "garbage"), "bytes"),
    (("top", "--by", "rate"), "timestamp_ms"),
    (("top", "--per", "hour"), "timestamp_ms"),
    (("top", "--per", "client"), "members"),
    (("groups", "--stale", "1d"), "is_transactional, state"),
    (("diff", "--from-time", "2h"), "timestamp_ms"),
    (("diff", "--from-offset", "5"), "record_offset"),
    (("compact", "--until-time", "2h"), "timestamp_ms"),
    (("compact", "--until-offset", "5"), "record_offset"),
    (("expire",), "current_state_timestamp_ms, state"),
]


@pytest.mark.parametrize(("arguments", "missing"), REFUSED, ids=str)
def test_what_would_have_to_be_guessed_is_refused(arguments: tuple[str, ...], missing: str) -> None:
    result = run(*arguments, "-", stdin=captured("offsets-formatter-2.8.2-of-kafka-2.8"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"this source does not tell {missing}, which would have to be guessed here" in result.stderr


@pytest.mark.parametrize("arguments", [("compact",), ("history", "-g", "*"), ("top", "--by", "noop"), ("rescue",)])
def test_a_text_of_groups_has_no_offsets_to_answer(arguments: tuple[str, ...], tmp_path: Path) -> None:
    to = ("--to", tmp_path / "out") if arguments == ("rescue",) else ()
    result = run(*arguments, *to, "-", stdin=captured("groups-formatter-2.8.2-of-kafka-2.8"))
    assert (result.exit_code, "does not tell committed_offset" in result.stderr) == (1, True)
    assert not (tmp_path / "out").exists()


def test_clients_of_older_text_are_not_told(recording: Recordings, tmp_path: Path) -> None:
    text = text_of(recording("kafka-2.8"), tmp_path / "text")
    result = run("top", "--per", "client", text)
    assert (result.exit_code, "does not tell client_id, host" in result.stderr) == (1, True)


@pytest.mark.parametrize("name", DUMPED)
def test_groups_of_text(name: str, recording: Recordings, tmp_path: Path) -> None:
    folder = recording(name)
    text, now = text_of(folder, tmp_path / "text"), ("--now", "2027-01-01", "--profile", "modern")
    expected, found = rows("groups", folder / "log", *now), rows("groups", text, *now)
    stale = [rows("groups", source, *now, "--stale", "1d") for source in (folder / "log", text)]
    if name in ("kafka-2.8", "kafka-lifetime"):
        times = ("last_commit_timestamp_ms", "commit_age_ms")
        assert all(row[column] is None for row in (*found, *stale[1]) for column in times)
        expected, found = without(expected, *times), without(found, *times)
        stale = [without(listed, *times) for listed in stale]
    if name == "kafka-lifetime":  # messages of magic 0 have no time, and its text no commit times
        found_times = {row["group"]: row["last_activity_timestamp_ms"] for row in found}
        timeless = {group for group, time_ms in found_times.items() if time_ms is None}
        assert (
            f"when {len(timeless)} groups last wrote is not known" in run("groups", text, *now, "--stale", "1d").stderr
            or not timeless
        )
        expected = [row for row in expected if row["group"] not in timeless]
        found = [row for row in found if row["group"] not in timeless]
        stale = [[row for row in listed if row["group"] not in timeless] for listed in stale]
    assert found == expected
    assert stale[0] == stale[1]


def test_groups_and_where_of_formatters_lines_claim_no_states(recording: Recordings) -> None:
    folder = recording("kafka-4.3-mixed")
    found = rows("groups", "-", stdin=console(folder, "offsets"))
    answered = {row["group"] for row in read_json(folder / "answers/restart.json")["offsets"]}
    assert answered <= {row["group"] for row in found}
    for column in ("type", "protocol_type", "state", "members", "pending"):
        assert {row[column] for row in found} == {None}
    assert all(row["last_activity_timestamp_ms"] for row in found)
    (of,) = {
        (row["type"], row["state"], row["members"])
        for row in rows("where", "--of", "-", stdin=console(folder, "offsets"))
    }
    assert of == (None, None, None)
    document = json.loads(run("rebuild", "-", "-o", "json", stdin=console(folder, "offsets")).stdout)
    assert {group["members"] for group in document["groups"]} == {None}
    assert set(document["end_offsets"].values()) == {None}
    # Some groups were deleted: whether their offsets are of before or after is not told.
    both = rows("groups", "-", stdin=console(folder, "offsets") + console(folder, "groups"), status=3)
    states = {row["group"]: row["state"] for row in read_json(folder / "answers/restart.json")["groups"]}
    told = [row for row in both if row["group"] in states and row["type"] == "classic"]
    assert sum(row["state"] == states[row["group"]] for row in told) >= len(told) - 1
    assert any(row["members"] for row in told)


def test_unstable_is_not_claimed_of_lines_without_transactions() -> None:
    (row,) = rows("compact", "--unstable", "-", stdin=b"[g,t,0]::OffsetAndMetadata[1,NO_METADATA,5]\n")
    assert row["unstable"] is None


@pytest.mark.parametrize("name", DUMPED)
def test_info_of_text(name: str, recording: Recordings, tmp_path: Path) -> None:
    folder = recording(name)
    text = text_of(folder, tmp_path / "text")
    expected, found = (rows("info", source, "--profile", "modern") for source in (folder / "log", text))
    is_old = name in ("kafka-2.8", "kafka-lifetime")
    nulls = {column for row in found for column, value in row.items() if value is None} - {"cleaned_until"}
    assert nulls == ({"size_bytes", "written_by"} if is_old else set())
    if name == "kafka-lifetime":  # keys of type 0 and 1 look the same in the text
        expected, found = without(expected, "record_names"), without(found, "record_names")
    for row, whole in zip(found, expected, strict=True):
        assert {column: value for column, value in whole.items() if row[column] is not None or column not in nulls} == {
            column: value for column, value in row.items() if value is not None or column not in nulls
        }
    page = run("info", text, "-o", "table").stdout
    assert ("values as written by Kafka: not told" in page) == is_old


def test_info_of_formatters_lines_claims_nothing_of_the_log() -> None:
    (row,) = rows("info", "-", stdin=captured("offsets-formatter-2.8.2-of-kafka-2.8"))
    assert row["records"] > row["offsets"] > 0
    told = {column for column, value in row.items() if value is not None}
    assert told == {
        "files", "records", "tombstones", "groups", "offsets", "orphans", "corrupt", "unsupported", "record_names",
        "tails",
    }  # fmt: skip
    page = run("info", "-", "-o", "table", stdin=captured("offsets-formatter-2.8.2-of-kafka-2.8"))
    assert "groups after a load: not told" in page.stdout
