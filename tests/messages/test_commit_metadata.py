"""What is in a commit's metadata: a recorded Kafka Streams application, and bytes built as the clients' encoders do."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.log_format.java_text import MalformedString
from offsets_log.messages import commit_metadata
from offsets_log.messages.commit_metadata import decode_commit_metadata
from offsets_log_cli.main import main
from tests.builders import LogBuilder
from tests.conftest import json_lines
from tests.investigate.test_groups import folder_of
from tests.replay.test_compact_recordings import Recording


def text_of(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def test_a_recorded_streams_application(recording: Recording) -> None:
    """Kafka 4.3's own client wrote these: a partition time is that of a record read shortly before the commit."""
    log = recording("kafka-4.3-modern-groups") / "log"
    found = list(json_lines(CliRunner().invoke(main, ["compact", str(log), "-o", "jsonl"]).stdout))
    decoded = [(row, decode_commit_metadata(row["metadata"], row["committed_offset"])) for row in found]
    streams = [(row, one) for row, one in decoded if one is not None and one["format"] == "kafka-streams"]
    assert len(streams) >= 3
    for row, one in streams:
        assert one["version"] == 2
        assert row["metadata"] == text_of(b"\x02" + struct.pack(">q", one["partitionTime"]))
        assert one["partitionTime"] == -1 or 0 <= row["commit_timestamp_ms"] - one["partitionTime"] < 600_000


def test_streams_versions() -> None:
    time = struct.pack(">q", 1_700_000_000_000)
    entries = struct.pack(">i", 2) + struct.pack(">i3sq", 3, b"a-b", 5) + struct.pack(">i2sq", 2, "é".encode(), -7)
    first = {"format": "kafka-streams", "version": 1, "partitionTime": 1_700_000_000_000}
    assert decode_commit_metadata(text_of(b"\1" + time), 0) == first
    assert decode_commit_metadata(text_of(b"\2" + time), 0) == first | {"version": 2, "processorMetadata": {}}
    assert decode_commit_metadata(text_of(b"\2" + time + entries), 0) == first | {
        "version": 2,
        "processorMetadata": {"a-b": 5, "é": -7},
    }


