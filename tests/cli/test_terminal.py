"""On a terminal: one row is one line at any size, the answer is on the first screen, nothing sticks to the bar."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.cli.runs import ROOT, SAMPLE, rows, run
from tests.conftest import unpack_once
from tests.waiting import PATIENCE_S

SIZES = ((80, 24), (120, 40), (200, 50))
COMMANDS = (
    "info", "offsets", "state --table groups", "members", "check", "explain B-9", "records", "groups",
    "where alive-metrics", "history -g *", "transactions", "rebalances", "top",
)  # fmt: skip
"""The first commands of README's table, and some more; none has more than one input."""
NEEDS_NO_LOG = ("explain",)
SCRIPT = """
import fcntl, json, struct, sys, termios
from offsets_log_cli.main import main
for columns, lines, words in json.loads(sys.argv[1]):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    try:
        main(words)
    except SystemExit as error:
        sys.stdout.flush()
        print("\\x1e" + str(error.code), flush=True)
"""
END = re.compile(r"\x1e(\d+)\n")
COLOUR = re.compile(r"\x1b\[\d*m")


def screens(
    asked: list[tuple[int, int, list[str]]], *, sees_remarks: bool = False, **environment: str
) -> Iterator[tuple[str, int]]:
    """What commands print on a terminal, each of a size, and their statuses."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", SCRIPT, json.dumps(asked)]
    settings = {"PAGER": "cat", "TERM": "xterm"} | environment
    others = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs if sees_remarks else subprocess.DEVNULL,
        env=others | settings,
        cwd=ROOT,
    ) as process:
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
        process.wait(PATIENCE_S)
    os.close(ours)
    parts = END.split(seen.decode().replace("\r\n", "\n"))
    for text, status in zip(parts[::2], parts[1::2], strict=False):
        yield text, int(status)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how Linux tells the end of a terminal
        return b""


def plain(text: str) -> list[str]:
    return COLOUR.sub("", text).split("\n")[:-1]


@pytest.fixture(scope="session")
def damaged(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Forty partitions, each with its own damage."""
    folder = unpack_once(Path(__file__).parents[1] / "broker" / "damaged.tar.xz", tmp_path_factory, request)
    return folder / "unclean-501-1-4.3.0"


@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-lifetime", "kafka-4.3-modern-groups", "damaged"])
def test_a_row_is_a_line_at_any_size(name: str, damaged: Path, recording: Callable[[str], Path]) -> None:
    log = str(damaged if name == "damaged" else recording(name) / "log")
    asked = [
        (*size, [*command.split(), *(() if command.startswith(NEEDS_NO_LOG) else (log,))])
        for size in SIZES
        for command in COMMANDS
    ]
    found = list(screens(asked))
    assert len(found) == len(asked)
    count = run("compact", log, "-q").stdout.count("\n")
    for (width, lines, words), (text, _) in zip(asked, found, strict=True):
        shown = plain(text)
        for line in shown:
            assert cell_len(line) <= width, (words, line)
        if words[0] == "offsets":
            rule = next(place for place, line in enumerate(shown) if line.startswith(" ─"))
            assert len(shown) - rule - 1 - shown[-1].endswith("--wide") == count
        if words[0] == "info":
            assert shown[0].startswith("data directory")
            assert len(shown) < lines, "the answer is on the first screen"
        if words[0] == "check":
            assert shown[0].startswith(("fails", "loads"))


def test_a_rewind_shows_by_how_much_and_by_whom_at_80_columns(recording: Callable[[str], Path]) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    [(text, _)] = screens([(80, 24, ["history", str(log), "--rewinds", "-g", "metrics-range-31"])])
    lines = plain(text)
    rule = next(place for place, line in enumerate(lines) if line.startswith(" ─"))
    assert lines[rule - 1].split()[-2:] == ["by", "id"]
    found = rows("history", log, "--rewinds", "-g", "metrics-range-31")
    shown = [line.split()[-2:] for line in lines[rule + 1 : -1]]
    assert shown == [[str(row["rewound_by"]), row["client_id"]] for row in found]
    assert len(shown) > 10


