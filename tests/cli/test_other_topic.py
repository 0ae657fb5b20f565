"""A log of another topic is refused in one line; one of `__consumer_offsets` never is."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from offsets_log.log_format.building import build_batch, build_marker
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.state_topics import STATE_RECORD_TYPES
from offsets_log_cli.main import main
from tests.builders import LogBuilder, record_bytes

FILE = "00000000000000000000.log"
TOPIC_ID = bytes(range(0x40, 0x50))
COMMIT = record_bytes(1, {"group": "g", "topic": "t", "partition": 0}, None, 4)

Pair = tuple[bytes | None, bytes | None]

OTHERS: dict[str, list[Pair]] = {
    # a share snapshot: type, group, topic id, partition
    "__share_group_state": [(struct.pack(">hh2s16si", 0, 2, b"sg", TOPIC_ID, i), b"\0\0") for i in range(5)],
    "__transaction_state": [(struct.pack(">hh8s", 0, 8, b"producer"), b"\0\1" + bytes(30)) for _ in range(5)],
    "__cluster_metadata": [(None, b"\1\2\0" + bytes(20)) for _ in range(5)],
    "texts": [(b"k0%d" % i, b"value") for i in range(1000)],
    "numbers": [(struct.pack(">i", i), b"value") for i in range(1000)],
    "long.numbers": [(struct.pack(">q", i), b"value") for i in range(1000)],
    "without-keys": [(None, b"value") for _ in range(1000)],
}


def write(directory: Path, *pairs: Pair) -> Path:
    directory.mkdir(parents=True)
    made = [Record(offset=i, timestamp_ms=1, key=key, value=value) for i, (key, value) in enumerate(pairs)]
    (directory / FILE).write_bytes(build_batch(made) if made else b"")
    return directory


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(main, [command, *map(str, arguments)], catch_exceptions=False)


COMMANDS = ["compact", "info", "check", "rebuild", "decode", "top", "rebalances"]
REFUSED = [
    (topic, command)
    for topic in OTHERS
    for command in COMMANDS
    if command != "decode" or topic not in STATE_RECORD_TYPES
]


@pytest.mark.parametrize(("topic", "command"), REFUSED)
def test_a_partition_of_another_topic(topic: str, command: str, tmp_path: Path) -> None:
    directory = write(tmp_path / "data" / f"{topic}-0", *OTHERS[topic])
    for given in (directory, directory / FILE):
        result = run(command, given, "-o", "jsonl")
        assert (result.exit_code, result.stdout) == (1, "")
        (line,) = result.stderr.splitlines()
        assert f"{directory / FILE}: this is another topic, {topic}: " in line
        assert "Give a broker's data directory" in line


@pytest.mark.parametrize("topic", OTHERS)
def test_a_lone_segment_is_judged_by_its_records(topic: str, tmp_path: Path) -> None:
    file = write(tmp_path / "somewhere", *OTHERS[topic]) / FILE
    for arguments in ((file,), (file, "--as-partition", "3"), (file, "-g", "nobody")):
        result = run("compact", *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        (line,) = result.stderr.splitlines()
        assert "does not look like __consumer_offsets" in line


def test_beside_offsets_partitions_it_is_left_out(tmp_path: Path) -> None:
    other = write(tmp_path / "texts-0", *OTHERS["texts"])
    ours = write(tmp_path / "__consumer_offsets-0", COMMIT)
    result = run("compact", ours, other)
    assert result.exit_code == 0
    assert "1 directory of another topic is left out" in result.stderr


def test_an_empty_log_is_of_another_topic_if_its_name_is_one_of_kafkas(tmp_path: Path) -> None:
    assert run("compact", write(tmp_path / "__share_group_state-0")).exit_code == 1
    for name in ("__consumer_offsets-0", "copy-3", "copy"):
        result = run("compact", write(tmp_path / name), "--as-partition", "1")
        assert (result.exit_code, result.stdout) == (0, "")


NEWER = (struct.pack(">hh1s", max(RECORD_TYPES) + 1, 1, b"g"), b"\0\0")


@pytest.mark.parametrize(
    ("pairs", "status"),
    [
        ([COMMIT, *OTHERS["texts"][:3]], 3),
        ([*OTHERS["texts"][:99], COMMIT], 3),
        ([NEWER] * 3, 3),
        ([(COMMIT[0], b"\0\x63" + bytes(20))] * 3, 3),
        ([COMMIT], 0),
    ],
    ids=["one of ours", "the last looked at", "types to come", "versions to come", "ours"],
)
@pytest.mark.parametrize("directory", ["copy-3", "copy", "__consumer_offsets-3"])
def test_what_may_be_ours_is_read(pairs: list[Pair], status: int, directory: str, tmp_path: Path) -> None:
    assert run("compact", write(tmp_path / directory, *pairs)).exit_code == status


def test_the_name_of_its_directory_is_trusted(tmp_path: Path) -> None:
    """Damage is told piece by piece there, as ever."""
    assert run("compact", write(tmp_path / "__consumer_offsets-0", *OTHERS["texts"])).exit_code == 3


def test_markers_alone_tell_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "copy-3"
    directory.mkdir()
    marker = build_marker(0, commit=True, producer_id=5, producer_epoch=1, timestamp_ms=2000)
    (directory / FILE).write_bytes(marker)
    assert run("compact", directory).exit_code == 0
    (directory / FILE).write_bytes(marker + LogBuilder().skip(1).add(*OTHERS["texts"][:2]).batches[0])
    assert run("compact", directory).exit_code == 1