def encoded(done: list[bool], letter: str) -> str:
    """As the parallel consumer's encoders write it."""
    version = "h" if letter in "lanJ" else "i"
    if letter in "laos":
        bits = sum(1 << i for i, is_done in enumerate(done) if is_done)
        data = struct.pack(f">{version}", len(done)) + bits.to_bytes(-(-len(done) // 8) + 1, "little")
    else:
        runs, current = [0], False
        for is_done in done:
            if is_done != current:
                runs.append(0)
                current = is_done
            runs[-1] += 1
        data = struct.pack(f">{len(runs)}{version}", *runs)
    if letter in "aJsp":
        data = zstandard.ZstdCompressor(write_content_size=False).compress(data)
    return text_of(letter.encode() + data)


@given(
    done=st.lists(st.booleans(), min_size=1, max_size=300),
    letter=st.sampled_from("lanJosep"),
    base=st.integers(0, 1 << 50),
)
def test_parallel_consumers_offsets_come_back(done: list[bool], letter: str, base: int) -> None:
    decoded = decode_commit_metadata(encoded(done, letter), base)
    assert decoded is not None
    assert decoded["format"] == "parallel-consumer"
    assert decoded["highestSeenOffset"] == base + len(done) - 1
    incomplete = [offset for first, last in decoded["incompleteOffsets"] for offset in range(first, last + 1)]
    assert incomplete == [base + i for i, is_done in enumerate(done) if not is_done]
    assert decoded["incompleteCount"] == len(incomplete)


@pytest.mark.parametrize(
    "text",
    ["", "after", "two\nlines\tof it\r",
     "m932", "no name", "größe 😀", "AQ==", "AgAAAaH8j8Z=", "AgAAAaH8j8ZoAA==", "bGFhYWE=", "ZQAAAAA=",
     "ZQAAAAH/////", "ZYAAAAA=", "YSi1L/0=", "aaaa", "nnnn", "oooo", "Joel", "pear", "//////////8=",
     text_of(b"\2" + bytes(8) + struct.pack(">i", 1 << 30)), text_of(b"\2" + bytes(12)),
     text_of(b"\2" + bytes(8) + struct.pack(">iiqx", 1, 0, 5)),
     text_of(b"\2" + bytes(8) + struct.pack(">iiqiq", 2, 0, 5, 0, 5)),
     text_of(b"o" + struct.pack(">i", (1 << 31) - 1) + bytes(9)),
     text_of(b"o" + struct.pack(">ix", 0)), text_of(b"o" + struct.pack(">ib", -8, 0)),
     text_of(b"o" + struct.pack(">i3B", 8, 1, 0, 0)), text_of(b"o" + struct.pack(">i2B", 8, 1, 1)),
     text_of(b"e" + struct.pack(">3i", 2, 0, 1)), text_of(b"e" + struct.pack(">2i", 2, -1)),
     text_of(b"e" + struct.pack(">i", -1)), text_of(b"e" + struct.pack(">2ix", 0, 1)),
     text_of(b"e" + struct.pack(">2i", -1, 5)), text_of(b"e" + struct.pack(">4i", 2, 3, 0, 1)),
     text_of(b"n" + struct.pack(">2h", -1, 5)), text_of(b"n" + struct.pack(">3h", 2, -1, 5)),
     text_of(b"\1" + struct.pack(">q", -2)), text_of(b"\2" + struct.pack(">q", -2)),
     text_of(b"\2" + bytes(8) + struct.pack(">ii", 1, -1) + bytes(8)),
     text_of(b"\2" + bytes(8) + struct.pack(">ii", 1, 1) + bytes(8))],
)  # fmt: skip
def test_text_stays_text(text: str) -> None:
    assert decode_commit_metadata(text, 5) is None


@pytest.mark.parametrize(("text", "raw"), [("a\0b", "610062"), (MalformedString(b"\xff"), "ff")])
def test_what_nobody_can_read_is_hex(text: str, raw: str) -> None:
    assert decode_commit_metadata(text, 5) == {"format": "hex", "hex": raw}


def test_a_bomb_is_no_metadata() -> None:
    bomb = zstandard.ZstdCompressor().compress(struct.pack(">i", 1) * (1 << 20))
    assert decode_commit_metadata(text_of(b"p" + bomb), 0) is None
    many = zstandard.ZstdCompressor().compress(struct.pack(">i", 1) * 200_000)
    assert decode_commit_metadata(text_of(b"p" + many), 0) is None


@pytest.mark.parametrize(("bound", "least"), [("MAX_DECOMPRESSED_BYTES", 12), ("MAX_RUNS", 3)])
def test_as_much_as_the_bound_is_decoded(bound: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = encoded([False, True, False], "p")
    for limit, is_decoded in ((least, True), (least - 1, False)):
        monkeypatch.setattr(commit_metadata, bound, limit)
        assert (decode_commit_metadata(text, 0) is not None) is is_decoded


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_left(raw: bytes) -> None:
    for letter in b"\1\2lanJosep":
        json.dumps(decode_commit_metadata(text_of(bytes([letter]) + raw), 1))


def test_history_and_decode_show_it(tmp_path: Path) -> None:
    folder = folder_of(
        LogBuilder().commit(7, metadata=encoded([False, True, False], "e")).commit(8, metadata="text"), tmp_path
    )
    expected = {
        "format": "parallel-consumer", "encoding": "RunLengthV2", "highestSeenOffset": 9,
        "incompleteOffsets": [[7, 7], [9, 9]], "incompleteCount": 2,
    }  # fmt: skip
    history = list(json_lines(CliRunner().invoke(main, ["history", str(folder), "-g", "g", "-o", "jsonl"]).stdout))
    assert [row["metadata_decoded"] for row in history] == [expected, None]
    shown = list(json_lines(CliRunner().invoke(main, ["decode", str(folder), "--expand"]).stdout))
    assert shown[0]["value"]["metadataDecoded"] == expected
    assert "metadataDecoded" not in shown[1]["value"]
    plain = list(json_lines(CliRunner().invoke(main, ["decode", str(folder)]).stdout))
    assert "metadataDecoded" not in plain[0]["value"]


@pytest.mark.parametrize("count", [0, 1])
def test_only_text_that_an_encoder_writes_is_decoded(count: int) -> None:
    """Another letter before the padding stands for the same bytes, and is no client's."""
    processors = struct.pack(">iiq", 1, 0, 5) if count else b""
    written = text_of(b"\2" + struct.pack(">q", 7) + processors)
    if written.endswith("="):
        body = written.rstrip("=")
        for letter in (chr(ord(body[-1]) + 1), chr(ord(body[-1]) + 2)):
            assert decode_commit_metadata(body[:-1] + letter + written[len(body) :], 1) is None
    found = decode_commit_metadata(written, 1)
    assert found is not None
    assert found["partitionTime"] == 7
