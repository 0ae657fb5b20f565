"""`explain`: rules by their ids, layouts of records from the schema tables."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import ArrayOf, Field, Struct
from offsets_log.rules import rules
from offsets_log_cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments])


def rows(*arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments, "-o", "jsonl")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_rule_is_told_with_what_it_means_and_what_to_do() -> None:
    text = run("B-9", "records:y3", "-o", "table").stdout
    for part in ("B-9", "records:Y3", "what it means", "what to do", "how sure"):
        assert part in text
    assert all(len(line) <= 110 for line in text.splitlines())
    assert ".py" not in text
    sources = run("B-9", "-v", "-o", "table").stdout
    assert all(part in sources for part in ("in Kafka", "refusal.py", "tested by"))
    first, second = rows("B-9", "records:y3")
    assert (first["kind"], first["id"], second["id"]) == ("rule", "B-9", "records:Y3")
    assert first["says"] == rules()["B-9"].says
    assert "offsets_log/replay/refusal.py" in first["acts_in"]


def test_rules_fit_a_terminal() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "PAGER": "cat"}
    command = [sys.executable, "-c", "from offsets_log_cli.main import main; main()", "explain", "E-1", "B-9"]
    with os.fdopen(theirs, "wb") as terminal:
        subprocess.run(command, stdout=terminal, env=environment, check=True)
    with os.fdopen(ours, "rb") as terminal:
        lines = terminal.read1(1 << 16).decode().splitlines()
    assert lines[0].startswith("E-1 ")
    assert all(len(line) <= 80 for line in lines)


def test_the_id_that_a_rule_has_had_leads_to_it() -> None:
    assert rows("E.1")[0]["id"] == "E-23"
    assert rows("E-1")[0]["id"] == "E-1"


def test_every_rule_can_be_explained() -> None:
    for id_ in rules():
        assert run(id_, "-o", "table").stdout.startswith(id_)


@pytest.mark.parametrize("name", ["B-99", "offset-comit", "R-3", "what", ""])
def test_what_is_neither_is_one_error_with_what_is_near(name: str) -> None:
    result = run(name)
    assert result.exit_code == 2
    assert result.stdout == ""
    near = {
        "B-99": "near it are B-9",
        "offset-comit": "near it are offset-commit",
        "R-3": "rules begin with L, J, B, E, C, CL, D, DD, ST, W, G, A, V, records, K44; offsets-log explain lists all",
    }.get(name, "lists all")
    assert near in result.stderr


@pytest.mark.parametrize("name", ["2", "group-metadata", "GroupMetadata", "GroupMetadataValue", "group metadata"])
def test_a_record_is_found_by_number_and_name(name: str) -> None:
    assert {row["record_type"] for row in rows(name)} == {2}


def test_the_layout_of_an_offset_commit() -> None:
    found = {
        version: [row["field"] for row in rows("offset-commit") if (row["part"], row["version"]) == ("value", version)]
        for version in range(5)
    }
    assert found == {
        0: ["offset", "metadata", "commit_timestamp"],
        1: ["offset", "metadata", "commit_timestamp", "expire_timestamp"],
        2: ["offset", "metadata", "commit_timestamp"],
        3: ["offset", "leader_epoch", "metadata", "commit_timestamp"],
        4: ["offset", "leader_epoch", "metadata", "commit_timestamp", "topic_id"],
    }
    (topic_id,) = (row for row in rows("1") if row["field"] == "topic_id")
    assert (topic_id["tag"], topic_id["type"], topic_id["versions"], topic_id["flexible"]) == (0, "uuid", "4+", True)
    assert topic_id["default"] == "AAAAAAAAAAAAAAAAAAAAAA"


def test_layouts_that_share_a_version_are_told_apart_by_release() -> None:
    releases = {row["releases"] for row in rows("5") if row["part"] == "value"}
    assert releases == {"3.8 and later", "up to 3.7"}
    assert "value: int16 0, then, by Kafka up to 3.7, flexible" in run("5", "-o", "table").stdout


def count(fields: tuple[Field, ...], version: int) -> int:
    """Fields of a version, those inside others too."""
    found = 0
    for field in fields:
        first, plus, last = field.versions.partition("+") if "+" in field.versions else field.versions.partition("-")
        if int(first) <= version and (plus == "+" or version <= int(last or first)):
            inner = field.type.element if isinstance(field.type, ArrayOf) else field.type
            found += 1 + (count(inner.fields, version) if isinstance(inner, Struct) else 0)
    return found


@pytest.mark.parametrize("number", RECORD_TYPES)
def test_every_record_type_has_all_its_fields(number: int) -> None:
    row = RECORD_TYPES[number]
    expected = count(row.key.fields, 0)
    for layout in row.values:
        first, _, last = layout.versions.partition("-")
        expected += sum(count(layout.fields, version) for version in range(int(first), int(last or first) + 1))
    assert len(rows(str(number))) == expected
    assert run(str(number), "-o", "table").exit_code == 0


def test_without_arguments_all_is_listed() -> None:
    found = rows()
    assert [row["id"] for row in found if row["kind"] == "rule"] == list(rules())
    assert {row["record_type"] for row in found if row["kind"] == "field"} == set(RECORD_TYPES)
    text = run("-o", "table").stdout
    assert all(f" {id_} " in text for id_ in rules())
    assert "ShareGroupStatePartitionMetadata" in text
    assert run("-o", "csv").stdout.startswith("kind,id,says,")
