"""Contents in one more layer than their tool's own: prefixes of lines, encodings, a terminal, foreign archives."""

from __future__ import annotations

import base64
import gzip
import html
import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.dumps.hex_text import read_hex
from offsets_log.dumps.wrapping import from_terminal
from offsets_log.errors import CorruptRecordError
from tests.builders import LogBuilder
from tests.cli.runs import run
from tests.conftest import json_lines

SAMPLE = Path("samples/kafka-4.3-mixed/log").resolve()
TIME = b"2026-11-21T05:36:00.123456789Z "
WHOLE = {("stock", 0): 110, ("stock", 1): 7, ("other", 0): 9}


def answer(*paths: str | Path, stdin: bytes | None = None, status: int = 0) -> dict[tuple[str, int], int]:
    result = run("compact", *paths, "-o", "jsonl", stdin=stdin)
    assert result.exit_code == status, result.stderr
    return {(row["group"], row["partition"]): row["committed_offset"] for row in json_lines(result.stdout)}


def before(*prefixes: bytes) -> Callable[[bytes], bytes]:
    """Return what puts these before a text's lines, in turn."""
    return lambda text: b"".join(prefixes[i % len(prefixes)] + line + b"\n" for i, line in enumerate(text.splitlines()))


def numbered(form: bytes) -> Callable[[bytes], bytes]:
    return lambda text: b"".join(form % i + line + b"\n" for i, line in enumerate(text.splitlines(), 1))


def cri(text: bytes) -> bytes:
    """The runtime cuts long lines into pieces."""
    out = b""
    for line in text.splitlines():
        cut = len(line) > 300
        out += TIME + b"stdout P " + line[:150] + b"\n" if cut else b""
        out += TIME + b"stdout F " + line[150 * cut :] + b"\n"
    return out


def collected(name: str, end: str) -> Callable[[bytes], bytes]:
    return lambda text: b"".join(
        json.dumps({"time": "2026", name: line.decode() + end}).encode() + b"\n" for line in text.splitlines()
    )


def coloured(text: bytes) -> bytes:
    return text.replace(b"stock", b"\x1b[01;31m\x1b[Kstock\x1b[m\x1b[K")


def in_html(text: bytes) -> bytes:
    return html.escape(text.decode()).encode()


AROUND: dict[str, Callable[[bytes], bytes]] = {
    "kubectl --timestamps": before(TIME),
    "kubectl --prefix": before(b"[pod/kafka-0/kafka] "),
    "kubectl --prefix --timestamps": before(b"[pod/kafka-0/kafka] " + TIME),
    "stern": before(b"kafka-0 kafka "),
    "compose": before(b"kafka-1  | "),
    "compose -t": before(b"kafka-1  | " + TIME),
    "syslog": before(b"Nov 21 05:36:00 host kafka[123]: "),
    "rsyslog": before(b"2026-11-21T05:36:00.123456+00:00 app[web.1]: "),
    "log4j": before(b"[2026-11-21 05:36:00,123] "),
    "a ticket": before(b"> "),
    "a ticket, twice": before(b">> "),
    "a ticket with times": before(b"> " + TIME),
    "grep -n": numbered(b"%d:"),
    "grep -H": before(b"dump.txt:"),
    "grep -Hn": numbered(b"dir/dump-1.txt:%d:"),
    "grep -C": before(b"dump.txt:", b"dump.txt-"),
    "cat -n": numbered(b"%6d\t"),
    "Markdown": before(b"    "),
    "CRI": cri,
    "docker's json-file": collected("log", "\n"),
    "a collector's JSON": collected("message", ""),
    "colours within": coloured,
    "colours before": before(b"\x1b[36mkafka-1  |\x1b[0m "),
    "CRLF": lambda text: text.replace(b"\n", b"\r\n"),
    "a mark": lambda text: b"\xef\xbb\xbf" + text,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
    "UTF-16 LE without a mark": lambda text: text.decode().encode("utf-16-le"),
    "UTF-16 BE without a mark": lambda text: text.decode().encode("utf-16-be"),
    "PowerShell around kubectl": lambda text: before(TIME)(text).decode().replace("\n", "\r\n").encode("utf-16"),
    "UTF-32": lambda text: text.decode().encode("utf-32"),
    "HTML": in_html,
    "HTML of a ticket": lambda text: in_html(before(b"> ")(text)),
    "a string of JSON": lambda text: json.dumps(text.decode()).encode(),
    "base64 of the text": base64.encodebytes,
    "a message before": lambda text: b"Defaulted container kafka out of: kafka, init\n" + before(TIME)(text),
    "a narrow terminal": lambda text: b"\n".join(
        line[at : at + 80] for line in text.splitlines() for at in range(0, len(line), 80)
    ),
}


