"""What users of the library may rely on: it changes only on purpose, here too."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import offsets_log as ol

COPY = {
    "at", "cards", "check", "close", "diff", "expire", "groups", "history", "info", "members", "offsets", "pending",
    "problems", "raw_records", "rebalances", "records", "share_history", "share_offsets", "sql", "state", "tables",
    "top", "transactions",
}  # fmt: skip
TABLE = {
    "declared", "is_complete", "notes", "reader", "rows", "schema", "select", "to_arrow", "to_pandas",
    "to_parquet",
}  # fmt: skip
SQL = [
    "offsets", "pending", "groups", "members", "history", "records", "transactions", "partitions", "checks", "problems",
]  # fmt: skip


def names_of(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_names_stay() -> None:
    assert ol.__all__ == ["Copy", "OffsetsLogError", "Table", "__version__", "open"]
    assert ol.__version__ == version("offsets-log")
    assert names_of(ol.Copy) == COPY
    assert names_of(ol.Table) == TABLE
    assert sorted(ol.open("nowhere").tables) == sorted(SQL)


def test_options_of_the_questions_stay() -> None:
    """Those that many have; the others are fields of what a question is asked."""
    for name in ("offsets", "groups", "history", "pending", "transactions", "info", "check"):
        assert {"group", "topic"} <= inspect.signature(getattr(ol.Copy, name)).parameters.keys(), name
    assert [*inspect.signature(ol.open).parameters] == [
        "paths", "until", "until_offset", "group", "topic", "offsets_partition", "more",
    ]  # fmt: skip


def test_types_are_told_and_every_name_has_a_docstring() -> None:
    assert (Path(inspect.getfile(ol)).parent / "py.typed").exists()
    for kind in (ol.Copy, ol.Table):
        assert all(inspect.getdoc(getattr(kind, name)) for name in names_of(kind))


def test_the_import_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'pyarrow', 'numba', 'click', 'rich', 'pandas', 'duckdb'}"
    script = f"import sys, offsets_log; offsets_log.open('x'); print(sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
