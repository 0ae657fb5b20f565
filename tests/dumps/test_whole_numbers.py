"""JSON that jq or JavaScript has printed again: ``5.0`` is 5 where an integer is meant, a fraction is told plainly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.dumps.json_text import parse
from tests.cli.runs import run
from tests.conftest import json_lines

ROW = (
    '{"offsets_partition":0,"record_offset":%s,"batch_base_offset":0,"is_control":false,"record_type":1,"timestamp_ms":5,'
    '"key":{"group":"g","topic":"t","partition":0},"value_version":3,"value":{"offset":%s,"leaderEpoch":-1,'
    '"metadata":"","commitTimestamp":5}}\n'
)


def printed_by_tool(offset: str) -> str:
    key = '{"type":"1","data":{"group":"g","topic":"t","partition":0}}'
    payload = f'{{"version":"3","data":{{"offset":{offset},"leaderEpoch":-1,"metadata":"","commitTimestamp":5}}}}'
    return (
        "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        "position: 0 CreateTime: 5 size: 100 magic: 2 compresscodec: none crc: 1 isvalid: true\n"
        "| offset: 0 CreateTime: 5 keySize: 12 valueSize: 24 sequence: -1 headerKeys: [] "
        f"key: {key} payload: {payload}\n"
    )


def printed_by_formatter(offset: str) -> str:
    return (
        '{"key":{"type":1,"data":{"group":"g","topic":"t","partition":0.0}},"value":{"version":3,"data":{"offset":'
        f'{offset},"leaderEpoch":-1,"metadata":"","commitTimestamp":5}}}}}}\n'
    )


FORMS: tuple[Callable[[str], str], ...] = (
    lambda offset: ROW % ("0.0", offset), printed_by_tool, printed_by_formatter
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_number_without_a_fraction_is_the_integer(form: Callable[[str], str], tmp_path: Path) -> None:
    for told in ("9007199254740993.0", "9007199254740993"):
        result = run("compact", "-", "-o", "jsonl", stdin=form(told).encode())
        assert result.exit_code == 0, result.stderr
        assert [row["committed_offset"] for row in json_lines(result.stdout)] == [9007199254740993]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("told", ["5.5", "1e400", "99999999999999999999"])
def test_any_other_number_is_told_plainly(form: Callable[[str], str], told: str) -> None:
    result = run("compact", "-", stdin=form(told).encode())
    assert result.exit_code == 3
    assert "is no number that fits there" in result.stderr
    assert "struct" not in result.stderr


def test_numbers() -> None:
    assert [repr(parse(text)) for text in ("5.0", "5e3", b"-0.0", "0.5", "1e30", "5", "0e99999999999999999999")] == [
        "5", "5000", "0", "0.5", "1e+30", "5", "0",
    ]  # fmt: skip
