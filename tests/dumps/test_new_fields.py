"""A field that Kafka adds to offset commits: no value of it is lost, and older tables are read as before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from offsets_log.columnar.events.rows import COLUMN_OF_FIELD, EVENT_COLUMNS, UNTOLD
from offsets_log.dumps import events_columns
from offsets_log.log_format import primitives
from offsets_log.log_format.primitives import ZERO_UUID, Uuid
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.schema import INT64, STRING, UUID, Field, Message, default_of
from offsets_log.rows.tables import Row
from tests.dumps.test_events import answer, written

NEXT_TAG = 1 + max(field.tag for field in OFFSET_COMMIT_VALUE.fields if field.tag is not None)
FIELDS = {"tagged": f'STRING, "4+", default="", tag={NEXT_TAG}', "plain": 'INT32, "5+", default=0'}
NEWER_PROGRAM = """
from offsets_log.messages import offset_commit
from offsets_log.messages.schema import INT32, STRING, Field, Message

fields = (*offset_commit.OFFSET_COMMIT_VALUE.fields, Field("not_in_kafka", {field}))
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


def test_coordinators_commit_with_its_default(newer_program: Callable[..., None]) -> None:
    newer_program("commits")


def test_all_fields_have_columns() -> None:
    """One that shall have none is named here; its values are kept as raw bytes."""
    assert set(COLUMN_OF_FIELD.values()) <= {column.name for column in EVENT_COLUMNS}
    assert [field.name for field in UNTOLD] == []


def test_tags_are_written_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, texts and ids, in the order of their tags, whatever the order of the fields; null is left out."""
    fields = (
        Field("text", STRING, "0+", default="", tag=300),
        Field("number", INT64, "0+", default=-1, tag=1),
        Field("topic_id", UUID, "0+", default=ZERO_UUID, tag=0),
    )
    some = Message("Some", fields, versions="0", flexible="0+")
    rows = [
        {"text": "ü" * 200, "number": -5, "topic_id": str(Uuid(bytes(range(16))))},
        {"text": None, "number": 1, "topic_id": None},
        {"text": None, "number": None, "topic_id": None},
    ]
    values = [{field.name: _value_of(field, row) for field in fields} for row in rows]
    monkeypatch.setattr(events_columns, "COLUMN_OF_FIELD", {field.name: field.name for field in fields})
    written_by_columns = events_columns._tags(list(fields), pa.Table.from_pylist(rows))
    assert written_by_columns.to_pylist() == [primitives.build(some.struct(0), value, "value") for value in values]


def _value_of(field: Field, row: Row) -> object:
    told = row[field.name]
    if told is None:
        return default_of(field)
    return Uuid.from_text(told) if field.type is UUID else told
