"""A release is cut from what the changelog says is not released yet."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tools.release import released

ROOT = Path(__file__).parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text()
CHANGELOG = "# Changelog\n\n## 0.2.0 (unreleased)\n\nNew.\n\n## 0.1.0 (2026-01-31)\n\nThe first.\n"


@pytest.mark.parametrize("version", ["0.2.0", "0.2.0rc1"])
def test_version_and_day_are_written_where_they_are_told(version: str) -> None:
    before = CHANGELOG.replace("0.2.0", version)
    project, changelog = released(PROJECT, before, version, "2026-03-01")
    expected = tomllib.loads(PROJECT)
    expected["project"]["version"] = version
    assert tomllib.loads(project) == expected
    assert changelog == before.replace("unreleased", "2026-03-01")


@pytest.mark.parametrize(
    ("version", "changelog"),
    [("0.2", CHANGELOG), ("0.3.0", CHANGELOG), ("0.1.0", CHANGELOG[35:]), ("0.2.0", "# Changelog\n")],
)
def test_what_the_changelog_does_not_announce_is_not_released(version: str, changelog: str) -> None:
    with pytest.raises(ValueError, match=r"X\.Y\.Z|should be"):
        released(PROJECT, changelog, version, "2026-03-01")


def test_the_changelog_of_this_project_can_be_released() -> None:
    newest = next(line.split()[1] for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line[:3] == "## ")
    assert newest == tomllib.loads(PROJECT)["project"]["version"]
