"""The table of releases: what rows inherit, which names there are, and that all who speak of releases read it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from offsets_log.cleaner.settings import Rules
from offsets_log.coordinator.config import Writes
from offsets_log.kafka_releases import NEWEST, ROWS, SPAN, TABLE, row_of
from offsets_log.protocol.registry import APIS
from offsets_log.rebalance.cases import assignment_answer
from offsets_log.release_names import release_asked
from offsets_log.replay.expiry import ERAS
from offsets_log.replay.profile import MODERN, PROFILES, RELEASES
from offsets_log.replay.releases import release_named
from offsets_log.serving.answers import ANSWERS, versions_of
from tests.cli.runs import run

ROOT = Path(__file__).parent.parent


def test_rows_stand_in_the_order_of_their_releases_and_name_only_what_is_other() -> None:
    versions = [row.version for row in ROWS]
    assert versions == sorted(set(versions))
    for before, row in zip(TABLE, ROWS[1:], strict=False):
        for column in ("scala", "java", "load", "writes", "defaults", "cleaner", "assignors", "features", "apis"):
            changes, held = getattr(row, column) or {}, getattr(before, column) or {}
            assert not [name for name, value in changes.items() if held.get(name, row) == value], (row.name, column)


def test_a_row_has_what_it_does_not_name_from_the_row_before() -> None:
    first, then = row_of((2, 3)), row_of((2, 4))
    assert then.defaults == first.defaults
    assert then.scala == first.scala
    assert (first.scala_era, then.scala_era) == ("2.1", "2.4")
    assert row_of((4, 0)).scala is None
    assert row_of((3, 0)).cleaner is None
    assert row_of((2, 4, 1)).assignors is None


def test_every_row_gives_each_room_its_rules() -> None:
    for row in TABLE:
        assert Writes(**row.writes)
        assert row.cleaner is None or Rules(**row.cleaner) == Rules.of(row.version)
        for era in filter(None, (row.scala_era, row.java_era)):
            assert era in ERAS
        assert release_named(row.name).profile in RELEASES.values()
    assert list(PROFILES) == ["modern", "modern-3.7", "classic"]
    assert release_named(NEWEST.name).profile is MODERN
    assert MODERN.release == NEWEST.line


@pytest.mark.parametrize(
    ("name", "row", "is_verified"),
    [
        ("0.8.2", "0.8.2", True), ("0.8.2.2", "0.8.2", True), ("0.10", "0.10.0", True), ("0.10.2.1", "0.10.1", True),
        ("2.8.1", "2.8", True), ("2.8.2", "2.8.2", True), ("3.7.2", "3.7.1", True), ("3.9.2", "3.9.2", True),
        ("4.3", "4.3", True), ("4.3.0", "4.3", True), ("4.3.1", "4.3.1", True), ("4.4.0", "4.4", True),
        ("2.8.3", "2.8.2", False), ("3.9.3", "3.9.2", False), ("4.3.2", "4.3.1", False),
        ("99.99.99", NEWEST.name, False), (f"{NEWEST.name}.9", NEWEST.name, False),
        (f"{NEWEST.line[0]}.{NEWEST.line[1] + 1}", NEWEST.name, False),
        (f"{NEWEST.line[0] + 1}.0.1", NEWEST.name, False), (f"{NEWEST.line[0] + 1}", NEWEST.name, False),
        (f"{NEWEST.name}.0-SNAPSHOT", NEWEST.name, False), (f"{NEWEST.name}-rc1", NEWEST.name, False),
        ("4.3.1-RC0", "4.3.1", False), ("99.0-SNAPSHOT", NEWEST.name, False),
    ],
)  # fmt: skip
def test_a_name_finds_the_last_row_before_it_and_says_if_that_is_not_verified(
    name: str, row: str, is_verified: bool
) -> None:
    """A patch release that came after the known ones of its line is no more verified than a new line."""
    asked = release_asked(name)
    assert (asked.row.name, asked.is_verified) == (row, is_verified)
    assert asked.shown == (name if is_verified else f"{name} (as {row}, not verified)")
    assert len(asked.doubts) == (not is_verified)


@pytest.mark.parametrize(
    "name",
    [
        "0.8.1",
        "0.12",
        "1.2",
        "2.9",
        "3.10",
        "3.99",
        "4.four",
        "4",
        "",
        "x",
        "3.7-java",
        "4.4.0.0.0",
        "4-rc1",
        "4.4-rc",
        "٤.٤",
    ],
)
def test_a_name_of_a_release_that_never_was_is_refused(name: str) -> None:
    """A line that is older than the newest and not in the table was left out by Kafka."""
    with pytest.raises(ValueError, match="is no release of Kafka"):
        release_asked(name)


def test_the_previews_of_the_java_coordinator_have_names_of_their_own() -> None:
    assert [name for name in RELEASES if name.endswith("-java")] == ["3.7-java", "3.8-java", "3.9-java"]
    assert release_named("3.9.3-java").name == "3.9.3-java (as 3.9.2, not verified)"
    for name in ("3.6-java", "4.0-java", "5.0-java"):
        with pytest.raises(ValueError, match="is no release of Kafka"):
            release_named(name)


def test_no_api_is_served_in_a_later_version_than_brokers_have() -> None:
    assert {api.name for api in APIS.values()} == NEWEST.apis.keys()
    for release in ((3, 7), (3, 9), NEWEST.line):
        apis = row_of(release).apis
        for key in ANSWERS:
            newest = min(apis.get(APIS[key].name, -1), APIS[key].versions[1])
            assert all(version <= newest for version in versions_of(key, release))


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("README.md", "value version that Kafka {span} writes"),
        ("README.md", "newer than Kafka {newest}'s are kept raw"),
        ("docs/index.md", "real brokers from Kafka {span}."),
        ("docs/index.md", "for every release from {span}."),
        ("docs/how-it-works.md", "Real brokers from {span} were driven"),
        ("docs/inputs-and-outputs.md", "`kafka-dump-log --offsets-decoder`, 0.9 to {newest}"),
        ("docs/inputs-and-outputs.md", "Kafka's formatters, {span}"),
        ("docs/limits.md", "| 0–4 | 0.8.2 – {newest} |"),
        ("docs/limits.md", "| 0–4 | 0.9 – {newest} |"),
        ("docs/limits.md", "3.8 – {newest} |"),
        ("docs/limits.md", "| 17, 19–23 | 0 | 4.1 – {newest} |"),
        ("docs/limits.md", "| 0.11 – {newest} |"),
    ],
)
def test_what_people_read_names_the_newest_release(file: str, words: str) -> None:
    text = (ROOT / file).read_text()
    assert re.sub(r"\s+", " ", words.format(span=SPAN, newest=NEWEST.name)) in re.sub(r"\s+", " ", text)


LOG = ROOT / "samples" / "kafka-4.3-mixed" / "log"


@pytest.mark.parametrize(
    "words",
    [
        ("clean", str(LOG), "--dry-run", "-p", "0", "--broker", "99.1"),
        ("repair", str(LOG), "--dry-run", "-p", "0", "--drop-unloadable", "99.1"),
        ("decode", str(LOG), "-p", "0", "--kafka", "99.1"),
        ("assign", "--topics", "t=1", "--members", "m:t", "--kafka", "99.1"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_says_that_a_newer_release_is_not_verified(words: tuple[str, ...]) -> None:
    """It answers by the rules of the newest that is known."""
    by_newest = tuple(NEWEST.name if word == "99.1" else word for word in words)
    result, expected = run(*words), run(*by_newest)
    told = f"99.1 is newer than the releases that are known here: it is answered as {NEWEST.name}, not verified"
    assert result.exit_code == expected.exit_code == 0
    assert told in result.stderr
    assert told not in expected.stderr
    assert result.stdout == expected.stdout
    if words[0] != "assign":
        assert told in run(*words, "-q").stderr
    for other in ("3.10", "4.four"):
        assert run(*(other if word == "99.1" else word for word in words)).exit_code == 2


def test_an_answered_question_names_its_release_as_not_verified() -> None:
    case = {"topics": {"t": 1}, "members": [{"member_id": "m", "topics": ["t"]}], "kafka": "99.1"}
    answer = assignment_answer(case)
    assert answer["kafka"] == f"99.1 (as {NEWEST.name}, not verified)"
    assert assignment_answer(case | {"kafka": "3.4.1"})["kafka"] == "3.4.1"
