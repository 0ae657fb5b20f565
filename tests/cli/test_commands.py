"""The command line as a user has it: formats, filters, bounds, damage, exit statuses."""

from __future__ import annotations

import base64
import csv
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from cli import where
from cli.main import main
from offsets_log.log_format.batch import BATCH_HEADER_SIZE
from offsets_log.log_format.building import build_batch, build_marker
from offsets_log.log_format.java_text import MalformedString
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.log_format.record import Record
from offsets_log.messages.offset_commit import OFFSET_COMMIT_VALUE
from offsets_log.messages.registry import CoordinatorRecord, encode_coordinator_record
from offsets_log.replay.partition_for import DEFAULT_PARTITIONS
from tests.builders import LogBuilder
from tests.conftest import NEVER, BulkFrom, json_lines, log_directories, read_json, read_partitions

ROOT = Path(__file__).parent.parent.parent
SAMPLE = str(ROOT / "samples" / "kafka-4.3-mixed" / "log")


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False)


def rows(*arguments: str | Path, status: int = 0, stdin: bytes | None = None) -> list[dict[str, Any]]:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == status, result.stderr
    return list(json_lines(result.stdout))


def commit(
    group: str, topic: str = "t", partition: int = 0, offset: int = 1, metadata: str = ""
) -> tuple[bytes, bytes]:
    key, value = encode_coordinator_record(
        CoordinatorRecord(
            record_type=1,
            key={"group": group, "topic": topic, "partition": partition},
            value_version=4,
            value={
                "offset": offset,
                "leader_epoch": -1,
                "metadata": metadata,
                "commit_timestamp": 1_700_000_000_000,
                "topic_id": ZERO_UUID,
            },
            layout=OFFSET_COMMIT_VALUE,
        )
    )
    assert value is not None
    return key, value


def write_partition(folder: Path, batches: Sequence[bytes], partition: int = 0) -> Path:
    directory = folder / f"__consumer_offsets-{partition}"
    directory.mkdir(parents=True)
    (directory / "00000000000000000000.log").write_bytes(b"".join(batches))
    return folder


def batch_of(*pairs: tuple[bytes | None, bytes | None], first: int = 0, time_ms: int = 1000, **facts: Any) -> bytes:
    records = [
        Record(offset=first + i, timestamp_ms=time_ms, key=key, value=value) for i, (key, value) in enumerate(pairs)
    ]
    return build_batch(records, **facts)


# --------------------------------------------------------------------------------------------- compact

COMPACT = (
    "group", "topic", "partition", "committed_offset", "leader_epoch", "metadata", "commit_timestamp_ms",
    "expire_timestamp_ms", "topic_id", "record_offset", "offsets_partition",
)  # fmt: skip


def test_compact_rows_have_the_columns_of_the_contract_and_the_brokers_values() -> None:
    found = rows("compact", SAMPLE)
    answer = read_json(ROOT / "samples" / "kafka-4.3-mixed" / "answers" / "restart.json")
    assert all(tuple(row) == COMPACT for row in found)
    names = ("group", "topic", "partition", "committed_offset", "leader_epoch", "metadata")
    assert [tuple(row[name] for name in names) for row in found] == sorted(
        tuple(row[name] for name in names) for row in answer["offsets"]
    )


def test_every_output_format_tells_the_same(tmp_path: Path) -> None:
    found = rows("compact", SAMPLE)
    assert json.loads(run("compact", SAMPLE, "-o", "json").stdout) == found
    run("compact", SAMPLE, "-o", "csv", "--to", tmp_path / "offsets.csv")
    table = list(csv.DictReader(io.StringIO((tmp_path / "offsets.csv").read_text(), newline="")))
    assert [{name: "" if row[name] is None else str(row[name]) for name in COMPACT} for row in found] == table
    lines = run("compact", SAMPLE, "-o", "table").stdout.split("\n")
    assert len(lines) == len(found) + 4  # two lines of head, a rule, and the end


