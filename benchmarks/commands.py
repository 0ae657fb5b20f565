"""This project's commands over a log, and its construct path; their answers are held against the log's truth."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.inputs import Log
from benchmarks.timing import Measured, repeated, run_process, seconds_of
from offsets_log.disk.reader import open_logs
from offsets_log.errors import Damage
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.profile import MODERN
from offsets_log.session.account import EXIT_DAMAGED

# ------------------------------------------------------------------------------------------- answers


def offsets_in(path: Path) -> dict[str, int]:
    """Rows and the sum of their committed offsets, of JSON Lines, a JSON document of ``rebuild``, or Parquet."""
    match path.suffix:
        case ".parquet":
            from pyarrow import parquet  # of all rows only this needs it

            offsets = parquet.read_table(path, columns=["committed_offset"])["committed_offset"].to_pylist()
        case ".jsonl":
            with path.open("rb") as lines:
                offsets = [json.loads(line)["committed_offset"] for line in lines]
        case _:
            offsets = [row["committed_offset"] for row in json.loads(path.read_bytes())["offsets"]]
    return {"keys": len(offsets), "sum": sum(offsets)}


def rows_in(path: Path) -> int:
    """Lines of a file, or rows of all Parquet files of a folder."""
    if path.is_dir():
        from pyarrow import parquet

        return sum(parquet.read_metadata(file).num_rows for file in path.rglob("*.parquet"))
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))


def _serves(path: Path, truth: dict[str, Any]) -> bool:
    return bool(offsets_in(path) == truth["served"])


def _has_lag(path: Path, truth: dict[str, Any]) -> bool:
    with path.open("rb") as lines:
        return bool(sum(json.loads(line)["lag"] for line in lines) == truth["lag"])


def _counts(path: Path, truth: dict[str, Any]) -> bool:
    row = json.loads(path.read_bytes())
    counted = {"records": row["records"], "batches": row["batches"], "tombstones": row["tombstones"]}
    return bool(counted == {name: truth[name] for name in counted} and row["offsets"] == truth["served"]["keys"])


def _has_all_records(path: Path, truth: dict[str, Any]) -> bool:
    return bool(rows_in(path) == truth["records"])


def _shows_all_offsets(path: Path, truth: dict[str, Any]) -> bool:
    _, rows = path.read_text().split("─\n")
    return bool(rows.count("\n") == truth["served"]["keys"])


def _has_all_records_and_a_head(path: Path, truth: dict[str, Any]) -> bool:
    return bool(rows_in(path) == truth["records"] + 1)


def _has_all_lines(path: Path, truth: dict[str, Any]) -> bool:
    """A line for each batch and each record, and two for each file."""
    with path.open("rb") as lines:
        files = sum(line.startswith(b"Dumping ") for line in lines)
    return bool(files and rows_in(path) == truth["records"] + truth["batches"] + 2 * files)


def _has_rows(path: Path, truth: dict[str, Any]) -> bool:
    return rows_in(path) > 0


def _serves_when_cleaned(path: Path, truth: dict[str, Any]) -> bool:
    """Whether the cleaned log answers as the one before."""
    offsets = path.with_suffix(".parquet")
    run_process(["offsets-log", "compact", str(path), "-o", "parquet", "--quiet", "--to", str(offsets)])
    return _serves(offsets, truth)


def _plans_all_offsets(path: Path, truth: dict[str, Any]) -> bool:
    return len(json.loads((path / "plan.json").read_bytes())["offsets"]) == int(truth["served"]["keys"])


def _loads(path: Path, truth: dict[str, Any]) -> bool:
    """Whether the newest release loads it all, and as many records were read as there are."""
    document = json.loads(path.read_bytes())
    (loads,) = document["loads"].values()
    (size,) = (row["detail"] for row in document["findings"] if row["rule"] == "J-1")
    return bool(list(loads.values())[-1]["ok"] and size["records"] == truth["records"])


def _tells_all_commits(path: Path, truth: dict[str, Any]) -> bool:
    with path.open("rb") as lines:
        return sum(b'"event":"commit"' in line for line in lines) == int(truth["offset_commits"])


def _shows_all_commits(path: Path, truth: dict[str, Any]) -> bool:
    with path.open("rb") as lines:
        return bool(sum(b" commit " in line for line in lines) == truth["offset_commits"])


def _has_all_commits(path: Path, truth: dict[str, Any]) -> bool:
    from pyarrow import parquet

    events = parquet.read_table(path, columns=["event"])["event"].to_pylist()
    return bool(events.count("commit") == truth["offset_commits"])


def _tells_generations(path: Path, truth: dict[str, Any]) -> bool:
    return bool(rows_in(path) == truth["group_metadata"])


def _serves_each(path: Path, truth: dict[str, Any]) -> bool:
    return bool(rows_in(path) == truth["served"]["keys"])


def _tells_some(path: Path, truth: dict[str, Any]) -> bool:
    return bool(0 < rows_in(path) < truth["records"])


# ------------------------------------------------------------------------------------------ commands


@dataclass(frozen=True, slots=True)
class Command:
    """Arguments of ``offsets-log`` between the log and ``--to``, the output's name, and how to know it is right;
    whether it reads the log as text of kafka-dump-log, whether two copies of it, and whether it prints its output
    instead of taking ``--to``."""

    name: str
    arguments: Sequence[str]
    output: str
    is_right: Callable[[Path, dict[str, Any]], bool]
    is_of_text: bool = False
    is_of_copies: bool = False
    prints: bool = False

    def measure(self, log: Log, repeat: int) -> Measured:
        """The whole process, from start to exit."""
        with tempfile.TemporaryDirectory(dir=log.folder.parent) as folder:
            out = Path(folder) / self.output
            source = log.folder
            if self.is_of_text:
                source = _text_of(log, Path(folder))
            elif self.is_of_copies:
                source = _copies_of(log, Path(folder))
            command = ["offsets-log", self.name, str(source), *self.arguments, "--quiet"]
            if not self.prints:
                command += ["--to", str(out)]

            numbers = count()

            def run() -> float:
                if out.is_dir():  # removing many files makes some file systems slow to make others for minutes
                    out.rename(out.with_name(f"{self.output}-{next(numbers)}"))
                out.unlink(missing_ok=True)
                status = EXIT_DAMAGED if log.truth.get("broken") else 0
                if not self.prints:
                    return seconds_of(lambda: run_process(command, status=status))
                with out.open("wb") as stream:
                    return seconds_of(lambda: run_process(command, stream, status=status))

            seconds = repeated(run, repeat)
            return Measured(seconds=seconds, agrees=self.is_right(out, log.truth))


def _text_of(log: Log, folder: Path) -> Path:
    """The log as kafka-dump-log prints it."""
    text = folder / "dump.txt"
    run_process(["offsets-log", "decode", str(log.folder), "--as", "dump-log", "--quiet", "--to", str(text)])
    return text


def _copies_of(log: Log, folder: Path) -> Path:
    """A folder with two brokers' copies of the log."""
    for broker in ("broker-1", "broker-2"):
        shutil.copytree(log.folder, folder / "copies" / broker, copy_function=os.link)
    return folder / "copies"


