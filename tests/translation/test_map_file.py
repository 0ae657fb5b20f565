"""Maps of offsets: what is taken as one, and what is told by it."""

from __future__ import annotations

import json
import re

import pytest

from offsets_log.errors import InputError
from offsets_log.translation.answers import AT_LEAST, BY_COUNT, EXACT, Answer, Untold
from offsets_log.translation.map_file import decode_map, translate

PAIRS = [(10, 110), (20, 120), (30, 125)]


@pytest.mark.parametrize(
    ("committed", "answer"),
    [
        (9, Untold("the map begins behind it")),
        (10, Answer(110, EXACT, 0)),
        (15, Answer(115, BY_COUNT, 0)),
        (20, Answer(120, EXACT, 0)),
        (24, Answer(121, AT_LEAST, 3)),
        (29, Answer(121, AT_LEAST, 4)),
        (31, Answer(126, EXACT, 0)),
        (40, Answer(126, AT_LEAST, 9)),
    ],
)
def test_between_pairs(committed: int, answer: object) -> None:
    assert translate(PAIRS, committed) == answer


def test_a_csv() -> None:
    text = "topic,partition,source_offset,target_offset,more\norders,0,7,70,x\norders,0,5,50,\norders,1,1,1,\n"
    assert decode_map(text.encode(), "m") == {("orders", 0): [(5, 50), (7, 70)], ("orders", 1): [(1, 1)]}


def test_the_report_of_kafka_backup() -> None:
    pairs = [{"source_offset": 5, "target_offset": 50, "timestamp": 1}]
    document = {"entries": {}, "detailed_mappings": {"a/b/3": pairs}, "consumer_groups": {}}
    assert decode_map(json.dumps(document).encode(), "m") == {("a/b", 3): [(5, 50)]}


def test_a_record_that_was_copied_twice() -> None:
    pairs = [{"source_offset": source, "target_offset": target} for source, target in ((5, 50), (6, 51), (5, 52))]
    document = {"detailed_mappings": {"t/0": pairs}}
    assert decode_map(json.dumps(document).encode(), "m") == {("t", 0): [(5, 50), (6, 51)]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("t,0,5,50\nt,0,5,51", "line 3: source offset 5 of t-0 is at 50 and at 51"),
        ("t,0,x,1", "line 2: source_offset is no whole number: 'x'"),
        ("t,0,1", "line 2: target_offset is no whole number: nothing"),
        ("t,0,1_0,1", "line 2: source_offset is no whole number: '1_0'"),
    ],
)
def test_what_is_said_of_lines_that_make_no_sense(line: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        decode_map(f"topic,partition,source_offset,target_offset\n{line}\n".encode(), "m")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "topic,partition\n",
        "{",
        "{}",
        '{"detailed_mappings": {}}',
        '{"detailed_mappings": {"orders": [{"source_offset": 1, "target_offset": 1}]}}',
        '{"detailed_mappings": {"orders/0": 7}}',
        "topic,partition,source_offset,target_offset\nt,0,x,1\n",
        "topic,partition,source_offset,target_offset\nt,0,-1,1\n",
        "topic,partition,source_offset,target_offset\nt,0,1\n",
        "topic,partition,source_offset,target_offset\nt,0,5,50\nt,0,6,49\n",
        "topic,partition,source_offset,target_offset\nt,0,9223372036854775808,49\n",
    ],
)
def test_what_is_no_map(text: str) -> None:
    with pytest.raises(InputError):
        decode_map(text.encode(), "m")
    with pytest.raises(InputError):
        decode_map(b"\xff", "m")
