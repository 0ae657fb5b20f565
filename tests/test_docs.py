"""The README cannot drift: its sessions are run and their output compared, its library example too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import COMMANDS, main

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [match["text"] for match in BLOCK.finditer(README.read_text()) if match["language"] == language]


def sessions() -> list[tuple[str, str]]:
    """(command, expected output) of every ``$`` line."""
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def run(command: str, folder: Path) -> str:
    """Run in a folder that sees the samples, with this interpreter's scripts first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_sessions_print_what_they_show(tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    ran = 0
    for command, expected in sessions():
        assert run(command, tmp_path) == expected, command
        ran += 1
    assert ran >= 8


def test_readme_library_example_runs(tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    (example,) = blocks("python")
    (tmp_path / "example.py").write_text(example)
    assert run("python example.py", tmp_path).count("groups,") == 4


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_stands_in_the_readme(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert re.search(rf"Examples?:\s+offsets-log {name}", result.output)
    assert f"offsets-log {name}" in README.read_text()