AWKWARD = (
    "",
    " ",
    "a,b",
    'say "hi"',
    "two\nlines",
    "tab\tbell\x07",
    "line\u2028separator",
    "\u202egnol",
    "😀 émoji",
    "\\n",
)


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_survive_every_output(name: str, tmp_path: Path) -> None:
    folder = write_partition(tmp_path, [batch_of(commit(name, name, metadata=name))])
    (row,) = rows("compact", folder)
    assert (row["group"], row["topic"], row["metadata"]) == (name, name, name)
    assert json.loads(run("compact", folder, "-o", "json").stdout) == [row]
    run("compact", folder, "-o", "csv", "--to", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        (line,) = csv.DictReader(file)
    assert (line["group"], line["topic"], line["metadata"]) == (name, name, name)
    table = run("compact", folder, "-o", "table").stdout
    assert len(table.split("\n")) == 5  # nothing in a name breaks a row
    (decoded,) = rows("decode", folder)
    assert decoded["key"] == {"group": name, "topic": name, "partition": 0}


def test_malformed_names_read_as_the_broker_reads_them_with_their_bytes_beside(tmp_path: Path) -> None:
    """``B-7``; two malformed names that read alike are one to the broker."""
    bad, alike = MalformedString(b"gr\xff"), MalformedString(b"gr\xfe")
    batches = [batch_of(commit(bad, offset=1), commit(alike, offset=2), commit("good", alike, metadata=bad))]
    found = rows("compact", write_partition(tmp_path, batches))
    assert [(row["group"], row["topic"], row["committed_offset"]) for row in found] == [
        ("good", "gr\ufffd", 1),
        ("gr\ufffd", "t", 2),
    ]
    assert base64.b64decode(found[0]["topic_base64"]) == b"gr\xfe"
    assert base64.b64decode(found[0]["metadata_base64"]) == b"gr\xff"
    assert base64.b64decode(found[1]["group_base64"]) == b"gr\xfe"
    decoded = rows("decode", tmp_path)
    assert [base64.b64decode(row["group_base64"]) for row in decoded[:2]] == [b"gr\xff", b"gr\xfe"]


def test_filters_keep_groups_topics_and_partitions() -> None:
    everything = rows("compact", SAMPLE)
    assert rows("compact", SAMPLE, "-g", "tx-*", "-g", "alive-metrics") == [
        row for row in everything if row["group"].startswith("tx-") or row["group"] == "alive-metrics"
    ]
    assert rows("compact", SAMPLE, "-t", "T") == [row for row in everything if row["topic"] == "T"]
    assert rows("compact", SAMPLE, "-p", "0", "-p", "2") == [
        row for row in everything if row["offsets_partition"] in (0, 2)
    ]


@pytest.mark.parametrize("least_bytes", [0, NEVER], ids=["bulk", "one by one"])
@pytest.mark.parametrize("format_name", ["table", "jsonl", "json", "csv", "parquet"])
def test_offsets_under_an_open_transaction_are_counted_in_words(
    format_name: str, least_bytes: int, tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """``g`` has 120 and 160 pending; of ``h`` nothing but a pending one, which is no answer."""
    bulk_from(least_bytes)
    log = LogBuilder().commit(120).commit(7, partition=1).commit(8, group="i").commit(160, producer=5)
    log.commit(9, partition=1, producer=6).end(6).commit(1, group="h", producer=5)
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(b"".join(log.batches))
    words = "of these offsets 1 is under an open transaction (pending); --unstable marks them"
    told = {(): True, ("-g", "g"): True, ("-g", "i"): False, ("--unstable",): False, ("-q",): False}
    for number, (options, is_told) in enumerate(told.items()):
        target = ("--to", tmp_path / f"{number}.parquet") if format_name == "parquet" else ()
        result = run("compact", folder, "-o", format_name, *target, *options)
        assert result.exit_code == 0
        assert (words in result.stderr.splitlines()) == is_told
        shown = "".join(pq.read_schema(target[1]).names) if target else result.stdout
        assert ("unstable" in shown) == ("--unstable" in options)


def test_a_cut_archive_is_damage(tmp_path: Path) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.add(SAMPLE, "log")
    cut = tmp_path / "backup.tar.gz"
    cut.write_bytes(content.getvalue()[:-3000])
    result = run("compact", cut, "--quarantine", tmp_path / "kept")
    assert result.exit_code == 3
    assert 0 < len(result.stdout.splitlines()) < 129
    place = f"{cut}: position {cut.stat().st_size}: the archive is broken: it is cut off"
    assert f"corrupt: {place}" in result.stderr
    assert "not everything could be read: 1 corrupt" in result.stderr
    (row,) = json_lines((tmp_path / "kept").read_text())
    assert (row["file"], row["position"]) == (str(cut), cut.stat().st_size)
    strict = run("compact", cut, "--strict")
    assert (strict.exit_code, strict.stdout) == (1, "")
    assert f"error: {place}" in strict.stderr


def test_orphans_and_unstable_are_shown_where_asked(tmp_path: Path) -> None:
    """``J-15``: a group's tombstone leaves its offsets behind."""
    group_tombstone = (b"\x00\x02\x00\x01g", None)
    open_transaction = batch_of(
        commit("h", offset=9), first=2, producer_id=5, producer_epoch=0, is_transactional=True, base_sequence=0
    )
    folder = write_partition(tmp_path, [batch_of(commit("g"), group_tombstone), open_transaction])
    folder = tmp_path
    assert rows("compact", folder) == []
    assert [row["group"] for row in rows("compact", folder, "--orphans")] == ["g"]
    (folder / "__consumer_offsets-0" / "00000000000000000000.log").write_bytes(
        batch_of(commit("h", offset=1), first=0) + batch_of(commit("i"), first=1) + open_transaction
    )
    assert [
        (row["group"], row["committed_offset"], row["unstable"]) for row in rows("compact", folder, "--unstable")
    ] == [
        ("h", 1, True),
        ("i", 1, False),
    ]


def test_values_of_version_1_with_an_explicit_retention_are_read_of_late_brokers_too() -> None:
    """``records:W1``: 4.3 writes them for requests of version 2 to 4; the leader epoch is lost, the expiry is there."""
    found = [row for row in rows("decode", SAMPLE) if row["record_type"] == 1 and row["value_version"] == 1]
    assert found
    for row in found:
        assert set(row["value"]) == {"offset", "metadata", "commitTimestamp", "expireTimestamp"}
        assert row["value"]["expireTimestamp"] > row["value"]["commitTimestamp"]
    assert any(row["expire_timestamp_ms"] for row in rows("compact", SAMPLE))


# ---------------------------------------------------------------------------------------------- bounds


def test_until_offset_takes_one_bound_for_all_or_one_for_a_partition(recording: Callable[[str], Path]) -> None:
    log = recording("kafka-4.3-mixed") / "log"
    everything = rows("decode", log)
    assert rows("decode", log, "--until-offset", "10") == [row for row in everything if row["record_offset"] < 10]
    assert rows("decode", log, "--until-offset", "1:5", "--until-offset", "3:7") == [
        row for row in everything if row["record_offset"] < {1: 5, 3: 7}.get(row["offsets_partition"], 10**9)
    ]
    of_both = rows("decode", log, "--until-offset", "10", "--until-offset", "3:7")
    assert of_both == [row for row in everything if row["record_offset"] < {3: 7}.get(row["offsets_partition"], 10)]


def test_until_time_reads_batches_up_to_the_first_that_is_later(tmp_path: Path) -> None:
    batches = [
        batch_of(commit("a"), first=0, time_ms=1_000),
        batch_of(commit("b"), first=1, time_ms=90_000),
        batch_of(commit("c"), first=2, time_ms=2_000),
    ]
    folder = write_partition(tmp_path, batches)
    for text in ("2000", "1970-01-01T00:00:02Z", "1970-01-01T00:00:02", "1970-01-01T01:00:02+01:00"):
        assert [row["group"] for row in rows("compact", folder, "--until-time", text)] == ["a"]
    assert [row["group"] for row in rows("compact", folder, "--until-time", "2h")] == ["a", "b", "c"]
    assert run("compact", folder, "--until-time", "yesterday").exit_code == 2


def test_bounds_inside_a_transaction_leave_it_open(tmp_path: Path) -> None:
    facts = {"producer_id": 5, "producer_epoch": 0, "is_transactional": True, "base_sequence": 0}
    marker = build_marker(1, commit=True, producer_id=5, producer_epoch=1, timestamp_ms=5)
    folder = write_partition(tmp_path, [batch_of(commit("g", offset=8), **facts), marker])
    assert [row["committed_offset"] for row in rows("compact", folder)] == [8]
    assert rows("compact", folder, "--until-offset", "1") == []


# ---------------------------------------------------------------------------------------------- damage


def broken(folder: Path) -> Path:
    """Three batches: the second has a wrong checksum, the third an unknown type and a cut-off value."""
    good = batch_of(commit("a"))
    bad = bytearray(batch_of(commit("b"), first=1))
    bad[BATCH_HEADER_SIZE + 5] ^= 1
    key, value = commit("c")
    odd = batch_of((b"\x00\x63rest", b"new"), (key, value[:-3]), (None, value), commit("d"), first=2)
    return write_partition(folder, [good, bytes(bad), odd])


def test_damage_is_counted_located_and_kept_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = broken(tmp_path / "data")
    quarantine = tmp_path / "quarantine.jsonl"
    result = run("compact", folder, "--quarantine", quarantine)
    assert result.exit_code == 3
    assert [row["group"] for row in json_lines(result.stdout)] == ["a", "d"]
    assert "3 corrupt, 1 unsupported" in result.stderr
    kept = list(json_lines(quarantine.read_text()))
    assert [row["kind"] for row in kept] == ["corrupt", "unsupported", "corrupt", "corrupt"]
    assert [row["record_offset"] for row in kept] == [1, 2, 3, 4]
    assert [row["field"] for row in kept] == ["crc", "key", "value.topic_id", "key"] or kept[2]["field"].startswith(
        "value"
    )
    assert all(row["file"].endswith(".log") and row["position"] > 0 for row in kept)
    assert base64.b64decode(kept[1]["raw_base64"]) == b"\x00\x63restnew"


def test_decode_shows_what_it_cannot_decode_raw(tmp_path: Path) -> None:
    found = rows("decode", broken(tmp_path), status=3)
    assert [row["record_offset"] for row in found] == [0, 2, 3, 4, 5]
    unknown, cut, no_key = found[1:4]
    assert (unknown["record_type"], unknown["name"], unknown["key_hex"]) == (99, None, b"\x00\x63rest".hex())
    assert "unknown record type 99" in unknown["error"]
    assert (cut["record_type"], cut["name"]) == (1, "OffsetCommit")
    assert "value" in cut["error"]
    assert no_key["key_hex"] is None
    assert not {"key", "value"} & (set(unknown) | set(cut) | set(no_key))


def test_strict_stops_at_the_first_error_with_one_line(tmp_path: Path) -> None:
    folder = broken(tmp_path / "data")
    output = tmp_path / "out.jsonl"
    result = run("compact", folder, "--strict", "--to", output)
    assert result.exit_code == 1
    assert result.stderr.startswith("offsets-log: error: ")
    assert "00000000000000000000.log: position " in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [tmp_path / "data"]


def test_many_problems_are_summed_up_unless_all_are_asked_for(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, [batch_of(*[(b"\x00\x63", b"")] * 20)])
    assert run("compact", folder).stderr.count("unknown record type") == 5
    assert run("compact", folder, "-v").stderr.count("unknown record type") == 20
    assert run("compact", folder, "-q").stderr == ""
    assert run("compact", folder, "-q").exit_code == 3


@pytest.mark.parametrize("kind", ["torn", "zeros"])
def test_tails_of_a_copied_live_log_are_normal(kind: str, recording: Callable[[str], Path]) -> None:
    result = run("compact", recording("kafka-4.3-live-copy") / f"log-{kind}")
    assert result.exit_code == 0
    assert "normal at the end of a log" in result.stderr


def test_nothing_found_and_missing_files_are_one_line_and_status_1(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        result = run("compact", path)
        assert result.exit_code == 1
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments", [(), ("compact",), ("compact", "x", "-o", "xml"), ("decode", "x", "--kafka", "new")]
)
def test_wrong_usage_is_status_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


# ---------------------------------------------------------------------------------------------- decode

DECODE = (
    "file", "offsets_partition", "position", "batch_base_offset", "record_offset", "timestamp_ms", "timestamp_type",
    "magic", "compression", "producer_id", "producer_epoch", "is_transactional", "is_control", "record_type", "name",
)  # fmt: skip


def test_decode_rows_have_the_columns_of_the_contract_in_order() -> None:
    found = rows("decode", SAMPLE)
    for row in found:
        assert tuple(row)[: len(DECODE)] == DECODE
        if row["is_control"]:
            assert set(row["control"]) == {"type", "coordinatorEpoch"}
            assert not {"key", "value", "value_version"} & set(row)
        else:
            assert {"key", "value", "value_version"} <= set(row)
            assert (row["value"] is None) == (row["value_version"] is None)
    first = found[0]
    assert first["position"] == BATCH_HEADER_SIZE


def test_positions_lead_to_the_records_in_the_file(recording: Callable[[str], Path]) -> None:
    for name in ("kafka-4.3-mixed", "kafka-lifetime"):
        log = recording(name) / "log"
        data = {p: log.segments for p, log in read_partitions(log).items()}
        for row in rows("decode", log):
            if row["compression"] == "none" and "key_hex" not in row and row["record_type"] is not None:
                (segment,) = (s for s in data[row["offsets_partition"]] if row["file"].endswith(s.file))
                key_head = row["record_type"].to_bytes(2)
                assert key_head in bytes(segment.buffer[row["position"] : row["position"] + 40])


def test_unknown_tags_and_trailing_bytes_stand_beside_key_and_value(tmp_path: Path) -> None:
    key, value = commit("g")
    assert value.endswith(b"\x00")
    tagged = value[:-1] + b"\x01\x07\x02hi"
    found = rows("decode", write_partition(tmp_path, [batch_of((key + b"k", tagged + b"\xaa\xbb"))]))
    (row,) = found
    assert row["unknown_tags"] == [{"path": "value", "tag": 7, "hex": b"hi".hex()}]
    assert (row["trailing_hex"], row["key_trailing_hex"]) == ("aabb", b"k".hex())
    assert set(row["value"]) == {"offset", "leaderEpoch", "metadata", "commitTimestamp"}


def test_expand_opens_subscriptions_and_keeps_what_does_not_parse() -> None:
    plain, expanded = rows("decode", SAMPLE), rows("decode", SAMPLE, "--expand")
    opened = opaque = 0
    for before, after in zip(plain, expanded, strict=True):
        if before["record_type"] == 2 and before["value"]:
            for raw, shown in zip(before["value"]["members"], after["value"]["members"], strict=True):
                if isinstance(shown["subscription"], dict):
                    opened += 1
                else:
                    opaque += 1
                    assert raw["subscription"] == shown["subscription"]
        else:
            assert before == after
    assert opened > 20
    assert opaque >= 1


def test_layouts_of_an_earlier_release_can_be_asked_for(recording: Callable[[str], Path]) -> None:
    log = recording("kafka-3.7-preview") / "log"
    guessed, told = rows("decode", log), rows("decode", log, "--kafka", "3.7.2")
    assert guessed == told
    assert any("assignors" in (row.get("value") or {}) for row in told)


# ----------------------------------------------------------------------------------------- whole process


def start(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    code = f"from cli.main import main; main({list(arguments)!r})"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=ROOT, timeout=60)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'construct', 'cramjam', 'rich', 'numba', 'pyarrow'} & set(sys.modules)\n"
        "print(sorted(heavy), sorted(name for name in sys.modules if name.startswith('offsets_log.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    assert done.stdout.endswith("[] ['offsets_log.words']\n")


def test_what_help_states_without_the_library_is_what_the_library_has() -> None:
    assert where.DEFAULT_PARTITIONS == DEFAULT_PARTITIONS


def test_a_reader_that_goes_away_is_quiet() -> None:
    code = f"from cli.main import main; main(['decode', {SAMPLE!r}, '-q'])"
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{code}" | head -c 100 >/dev/null; echo "${{PIPESTATUS[0]}}"'],
        capture_output=True, text=True, check=True, cwd=ROOT, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == "0\n"


def test_words_go_to_standard_error_and_data_to_standard_output() -> None:
    done = start("compact", SAMPLE)
    assert done.returncode == 0
    assert b"profile modern" in done.stderr
    assert all(json.loads(line) for line in done.stdout.split(b"\n") if line)


def test_inputs_are_not_written(recording: Callable[[str], Path]) -> None:
    for log in log_directories(recording("kafka-4.3-live-copy")):
        before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in log.rglob("*")}
        run("info", log)
        assert before == {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in log.rglob("*")}


