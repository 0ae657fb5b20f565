"""The text of kafka-dump-log, era by era: the same answers as the segments it was printed of."""

from __future__ import annotations

import gzip
import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offsets_log.dumps.formats import build_segments, guess_format
from offsets_log.errors import UnsupportedError
from offsets_log.events import Event
from offsets_log.pipeline import iter_events
from tests.cli.runs import run
from tests.dumps.runs import captured, rows, without
from tests.sizes import examples
from tests.test_decode_recordings import DUMPS, Dump

Recordings = Callable[[str], Path]

TIMES_AND_EPOCHS = ("commit_timestamp_ms", "leader_epoch", "expire_timestamp_ms", "topic_id")
"""What no text before 3.8 tells of a commit."""

RULES = ("--profile", "modern")
"""Those that are compared, whatever text and segments tell."""


def text_of(dump: Dump, folder: Path) -> bytes:
    files = sorted(folder.glob(f"answers/dump-log{dump.variant}/[0-9]{dump.by}.txt.gz"))
    return b"".join(gzip.decompress(file.read_bytes()) for file in files)


def keyless_tombstones(text: bytes) -> int:
    """Lines of a tombstone behind which a release before 2.4 printed nothing."""
    return len(re.findall(rb"^offset: .*(?:payloadsize|valuesize): -1 (?!.*(?:key: |endTxnMarker)).*$", text, re.M))


def undecoded(text: bytes) -> int:
    return len(re.findall(rb" key: (?:unknown::|Unknown record type )", text))


@pytest.mark.parametrize(
    ("dump", "profile"),
    [(dump, ("modern", "classic")[turn % 3 == 0]) for turn, dump in enumerate(DUMPS) if dump.tool >= (0, 10)],
    ids=str,
)
def test_compact_of_the_text_is_compact_of_the_segments(dump: Dump, profile: str, recording: Recordings) -> None:
    folder = recording(dump.recording)
    text = text_of(dump, folder)
    expected = rows("compact", folder / f"log{dump.variant}", "--profile", profile)
    missing_columns = keyless_tombstones(text) + undecoded(text)
    result = run("compact", "--input-format", "dump-log", "-", "--profile", profile, "-o", "jsonl", stdin=text)
    found = [json.loads(line) for line in result.stdout.split("\n") if line]
    assert result.exit_code == (3 if missing_columns else 0), result.stderr
    assert bool(missing_columns) == (f"0 corrupt, {missing_columns} unsupported" in result.stderr)
    if dump.tool < (3, 8):
        assert all(row[name] is None for row in found for name in TIMES_AND_EPOCHS)
        assert "the answer has null for: " in result.stderr
        expected, found = without(expected, *TIMES_AND_EPOCHS), without(found, *TIMES_AND_EPOCHS)
    if keyless_tombstones(text):
        assert "prints tombstones without their keys" in result.stderr
        assert len(found) > len(expected)
        found = [row for row in found if row in expected]
    assert found == expected


@pytest.mark.parametrize("dump", [dump for dump in DUMPS if dump.tool >= (3, 8)], ids=str)
def test_rebuild_of_json_text_is_rebuild_of_the_segments(dump: Dump, recording: Recordings) -> None:
    folder = recording(dump.recording)
    log = folder / f"log{dump.variant}"
    expected = json.loads(run("rebuild", log, "-o", "json").stdout)
    found = json.loads(run("rebuild", "-", "-o", "json", stdin=text_of(dump, folder)).stdout)
    for document in (expected, found):
        del document["history"]  # of files
        for group in document["groups"]:
            group["members"] = without(group["members"], "assignment_base64")
    assert found == expected


@pytest.mark.parametrize("dump", [dump for dump in DUMPS if (2, 4) <= dump.tool < (3, 7)], ids=str)
def test_groups_of_older_text_have_what_it_tells_and_null_for_the_rest(dump: Dump, recording: Recordings) -> None:
    folder = recording(dump.recording)
    expected = {row["group"]: row for row in rows("rebuild", folder / "log", "--table", "groups", *RULES)}
    found = rows("rebuild", "-", "--table", "groups", *RULES, stdin=text_of(dump, folder))
    told = ("group", "type", "state", "protocol_type", "protocol", "generation", "offsets_partition", "members")
    for row in found:
        assert [row[name] for name in told] == [expected[row["group"]][name] for name in told]
    assert len(found) == len(expected)
    has_group_records = any(row["members"] for row in found)
    expected_members = {row["member_id"]: row for row in rows("rebuild", folder / "log", "--table", "members", *RULES)}
    members = rows("rebuild", "-", "--table", "members", *RULES, stdin=text_of(dump, folder))
    assert {row["member_id"] for row in members} == expected_members.keys()
    assert bool(members) == has_group_records
    for row in members:
        assert row["assignment"] == expected_members[row["member_id"]]["assignment"]
        missing_columns = ("client_id", "host", "session_timeout_ms", "rebalance_timeout_ms", "subscribed_topics")
        assert all(row[name] is None for name in missing_columns)


