"""What `test_new_fields` does in a program whose offset commits have one more field, ``not_in_kafka``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from offsets_log.columnar.events.rows import event_row
from offsets_log.columnar.events.tables import table_of_events
from offsets_log.coordinator.config import writes_of
from offsets_log.coordinator.records import OffsetCommit, offset_record
from offsets_log.dumps import events_parquet
from offsets_log.dumps.formats import build_segments
from offsets_log.events import Event
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import CoordinatorRecord, decode_coordinator_record, encode_coordinator_record
from offsets_log.messages.schema import default_of
from offsets_log.pipeline import iter_events
from offsets_log.replay.releases import known_releases
from tests.builders import LogBuilder
from tests.columnar.test_events import assert_equal
from tests.dumps.test_events import answer

NOT_IN_KAFKA = OFFSET_COMMIT_VALUE.fields[-1]
VALUES = ["", "me", "ü"] if NOT_IN_KAFKA.default == "" else [0, 7, -1]


def main(what: str, *paths: str) -> None:
    """Do what is asked."""
    {"keeps": keeps, "reads": reads, "commits": commits}[what](*map(Path, paths))


def committed(not_in_kafka: Any, version: int) -> tuple[bytes, bytes | None]:
    """Return the record of an offset commit with this field, if the version has it."""
    value = {field.name: default_of(field) for field in OFFSET_COMMIT_VALUE.fields}
    value |= {"offset": 5, "leader_epoch": 2, "metadata": "m", "commit_timestamp": 7}
    return encode_coordinator_record(
        CoordinatorRecord(
            record_type=1,
            key={"group": "g", "topic": "t", "partition": 0},
            value_version=version,
            value=value | {"not_in_kafka": not_in_kafka},
        )
    )


def keeps(directory: Path) -> None:
    """No value is lost: in rows of both engines, and back from a table of them."""
    built = LogBuilder()
    records = {(version, value): committed(value, version) for version in (4, 5) for value in VALUES}
    for record in records.values():
        built.add(record)
    assert_equal(built.log)
    rows = [event_row(event) for event in iter_events(built.log) if isinstance(event, Event)]
    for row, ((version, value), record) in zip(rows, records.items(), strict=True):
        is_told = value == NOT_IN_KAFKA.default or NOT_IN_KAFKA not in OFFSET_COMMIT_VALUE.fields_of(version)
        assert (row.get("key"), row.get("value")) == ((None, None) if is_told else record)
    pq.write_table(table_of_events(rows), directory / "rows.parquet")
    again = build_segments("x", (directory / "rows.parquet").read_bytes(), "parquet")
    found = [event.record for log in again.logs() for event in iter_events(log) if isinstance(event, Event)]
    assert [(record.key, record.value) for record in found] == list(records.values())


def reads(table: Path, expected: Path) -> None:
    """The answer about a table that an older program wrote is the older program's, by columns and by rows."""
    by_rows = events_parquet.bytes_of_row
    events_parquet.bytes_of_row = None  # type: ignore[assignment]
    assert repr(answer(table, "compact", "--orphans")) == expected.read_text()
    assert [by_rows(row) for row in pq.read_table(table).to_pylist() if row["error"] is None]


def commits() -> None:
    """A coordinator, which knows no value for the field, writes its default."""
    writes = replace(writes_of(known_releases()[-1]), offset_value_version=5)
    record = offset_record(writes, ("g", "t", 0), OffsetCommit(committed_offset=5), 7, None)
    value = decode_coordinator_record(*encode_coordinator_record(record)).value
    assert value is not None
    assert value["not_in_kafka"] == NOT_IN_KAFKA.default
