"""Rules of a broker's start and of the load behind it, on logs of a few batches."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsets_log.broker import reading
from offsets_log.broker.outcome import LOAD_IN_PROGRESS, NOT_COORDINATOR, UNKNOWN_SERVER_ERROR, Outcome, on_brokers
from offsets_log.disk.reader import open_logs
from offsets_log.log_format import batch as b
from offsets_log.replay.profile import CLASSIC, MODERN, Profile
from offsets_log_cli.main import main
from tests.builders import LogBuilder

Files = dict[str, bytes]


def commits(first: int, count: int, *, group: str = "g") -> LogBuilder:
    """One offset commit a batch, of partition N at offset N."""
    built = LogBuilder()
    built.offset = first
    for offset in range(first, first + count):
        built.commit(offset, group=group, partition=offset)
    return built


def segment(first: int, count: int) -> bytes:
    return b"".join(commits(first, count).batches)


def name(base_offset: int, kind: str = "log") -> str:
    return f"{base_offset:020}.{kind}"


THREE: Files = {name(0): segment(0, 3), name(3): segment(3, 3), name(6): segment(6, 3)}
INDEXES: Files = {name(base, "index"): b"" for base in (0, 3, 6)}
STOPPED: Files = {".kafka_cleanshutdown": b'{"version":0}'}


def put(folder: Path, files: Files, above: Files) -> Path:
    """A data directory with one offsets partition."""
    partition = folder / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    for file, content in files.items():
        (partition / file).write_bytes(content)
    for file, content in ({"meta.properties": b""} | above).items():
        (folder / file).write_bytes(content)
    return folder


def checkpoint(offset: int) -> bytes:
    return b"0\n1\n__consumer_offsets 0 %d\n" % offset


def with_byte(data: bytes, position: int, value: int) -> bytes:
    return data[:position] + bytes([value]) + data[position + 1 :]


def with_field(data: bytes, position: int, layout: str, value: int) -> bytes:
    """A field of the batch at the begin changed, and its checksum made right again."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    (length,) = struct.unpack_from(">i", changed, 8)
    end = b.LOG_OVERHEAD + length
    batch = b.decode_batch_header(bytes(changed[:end]))
    changed[b.CRC_POSITION : b.ATTRIBUTES_POSITION] = batch.computed_crc().to_bytes(4)
    return bytes(changed)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Outcome]:
    """``start(files, above, profile)``: what a broker makes of these files, stopped as the directory tells."""

    def started(files: Files, above: Files | None = None, profile: Profile = MODERN) -> Outcome:
        folder = put(tmp_path / f"data-{len(list(tmp_path.iterdir()))}", files, above or {})
        with open_logs([str(folder)]) as disk:
            (log,) = disk.logs
            stopped_cleanly = log.checkpoints.stopped_cleanly
            assert stopped_cleanly is not None
            return on_brokers(log, (profile,), (stopped_cleanly,))[stopped_cleanly][profile]

    return started


def served(outcome: Outcome) -> list[int]:
    return sorted(value.committed_offset for value in outcome.state.iter_served())


BAD_SECOND = with_byte(THREE[name(3)], len(segment(3, 1)) + 30, 0xFF)
"""The second segment with a wrong time in its second batch, which its checksum tells."""

# -------------------------------------------------------------------------------------------- recovery


def test_after_a_clean_stop_no_checksum_is_looked_at(start: Callable[..., Outcome]) -> None:
    """``D-1``."""
    outcome = start(THREE | INDEXES | {name(3): BAD_SECOND}, STOPPED)
    assert (outcome.ok, outcome.opened.end_offset, outcome.opened.cuts) == (True, 9, [])
    assert served(outcome) == list(range(9))


def test_recovery_cuts_the_segment_and_deletes_those_behind(start: Callable[..., Outcome]) -> None:
    """``D-2``."""
    outcome = start(THREE | INDEXES | {name(3): BAD_SECOND})
    assert (outcome.ok, outcome.opened.end_offset) == (True, 4)
    assert served(outcome) == [0, 1, 2, 3]
    assert [(cut.is_deleted, Path(cut.file).name) for cut in outcome.opened.cuts] == [
        (False, name(3)),
        (True, name(6)),
    ]


@pytest.mark.parametrize(("recovery_point", "end_offset"), [(3, 4), (5, 4), (6, 9), (9, 9), (0, 4)])
def test_nothing_below_the_segment_of_the_recovery_point_is_looked_at(
    recovery_point: int, end_offset: int, start: Callable[..., Outcome]
) -> None:
    """``D-2``."""
    above = {"recovery-point-offset-checkpoint": checkpoint(recovery_point)}
    assert start(THREE | INDEXES | {name(3): BAD_SECOND}, above).opened.end_offset == end_offset