@pytest.mark.parametrize("size", SIZES)
def test_what_is_here_of_forty_damaged_partitions_is_one_screen(size: tuple[int, int], damaged: Path) -> None:
    width, height = size
    [(text, status)] = screens([(width, height, ["info", str(damaged)])], sees_remarks=True)
    assert status == 3
    lines = plain(text)
    used = sum(max(1, -(-cell_len(line) // width)) for line in lines)
    assert used <= height - 2, "with the line of the command, and the prompt below"
    facts = rows("info", damaged, status=3)
    for title, name in (("corrupt", "corrupt"), ("unsupported", "unsupported")):
        assert f"{title}: {sum(row[name] for row in facts)} in " in COLOUR.sub("", text)
    worst = max(facts, key=lambda row: row["corrupt"])
    rule = next(place for place, line in enumerate(lines) if line.startswith(" ─"))
    assert lines[rule + 1].split()[0] == str(worst["offsets_partition"]), "the worst first"


def test_the_verdict_is_first_and_last(damaged: Path) -> None:
    [(text, status)] = screens([(80, 24, ["check", str(damaged)])], sees_remarks=True)
    assert status == 3
    lines = plain(text)
    assert lines[0].startswith("fails")
    assert "loads fail on" in lines[1]
    assert "loads fail on" in lines[-1]
    [(whole, _)] = screens([(80, 24, ["check", "-v", str(damaged)])])
    assert len(plain(whole)) > 200, "all of it on request"


def test_a_pipe_has_all_columns_no_colour_and_no_summary(damaged: Path) -> None:
    page = run("info", damaged, "-o", "table").stdout
    assert "\x1b" not in page
    assert "more columns" not in page
    assert all(f"open transaction: offsets partition {number}," in page for number in (1, 2, 5))
    assert len(run("check", damaged, "-o", "table").stdout.split("\n")) > 200


def test_colours_are_of_terminals_and_not_if_nobody_wants_them(damaged: Path) -> None:
    asked = [(80, 24, ["info", str(damaged), "-q"])]
    [(coloured, _)] = screens(asked)
    assert "\x1b[31mcorrupt\x1b[0m: " in coloured
    [(without, _)] = screens(asked, NO_COLOR="1")
    assert without == COLOUR.sub("", coloured)


def test_the_pager_is_of_tables_on_a_terminal() -> None:
    whole, short = ["compact", SAMPLE, "-q"], ["compact", SAMPLE, "-q", "--no-pager"]
    paged, unpaged, rows_of_json = screens(
        [(80, 24, whole), (80, 24, short), (80, 24, [*whole, "-o", "jsonl"])], PAGER="sed s/^/paged/"
    )
    assert all(line.startswith("paged") for line in plain(paged[0]))
    assert "paged" not in unpaged[0] + rows_of_json[0]
    assert [line.removeprefix("paged") for line in plain(paged[0])] == plain(unpaged[0])
    [(ours, _)] = screens([(80, 24, whole)], PAGER="sed s/^/paged/", OFFSETS_LOG_PAGER="sed s/^/ours/")
    assert ours.startswith("ours")
    assert "paged" not in run("compact", SAMPLE, "-o", "table").stdout


def test_a_reader_who_leaves_the_pager_gets_the_rest_and_the_status() -> None:
    [(text, status)] = screens([(80, 24, ["decode", SAMPLE])], sees_remarks=True, PAGER="head -1")
    assert status == 0
    assert "599 records" in text


def test_nothing_sticks_to_the_bar(damaged: Path) -> None:
    bar = re.compile(r"\d:\d\d:\d\d\x1b\[0m|-:--:--\x1b\[0m")
    for words in (["decode", "-o", "jsonl"], ["compact"]):
        [(text, _)] = screens([(100, 24, [*words, str(damaged), "-p", "3", "--progress"])], sees_remarks=True)
        ends = [found.end() for found in bar.finditer(text)]
        assert ends, "there is a bar"
        assert all(text[end] in "\r\n" for end in ends)
        assert "corrupt" in text


def test_wide_shows_every_column_whole(recording: Callable[[str], Path]) -> None:
    [(narrow, _), (wide, _)] = screens([(80, 24, ["groups", SAMPLE, "-q", *more]) for more in ([], ["--wide"])])
    assert plain(narrow)[-1].endswith("--wide")
    assert "…" not in wide
    assert "more column" not in wide
    assert max(map(cell_len, plain(wide))) > 80


@pytest.mark.parametrize("output", ["csv", "jsonl", "json", "table", "parquet", "arrow"])
@pytest.mark.parametrize("command", ["compact", "groups", "history -g *", "decode", "rebalances", "info", "check"])
def test_columns_are_those_that_are_named_in_that_order(command: str, output: str, tmp_path: Path) -> None:
    asked = {"decode": "record_offset,name", "info": "records,offsets_partition", "check": "kind,offsets_partition"}
    names = asked.get(command, "offsets_partition,group").split(",")
    if command == "decode" and output in ("parquet", "arrow"):
        pytest.skip("the events of decode are files of all columns")
    done = run(*command.split(), SAMPLE, "-q", "-o", output, "--columns", ",".join(names), "--to", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    path = tmp_path / "out"
    match output:
        case "csv":
            assert path.read_text().split("\n")[0] == ",".join(names)
        case "jsonl":
            assert all(list(json.loads(line)) == names for line in path.read_text().split("\n") if line)
        case "json":
            assert all(list(row) == names for row in json.loads(path.read_text()))
        case "table":
            assert path.read_text().split("\n")[1].split()[-1] == names[-1].split("_")[-1]
        case _:
            import pyarrow as pa
            import pyarrow.parquet as pq

            table = pq.read_table(path) if output == "parquet" else pa.ipc.open_stream(path.read_bytes()).read_all()
            assert table.column_names == names


def test_a_column_that_is_not_there_is_wrong_usage() -> None:
    done = run("compact", SAMPLE, "--columns", "group,comitted_offset")
    assert done.exit_code == 2
    assert "no column 'comitted_offset'" in done.stderr
    assert "Did you mean committed_offset" in done.stderr
