"""Damage as a user has it: counted, located, kept in a quarantine; the rest is read, and the exit status says so."""

from __future__ import annotations

import base64
import io
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from offsets_log.log_format.batch import BATCH_HEADER_SIZE
from tests.cli.checked import Recording
from tests.cli.runs import SAMPLE, batch_of, commit, rows, run, write_partition
from tests.conftest import json_lines


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


def test_the_end_of_a_cut_archive_is_not_called_normal(tmp_path: Path) -> None:
    """Its log may have gone on; that of a log in a whole archive is as of any other."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(f"{SAMPLE}/__consumer_offsets-3", "__consumer_offsets-3")
    cut = tmp_path / "backup.tar"
    cut.write_bytes(content.getvalue()[:20_000])
    told = "a batch that was not written whole: its archive is broken, the log may have gone on here"
    for command, words in (("compact", "stderr"), ("info", "stdout"), ("check", "stdout")):
        result = run(command, cut)
        assert told in getattr(result, words)
        assert "normal" not in result.output


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


def test_a_full_disk_under_the_quarantine_is_told_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def on_a_full_disk(path: str, *, inputs: object = ()) -> Iterator[io.BufferedIOBase]:
        with Path("/dev/full").open("wb", buffering=0) as file:
            yield file

    monkeypatch.setattr("offsets_log.session.account.atomic_output", on_a_full_disk)
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
    assert "is an input: write elsewhere" in result.stderr
    assert path.read_bytes() == before


def test_output_and_quarantine_in_one_file_is_wrong_usage(tmp_path: Path) -> None:
    result = run("compact", SAMPLE, "--to", tmp_path / "x", "--quarantine", tmp_path / "x")
    assert result.exit_code == 2
    assert not (tmp_path / "x").exists()


def test_offsets_between_two_segments_that_none_holds_are_told(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, [batch_of(commit("a"))])
    later = batch_of(commit("b"), first=7)
    (folder / "__consumer_offsets-0" / f"{7:020}.log").write_bytes(later)
    result = run("compact", folder)
    assert result.exit_code == 3
    assert "offsets partition 0: offsets 1 to 6 are missing (6 of the log)" in result.stderr


@pytest.mark.parametrize("variant", ["log-torn", "log-zeros"])
def test_of_an_end_that_a_start_cuts_off_brokers_are_not_doubted(
    variant: str, recording: Recording, tmp_path: Path
) -> None:
    """What a killed broker leaves is cut at the next start, and all else is served; not so where more is wrong."""
    words = "a broker started on these files may know less"
    log = tmp_path / "log"
    shutil.copytree(recording("kafka-4.3-live-copy") / variant, log)
    assert "normal at the end of a log" in (told := run("info", str(log)).stderr)
    assert words not in told
    (log / ".kafka_cleanshutdown").touch()
    assert words in run("info", str(log)).stderr
    (log / ".kafka_cleanshutdown").unlink()
    segment = log / "__consumer_offsets-2" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[1000] ^= 1
    segment.write_bytes(data)
    assert words in run("info", str(log)).stderr