def test_a_missing_index_recovers_that_segment_alone(start: Callable[..., Outcome]) -> None:
    """``D-3``: after a clean stop, and then an unclean one finds nothing more to cut."""
    for above in (STOPPED, {}):
        files = {**THREE, **INDEXES, name(3): BAD_SECOND}
        del files[name(3, "index")]
        outcome = start(files, above)
        assert outcome.opened.end_offset == 9
        assert served(outcome) == [0, 1, 2, 3, 6, 7, 8]


def test_a_segment_whose_transaction_index_cannot_be_is_recovered(start: Callable[..., Outcome]) -> None:
    """``TransactionIndex.sanityCheck``: an aborted transaction that ends before the segment."""
    entry = struct.pack(">hqqqq", 0, 7, 0, 1, 1)
    outcome = start(THREE | INDEXES | {name(3): BAD_SECOND, name(3, "txnindex"): entry}, STOPPED)
    assert served(outcome) == [0, 1, 2, 3, 6, 7, 8]


def test_a_log_that_ends_before_its_start_is_emptied(start: Callable[..., Outcome]) -> None:
    outcome = start(THREE | INDEXES, STOPPED | {"log-start-offset-checkpoint": checkpoint(50)})
    assert (outcome.ok, outcome.opened.start_offset, outcome.opened.end_offset) == (True, 50, 50)
    assert served(outcome) == []


def test_a_load_begins_at_the_log_start(start: Callable[..., Outcome]) -> None:
    """``L-2``."""
    outcome = start(THREE | INDEXES, STOPPED | {"log-start-offset-checkpoint": checkpoint(4)})
    assert (outcome.opened.start_offset, served(outcome)) == (4, [4, 5, 6, 7, 8])


CONTROL = with_field(b"".join(commits(6, 3, group="gg").batches), b.ATTRIBUTES_POSITION, ">h", b.CONTROL_MASK)


@pytest.mark.parametrize(
    ("last", "above", "rule"),
    [
        (segment(6, 3) + bytes(100), STOPPED, "D-9"),
        (with_field(segment(6, 3), 0, ">q", 5), {}, "D-8"),
        (with_field(CONTROL, 43, ">q", 77), {}, "D-8"),
    ],
    ids=["zeros after a clean stop", "an offset below its segment", "data of a producer that says it is control"],
)
def test_one_partition_keeps_the_broker_from_starting(
    last: bytes, above: Files, rule: str, start: Callable[..., Outcome]
) -> None:
    """``D-8``."""
    outcome = start(THREE | INDEXES | {name(6): last}, above)
    assert (outcome.starts, outcome.ok, served(outcome)) == (False, False, [])
    assert outcome.failure is not None
    assert outcome.failure.rule == rule
    assert outcome.file is not None
    assert outcome.file.endswith(name(6))


def test_a_segment_whose_last_offset_is_too_far_is_split(start: Callable[..., Outcome]) -> None:
    """``LocalLog.splitOverflowedSegment``; the log goes on behind the far batch."""
    far = with_field(segment(8, 1), 0, ">q", 6 + (1 << 31))
    outcome = start(THREE | INDEXES | {name(6): segment(6, 2) + far})
    assert (outcome.starts, outcome.opened.end_offset) == (True, 7 + (1 << 31))
    assert list(outcome.opened.files) == [0, 3, 6, 6 + (1 << 31)]


# -------------------------------------------------------------------------------------------- the load


def test_offsets_that_go_back_end_the_load_of_a_java_coordinator(start: Callable[..., Outcome]) -> None:
    """``D-6``: a batch that reaches beyond the high watermark."""
    high = with_field(segment(3, 3), 23, ">i", 40)
    modern = start(THREE | INDEXES | {name(3): high}, STOPPED)
    assert (modern.ok, modern.ends, modern.answers) == (False, True, "not_coordinator")
    assert modern.failure is not None
    assert modern.failure.rule == "D-6"


STUCK = {name(3): segment(3, 2) + with_field(segment(5, 1), 23, ">i", -1), name(6): segment(6, 3)}
"""The last batch of a segment ends before it begins."""
BACK = {name(3): segment(3, 1) + with_field(segment(4, 1), 0, ">q", 100_004) + segment(5, 1), name(8): segment(8, 1)}
"""One far too high offset, and behind its segment a gap."""


@pytest.mark.parametrize(
    ("files", "profile", "ends"),
    [(STUCK, MODERN, False), (STUCK, CLASSIC, True), (BACK, CLASSIC, False)],
    ids=["stuck, by base offsets", "stuck, by last offsets", "back, by last offsets"],
)
def test_a_load_that_comes_back_to_where_it_was_never_ends(
    files: Files, profile: Profile, ends: bool, start: Callable[..., Outcome]
) -> None:
    """``D-7``: it depends on how a release finds its place."""
    outcome = start({name(0): THREE[name(0)]} | INDEXES | files | {name(8, "index"): b""}, STOPPED, profile)
    assert (outcome.starts, outcome.ends, outcome.ok) == (True, ends, ends)
    assert bool(served(outcome)) == ends


