"""Texts of kafka-dump-log without all their lines of batches: what became of commits is unknown, and never guessed."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.columnar import large
from offsets_log.dumps.cut_text import ENDS
from offsets_log.dumps.formats import build_segments, known_format
from offsets_log.events import Event
from offsets_log.pipeline import iter_events
from tests.cli.runs import run
from tests.conftest import json_lines

Key = tuple[str, int]
WHOLE: dict[Key, int | None] = {("stock", 0): 110, ("stock", 1): 7, ("other", 0): 9}
ALL_UNKNOWN: dict[Key, int | None] = {("stock", 0): None, ("stock", 1): None, ("stock", 2): None}


def lines_of(field: Path, name: str = "whole.txt") -> list[str]:
    return (field / "text-without-batch-lines" / name).read_text().splitlines(keepends=True)


def compacted(text: str, status: int, *options: str) -> tuple[dict[Key, int | None], str]:
    result = run("compact", "-", "-o", "jsonl", *options, stdin=text.encode())
    assert result.exit_code == status, result.stderr
    rows = list(json_lines(result.stdout))
    return {(row["group"], row["partition"]): row["committed_offset"] for row in rows}, result.stderr


def is_record(line: str) -> bool:
    return line.startswith("| ")


OTHER_SHAPES = "json-in-other-shapes"
UNREADABLE_ANYHOW = (
    "its records are not in the text",
    "a record of which the tool has printed",
    "bytes printed as",
)
"""How sentences begin about lines that are whole and lack something; one that is cut may look like these."""
TEXTS = ("lines.jsonl", "rest-proxy.json", "bytes-deserializer.txt", "consumer-records.txt")


def records_of(text: bytes, form: str) -> tuple[list[bytes | None], set[str]]:
    """The values of a text's records, and what is said of what cannot be read."""
    built = build_segments("text", text, form)
    events = (event for log in built.logs() for event in iter_events(log))
    values = [event.record.value for event in events if isinstance(event, Event)]
    return values, {damage.error.problem for damage in built.damages}