@pytest.mark.parametrize(
    ("name", "recording_name", "partitions"),
    [
        ("dump-log-4.3.0-two-files", "kafka-4.3-mixed", (0, 1)),
        ("dump-log-3.7.2", "kafka-2.8", (0,)),
        ("dump-log-2.4.1", "kafka-2.8", (0,)),
    ],
)
def test_text_of_a_release_with_all_its_files(
    name: str, recording_name: str, partitions: tuple[int, ...], recording: Recordings
) -> None:
    log = recording(recording_name) / "log"
    segments = [log / f"__consumer_offsets-{partition}/{0:020}.log" for partition in partitions]
    expected, found = rows("compact", *segments), rows("compact", "-", stdin=captured(name))
    if "4.3" not in name:
        expected, found = without(expected, *TIMES_AND_EPOCHS), without(found, *TIMES_AND_EPOCHS)
    assert found == expected


@pytest.mark.parametrize(
    ("name", "recording_name", "partition"),
    [
        ("dump-log-4.3.0-skip-record-metadata", "kafka-4.3-mixed", 1),
        ("dump-log-3.7.2-skip-record-metadata", "kafka-2.8", 0),
    ],
)
def test_skip_record_metadata_leaves_out_what_a_marker_says(
    name: str, recording_name: str, partition: int, recording: Recordings
) -> None:
    segment = recording(recording_name) / "log" / f"__consumer_offsets-{partition}/{0:020}.log"
    controls = [row for row in rows("decode", segment) if row["is_control"]]
    result = run("decode", "-", "-o", "jsonl", stdin=captured(name))
    assert result.exit_code == 3
    assert f"0 corrupt, {len(controls)} unsupported" in result.stderr
    assert "a transaction marker; whether it commits or aborts" in result.stderr
    found = [json.loads(line) for line in result.stdout.split("\n") if line]
    places = [(row["record_offset"], row["key"]) for row in rows("decode", segment) if not row["is_control"]]
    assert [(row["record_offset"], row["key"]) for row in found if not row["is_control"]] == places
    ends = [(row["record_offset"], row["producer_id"]) for row in found if row["is_control"]]
    assert ends == [(row["record_offset"], row["producer_id"]) for row in controls]
    assert all(row["control"] == {"type": "UNTOLD"} for row in found if row["is_control"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dump-log-4.3.0-deep-iteration", "a record of which the tool has printed no key"),
        ("dump-log-4.3.0-batches-only", "kafka-dump-log prints them with --offsets-decoder"),
        ("dump-log-4.3.0-print-data-log", "bytes printed as text, which loses some"),
    ],
)
def test_text_without_the_decoder_is_said_to_lack_it(name: str, words: str) -> None:
    result = run("compact", "-", "-o", "jsonl", stdin=captured(name))
    assert (result.exit_code, result.stdout) == (3, "")
    assert words in result.stderr


def test_bytes_printed_as_text_come_back_where_none_was_lost() -> None:
    key, value = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", b"\x00\x02" + bytes(7) + b"\x05\x00\x02hm" + bytes(8)
    line = (
        b"offset: 4 position: 0 CreateTime: 7 isvalid: true keysize: %d valuesize: %d magic: 2 producerId: -1 "
        b"isTransactional: false key: %s payload: %s\n"
    )
    (row,) = rows("compact", "-", stdin=line % (len(key), len(value), key, value))
    assert (row["group"], row["committed_offset"], row["metadata"], row["record_offset"]) == ("g", 5, "hm", 4)


# ------------------------------------------------------------------------------------- as people paste it


def text_2_8(recording: Recordings) -> str:
    return gzip.decompress((recording("kafka-2.8") / "answers/dump-log/0.txt.gz").read_bytes()).decode()


