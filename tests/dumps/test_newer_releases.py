"""Texts with a field that only a newer release has: its record counts, without the field, and the field is told."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.dumps.formats import build_segments
from offsets_log.dumps.kafka_json import UnknownFields, record_bytes
from offsets_log.errors import CorruptRecordError, UnsupportedError
from offsets_log.kafka_releases import NEWEST
from offsets_log.messages.registry import decode_coordinator_record
from tests.cli.runs import run
from tests.conftest import BulkFrom
from tests.dumps.runs import Row, rows, without

NAME, LATER = "failedDescriptionTopologyEpoch", "epochOfTheFuture"
PLUGIN_EPOCHS = ("stored_description_topology_epoch", "failed_description_topology_epoch")


def texts(folder: Path) -> dict[str, bytes]:
    """The records of a broker's streams groups in each form of JSON."""
    dumps = b"".join(
        gzip.decompress(path.read_bytes()) for path in sorted((folder / "answers" / "dump-log").glob("*.gz"))
    )
    groups = gzip.decompress((folder / "answers" / "console" / "groups.json.gz").read_bytes())
    return {"dump-log": dumps, "formatter": groups, "jsonl": run("decode", folder / "log", "-o", "jsonl").stdout_bytes}


def groups_of(text: bytes, status: int) -> list[Row]:
    result = run("rebuild", "-", stdin=text)
    assert result.exit_code == status, result.stderr
    return without(json.loads(result.stdout)["groups"], *PLUGIN_EPOCHS)


@pytest.mark.parametrize("is_bulk", [False, True])
@pytest.mark.parametrize("form", ["dump-log", "jsonl"])
def test_the_other_fields_of_its_record_are_used(
    form: str, is_bulk: bool, recording: Callable[[str], Path], bulk_from: BulkFrom
) -> None:
    """Else a streams group would stand at the epoch of an older record, and be told as NotReady."""
    bulk_from(0 if is_bulk else 1 << 40)
    text = texts(recording("kafka-4.4-modern-groups"))[form]
    of_later = text.replace(NAME.encode(), LATER.encode())
    count = of_later.count(LATER.encode())
    assert count > 3
    assert groups_of(of_later, 3) == groups_of(text, 0)
    result = run("compact", "-", stdin=of_later)
    assert f"0 corrupt, {count} unsupported" in result.stderr
    assert f"{LATER}: no release up to {NEWEST.name} has this" in result.stderr


def test_a_formatter_tells_it_too(recording: Callable[[str], Path]) -> None:
    text = texts(recording("kafka-4.4-modern-groups"))["formatter"]
    assert NAME.encode() not in text, "the formatter of groups tells of classic groups alone"
    later = b'{"key":{"type":2,"data":{"group":"g"}},"value":{"version":3,"data":{"protocolType":"","generation":7,'
    later += b'"protocol":null,"leader":null,"currentStateTimestamp":5,"members":[],"later":{"a":[1]}}}}'
    (row,) = rows("rebuild", "--table", "groups", "-", stdin=later, status=3)
    assert (row["generation"], row["current_state_timestamp_ms"]) == (7, 5)


def test_its_text_is_kept_in_the_quarantine(tmp_path: Path, recording: Callable[[str], Path]) -> None:
    text = texts(recording("kafka-4.4-modern-groups"))["dump-log"].replace(NAME.encode(), LATER.encode())
    kept = tmp_path / "kept.jsonl"
    run("compact", "-", "--quarantine", kept, stdin=text)
    pieces = [base64.b64decode(json.loads(line)["raw_base64"]) for line in kept.read_text().splitlines()]
    assert len(pieces) == text.count(LATER.encode())
    assert all(LATER.encode() in piece for piece in pieces)


STREAMS_KEY = {"groupId": "g"}


def test_fields_inside_of_others_are_told_by_their_paths() -> None:
    value = {
        "epoch": 5, "metadataHash": 1, "lastAssignmentConfigs": [{"key": "a", "value": "b", "kind": 1}], "more": None,
    }  # fmt: skip
    with pytest.raises(UnknownFields, match=r"lastAssignmentConfigs\[\]\.kind, more: no release") as raised:
        record_bytes(17, STREAMS_KEY, 0, value)
    record = decode_coordinator_record(raised.value.key, raised.value.value)
    assert record.value_json() == {
        "epoch": 5, "metadataHash": 1, "lastAssignmentConfigs": [{"key": "a", "value": "b"}]
    }  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [
        {"epoch": 5, "later": 1},
        {"epoch": "5", "metadataHash": 1, "later": 1},
        {"epoch": 5, "metadataHash": 1, "validatedTopologyEpoch": -1},
    ],
    ids=["a field is missing", "another type", "a default is printed"],
)
def test_what_else_does_not_fit_is_corrupt(value: Row) -> None:
    with pytest.raises(CorruptRecordError):
        record_bytes(17, STREAMS_KEY, 0, value)


def test_a_field_of_another_version_is_no_unknown_one() -> None:
    key = {"group": "g", "topic": "t", "partition": 0}
    value = {"offset": 1, "metadata": "", "commitTimestamp": 2, "leaderEpoch": 5}
    with pytest.raises(CorruptRecordError, match="leaderEpoch"):
        record_bytes(1, key, 2, value)


def test_a_key_with_more_fields_is_another_key() -> None:
    with pytest.raises(UnsupportedError, match="later: no release"):
        record_bytes(17, STREAMS_KEY | {"later": 1}, 0, None)


def test_the_printed_size_must_leave_room_for_it() -> None:
    """Of several readings of a text the one is taken that has the printed sizes."""
    value = '{"version":"0","data":{"epoch":5,"metadataHash":1,"later":7}}'
    line = '| offset: 0 CreateTime: 1 keySize: 5 valueSize: {} sequence: 0 headerKeys: [] key: {{"type":"17","data":'
    line += '{{"groupId":"g"}}}} payload: ' + value.replace("{", "{{").replace("}", "}}")
    for size, is_unsupported in ((18, True), (15, False)):
        found = build_segments("dump", b"Dumping x\n" + line.format(size).encode(), "dump-log")
        assert found.damages[0].is_unsupported == is_unsupported
