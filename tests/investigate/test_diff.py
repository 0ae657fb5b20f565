"""`diff` between any two steps of a recording against the difference of the brokers' answers at these steps."""

from __future__ import annotations

import json
import random
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log_cli.main import main
from tests.builders import TIME, LogBuilder, member
from tests.conftest import json_lines, read_json
from tests.replay.test_compact_recordings import WITH_STEPS, Recording, profile_of, steps
from tests.replay.test_rebuild_recordings import EMPTY_IS_NULL

Json = dict[str, Any]

COLUMNS = (
    "group", "topic", "partition", "change", "from_offset", "to_offset", "from_record_offset", "to_record_offset",
    "from_timestamp_ms", "to_timestamp_ms",
)  # fmt: skip


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["diff", *map(str, arguments)], catch_exceptions=False)


def rows(*arguments: object, status: int = 0) -> list[Json]:
    result = run(*arguments, "-o", "jsonl")
    assert result.exit_code == status, result.stderr
    return list(json_lines(result.stdout))


def bounds(before: Json, after: Json) -> list[str]:
    return [
        part
        for option, line in (("--from-offset", before), ("--until-offset", after))
        for partition, offset in line["end_offsets"].items()
        for part in (option, f"{partition}:{offset}")
    ]


def pairs(folder: Path, facts: Json) -> list[tuple[Path, Json, Json]]:
    """Neighbouring steps, and as many that lie apart."""
    found = [(log, before, after) for (log, before), (other, after) in pairwise(steps(folder, facts)) if log == other]
    dice = random.Random(facts["name"])
    ends = [dice.sample(range(len(found)), 2) for _ in found if len(found) > 1]
    apart = [(found[i][0], found[min(i, j)][1], found[max(i, j)][2]) for i, j in ends]
    return found[:: max(1, len(found) // 25)] + apart[:25]


def answered(line: Json) -> dict[tuple[str, str, int], tuple[int, Any, str]]:
    return {
        (row["group"], row["topic"], row["partition"]): (row["committed_offset"], row["leader_epoch"], row["metadata"])
        for row in line["offsets"]
    }


def expected_changes(before: Json, after: Json) -> dict[tuple[str, str, int], tuple[str, int | None, int | None]]:
    old, new = answered(before), answered(after)
    found: dict[tuple[str, str, int], tuple[str, int | None, int | None]] = {}
    for key in old.keys() | new.keys():
        if key not in old:
            found[key] = ("new", None, new[key][0])
        elif key not in new:
            found[key] = ("gone", old[key][0], None)
        elif old[key] != new[key]:
            step = new[key][0] - old[key][0]
            same = "metadata" if old[key][2] != new[key][2] else "leader_epoch"
            found[key] = (same if step == 0 else "advanced" if step > 0 else "rewound", old[key][0], new[key][0])
    return found


@pytest.mark.parametrize("name", [name for name in WITH_STEPS if name != "kafka-4.3-live-copy"])  # it has one step
def test_changes_between_steps_are_those_of_the_brokers_answers(name: str, recording: Recording) -> None:
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    kinds = set()
    for log, before, after in pairs(folder, facts):
        found = rows(log, *bounds(before, after), "--profile", profile_of(facts).name)
        assert all(tuple(row) == COLUMNS for row in found)
        names = ("group", "topic", "partition")
        assert [tuple(row[name] for name in names) for row in found] == sorted(
            tuple(row[name] for name in names) for row in found
        )
        kinds |= {row["change"] for row in found}
        shown = {
            tuple(row[name] for name in names): (
                "gone" if row["change"] in ("deleted", "expired") else row["change"],
                row["from_offset"],
                row["to_offset"],
            )
            for row in found
        }
        assert shown == expected_changes(before, after), (before["what"], after["what"])
    assert "new" in kinds


def members_of(line: Json) -> dict[tuple[str, str], Json]:
    return {(group["group"], member["member_id"]): member for group in line["groups"] for member in group["members"]}


def groups_of(line: Json) -> dict[str, Json]:
    return {
        row["group"]: {name: value or None if name in EMPTY_IS_NULL else value for name, value in row.items()}
        for row in line["groups"]
        if row["type"] is not None
    }


def expected_kinds(old: dict[Any, Json], new: dict[Any, Json], facts: tuple[str, ...]) -> dict[Any, str]:
    def is_same(key: Any) -> bool:
        return all(old[key].get(fact) == new[key].get(fact) for fact in facts)

    return (
        dict.fromkeys(new.keys() - old.keys(), "new")
        | dict.fromkeys(old.keys() - new.keys(), "deleted")
        | {key: "changed" for key in old.keys() & new.keys() if not is_same(key)}
    )


@pytest.mark.parametrize(
    "name", ["kafka-4.3-mixed", "kafka-4.3-modern-groups", "kafka-3.9-classic", "kafka-4.3-expired"]
)
def test_groups_and_members_between_steps_are_those_of_the_brokers_answers(
    name: str, recording: Recording, tmp_path: Path
) -> None:
    folder = recording(name)
    facts = read_json(folder / "recording.json")
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps({topic["id"]: name for name, topic in facts["topics"].items() if "id" in topic}))
    changed = 0
    for log, before, after in pairs(folder, facts)[::2]:
        arguments = (log, *bounds(before, after), "--profile", profile_of(facts).name, "--topic-ids", ids)
        found = rows(*arguments, "--table", "groups")
        old, new = groups_of(before), groups_of(after)
        for side in (old, new):
            for row in side.values():
                row["members"] = len(row["members"])
        asked = ("type", "state", "members", "protocol_type", "protocol", "group_epoch", "assignment_epoch")
        shown = {row["group"]: row["change"] for row in found if row["change"] != "changed" or is_about(row, asked)}
        assert shown == expected_kinds(old, new, asked), (before["what"], after["what"])
        found = rows(*arguments, "--table", "members")
        asked = ("client_id", "host", "member_epoch", "assignment")
        shown = {
            (row["group"], row["member_id"]): row["change"]
            for row in found
            if row["change"] != "changed" or is_about(row, asked)
        }
        assert shown == expected_kinds(members_of(before), members_of(after), asked), (before["what"], after["what"])
        changed += len(shown)
    assert changed > 0


def is_about(row: Json, facts: tuple[str, ...]) -> bool:
    return any(row[f"from_{fact}"] != row[f"to_{fact}"] for fact in facts)


# --------------------------------------------------------------------------------- deleted or expired


def test_what_a_broker_expired_is_called_so_with_its_retention_and_deleted_without(recording: Recording) -> None:
    """``E-3``–``E-11``: the recording's broker had a retention of one minute and nobody deleted anything."""
    folder = recording("kafka-4.3-expired")
    lines = [line for _, line in steps(folder, read_json(folder / "recording.json"))]
    arguments = (folder / "log", *bounds(lines[0], lines[-1]))
    seen = 0
    for before, after in pairwise(lines):
        arguments = (folder / "log", *bounds(before, after))
        gone = {key for key, (kind, *_) in expected_changes(before, after).items() if kind == "gone"}
        found = rows(*arguments, "--retention", "1m")
        expired = {
            (row["group"], row["topic"], row["partition"]) for row in found if row["change"] in ("deleted", "expired")
        }
        assert expired == gone
        assert {row["change"] for row in found if row["to_offset"] is None and row["from_offset"] is not None} <= {
            "expired"
        }
        seen += len(gone)
    assert seen >= 10
    result = run(folder / "log", *bounds(lines[0], lines[-1]), "--why")
    assert "expired" not in {row["change"] for row in json_lines(result.stdout) if "retention" in str(row["reason"])}


@pytest.mark.parametrize("step", ["partition 1 deleted", "partition 0 deleted", "two of the awkward groups"])
def test_what_an_administrator_deleted_is_called_deleted_and_known(step: str, recording: Recording) -> None:
    """``E-19``, ``E-20``: seconds after the commit, no retention is so short."""
    folder = recording("kafka-4.3-mixed")
    lines = [line for _, line in steps(folder, read_json(folder / "recording.json"))]
    for before, after in pairwise(lines):
        gone = [key for key, (kind, *_) in expected_changes(before, after).items() if kind == "gone"]
        if step in after["what"] and gone:
            result = run(folder / "log", *bounds(before, after), "--why", "-o", "jsonl")
            found = [row for row in json_lines(result.stdout) if row["to_offset"] is None]
            assert [row["change"] for row in found] == ["deleted"] * len(gone)
            assert all("could not expire" in row["reason"] for row in found)
            assert "does not show" not in result.stderr
            return
    raise AssertionError(step)


def write(log: LogBuilder, folder: Path, partition: int = 0) -> Path:
    directory = folder / f"__consumer_offsets-{partition}"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "00000000000000000000.log").write_bytes(b"".join(log.batches))
    return folder