def test_blank_lines_prompts_and_windows_line_ends(recording: Recordings) -> None:
    text = text_2_8(recording)
    expected = rows("compact", "-", stdin=text.encode())
    spaced = re.sub(r"^(?=baseOffset|\| )", "\n", text, flags=re.M)
    assert rows("compact", "-", stdin=f"$ kafka-dump-log.sh --files x\n\nsee below\n{spaced}\n\n".encode()) == expected
    assert rows("compact", "-", stdin=text.replace("\n", "\r\n").encode()) == expected
    for encoding in ("utf-16", "utf-8-sig"):  # PowerShell's
        assert rows("compact", "-", stdin=text.encode(encoding)) == expected


@pytest.mark.parametrize("width", [80, 120, 203])
@pytest.mark.parametrize("name", ["kafka-4.3-mixed", "kafka-2.8", "kafka-3.9-classic"])
def test_lines_that_a_console_has_wrapped(name: str, width: int, recording: Recordings) -> None:
    text = gzip.decompress((recording(name) / "answers/dump-log/0.txt.gz").read_bytes()).decode()
    wrapped = "\n".join(
        piece
        for line in text.split("\n")
        for piece in ([line[i : i + width] for i in range(0, len(line), width)] or [""])
    )
    assert wrapped != text
    assert rows("compact", "-", stdin=wrapped.encode()) == rows("compact", "-", stdin=text.encode())


def commit_line(group: str, metadata: str, offset: int = 0) -> str:
    key, value = len(group.encode()) + 11, len(metadata.encode()) + 24
    return (
        f"| offset: {offset} CreateTime: 7 keySize: {key} valueSize: {value} sequence: -1 headerKeys: [] "
        f"key: offset_commit::group={group},partition=t-0 payload: offset=5,metadata={metadata}\n"
    )


BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: 0 isTransactional: false isControl: false position: 0 CreateTime: 7 size: 100 magic: 2 "
    "compresscodec: NONE crc: 1 isvalid: true\n"
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=30)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(NAMES.filter(lambda name: "\n" not in name and name.strip() == name), NAMES)
def test_any_group_and_metadata(group: str, metadata: str) -> None:
    text = BATCH.format(0) + commit_line(group, metadata) + BATCH.format(1) + commit_line("next", "", 1)
    built = build_segments("x", text.encode(), "dump-log")
    found = [
        (event.decoded.key["group"], event.decoded.value["metadata"])
        for log in built.logs()
        for event in iter_events(log)
        if isinstance(event, Event) and event.decoded is not None and event.decoded.value is not None
    ]
    assert ("next", "") in found
    assert (group, metadata) in found or built.damages  # never another name


@pytest.mark.parametrize(
    ("group", "metadata"),
    [("a payload: b", "x"), ("a,partition=b-1", "x"), ("a", "offset=1,metadata=2"), ("a", "\n\nx\n"), ("a", " x ")],
)
def test_what_looks_like_the_text_itself(group: str, metadata: str) -> None:
    (row,) = rows("compact", "-", stdin=(BATCH.format(0) + commit_line(group, metadata)).encode())
    assert (row["group"], row["metadata"]) == (group, metadata)


# ---------------------------------------------------------------------------------------------- damage


def test_a_malformed_line_is_damage_at_its_line_and_the_rest_goes_on(tmp_path: Path) -> None:
    lines = (BATCH.format(0) + commit_line("a", "m") + BATCH.format(1) + commit_line("b", "", 1)).splitlines()
    lines[1] = lines[1].replace("offset=5", "offset=five")
    quarantine = tmp_path / "q.jsonl"
    result = run("compact", "-", "-o", "jsonl", "--quarantine", quarantine, stdin="\n".join(lines).encode())
    assert result.exit_code == 3
    assert [json.loads(line)["group"] for line in result.stdout.split("\n") if line] == ["b"]
    assert "position 2" in result.stderr
    (kept,) = [json.loads(line) for line in quarantine.read_text().split("\n") if line]
    assert (kept["position"], kept["kind"]) == (2, "corrupt")
    assert run("compact", "-", "--strict", stdin="\n".join(lines).encode()).exit_code == 1


def test_sizes_that_do_not_fit_are_damage() -> None:
    text = BATCH.format(0) + commit_line("abc", "m").replace("group=abc", "group=ab")
    result = run("compact", "-", stdin=text.encode())
    assert result.exit_code == 3
    assert "the key had 14 bytes, what is printed of it makes 13" in result.stderr


