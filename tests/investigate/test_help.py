"""The examples of `--help` run, with a sample in the place of a broker's directory and of archives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import main

SAMPLE = Path(__file__).parents[2] / "samples" / "kafka-4.3-mixed" / "log"
PLACES = ("/var/lib/kafka/data", "backup.tar.gz", "before.tar.gz")
COMMANDS = ("diff", "groups", "history", "top", "where")


def examples() -> list[str]:
    found: list[str] = []
    for name in COMMANDS:
        command = main.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.epilog is not None
        found += command.epilog.partition(": ")[2].split(" · ")
    return found


@pytest.mark.parametrize("example", examples())
def test_example(example: str) -> None:
    assert "offsets-log " in example
    for place in PLACES:
        example = example.replace(place, str(SAMPLE))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", example], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr
