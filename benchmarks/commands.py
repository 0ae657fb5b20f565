"""This project's commands over a log, and its construct path; their answers are held against the log's truth."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.inputs import Log
from benchmarks.timing import Measured, repeated, run_process, seconds_of
from offsets_log.disk.reader import open_logs
from offsets_log.errors import Damage
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.profile import MODERN

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


def _counts(path: Path, truth: dict[str, Any]) -> bool:
    row = json.loads(path.read_bytes())
    counted = {"records": row["records"], "batches": row["batches"], "tombstones": row["tombstones"]}
    return bool(counted == {name: truth[name] for name in counted} and row["offsets"] == truth["served"]["keys"])


def _has_all_records(path: Path, truth: dict[str, Any]) -> bool:
    return bool(rows_in(path) == truth["records"])


def _shows_all_offsets(path: Path, truth: dict[str, Any]) -> bool:
    _, rows = path.read_text().split("─\n")
    return bool(rows.count("\n") == truth["served"]["keys"])


def _has_rows(path: Path, truth: dict[str, Any]) -> bool:
    return rows_in(path) > 0


def _plans_all_offsets(path: Path, truth: dict[str, Any]) -> bool:
    return len(json.loads((path / "plan.json").read_bytes())["offsets"]) == int(truth["served"]["keys"])


# ------------------------------------------------------------------------------------------ commands


@dataclass(frozen=True, slots=True)
class Command:
    """Arguments of ``offsets-log`` between the log and ``--to``, the output's name, and how to know it is right."""

    name: str
    arguments: Sequence[str]
    output: str
    is_right: Callable[[Path, dict[str, Any]], bool]

    def measure(self, log: Log, repeat: int) -> Measured:
        """The whole process, from start to exit."""
        with tempfile.TemporaryDirectory(dir=log.folder.parent) as folder:
            out = Path(folder) / self.output
            command = ["offsets-log", self.name, str(log.folder), *self.arguments, "--quiet", "--to", str(out)]

            def run() -> float:
                if out.is_dir():
                    shutil.rmtree(out)
                out.unlink(missing_ok=True)
                return seconds_of(lambda: run_process(command))

            seconds = repeated(run, repeat)
            return Measured(seconds=seconds, agrees=self.is_right(out, log.truth))


COMPACT = Command("compact", ("-o", "parquet"), "offsets.parquet", _serves)
COMPACT_TABLE = Command("compact", ("-o", "table"), "offsets.txt", _shows_all_offsets)
TOP_OF_SOME = Command("top", ("-g", "*1*", "-o", "jsonl"), "top.jsonl", _has_rows)
RESCUE = Command("rescue", (), "rescue", _plans_all_offsets)
EXPIRE = Command("expire", ("-o", "jsonl"), "expire.jsonl", _has_rows)
DIFF = Command("diff", ("--from-offset", "1000", "-o", "jsonl"), "diff.jsonl", _has_rows)
REPORT = Command("report", (), "report.html", _has_rows)
INFO = Command("info", ("-o", "jsonl"), "info.jsonl", _counts)
DECODE = Command("decode", ("-o", "parquet"), "records", _has_all_records)
DECODE_JSONL = Command("decode", ("-o", "jsonl"), "records.jsonl", _has_all_records)
REBUILD = Command("rebuild", ("-o", "json"), "memory.json", _serves)


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