OLD_COMMIT = b"".join(LogBuilder().commit(7, version=1).batches)
NO_DATA = [
    ({name(0): b"", name(100): b""}, 0, 100),
    ({name(0): OLD_COMMIT, name(6): b""}, 1, 6),
]
"""Files, from where on nothing can be read, and where the log ends."""


@pytest.mark.parametrize(("files", "next_offset", "end"), NO_DATA)
def test_before_2_4_1_a_load_never_ends_where_nothing_can_be_read(
    files: Files, next_offset: int, end: int, tmp_path: Path
) -> None:
    """``L-4``."""
    put(tmp_path, files, STOPPED)
    found = {
        row["releases"][0]: row
        for row in rows("check", str(tmp_path), "--loads-on", "1.1,2.0.1,2.3.1,2.4.0,2.4.1,3.9.1", "-o", "jsonl")
        if row["kind"] == "load"
    }
    assert {name: (row["ok"], row["ends"]) for name, row in found.items()} == {
        **dict.fromkeys(("1.1", "2.0.1", "2.3.1", "2.4.0"), (False, False)),
        **dict.fromkeys(("2.4.1", "3.9.1"), (True, True)),
    }
    stuck = found["2.4.0"]
    assert (stuck["rule"], stuck["record_offset"], stuck["log_end_offset"]) == ("L-4", next_offset, end)
    assert (stuck["served"], stuck["detail"]) == ("nothing", {"answers": LOAD_IN_PROGRESS})
    assert run("check", str(tmp_path), "--loads-on", "2.4.0").exit_code == 3


def test_an_empty_last_segment_right_behind_the_data_ends_every_load(tmp_path: Path) -> None:
    """``L-4``."""
    put(tmp_path, {name(0): OLD_COMMIT, name(1): b""}, STOPPED)
    assert run("check", str(tmp_path), "--loads-on", "2.0.1,2.4.1").exit_code == 0


def test_below_its_high_watermark_a_java_coordinator_answers_what_it_counted_last(
    start: Callable[..., Outcome],
) -> None:
    """``D-13``: the last segment is empty, and the log behind it goes on beyond the last batch."""
    files = {name(0): segment(0, 3), name(6): b"", name(0, "index"): b"", name(6, "index"): b""}
    modern, classic = start(files, STOPPED), start(files, STOPPED, CLASSIC)
    assert (modern.ok, served(modern)) == (True, [])
    assert (classic.ok, served(classic)) == (True, [0, 1, 2])
    broken = b"".join(commits(0, 3).add((b"\0", None)).batches)
    failed = start(files | {name(0): broken}, STOPPED)
    assert (failed.ok, failed.answers, failed.failure and failed.failure.rule) == (False, NOT_COORDINATOR, "J-3")


def test_without_a_snapshot_at_its_last_committed_offset_it_answers_with_an_error(
    start: Callable[..., Outcome],
) -> None:
    """``D-13``."""
    beyond = with_field(segment(3, 3), 0, ">q", 3 + (1 << 30))
    outcome = start({name(0): segment(0, 3), name(3): beyond[: len(segment(3, 1))], name(6): b""} | INDEXES, STOPPED)
    assert (outcome.ok, outcome.answers, served(outcome)) == (True, UNKNOWN_SERVER_ERROR, [])


def test_the_log_is_read_a_buffer_at_a_time(start: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    """The offsets of every buffer follow from those of the one before."""
    whole = served(start(THREE | INDEXES, STOPPED))
    for size in (1, 100, 250):
        monkeypatch.setattr(reading, "LOAD_BUFFER_BYTES", size)
        assert served(start(THREE | INDEXES, STOPPED)) == whole == list(range(9))


# ----------------------------------------------------------------------------------- the command line


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def rows(*args: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*args).stdout.split("\n") if line]


@pytest.fixture
def lone(tmp_path: Path) -> Path:
    """A partition's directory without anything that tells how the broker was stopped."""
    folder = put(tmp_path, THREE | INDEXES | {name(3): BAD_SECOND}, {})
    (folder / "meta.properties").unlink()
    return folder