def test_a_pipe_is_read_with_the_partition_it_is_given() -> None:
    segment = Path(SAMPLE) / "__consumer_offsets-1" / "00000000000000000000.log"
    found = rows("compact", "-", "--as-partition", "1", stdin=segment.read_bytes())
    assert found == rows("compact", SAMPLE, "-p", "1")


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """A command line with ``offsets-log`` as this interpreter's."""
    script = f'offsets-log() {{ "{sys.executable}" -c "from cli.main import run; run()" "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, cwd=ROOT, timeout=60, errors="replace"
    )


@pytest.mark.parametrize("command", ["compact", "decode", "info", "rebuild"])
def test_a_full_disk_behind_standard_output_is_one_line(command: str) -> None:
    done = shell(f"offsets-log {command} '{SAMPLE}' -q >/dev/full")
    assert done.returncode == 1
    assert done.stderr == "offsets-log: error: standard output cannot be written: No space left on device\n"


def test_closed_streams_are_one_line_or_do_not_matter(tmp_path: Path) -> None:
    assert shell(f"offsets-log compact '{SAMPLE}' >&-").stderr.startswith(
        "offsets-log: error: standard output is closed"
    )
    to = tmp_path / "offsets.jsonl"
    assert shell(f"offsets-log compact '{SAMPLE}' --to '{to}' >&-").returncode == 0
    assert list(json_lines(to.read_text())) == rows("compact", SAMPLE)
    assert shell("offsets-log --help >/dev/full").stderr.count("\n") == 1
    assert shell("offsets-log compact - <&-").returncode == 1
    for closed in ("2>&-", "2>/dev/full"):
        assert len(shell(f"offsets-log compact '{SAMPLE}' {closed}").stdout.splitlines()) == len(
            rows("compact", SAMPLE)
        )