@pytest.mark.parametrize("name", AROUND)
def test_a_text_is_read_without_what_is_around_it(field: Path, name: str) -> None:
    text = (field / "text-without-batch-lines" / "whole.txt").read_bytes()
    assert answer("-", stdin=AROUND[name](text)) == WHOLE


@pytest.mark.parametrize("name", ["kubectl --timestamps", "a ticket", "grep -n", "CRI"])
@pytest.mark.parametrize("kind", ["lines.jsonl", "consumer-records.txt", "bytes-deserializer.txt"])
def test_so_are_other_texts(field: Path, name: str, kind: str) -> None:
    text = (field / "json-in-other-shapes" / kind).read_bytes()
    assert answer("-", stdin=AROUND[name](text)) == answer("-", stdin=text)


def test_recorded_inputs(field: Path) -> None:
    for file in sorted((field / "text-with-prefixes").iterdir()):
        assert answer(file) == WHOLE, file.name


def test_what_was_taken_off_is_said_once(field: Path) -> None:
    told = run("compact", field / "text-with-prefixes" / "compose.txt").stderr
    assert told.count("read without what is around its contents: a container's name before each line") == 1


def test_a_line_without_the_prefix_is_told(field: Path) -> None:
    lines = (field / "text-with-prefixes" / "cri.txt").read_bytes().splitlines(keepends=True)
    lines.insert(6, b"the pod was restarted\n")
    result = run("compact", "-", stdin=b"".join(lines))
    assert result.exit_code == 3
    assert "position 7: it belongs to no record" in result.stderr


def test_a_group_may_be_named_like_a_prefix() -> None:
    """Only what stands before all lines is no part of a name."""
    line = "{}::GroupMetadata(groupId={}, generation=1, protocolType=None, currentState=Empty, members=Map())\n"
    text = line.format("> a", "> a") + line.format("b", "b")
    rows = json_lines(run("groups", "-", stdin=text.encode()).stdout)
    assert [row["group"] for row in rows] == ["> a", "b"]


# -------------------------------------------------------------------------------------------- bytes as text

SHOWN = {
    "base64": base64.encodebytes,
    "base64 -w 0": base64.b64encode,
    "base64, quoted": lambda data: before(b"> ")(base64.encodebytes(data)),
    "base64 of gzip": lambda data: base64.encodebytes(gzip.compress(data)),
}
PROGRAMS = ("hexdump -C", "hexdump", "xxd", "xxd -p", "xxd -g 1", "od", "od -b", "od -A x -t x1", "od -A d -t x1z")


