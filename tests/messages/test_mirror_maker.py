"""MirrorMaker 2's own topics: records of its own classes (``MirrorMakerVectors.java``), and what these refuse."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from offsets_log.errors import CorruptRecordError, OffsetsLogError, UnsupportedVersionError
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.record import Record
from offsets_log.messages.mirror_maker import (
    CHECKPOINTS,
    HEARTBEATS,
    MIRROR_MAKER_TOPICS,
    OFFSET_SYNCS,
    decode_mirror_maker_record,
    encode_mirror_maker_record,
    mirror_maker_topic,
)
from offsets_log_cli.main import main
from tests.conftest import VECTORS, json_lines

BY_NAME = {topic.name: topic for topic in MIRROR_MAKER_TOPICS}
SYNC = bytes.fromhex("00066f726465727300000003"), bytes.fromhex("00000000000000640000000000000061")


def test_records_of_mirror_makers_own_classes() -> None:
    """The same fields, the same bytes; what its classes refuse is refused."""
    counts: Counter[tuple[str, bool]] = Counter()
    packed = (VECTORS / "mirror-maker-4.3.0.jsonl.xz").read_bytes()
    for line in json_lines(lzma.decompress(packed).decode()):
        pair = bytes.fromhex(line["key_hex"]), bytes.fromhex(line["value_hex"])
        try:
            record = decode_mirror_maker_record(BY_NAME[line["name"]], *pair)
        except OffsetsLogError:
            assert line["read"] is None, line
        else:
            assert record.value is not None
            assert [*record.key.values(), *record.value.values()] == line["read"]
            assert record.value_version == (0 if record.topic.has_version else None)
            assert encode_mirror_maker_record(record) == pair
        counts[line["name"], line["read"] is None] += 1
    assert min(counts.values()) > 100
    assert len(counts) == 6


def test_names() -> None:
    assert mirror_maker_topic("mm2-offset-syncs.b.internal") is OFFSET_SYNCS
    assert mirror_maker_topic("mm2-offset-syncs_b-1_internal") is OFFSET_SYNCS
    assert mirror_maker_topic("a.checkpoints.internal") is CHECKPOINTS
    assert mirror_maker_topic("a-checkpoints-internal") is CHECKPOINTS
    assert mirror_maker_topic("heartbeats") is mirror_maker_topic("a.heartbeats") is HEARTBEATS
    for other in ("orders", "mm2-offsets.a.internal", "mm2-status.a.internal", "device-heartbeats", "checkpoints"):
        assert mirror_maker_topic(other) is None


def test_what_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="field key: the key is null"):
        decode_mirror_maker_record(OFFSET_SYNCS, None, None)
    with pytest.raises(UnsupportedVersionError, match="field value: Heartbeat has no known value version 1"):
        decode_mirror_maker_record(HEARTBEATS, b"\x00\x00\x00\x00", b"\x00\x01" + bytes(8))
    with pytest.raises(CorruptRecordError, match="field value: 1 bytes are too few for the value version"):
        decode_mirror_maker_record(HEARTBEATS, b"\x00\x00\x00\x00", b"\x00")
    tombstone = decode_mirror_maker_record(OFFSET_SYNCS, SYNC[0], None)
    assert (tombstone.is_tombstone, tombstone.value_json()) == (True, None)
    assert encode_mirror_maker_record(tombstone) == (SYNC[0], None)


def test_a_name_that_is_not_utf_8_and_bytes_left_over() -> None:
    key, value = b"\x00\x01\xff" + SYNC[0][-4:] + b"k", SYNC[1] + b"v"
    record = decode_mirror_maker_record(OFFSET_SYNCS, key, value)
    assert isinstance(record.key["topic"], MalformedString)
    assert (record.key_trailing, record.value_trailing) == (b"k", b"v")
    assert encode_mirror_maker_record(record) == (key, value)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["decode", *map(str, arguments)], catch_exceptions=False)


def test_decode_reads_them(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "mm2-offset-syncs.b.internal-0"
    folder.mkdir(parents=True)
    pairs = [SYNC, (SYNC[0], b"short")]
    records = [Record(offset=i, timestamp_ms=7, key=key, value=value) for i, (key, value) in enumerate(pairs)]
    (folder / f"{0:020}.log").write_bytes(build_batch(records))
    for arguments in ((folder,), (folder.parent, "--internal-topic", "mm2-offset-syncs.b.internal")):
        result = run(*arguments, "-o", "jsonl")
        assert result.exit_code == 3
        sync, damaged = map(json.loads, result.stdout.splitlines())
        assert (sync["record_type"], sync["name"], sync["value_version"]) == (None, "OffsetSync", None)
        assert sync["key"] == {"topic": "orders", "partition": 3}
        assert sync["value"] == {"upstreamOffset": 100, "downstreamOffset": 97}
        assert (damaged["name"], damaged["value_hex"]) == ("OffsetSync", b"short".hex())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--internal-topic", "orders"), "orders is not among the topics that --internal-topic decodes"),
        (("--internal-topic", "heartbeats", "--as", "dump-log"), "--as dump-log has no form for heartbeats"),
    ],
)
def test_usage(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    result = run(tmp_path, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