def test_a_batch_with_a_wrong_checksum_is_left_out_as_of_segments() -> None:
    text = BATCH.format(0).replace("isvalid: true", "isvalid: false") + commit_line("a", "")
    result = run("compact", "-", "-o", "jsonl", stdin=(text + BATCH.format(1) + commit_line("b", "", 1)).encode())
    assert (result.exit_code, json.loads(result.stdout)["group"]) == (3, "b")


def test_a_crash_and_a_cut_are_told() -> None:
    text = BATCH.format(0) + commit_line("a", "") + 'Exception in thread "main" java.lang.Error: x\n\tat a.B(C)\n'
    assert "what followed is missing" in run("compact", "-", stdin=text.encode()).stderr
    cut = run("compact", "-", stdin=(BATCH.format(0).replace("count: 1", "count: 2") + commit_line("a", "")).encode())
    assert (cut.exit_code, "1 of its 2 records are not in the text" in cut.stderr) == (3, True)


def test_another_topic_is_left_out() -> None:
    text = f"Dumping /data/orders-0/{0:020}.log\n" + BATCH.format(0) + commit_line("a", "")
    result = run("compact", "-", stdin=text.encode())
    assert result.exit_code == 1
    assert "no dump-log records are in it" in result.stderr


TEXTS = ("dump-log-4.3.0-two-files", "dump-log-2.4.1", "dump-log-3.7.2-skip-record-metadata")


@examples(150)
@given(st.data())
def test_mutated_text_is_read_or_damage(data: st.DataObject) -> None:
    lines = captured(data.draw(st.sampled_from(TEXTS))).split(b"\n")
    start = data.draw(st.integers(0, len(lines) - 1))
    chosen = lines[start : start + 6]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(chosen) - 1))
        line, place = bytearray(chosen[at]), data.draw(st.integers(0, max(len(chosen[at]) - 1, 0)))
        match data.draw(st.sampled_from(("cut", "byte", "digit", "drop", "twice", "null"))):
            case "cut":
                del line[place:]
            case "byte":
                line[place : place + 1] = data.draw(st.binary(max_size=2))
            case "digit":
                line = bytearray(re.sub(rb"\d+", b"99999999999999999999", bytes(line), count=place % 20))
            case "drop":
                line = bytearray()
            case "twice":
                line += bytes(line)
            case "null":
                line = bytearray(re.sub(rb'"[^"]*"', b"null", bytes(line), count=place % 7))
        chosen[at] = bytes(line)
    built = build_segments("x", b"\n".join(chosen), "dump-log")
    assert all(damage.error.position for damage in built.damages)
    for log in built.logs():
        for event in iter_events(log):
            assert not isinstance(event, Event) or event.decoded or event.control or event.damage


def test_every_damage_of_a_line_is_told_apart() -> None:
    """Text that tells nothing of a record is unsupported, text that makes no sense is corrupt."""
    built = build_segments("x", captured("dump-log-4.3.0-deep-iteration"), "dump-log")
    kinds = {type(damage.error) for damage in built.damages[:-1]}  # the text is cut in its last batch
    assert all(issubclass(kind, UnsupportedError) for kind in kinds)


def test_each_text_is_guessed(recording: Recordings) -> None:
    for name in (*TEXTS, "dump-log-4.3.0-batches-only"):
        assert guess_format(captured(name)) == "dump-log"
    assert guess_format(textwrap.dedent("Look:\n\n" + BATCH.format(0)).encode()) == "dump-log"
    assert guess_format((recording("kafka-2.8") / f"log/__consumer_offsets-0/{0:020}.log").read_bytes()) == "segments"


def test_a_file_that_lacks_between_others_is_missing(recording: Recordings, tmp_path: Path) -> None:
    """All of a file is printed, so what no file holds is lost; of the first and the last nobody knows."""
    text = gzip.decompress((recording("kafka-2.8") / "answers/dump-log/1.txt.gz").read_bytes()).decode()
    first, second, third = (f"Dumping{part}" for part in text.split("Dumping")[1:])
    for parts, is_whole in (((first, second, third), True), ((second, third), True), ((first, third), False)):
        for command in ("compact", "groups", "info"):
            result = run(command, "-", stdin="".join(parts).encode())
            assert result.exit_code == (0 if is_whole else 3), (command, result.stderr)
    told = "offsets 62 to 149 are missing"
    result = run("rescue", "-", "--to", tmp_path / "to", stdin=(first + third).encode())
    assert (result.exit_code, told in result.stderr) == (3, True)
    assert (tmp_path / "to" / "doubtful.jsonl").exists()
