"""``log-ends.json``: what a cluster told of its logs' ends stands in for logs that are not in the copy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.data_directory.copied_logs import CopiedLogs
from offsets_log.data_directory.told_ends import LOG_ENDS, ToldEnds, decode_told_ends
from offsets_log.disk.reader import open_logs
from offsets_log.errors import CorruptFileError
from offsets_log.log_format.primitives import Uuid

SAMPLE = Path(__file__).parents[2] / "samples" / "kafka-4.3-pulled"
TOPIC_ID = Uuid(b"0123456789abcdef")


def test_what_is_written_is_read_again() -> None:
    told = ToldEnds({("b", 0): (0, 7), ("a", 1): (3, 3), ("a", 0): (0, 1 << 62)}, {"a": TOPIC_ID, "none": TOPIC_ID}, 5)
    assert decode_told_ends(told.encode(), "f") == told
    assert decode_told_ends(ToldEnds().encode(), "f") == ToldEnds()


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"version": 2, "topics": []}', '{"version": 1}', '{"version": 1, "topics": {"a": 1}}',
        '{"version": 1, "topics": [{"topic": "a"}]}',
        '{"version": 1, "topics": [{"topic": "a", "topic_id": "short", "partitions": []}]}',
        '{"version": 1, "topics": [{"topic": "a", "topic_id": null, "partitions": [[1, 2]]}]}',
        '{"version": 1, "topics": [{"topic": "a", "topic_id": null, "partitions": [["x", 2, 3]]}]}',
        '{"version": 1, "topics": [{"topic": "a", "topic_id": null, "partitions": [[1, 2, 1e999]]}]}',
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_refused(text: str) -> None:
    with pytest.raises(CorruptFileError):
        decode_told_ends(text.encode(), "f")


@given(st.binary(max_size=80))
def test_no_bytes_do_more_than_be_refused(raw: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_told_ends(raw, "f")


def test_a_pulled_copy_knows_the_ends_of_logs_it_does_not_hold() -> None:
    with open_logs([str(SAMPLE)]) as opened:
        logs = CopiedLogs(opened.user_partitions, told=opened.told_ends)
        assert logs
        ends = logs.ends("payments", 0)
        assert ends is not None
        assert (ends.log_start_offset, ends.end_offset, ends.is_by_high_watermark) == (0, 13, True)
        assert logs.ends("payments", 2) is None
        known = {row["topic"]: row["topic_id"] for row in json.loads((SAMPLE / LOG_ENDS).read_text())["topics"]}
        assert {name: str(Uuid(topic_id)) for topic_id, name in opened.topic_ids.items()} == known
        assert str(logs.topic_id("orders", 0)) == known["orders"]


def test_a_broken_file_is_told_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "__consumer_offsets-0").mkdir()
    (tmp_path / "__consumer_offsets-0" / f"{0:020}.log").touch()
    (tmp_path / LOG_ENDS).write_text("{")
    with open_logs([str(tmp_path)]) as opened:
        logs = CopiedLogs(opened.user_partitions, told=opened.told_ends)
        assert [damage.error.file for damage in logs.damages] == [str(tmp_path / LOG_ENDS)]
        assert logs.ends("a", 0) is None