def test_where_nothing_tells_the_stop_both_are_answered(lone: Path) -> None:
    loads = [row for row in rows("check", str(lone), "--loads-on", "4.3.0", "-o", "jsonl") if row["kind"] == "load"]
    assert [(row["shutdown"], row["ok"], row["served"], row["log_end_offset"]) for row in loads] == [
        ("clean", True, "some", 9),
        ("unclean", True, "some", 4),
    ]
    verdict = json.loads(run("check", str(lone), "--loads-on", "4.3.0", "-o", "json").stdout)["loads"]["0"]["4.3.0"]
    assert (verdict["shutdown"], verdict["log_end_offset"]) == ("clean", 9)
    assert verdict["after_unclean_shutdown"]["log_end_offset"] == 4
    table = run("check", str(lone), "--loads-on", "4.3.0", "-o", "table").stdout.split("\n")
    assert [line.split() for line in table if line.strip().startswith("0 ")] == [
        ["0", "clean", "all", "some", "of", "what", "is", "left", "9"],
        ["0", "unclean", "all", "some", "of", "what", "is", "left", "4"],
    ]


def test_shutdown_says_which_stop(lone: Path) -> None:
    for shutdown, offsets in (("clean", list(range(9))), ("unclean", [0, 1, 2, 3])):
        found = rows("compact", str(lone), "--as-broker", "--shutdown", shutdown, "-o", "jsonl")
        assert [row["committed_offset"] for row in found] == offsets
    said = run("compact", str(lone), "--as-broker").stderr
    assert "if it was stopped cleanly, loads" in said
    assert "if it was stopped uncleanly, loads" in said


def test_undamaged_files_have_one_verdict(tmp_path: Path) -> None:
    folder = put(tmp_path, THREE, {})
    (load,) = (row for row in rows("check", str(folder), "--loads-on", "4.3", "-o", "jsonl") if row["kind"] == "load")
    assert (load["ok"], load["starts"], load["ends"], load["served"], load["shutdown"]) == (
        True,
        True,
        True,
        "all",
        None,
    )
    assert load["log_end_offset"] == 9


def test_rebuild_tells_what_the_broker_does(lone: Path) -> None:
    loads = json.loads(run("rebuild", str(lone), "--shutdown", "unclean").stdout)["loads"]["0"]
    assert (loads["ok"], loads["starts"], loads["ends"], loads["log_end_offset"]) == (True, True, True, 4)
    as_broker = json.loads(run("rebuild", str(lone), "--shutdown", "unclean", "--as-broker").stdout)
    assert [row["committed_offset"] for row in as_broker["offsets"]] == [0, 1, 2, 3]


def test_expire_as_broker_knows_what_the_broker_knows(lone: Path) -> None:
    found = rows("expire", str(lone), "--as-broker", "--shutdown", "unclean", "--now", "2023-11-15", "-o", "jsonl")
    assert [row["partition"] for row in found if row["kind"] == "offset"] == [0, 1, 2, 3]


def test_zeros_after_a_clean_stop_are_wrong_in_every_command(tmp_path: Path) -> None:
    """``D-8``, ``D-9``: told as what they are, and status 3; after another stop a broker cuts them off."""
    folder = put(tmp_path, THREE | INDEXES | {name(6): segment(6, 3) + bytes(100)}, STOPPED)
    for command in ("compact", "info", "rebuild", "decode"):
        result = run(command, str(folder), "-o", "jsonl")
        assert result.exit_code == 3, command
        assert "no broker starts over such zeros" in result.stderr
        assert "normal at the end" not in result.stderr
    (folder / ".kafka_cleanshutdown").unlink()
    assert run("compact", str(folder)).exit_code == 0


def test_a_size_of_zero_is_wrong_and_what_is_too_short_is_the_end(start: Callable[..., Outcome]) -> None:
    """``D-9``: in an older segment the load meets it, at the end of the log a start does."""
    zeros = THREE | INDEXES | {name(3): THREE[name(3)] + bytes(100)}
    assert (start(zeros).ok, start(zeros).opened.end_offset) == (True, 6)
    failed = start(zeros, STOPPED)
    assert (failed.starts, failed.ok) == (True, False)
    assert failed.failure is not None
    assert failed.failure.rule == "D-9"
    for rest in (segment(6, 1)[:16], segment(6, 1)[:-1]):
        passed = start(THREE | INDEXES | {name(3): THREE[name(3)] + rest}, STOPPED)
        assert (passed.ok, served(passed)) == (True, list(range(9)))


def test_emptied_segments_are_missing_log(tmp_path: Path) -> None:
    """An empty file is no sign of a cleaner that never came so far."""
    folder = put(tmp_path, THREE | INDEXES | {name(3): b""}, STOPPED)
    result = run("compact", str(folder))
    assert result.exit_code == 3
    assert "offsets 3 to 5 are missing" in result.stderr
    (folder / "cleaner-offset-checkpoint").write_bytes(checkpoint(6))
    assert run("compact", str(folder)).exit_code == 0
