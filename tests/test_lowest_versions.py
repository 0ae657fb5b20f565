"""The lowest versions that `pyproject.toml` allows answer as the newest do; all other tests run with the newest."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAMPLE = "samples/kafka-4.3-mixed/log"
PROGRAM = """
import sys
import cli.session
from cli.main import run
cli.session.BULK_FROM_BYTES = 0
run()
"""


def lowest() -> list[str]:
    """Each dependency at its lowest version, as pip takes it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = [dependency.split(",")[0].split(">=") for dependency in project["dependencies"]]
    return [f"{name}=={version}" + ".0" * (2 - version.count(".")) for name, version in bounds]


@pytest.fixture(scope="module")
def lowest_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("lowest")
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *lowest()], check=True)
    return python


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the lowest versions are of the lowest Python")
@pytest.mark.parametrize(
    "arguments",
    [("compact", SAMPLE, "-o", "jsonl"), ("check", SAMPLE)],
    ids=lambda arguments: arguments[0],
)
def test_lowest_versions_answer_as_the_newest(arguments: tuple[str, ...], lowest_python: str) -> None:
    answers = []
    for python in (sys.executable, lowest_python):
        command = [python, "-c", PROGRAM, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        answers.append((done.returncode, done.stdout))
    assert answers[0] == answers[1]
    assert answers[0][0] in (0, 3)
    assert answers[0][1]