OLD = {"commit_timestamp": TIME - 100_000}


@pytest.mark.parametrize(
    ("build", "options", "change", "words"),
    [
        (lambda log: log.commit(None), (), "deleted", "not known"),
        (lambda log: log.commit(None), ("--retention", "1m"), "expired", "by commit time"),
        (lambda log: log.commit(None), ("--retention", "2m"), "deleted", "could not expire"),
        (lambda log: log.commit(8, **OLD).commit(None), (), "deleted", "not known"),
        (lambda log: log.commit(8).commit(None), (), "deleted", "could not expire"),
        (lambda log: log.commit(8, version=1, expire_timestamp=TIME).commit(None), (), "expired", "expire timestamp"),
        (lambda log: log.commit(8, producer=7, **OLD).commit(None), (), "deleted", "open transaction"),
        (lambda log: log.commit(8, producer=7).end(7).commit(None), (), "deleted", "could not expire"),
        (lambda log: log.commit(8, producer=7).end(7, commit=False).commit(None), (), "deleted", "not known"),
        (lambda log: log.group(member("m")).commit(None), ("--retention", "1m"), "deleted", "subscription"),
        (lambda log: log.group(gone=True), ("--retention", "1m"), "deleted", "nobody is given it"),
    ],
)  # fmt: skip
def test_how_a_removal_is_called(build: Any, options: tuple[str, ...], change: str, words: str, tmp_path: Path) -> None:
    log = build(LogBuilder().commit(7, **OLD))
    (row,) = rows(write(log, tmp_path), "--from-offset", 1, "--why", *options)
    assert (row["change"], row["from_offset"], row["to_offset"]) == (change, 7, None)
    assert words in row["reason"]


# ---------------------------------------------------------------------------------------- two copies


def test_two_copies_are_compared_as_two_moments_of_one(tmp_path: Path) -> None:
    log = (
        LogBuilder()
        .commit(5)
        .commit(5, partition=1)
        .commit(9, partition=2)
        .commit(1, group="gone")
        .commit(3, partition=3)
    )
    a = write(log, tmp_path / "a")
    log.commit(6).commit(5, partition=1, metadata="m").commit(8, partition=2).commit(None, group="gone").commit(
        3, partition=3
    )
    b = write(log.commit(1, partition=4), tmp_path / "b")
    found = rows(a, b)
    assert [(row["group"], row["partition"], row["change"]) for row in found] == [
        ("g", 0, "advanced"), ("g", 1, "metadata"), ("g", 2, "rewound"), ("g", 4, "new"), ("gone", 0, "deleted"),
    ]  # fmt: skip
    assert found == rows(b, "--from-offset", 5)
    assert "1 offset unchanged" in run(a, b).stderr
    assert "B ends earlier than A" in run(b, a).stderr


def test_a_partition_that_one_copy_lacks_is_told_and_not_taken_for_deleted(tmp_path: Path) -> None:
    both = LogBuilder().commit(5)
    a = write(both, write(LogBuilder().commit(5, group="h").commit(1, group="i"), tmp_path / "a", 1))
    b = write(both, tmp_path / "b")
    assert rows(a, b, status=3) == []
    assert f"offsets partition 1 is only in {a}: its 2 offsets are not compared" in run(a, b).stderr


def test_damage_in_either_copy_is_told_in_the_exit_status(tmp_path: Path) -> None:
    good = write(LogBuilder().commit(5), tmp_path / "a")
    bad = write(LogBuilder().add((b"\0\1", b"")).commit(5), tmp_path / "b")
    assert run(good, bad).exit_code == run(bad, good).exit_code == 3
    assert run(good, bad, "--strict").exit_code == run(bad, good, "--strict").exit_code == 1


def test_damage_in_transaction_states_counts_where_they_decide(tmp_path: Path) -> None:
    sample = Path("samples/kafka-4.3-data-directory")
    copy = shutil.copytree(sample, tmp_path / "copy")
    log = copy / "__transaction_state-1" / "00000000000000000000.log"
    raw = bytearray(log.read_bytes())
    raw[80] ^= 0xFF
    log.write_bytes(raw)
    assert [run(sample, copy, *decide).exit_code for decide in ((), ("--decide",))] == [0, 3]


def test_damage_in_a_log_that_is_read_twice_is_kept_once(tmp_path: Path) -> None:
    log = write(LogBuilder().commit(5).add((b"\0\1", b"")).commit(6), tmp_path / "log")
    kept = tmp_path / "kept"
    assert rows(log, "--from-offset", 2, "--quarantine", kept, status=3)[0]["change"] == "advanced"
    assert [row["record_offset"] for row in json_lines(kept.read_text())] == [1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("x",),
        ("x", "y", "z"),
        ("x", "--from-time", TIME + 5, "--until-time", TIME + 4),
        ("x", "--from-offset", 5, "--until-offset", 4),
        ("-", "-"),
    ],
)
def test_wrong_usage(arguments: tuple[object, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_times_bound_both_states(tmp_path: Path) -> None:
    log = LogBuilder().commit(1).commit(2).commit(3).commit(4)
    found = rows(write(log, tmp_path), "--from-time", TIME, "--until-time", TIME + 2)
    assert [(row["from_offset"], row["to_offset"]) for row in found] == [(1, 3)]


def test_what_is_in_a_missing_segment_gets_no_rule(tmp_path: Path) -> None:
    log = Path("samples/kafka-lifetime/log")
    copy = shutil.copytree(log, tmp_path / "copy")
    (copy / "__consumer_offsets-1" / "00000000000000000100.log").unlink()
    result = run(log, copy, "--why", "-o", "jsonl")
    gone = [row for row in json_lines(result.stdout) if row["change"] == "deleted"]
    assert result.exit_code == 3
    assert gone
    assert {(row["rule"], row["reason"]) for row in gone} == {
        (None, "not known: part of the log is missing or damaged")
    }
    assert f"whether {len(gone)} of the deleted offsets expired; --why says more" in result.stderr


def test_a_leader_epoch_alone_is_no_change_of_metadata(tmp_path: Path) -> None:
    log = LogBuilder().commit(5).commit(5, partition=1).commit(5, leader_epoch=3).commit(5, partition=1, metadata="m")
    folder = write(log, tmp_path / "a")
    assert {row["partition"]: row["change"] for row in rows(folder, "--from-offset", "2")} == {
        0: "leader_epoch", 1: "metadata",
    }  # fmt: skip
