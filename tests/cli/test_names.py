"""Groups whose names have signs of globs, or blanks that nobody sees: what is meant, and what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from offsets_log.rows.asked_names import AskedNames, literal, name_of
from offsets_log.words import visible
from tests.cli.runs import batch_of, commit, rows, run, write_partition

NAMES = ("job[1]", "job1", "what?", "what!", "a*b", "axb", "[", "*", "[!a]", "b", "]x[", "ok")


def log_of(folder: Path, names: tuple[str, ...], **facts: Any) -> Path:
    return write_partition(folder, [batch_of(*(commit(name) for name in names), **facts)])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "*"])
def test_a_name_that_is_held_is_meant_alone(name: str, tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", NAMES)
    assert [row["group"] for row in rows("compact", log, "-g", name)] == [name]
    assert [row["group"] for row in rows("compact", log, "-g", literal(name))] == [name]
    assert run("rescue", log, "-g", name, "--to", tmp_path / "out").exit_code == 0
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert {row["group"] for row in plan["offsets"]} == {name}


@pytest.mark.parametrize("name", [name for name in NAMES if name_of(name) is None and name != "*"])
def test_how_the_glob_is_asked_for_is_told(name: str, tmp_path: Path) -> None:
    """And what is told is no name itself, and fits what the glob fits."""
    asked = AskedNames((name,), {name}.__contains__)
    (told,) = asked.remarks("-g")
    assert "meant alone" in told
    log = log_of(tmp_path, NAMES)
    assert told in run("compact", log, "-g", name).stderr


@pytest.mark.parametrize(
    ("glob", "other"),
    [("job[1]", "[j]ob[1]"), ("what?", "[w]hat?"), ("a*b", "[a]*b"), ("*x", "*[x]"), ("??", "??*"), ("[ab]", "[ab]*")],
)
def test_the_glob_that_is_told(glob: str, other: str) -> None:
    (told,) = AskedNames((glob,), {glob}.__contains__).remarks("-g")
    assert f"'{other}'" in told


def test_all_is_meant_where_a_group_is_named_so(tmp_path: Path) -> None:
    log = log_of(tmp_path, NAMES)
    assert {row["group"] for row in rows("compact", log, "-g", "*")} == set(NAMES)
    assert [row["group"] for row in rows("compact", log, "-g", "[*]")] == ["*"]


def test_compressed_names_are_told_with_what_fits(tmp_path: Path) -> None:
    log = log_of(tmp_path, NAMES, compression="gzip")
    result = run("compact", log, "-g", "a*b")
    assert {json.loads(line)["group"] for line in result.stdout.splitlines()} == {"a*b", "axb"}
    assert "a group is named exactly 'a*b', and is among those that fit: -g 'a[*]b' is for it alone" in result.stderr


@pytest.mark.parametrize(("option", "left"), [("--drop-group", {"axb", "ok"}), ("--keep-group", {"a*b"})])
def test_clean_means_the_name_too(option: str, left: set[str], tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", ("a*b", "axb", "ok"))
    result = run("clean", log, option, "a*b", "--deep", "--to", tmp_path / "to")
    assert f"{option} 'a*b' is a group's whole name" in result.stderr
    assert {row["group"] for row in rows("compact", tmp_path / "to")} == left


@pytest.mark.parametrize("option", ["--drop-group", "--keep-group"])
def test_clean_writes_nothing_where_it_cannot_know(option: str, tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", NAMES, compression="gzip")
    result = run("clean", log, option, "a*b", "--deep", "--to", tmp_path / "to")
    assert result.exit_code == 1
    assert f"nothing is written: {option} a*b is a group's name" in result.stderr
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("name", ["Billing", "billing ", " billing", "billing\xa0", "bil\u200bling", "BILLING"])
def test_a_name_that_is_nearly_another_is_told(name: str, tmp_path: Path) -> None:
    log = log_of(tmp_path, (name, "orders"))
    result = run("compact", log, "-g", "billing")
    assert not result.stdout
    assert f"no group is named 'billing', but for case and blanks: '{visible(name)}'" in result.stderr


def test_blanks_that_hide_are_seen_in_tables(tmp_path: Path) -> None:
    log = log_of(tmp_path, ("a ", " b", "c\xa0", "d\u2003e", "f g", "  "))
    table = run("compact", log, "-o", "table").stdout
    for shown in (r"a\x20", r"\x20b", r"c\xa0", r"d\u2003e", "f g", r"\x20\x20"):
        assert f" {shown} " in table


def test_names_without_signs_are_never_looked_for() -> None:
    def fail(name: str) -> bool:
        raise AssertionError(name)

    asked = AskedNames(("a", "b[*]", "*"), fail)
    assert asked("a")
    assert asked("anything")
