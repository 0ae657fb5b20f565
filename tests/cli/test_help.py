"""`--help` of every command: examples that run, with samples in the place of a broker's directory and of archives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from offsets_log_cli.main import COMMANDS, main
from tests.cli.runs import words_of
from tools.cli_reference import PAGE, reference

SAMPLE = Path(__file__).parents[2] / "samples" / "kafka-4.3-mixed" / "log"
DATA_DIRECTORY = SAMPLE.parents[1] / "kafka-4.3-data-directory"
SEGMENT = "00000000000000000000.log"
PLACES = {
    "/var/lib/kafka/data/__consumer_offsets-3": SAMPLE / "__consumer_offsets-3",
    "/var/lib/kafka/data": SAMPLE,
    "/copies/east": DATA_DIRECTORY,
    "/copies/west": DATA_DIRECTORY,
    "backup.tar.gz": SAMPLE,
    "disk-1": SAMPLE,
    "disk-2": SAMPLE,
    "before.tar.gz": SAMPLE,
    SEGMENT: SAMPLE / "__consumer_offsets-1" / SEGMENT,
}
NOT_RUN = re.compile(" --bootstrap-server |offsets-log serve ")
INCOMPLETE = 3
RESCUES = re.compile(r" (rescue|translate) ")
FITS_NOTHING = "nothing here fits"


def examples() -> list[str]:
    found: list[str] = []
    top = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(top, name)
        assert command is not None
        assert command.epilog is not None
        found += [line.strip() for line in command.epilog.partition(":")[2].split("\n") if line.strip()]
    return found


@pytest.mark.parametrize("example", [example for example in examples() if not NOT_RUN.search(example)])
def test_example(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of `pull` and `restore` need a cluster, which their own tests start; `serve` goes on and on.

    A rescue of nothing says so in its status. What is more than the words of one command a shell runs.
    """
    assert "offsets-log " in example
    command = example
    for place, sample in PLACES.items():
        command = command.replace(f" {place}", f" {sample}")
    monkeypatch.chdir(tmp_path)
    if (words := words_of(command)) is None:
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        in_shell = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        status, said = in_shell.returncode, in_shell.stderr
    else:
        done = CliRunner().invoke(main, words, catch_exceptions=False)
        status, said = done.exit_code, done.stderr
    is_incomplete = RESCUES.search(example) and FITS_NOTHING in said
    assert status == (INCOMPLETE if is_incomplete else 0), said


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_stand_in_lines_of_their_own(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "--help"]).output
    own = [example for example in examples() if f"offsets-log {name} " in example]
    assert own
    if len(own) > 1:
        assert all(f"  {example}\n" in shown for example in own)


PARTITION_OPTIONS = {
    "offsets_partition": ["-p", "--offsets-partition"],
    "as_partition": ["--as-partition"],
    "partitions": ["--partitions", "--offsets-topic-partitions"],
    "topic_partition": ["--topic-partition"],
    "topic_partitions": ["--topic-partitions"],
}
"""What every word about partitions is, whatever the command."""


@pytest.mark.parametrize("name", COMMANDS)
def test_options_about_partitions_mean_the_same_everywhere(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    shown = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    about = re.compile(r"(^|\s)-p\b|partitions?$")
    words = {str(option.name): option.opts for option in shown if about.search(" ".join(option.opts))}
    assert words == {found: PARTITION_OPTIONS[found] for found in words}


def test_the_list_of_commands_has_whole_sentences() -> None:
    shown = CliRunner().invoke(main, ["--help"]).output
    assert "..." not in shown.partition("Commands:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_not_broken_at_hyphens(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "--help"], terminal_width=80).output
    assert re.findall(r"\w-$", shown, re.MULTILINE) == []


def test_docs_have_the_help_of_every_command() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "make docs writes it again"


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("given", [("--engine", "spark"), ("--engine=local",), ("--master", "yarn")])
def test_what_read_logs_on_spark_is_named(name: str, given: tuple[str, ...]) -> None:
    found = CliRunner().invoke(main, [name, str(SAMPLE), *given])
    assert found.exit_code == 2
    assert f"{given[0].partition('=')[0]} is gone: on Spark run python -m spark_jobs" in " ".join(found.stderr.split())
    assert given[0] not in CliRunner().invoke(main, [name, "--help"]).stdout
