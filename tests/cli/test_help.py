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

from offsets_log_cli.help import found_at
from offsets_log_cli.help_page import BETWEEN, HEADINGS, RARE, READING, Option
from offsets_log_cli.main import ALSO, COMMANDS, main
from tests.cli.runs import run, words_of
from tools.cli_reference import PAGE, PAGES, reference

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


ROWS, FEWEST_ROWS, COLUMNS = 40, 24, 80


def command_of(page: str) -> click.Command:
    return found_at(page.split(), click.Context(main, info_name="offsets-log")).command


def examples() -> list[str]:
    epilogs = [command_of(page).epilog or "" for page in PAGES]
    return list(dict.fromkeys(one for text in epilogs if text for one in text.partition(": ")[2].split(BETWEEN)))


def shown(page: str) -> str:
    return CliRunner().invoke(main, [*page.split(), "--help"], terminal_width=COLUMNS).output


def test_all_commands_are_on_one_screen() -> None:
    lines = shown("").rstrip().split("\n")
    assert FEWEST_ROWS <= len(lines) <= ROWS
    assert max(map(len, lines)) <= COLUMNS
    named = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted([*named, "help"]) == sorted(COMMANDS)
    assert all(f"(or: {name})" in "\n".join(lines) for name in ALSO)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "reading"])
def test_each_command_is_on_one_screen(page: str) -> None:
    """Examples are not broken, so that they can be copied; all else is as wide as the screen at most."""
    text = shown(page)
    lines = text.rstrip().split("\n")
    assert len(lines) <= ROWS, text
    assert [line for line in lines if len(line) > COLUMNS and line.strip() not in examples()] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_option_is_under_one_heading_or_named_at_the_foot(page: str) -> None:
    command = command_of(page)
    own = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    assert [param.name for param in own if not isinstance(param, Option)] == []
    assert {param.under for param in own if isinstance(param, Option)} <= {*HEADINGS, READING, RARE}
    text = run("help", page).stdout if page == "reading" else shown(page)
    below = re.split(f"^(?:{'|'.join(HEADINGS)}):", text, maxsplit=1, flags=re.MULTILINE)[-1] if own else ""
    feet = re.findall(r"Rarely needed \([^)]*\): ((?:--[\w-]+,?\s)+)", below)
    named = [*re.findall(r"^  (?:-\w, )?(--[\w-]+)", below, re.MULTILINE), *re.findall(r"--[\w-]+", " ".join(feet))]
    assert sorted(named) == sorted(max(param.shown_names, key=len) for param in own if isinstance(param, Option))


@pytest.mark.parametrize("page", PAGES)
def test_all_of_the_help_has_every_option_and_what_is_not_on_the_screen(page: str) -> None:
    text = run("help", *page.split()).stdout
    command = command_of(page)
    own = [param for param in command.params if isinstance(param, Option) and not param.hidden]
    assert [param.name for param in own if not re.search(rf"^  (-\w, )?{param.shown_names[-1]}\b", text, re.M)] == []
    flat = " ".join(text.split())
    for param in own:
        assert " ".join((param.help or "").split()) in flat, param.name


@pytest.mark.parametrize("name", ALSO)
def test_other_names_of_commands_go_on(name: str) -> None:
    assert shown(name) == shown(ALSO[name]).replace(f"main {ALSO[name]} ", f"main {name} ").replace(
        f"(offsets-log help {ALSO[name]})", f"(offsets-log help {name})"
    )


@pytest.mark.parametrize(("typed", "meant"), [("ofsets", "offsets"), ("compct", "compact"), ("wach", "watch")])
def test_a_typing_error_is_answered_with_what_is_near(typed: str, meant: str) -> None:
    found = run(typed)
    assert found.exit_code == 2
    assert repr(meant) in found.stderr
    assert repr(meant) in run("help", typed).stderr


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
    own = [example for example in examples() if f"offsets-log {name} " in example]
    assert own
    assert all(f"  {example}\n" in shown(name) for example in own)


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
    visible = [one for one in command_of(name).params if isinstance(one, click.Option) and not one.hidden]
    about = re.compile(r"(^|\s)-p\b|partitions?$")
    words = {str(option.name): option.opts for option in visible if about.search(" ".join(option.opts))}
    assert words == {found: PARTITION_OPTIONS[found] for found in words}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_not_broken_at_hyphens(name: str) -> None:
    assert re.findall(r"\w-$", shown(name), re.MULTILINE) == []


def test_docs_have_the_help_of_every_command() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "make docs writes it again"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "watch"])
@pytest.mark.parametrize("given", [("--engine", "spark"), ("--engine=local",), ("--master", "yarn")])
def test_what_read_logs_on_spark_is_named(name: str, given: tuple[str, ...]) -> None:
    found = CliRunner().invoke(main, [name, str(SAMPLE), *given])
    assert found.exit_code == 2
    assert f"{given[0].partition('=')[0]} is gone: on Spark run python -m spark_jobs" in " ".join(found.stderr.split())
    assert given[0] not in shown(name)