BUSIEST_GROUP = "billing-indexer-00000"
"""Of a generated log."""
LAG = Command("compact", ("--lag", "-o", "jsonl"), "lag.jsonl", _has_lag)
"""Of a whole data directory."""
COMPACT = Command("compact", ("-o", "parquet"), "offsets.parquet", _serves)
COPIES = Command("compact", ("-o", "parquet"), "offsets.parquet", _serves, is_of_copies=True)
COMMANDS = {
    "compact to a table": Command("compact", ("-o", "table"), "offsets.txt", _shows_all_offsets),
    "info": Command("info", ("-o", "jsonl"), "info.jsonl", _counts),
    "check, all releases": Command("check", ("-o", "json"), "check.json", _loads),
    "clean": Command("clean", ("-o", "jsonl"), "cleaned", _serves_when_cleaned),
    "clean --deep": Command("clean", ("--deep", "-o", "jsonl"), "cleaned", _serves_when_cleaned),
    "repair": Command("repair", ("-o", "jsonl"), "repaired", _serves_when_cleaned),
    "rebuild": Command("rebuild", ("-o", "json"), "memory.json", _serves),
    "rescue": Command("rescue", (), "rescue", _plans_all_offsets),
    "expire": Command("expire", ("-o", "jsonl"), "expire.jsonl", _has_rows),
    "diff": Command("diff", ("--from-offset", "1000", "-o", "jsonl"), "diff.jsonl", _has_rows),
    "groups": Command("groups", ("-o", "jsonl"), "groups.jsonl", _has_rows),
    "top of some groups": Command("top", ("-g", "*1*", "-o", "jsonl"), "top.jsonl", _has_rows),
    "top of some partitions": Command(
        "top", ("--per", "partition", "-t", "*1*", "-o", "jsonl"), "top.jsonl", _has_rows
    ),
    "top of some by clients": Command("top", ("--per", "client", "-g", "*1*", "-o", "jsonl"), "top.jsonl", _has_rows),
    "top by clients": Command("top", ("--per", "client", "-o", "jsonl"), "top.jsonl", _has_rows),
    "report": Command("report", (), "report.html", _has_rows),
    "rebalances": Command("rebalances", ("-o", "jsonl"), "generations.jsonl", _tells_generations),
    "compact --follow": Command(
        "compact", ("--follow", "--until-idle", "0s", "-o", "jsonl"), "offsets.jsonl", _serves_each, prints=True
    ),
    "history of one group": Command("history", ("-g", BUSIEST_GROUP, "-o", "jsonl"), "history.jsonl", _tells_some),
    "history": Command("history", ("-g", "*", "-o", "jsonl"), "history.jsonl", _tells_all_commits),
    "history to a table": Command("history", ("-g", "*", "-o", "table"), "history.txt", _shows_all_commits),
    "history to parquet": Command("history", ("-g", "*", "-o", "parquet"), "history.parquet", _has_all_commits),
    "decode of one group": Command("decode", ("-g", BUSIEST_GROUP, "-o", "jsonl"), "records.jsonl", _tells_some),
    "decode": Command("decode", ("-o", "parquet"), "records", _has_all_records),
    "decode to jsonl": Command("decode", ("-o", "jsonl"), "records.jsonl", _has_all_records),
    "decode --expand": Command("decode", ("--expand", "-o", "jsonl"), "records.jsonl", _has_all_records),
    "decode to csv": Command("decode", ("-o", "csv"), "records.csv", _has_all_records_and_a_head),
    "decode --as dump-log": Command("decode", ("--as", "dump-log"), "dump.txt", _has_all_lines),
    "compact of a dump-log text": Command("compact", ("-o", "parquet"), "offsets.parquet", _serves, is_of_text=True),
}
"""What is measured besides `compact` → the command."""


DAMAGED = {
    "check": Command("check", ("-o", "json"), "check.json", _has_rows),
    "rebuild": COMMANDS["rebuild"],
}
"""The same of logs that are damaged, where not every release loads all."""


def construct_state(log: Log) -> CoordinatorState:
    """What a coordinator holds, read record by record. Raises the error of anything that cannot be read."""

    def fail(damage: Damage) -> None:
        raise damage.error

    with open_logs([str(log.folder)]) as opened:
        (partition,) = opened.logs
        return finish(replay(iter_events(partition), MODERN, on_damage=fail))


def construct_path(log: Log, repeat: int) -> Measured:
    """`construct_state` in this process."""
    states = []
    seconds = repeated(lambda: seconds_of(lambda: states.append(construct_state(log))), repeat)
    offsets = [value.committed_offset for value in states[-1].iter_served()]
    return Measured(seconds=seconds, agrees={"keys": len(offsets), "sum": sum(offsets)} == log.truth["served"])