@pytest.mark.parametrize("name", SHOWN)
def test_a_segment_as_base64(field: Path, name: str) -> None:
    segment = base64.b64decode((field / "text-with-prefixes" / "segment.base64").read_bytes())
    assert answer("-", stdin=SHOWN[name](segment)) == WHOLE


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("data", [bytes(range(256)) * 3 + bytes(200) + b"odd", b"\x00\x01" * 40 + b"end" * 9], ids=len)
def test_hexadecimal_text_of_programs(program: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(data)
    try:
        shown = subprocess.run([*program.split(), str(tmp_path / "data")], capture_output=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip(f"{program} is not here")
    assert read_hex(shown) == data
    assert read_hex(shown.replace(b"\n", b"\r\n")) == data


def test_a_line_that_a_hexdump_lacks_is_named(field: Path) -> None:
    lines = (field / "text-with-prefixes" / "segment.hexdump").read_bytes().splitlines(keepends=True)
    with pytest.raises(CorruptRecordError, match="lines are missing") as told:
        read_hex(b"".join(lines[:5] + lines[6:]))
    assert told.value.position == 6
    result = run("compact", "-", stdin=b"".join(lines[:5] + lines[6:]))
    assert (result.exit_code, "line 6" in result.stderr) == (1, True)


# ---------------------------------------------------------------------------------------------- a terminal


def mangled(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def test_a_segment_that_went_through_a_terminal_is_read_and_written_as_it_was(field: Path, tmp_path: Path) -> None:
    folder = field / "copied-through-a-terminal" / "__consumer_offsets-3"
    name = f"{0:020}.log"
    original = SAMPLE / "__consumer_offsets-3" / name
    result = run("compact", folder, "-o", "csv")
    assert result.exit_code == 3
    assert result.stdout == run("compact", original.parent, "-o", "csv").stdout
    assert "every 0A in it has a 0D before it" in result.stderr
    assert "75 batches have the right checksum" in result.stderr
    run("repair", folder, "--to", tmp_path / "repaired")
    assert (tmp_path / "repaired" / "__consumer_offsets-3" / name).read_bytes() == original.read_bytes()


def test_a_segment_with_such_bytes_of_its_own_is_left_alone(tmp_path: Path) -> None:
    """Only what its checksums prove counts: here metadata of Windows has all line feeds."""

    def built(offset: int) -> bytes:
        made = LogBuilder()
        for i in range(4):
            made.commit(offset, partition=i, metadata="a\r\nb")
        return bytes(made.log.segments[0].buffer)

    offset = next(offset for offset in range(100) if from_terminal(built(offset)) is not None)
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(built(offset))
    assert answer(folder) == {("g", i): offset for i in range(4)}
    assert "0A" not in run("compact", folder).stderr


def test_recorded_archives(field: Path) -> None:
    folder = field / "copied-through-a-terminal"
    expected = run("compact", SAMPLE / "__consumer_offsets-2", "-o", "csv").stdout
    for name, status in (("copy.tar", 3), ("with-a-first-line.tar", 0)):
        result = run("compact", folder / name, "-o", "csv")
        assert (result.exit_code, result.stdout) == (status, expected)


# ------------------------------------------------------------------------------------------------ archives


def a_tar(name: str, form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        tar.add(SAMPLE, name)
    return out.getvalue()


def member_of(tar: bytes, suffix: str) -> tarfile.TarInfo:
    return next(info for info in tarfile.open(fileobj=io.BytesIO(tar)) if info.name.endswith(suffix))


def with_message(tar: bytes) -> bytes:
    at = member_of(tar, f"-1/{0:020}.log").offset
    return tar[:at] + b"tar: ./log: file changed as we read it\n" + tar[at:]


ARCHIVES: dict[str, tuple[Callable[[], bytes], int]] = {
    "./ before names": (lambda: a_tar("./data/log"), 0),
    "absolute names": (lambda: a_tar("/var/lib/kafka"), 0),
    "GNU's long names": (lambda: a_tar("/var/" + "x" * 150, tarfile.GNU_FORMAT), 0),
    "long names of POSIX": (lambda: a_tar("/var/" + "x" * 150), 0),
    "a message before": (lambda: b"tar: Removing leading `/' from member names\n" + a_tar("log"), 0),
    "a message before gzip": (lambda: b"Defaulted container kafka\r\n" + gzip.compress(a_tar("log")), 0),
    "a message between": (lambda: with_message(a_tar("log")), 3),
    "a message between, packed": (lambda: gzip.compress(with_message(a_tar("log"))), 3),
    "a terminal": (lambda: mangled(a_tar("log")), 3),
    "a terminal around gzip": (lambda: mangled(gzip.compress(a_tar("log"))), 3),
    "a terminal and a message": (lambda: mangled(b"tar: Removing leading `/'\n" + a_tar("log")), 3),
    "base64": (lambda: base64.encodebytes(gzip.compress(a_tar("log"))), 0),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_on_their_way(name: str, tmp_path: Path) -> None:
    make, status = ARCHIVES[name]
    (tmp_path / "copy").write_bytes(make())
    result = run("compact", tmp_path / "copy", "-o", "csv")
    assert result.exit_code == status, result.stderr
    assert result.stdout == run("compact", SAMPLE, "-o", "csv").stdout


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_what_stands_behind_a_broken_member_is_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    tar = bytearray(a_tar("log"))
    at = member_of(bytes(tar), f"-1/{0:020}.log").offset_data - tarfile.BLOCKSIZE
    tar[at + 148 : at + 156] = b"0000000\0"
    (tmp_path / "copy").write_bytes(pack(bytes(tar)))
    result = run("compact", tmp_path / "copy", "-o", "jsonl")
    assert result.exit_code == 3
    assert "the archive is broken: bad checksum; what stands there, up to byte" in result.stderr
    assert {row["offsets_partition"] for row in json_lines(result.stdout)} == {0, 2, 3}


def test_a_zip_with_backslashes(field: Path, tmp_path: Path) -> None:
    expected = run("compact", SAMPLE, "-o", "csv").stdout
    assert run("compact", field / "zip-from-windows" / "backup.zip", "-o", "csv").stdout == expected
    with zipfile.ZipFile(tmp_path / "copy.zip", "w") as made:
        for file in sorted(SAMPLE.rglob("*")):
            if file.is_file():
                made.writestr(f"D:\\kafka-logs/{file.parent.name}\\{file.name}", file.read_bytes())
    assert run("compact", tmp_path / "copy.zip", "-o", "csv").stdout == expected
    cut = tmp_path / "cut.zip"  # without its directory, read from header to header
    cut.write_bytes((tmp_path / "copy.zip").read_bytes()[: -(1 << 10)])
    assert run("compact", cut, "-o", "csv").stdout.count("\n") > 1


def test_folders_in_an_archive_can_be_named(field: Path, tmp_path: Path) -> None:
    archive = field / "deleted-folders-in-an-archive" / "copy.tgz"
    with tarfile.open(archive) as tar:
        folders = sorted({info.name for info in tar if info.isdir()})
    assert (result := run("compact", archive)).exit_code == 1
    assert f"name it to read it: '{archive}!{folders[0]}'" in result.stderr
    everything = answer(f"{archive}!*-delete")
    assert {group for group, _ in everything} == {f"svc-{i}" for i in range(6)}
    assert answer(*(f"{archive}!{folder}" for folder in folders)) == everything
    one = answer(f"{archive}!{folders[0]}")
    assert 0 < len(one) < len(everything)
    assert one.items() <= everything.items()
    wrong = run("compact", f"{archive}!nothing")
    assert (wrong.exit_code, folders[0] in wrong.stderr) == (1, True)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    assert answer(*tmp_path.iterdir()) == everything
    rescued = run("rescue", f"{archive}!*-delete", "--to", tmp_path / "rescued")
    assert "12 offsets of 6 groups" in rescued.stderr


def test_an_archive_in_an_archive_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as outer:
        outer.writestr("broker/inner.tar.gz", gzip.compress(a_tar("log")))
    result = run("compact", tmp_path / "outer.zip")
    assert result.exit_code == 1
    assert "inner.tar.gz is an archive in an archive: unpack it, and give it" in result.stderr
