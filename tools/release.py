"""Cut a release: its version and its day in the files that tell them. ``make release VERSION=X.Y.Z`` builds it too.

The newest section of CHANGELOG.md says what is new, as ``## X.Y.Z (unreleased)``. Nothing is committed or uploaded.
"""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
HEADING = re.compile(r"^## (?P<version>\S+) \((?P<day>[^)]+)\)$", re.MULTILINE)
OWN_VERSION = re.compile(r'^version = "[^"]+"$', re.MULTILINE)
UNRELEASED = "unreleased"


def released(project: str, changelog: str, version: str, day: str) -> tuple[str, str]:
    """Return ``pyproject.toml`` and ``CHANGELOG.md`` of a release.

    Raises:
        ValueError: the version is none, or the newest section is of another one or released already.
    """
    if not VERSION.fullmatch(version):
        raise ValueError(f"{version!r} is no version: X.Y.Z, perhaps with a1, b1 or rc1 behind it")
    newest = HEADING.search(changelog)
    if newest is None or newest.groups() != (version, UNRELEASED):
        found = "it has none" if newest is None else f"it is {newest[0]!r}"
        raise ValueError(f"the newest section of CHANGELOG.md should be '## {version} ({UNRELEASED})': {found}")
    dated = f"{changelog[: newest.start('day')]}{day}{changelog[newest.end('day') :]}"
    return OWN_VERSION.sub(f'version = "{version}"', project, count=1), dated


def main(version: str) -> None:
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        raise click.ClickException("there are changes that are not committed: a release is of what everybody can see")
    project, changelog = ROOT / "pyproject.toml", ROOT / "CHANGELOG.md"
    day = datetime.now(UTC).date().isoformat()
    try:
        texts = released(project.read_text(encoding="utf-8"), changelog.read_text(encoding="utf-8"), version, day)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    for path, text in zip((project, changelog), texts, strict=True):
        path.write_text(text, encoding="utf-8")
    click.echo(f"{version} of {day}: look at git diff, then git commit -am 'Release {version}' && git tag v{version}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2] or [""])
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