def test_a_folder_whose_name_is_not_utf8_is_read(tmp_path: Path) -> None:
    (tmp_path / "bytes").mkdir()
    done = shell(f"cd '{tmp_path}/bytes' && ln -s '{SAMPLE}' $'caf\\xe9' && cd '{ROOT}' && "
                 f"offsets-log decode '{tmp_path}'/bytes/$'caf\\xe9' -p 2")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split("\n")) == len(rows("decode", SAMPLE, "-p", "2")) + 1


def test_a_full_disk_under_the_quarantine_is_told_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def on_a_full_disk(path: str, *, inputs: object = ()) -> Iterator[io.BufferedIOBase]:
        with Path("/dev/full").open("wb", buffering=0) as file:
            yield file

    monkeypatch.setattr("cli.account.atomic_output", on_a_full_disk)
    result = run("compact", broken(tmp_path / "data"), "--quarantine", "kept.jsonl", "--to", tmp_path / "offsets")
    assert result.exit_code == 1
    assert "kept.jsonl: cannot be written: No space left on device" in result.stderr
    assert not (tmp_path / "offsets").exists()


def test_an_input_is_no_quarantine(tmp_path: Path) -> None:
    folder = broken(tmp_path / "data")
    (path,) = folder.rglob("*.log")
    before = path.read_bytes()
    result = run("compact", folder, "--quarantine", path)
    assert result.exit_code == 1
    assert "one of the inputs" in result.stderr
    assert path.read_bytes() == before


def test_output_and_quarantine_in_one_file_is_wrong_usage(tmp_path: Path) -> None:
    result = run("compact", SAMPLE, "--to", tmp_path / "x", "--quarantine", tmp_path / "x")
    assert result.exit_code == 2
    assert not (tmp_path / "x").exists()


def test_a_bound_for_a_partition_that_is_not_there_is_told() -> None:
    assert "--until-offset 99:3 has no effect" in run("compact", SAMPLE, "--until-offset", "99:3").stderr


def test_offsets_between_two_segments_that_none_holds_are_told(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, [batch_of(commit("a"))])
    later = batch_of(commit("b"), first=7)
    (folder / "__consumer_offsets-0" / f"{7:020}.log").write_bytes(later)
    result = run("compact", folder)
    assert result.exit_code == 3
    assert "offsets partition 0: offsets 1 to 6 are missing (6 of the log)" in result.stderr


def test_csv_of_decode_keeps_raw_bytes(tmp_path: Path) -> None:
    folder = broken(tmp_path / "data")
    run("decode", folder, "-o", "csv", "--to", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert lines[1]["key_hex"] == b"\x00\x63rest".hex()
    assert lines[1]["value_hex"] == b"new".hex()
