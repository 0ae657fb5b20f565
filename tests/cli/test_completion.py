"""Completion in shells: what click offers for bash, zsh and fish, and a bash that reads the script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(sys.executable).parent
NEEDED = {"bash": "complete -o nosort -F", "zsh": "compdef", "fish": "complete --no-files --command offsets-log"}


def asked(mode: str, **environment: str) -> str:
    done = subprocess.run(
        [SCRIPTS / "offsets-log"],
        env={**os.environ, "_OFFSETS_LOG_COMPLETE": mode, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", NEEDED)
def test_a_script_for_each_shell(shell: str) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("no bash")
    script = asked(f"{shell}_source")
    assert NEEDED[shell] in script
    assert f"_OFFSETS_LOG_COMPLETE={shell}_complete" in script


@pytest.mark.parametrize("shell", NEEDED)
@pytest.mark.parametrize(
    ("typed", "offered"),
    [("comp", {"compact"}), ("re", {"rebuild", "report", "rescue", "restore"}), ("top --by ga", {"garbage"})],
)
def test_commands_and_choices_are_offered(shell: str, typed: str, offered: set[str]) -> None:
    place = typed.rpartition(" ")[2] if shell == "fish" else str(len(typed.split()))
    found = asked(f"{shell}_complete", COMP_WORDS=f"offsets-log {typed}", COMP_CWORD=place)
    names = {word for line in found.split("\n") for word in line.replace(",", " ").split()}
    assert names >= offered
    assert not names & {"decode", "bytes"}


def test_bash_completes_what_is_typed_and_paths() -> None:
    script = """
    eval "$(_OFFSETS_LOG_COMPLETE=bash_source offsets-log)"
    COMP_WORDS=(offsets-log expi); COMP_CWORD=1; _offsets_log_completion offsets-log expi offsets-log
    printf '%s\n' "${COMPREPLY[@]}"
    """
    path = f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["expire"], done.stderr
    assert "file" in asked("bash_complete", COMP_WORDS="offsets-log compact /var", COMP_CWORD="2")