@pytest.mark.parametrize("name", ["text-without-batch-lines/whole.txt", *(f"{OTHER_SHAPES}/{name}" for name in TEXTS)])
def test_a_text_that_ends_within_a_line_is_told_as_cut(field: Path, name: str) -> None:
    """Wherever that is: no record of the cut line counts, so that no broker is said to stumble over it."""
    text = (field / name).read_bytes().rstrip(b"\n")
    form = known_format(text)
    assert form is not None
    whole, told = records_of(text, form)
    assert not told, "a text may lack its last line feed alone"
    cuts = 0
    for end in range(max(len(text) - 700, len(text) // 2), len(text) - 3, 7):
        found, told = records_of(text[:end], form)
        assert found == whole[: len(found)]
        lacks = any(words.startswith(UNREADABLE_ANYHOW) for words in told)
        is_between = text[:end].rstrip(b", \n[").endswith((b"}", b")")) or text[end : end + 1] == b"\n"
        is_cut = bool(told) and all(words.startswith(ENDS) for words in told)
        assert is_cut or lacks or is_between, text[:end][-80:]
        cuts += is_cut
    assert cuts > 30


def test_a_text_that_begins_within_a_line_is_told_once_as_cut(field: Path) -> None:
    text = (field / OTHER_SHAPES / "lines.jsonl").read_bytes()
    result = run("compact", "-", "-o", "jsonl", stdin=text[-1500:])
    assert [line for line in result.stderr.splitlines() if line.startswith("corrupt")] == [
        "corrupt: -: position 1: the text begins within this line: it was cut there, as by tail -c; what stands behind "
        r'is read; it may be of group "say \\"hi\\"", topic "T", partition 2, whose offset may be a later one'
    ]
    text = (field / OTHER_SHAPES / "bytes-deserializer.txt").read_bytes()
    result = run("compact", "-", "-o", "jsonl", stdin=text[-900:])
    assert "a text that was cut, as by tail -c, begins so" in result.stderr


CUTS: dict[str, tuple[Callable[[list[str]], list[str]], dict[Key, int | None]]] = {
    "grep GROUP": (lambda lines: [line for line in lines if "stock" in line and is_record(line)], ALL_UNKNOWN),
    "grep '^|'": (lambda lines: [line for line in lines if is_record(line)], ALL_UNKNOWN | {("other", 0): 9}),
    "grep -v '^baseOffset'": (
        lambda lines: [line for line in lines if not line.startswith("baseOffset")], ALL_UNKNOWN | {("other", 0): 9}
    ),
    "tail, from a record's line on": (
        lambda lines: lines[next(i for i, line in enumerate(lines) if line.startswith("| offset: 6 ")) :],
        {("stock", 0): None, ("other", 0): 9},
    ),
    "one line of a batch is missing": (
        lambda lines: [line for line in lines if not line.startswith("baseOffset: 6 ")], WHOLE | {("stock", 0): None}
    ),
    "grep -e ^baseOffset -e GROUP, so that markers are missing": (
        lambda lines: [line for line in lines if line.startswith("baseOffset") or "stock" in line],
        {("stock", 0): None, ("stock", 1): None},
    ),
    "one marker is missing, which may have committed": (
        lambda lines: [line for line in lines if not line.startswith("| offset: 7 ")], WHOLE | {("stock", 0): None}
    ),
    "grep -A1, with lines between": (
        lambda lines: [text for line in lines if is_record(line) for text in (line, "--\n")],
        ALL_UNKNOWN | {("other", 0): 9},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("profile", ["modern", "classic"])
def test_what_depends_on_a_commit_of_unknown_fate_is_unknown(field: Path, name: str, profile: str) -> None:
    cut, expected = CUTS[name]
    found, _ = compacted("".join(cut(lines_of(field))), 3, "--profile", profile)
    assert found == expected


def test_the_whole_text_tells_all(field: Path) -> None:
    assert compacted("".join(lines_of(field)), 0)[0] == WHOLE


@pytest.mark.parametrize("name", ["grep-group.txt", "grep-records.txt", "tail.txt"])
def test_one_sentence_says_what_to_keep(field: Path, name: str) -> None:
    file = field / "text-without-batch-lines" / name
    for command in (
        ["compact"], ["groups"], ["history", "-g", "*"], ["info"], ["rebuild"], ["top"], ["decode"], ["check"],
        ["report"],
    ):  # fmt: skip
        more = ["--to", str(file.parent / f"{name}-{command[0]}.html")] if command == ["report"] else []
        result = run(*command, str(file), *more)
        assert result.exit_code == 3, (command, result.stderr)
        assert result.stderr.count("Next time keep the whole text of kafka-dump-log") == 1, command
        assert re.search(r"from line 1 on \d+ lines? of (a record|records)", result.stderr)
    for command in (["expire"], ["serve"]):
        result = run(*command, str(file))
        assert (result.exit_code, "transaction outcomes" in result.stderr) == (1, True), command


def test_groups_history_and_decode_say_unknown(field: Path) -> None:
    text = "".join(lines_of(field, "grep-group.txt")).encode()
    (group,) = json_lines(run("groups", "-", stdin=text).stdout)
    assert [group[name] for name in ("group", "offsets", "pending", "last_commit_timestamp_ms")] == [
        "stock",
        *[None] * 3,
    ]
    rows = [row for row in json_lines(run("history", "-", "-g", "stock", stdin=text).stdout) if row["partition"] == 0]
    assert [
        (row["record_offset"], row["committed_offset"], row["transaction"], row["effective_offset"], row["change"])
        for row in rows
    ] == [
        (0, 100, None, 100, "new"), (1, 140, "unknown", None, None), (5, 110, None, 110, None),
        (6, 200, "unknown", None, None),
    ]  # fmt: skip
    assert not any(row["producer_id"] for row in rows)
    decoded = list(json_lines(run("decode", "-", stdin=text).stdout))
    assert [row["is_transactional"] for row in decoded] == [False, None, None, False, None, None]
    assert [row["producer_id"] for row in decoded] == [-1, None, None, -1, None, None]


def test_a_marker_whose_record_is_missing_ends_its_transaction_somehow(field: Path) -> None:
    cut, _ = CUTS["one marker is missing, which may have committed"]
    result = run("history", "-", "-g", "stock", stdin="".join(cut(lines_of(field))).encode())
    rows = [row for row in json_lines(result.stdout) if row["partition"] == 0]
    assert [(row["event"], row["transaction"], row["effective_offset"]) for row in rows[-2:]] == [
        ("commit", "unknown", 110), ("transaction_ended", "unknown", None),
    ]  # fmt: skip


def test_rescue_leaves_them_out_and_says_so(field: Path, tmp_path: Path) -> None:
    to = tmp_path / "rescued"
    result = run("rescue", str(field / "text-without-batch-lines" / "grep-records.txt"), "--to", str(to))
    assert result.exit_code == 3
    plan = json.loads((to / "plan.json").read_text())
    assert [(row["group"], row["committed_offset"]) for row in plan["offsets"]] == [("other", 9)]
    assert any("are left out, because it is not told whether" in doubt and "stock" in doubt for doubt in plan["doubts"])


def test_rebuild_and_diff_know_them_too(field: Path) -> None:
    folder = field / "text-without-batch-lines"
    document = json.loads(run("rebuild", str(folder / "grep-records.txt"), "-o", "json").stdout)
    assert [(row["group"], row["committed_offset"]) for row in document["offsets"]] == [("other", 9)]
    assert [row["partition"] for row in document["untold"]] == [0, 1, 2]
    result = run("diff", str(folder / "grep-records.txt"), str(folder / "tail.txt"))
    assert not {"200", "140"} & set(result.stdout.split(","))


def test_lines_of_two_partitions_without_names_of_files_are_two_logs(field: Path) -> None:
    """A group lives in one partition: nothing of the second is lost because its offsets begin again."""
    lines = [line for line in lines_of(field) if not line.startswith(("Dumping", "Log starting"))]
    other = [line.replace("stock", "fruit").replace('"other"', '"third"') for line in lines]
    found, told = compacted("".join(lines + other), 0)
    assert found == WHOLE | {(("fruit" if key[0] == "stock" else "third"), key[1]): WHOLE[key] for key in WHOLE}
    assert "offsets begin again" in told
    records, _ = compacted("".join(line for line in lines + other if is_record(line)), 3)
    assert records[("other", 0)] == records[("third", 0)] == 9
    assert len(records) == 8


def test_lines_in_another_order_or_twice_are_one_log_or_refused(field: Path) -> None:
    lines = [line for line in lines_of(field) if is_record(line)]
    found, told = compacted("".join(reversed(lines)), 3)
    assert found == compacted("".join(lines), 3)[0]
    assert "offsets begin again" in told
    again, told = compacted("".join(lines * 2), 3)
    assert again == found
    assert "it has the same batches" in told
    shuffled = run("compact", "-", stdin="".join(sorted(lines * 2)).encode())
    assert (shuffled.exit_code, "groups in common" in shuffled.stderr) == (1, True)


HOLES: dict[str, tuple[Callable[[list[str]], list[str]], dict[Key, int | None], int, str, set[Key]]] = {
    "a commit": (lambda lines: lines[:12] + lines[14:], WHOLE | {("stock", 0): 100}, 13, "492 to 604",
                 {("stock", 0), ("stock", 1)}),
    "a transaction": (lambda lines: lines[:8] + lines[12:], {("stock", 0): 110, ("other", 0): 9}, 9, "302 to 492",
                      set()),
    "an abort": (lambda lines: lines[:16] + lines[18:], WHOLE, 17, "716 to 794", {("stock", 0), ("stock", 1)}),
    "the middle": (lambda lines: lines[:8] + lines[14:], {("stock", 0): 100, ("other", 0): 9}, 9, "302 to 604",
                   {("stock", 0)}),
    "the beginning": (lambda lines: lines[-8:], {("other", 0): 9}, 1, "0 to 604", set()),
    "the beginning, with the file's name": (lambda lines: lines[:2] + lines[-8:], {("other", 0): 9}, 3, "0 to 604",
                                            set()),
}  # fmt: skip


@pytest.mark.parametrize("is_bulk", [False, True])
@pytest.mark.parametrize("name", HOLES)
def test_whole_batches_that_are_missing_are_told_and_doubted(
    field: Path, name: str, is_bulk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "BULK_FROM_BYTES", 0 if is_bulk else 1 << 60)
    cut, expected, line, place, doubtful = HOLES[name]
    text = "".join(cut(lines_of(field)))
    found, told = compacted(text, 3)
    begin, end = map(int, place.split(" to "))
    assert found == expected
    hole = f"{end - begin} bytes of the file, from position {place},"
    assert re.search(rf"position {line}, record offset \d+: .*: {hole}", told)
    (tmp_path / "text").write_text(text)
    assert run("rescue", str(tmp_path / "text"), "--to", str(tmp_path / "to")).exit_code == 3
    plan = json.loads((tmp_path / "to/plan.json").read_text())
    assert {(row["group"], row["partition"]) for row in plan.get("doubtful", ())} == doubtful


def test_a_hole_is_of_its_file(field: Path) -> None:
    lines = lines_of(field)
    other = [line.replace("-0/0", "-1/0").replace("stock", "steel").replace('"other"', '"third"') for line in lines]
    for text in (other + lines[:12] + lines[14:], lines[:12] + lines[14:] + other):
        told = compacted("".join(text), 3)[1]
        assert told.count("are not in the text") == told.count("__consumer_offsets-0/00000000000000000000.log: ") == 1
    assert compacted("".join(lines + other), 0)[0] == WHOLE | {
        ("steel", 0): 110, ("steel", 1): 7, ("third", 0): 9,
    }  # fmt: skip


@pytest.mark.parametrize("order", ["reversed", "by batch from the last on", "sorted"])
def test_lines_in_another_order_have_no_hole(field: Path, order: str) -> None:
    lines = lines_of(field)
    batches = [lines[i : i + 2] for i in range(2, len(lines), 2)]
    texts = {
        "reversed": lines[::-1],
        "by batch from the last on": lines[:2] + [line for batch in reversed(batches) for line in batch],
        "sorted": sorted(lines),
    }
    assert "are not in the text: " not in compacted("".join(texts[order]), 3)[1]


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("is_bulk", [False, True])
def test_a_text_that_was_pasted_again_is_read_once(
    field: Path, times: int, is_bulk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "BULK_FROM_BYTES", 0 if is_bulk else 1 << 60)
    found, told = compacted("".join(lines_of(field) * times), 0)
    assert found == WHOLE
    assert told.count("the same text of ") == told.count(f"is in it {times} times, and is read once") == 1


def test_lines_of_records_with_positions_tell_the_missing_beginning(recording: Callable[[str], Path]) -> None:
    """As releases before 2.2 print them, without sizes."""
    packed = recording("kafka-1.1") / "answers/dump-log/0.txt.gz"
    lines = gzip.decompress(packed.read_bytes()).decode().splitlines(keepends=True)
    for text, has_hole in ((lines, False), (lines[::-1], False), (lines[40:], True)):
        result = run("info", "-", "-v", stdin="".join(text).encode())
        assert result.exit_code == 3  # tombstones without keys
        assert ("bytes of the file, from position 0 to 2663" in result.stderr) == has_hole
        assert ("are not in the text: " in result.stderr) == has_hole


def test_a_line_of_which_only_the_beginning_is_missing_is_told(field: Path) -> None:
    text = "".join(lines_of(field))
    at = text.index("| offset: 5 ") + 150
    found, told = compacted(text[at:], 3)
    assert "position 1: its beginning is missing" in told
    assert found[("other", 0)] == 9


def test_sequence_and_epoch_tell_that_a_record_is_of_no_transaction() -> None:
    """``MemoryRecordsBuilder`` refuses a transaction's records without them; plain ones may have a sequence."""
    line = (
        '| offset: {} CreateTime: 1 keySize: 12 valueSize: 24 {} headerKeys: [] key: {{"type":"1","data":{{"group":"g",'
        '"topic":"t","partition":{}}}}} payload: {{"version":"3","data":{{"offset":5,"leaderEpoch":-1,"metadata":"",'
        '"commitTimestamp":1}}}}\n'
    )
    facts = ["sequence: -1", "sequence: 0", "isTransactional: false", "producerEpoch: -1"]
    found, _ = compacted("".join(line.format(i, fact, i) for i, fact in enumerate(facts)), 3)
    assert found == {("g", 0): 5, ("g", 1): None, ("g", 2): 5, ("g", 3): 5}
