"""A field that Kafka adds to offset commits: no value of it is lost, and older tables are read as before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.columnar.events.rows import COLUMN_OF_FIELD, EVENT_COLUMNS, UNTOLD
from tests.dumps.test_events import answer, written

FIELDS = {"tagged": 'STRING, "4+", default="", tag=1', "plain": 'INT32, "5+", default=0'}
NEWER_PROGRAM = """
from offsets_log.messages import offset_commit
from offsets_log.messages.schema import INT32, STRING, Field, Message

fields = (*offset_commit.OFFSET_COMMIT_VALUE.fields, Field("committer", {field}))
offset_commit.OFFSET_COMMIT_VALUE = Message("OffsetCommitValue", fields, versions="0-5", flexible="4+")

import sys
from tests.dumps import newer_program

newer_program.main(*sys.argv[1:])
"""


@pytest.fixture(params=FIELDS)
def newer_program(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Run `newer_program.main` with a field more; kernels are plain Python there, so that none is kept."""

    def run(*arguments: str | Path) -> None:
        done = subprocess.run(
            [sys.executable, "-c", NEWER_PROGRAM.format(field=FIELDS[request.param]), *map(str, arguments)],
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]

    return run


def test_values_that_no_column_tells_are_kept_as_bytes(newer_program: Callable[..., None], tmp_path: Path) -> None:
    newer_program("keeps", tmp_path)


def test_older_tables_are_read(
    newer_program: Callable[..., None], tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    table = written(recording("kafka-4.3-mixed") / "log", "parquet", tmp_path)
    expected = tmp_path / "expected"
    expected.write_text(repr(answer(table, "compact", "--orphans")))
    newer_program("reads", table, expected)


def test_all_fields_have_columns() -> None:
    """One that shall have none is named here; its values are kept as raw bytes."""
    assert set(COLUMN_OF_FIELD.values()) <= {column.name for column in EVENT_COLUMNS}
    assert [field.name for field in UNTOLD] == []
