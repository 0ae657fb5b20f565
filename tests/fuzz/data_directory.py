"""Data directories of brokers in which one file is another: what ``python -m tests.fuzz --what data-directory`` asks.

An input is JSON: which copy, which file of it, the bytes that stand there (null: there is no such file), how long it
is, whether a checksum must notice, and which commands are asked.

The invariant: commands answer, or tell a problem in words; no other exception. What a checksum notices is told, or
changes no answer.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

from click.testing import CliRunner

from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.segment import iter_batches
from offsets_log_cli.main import main
from tests.data_directories.copies import COPIES, PACKED
from tests.fuzz.mutation import mutate, mutate_records, with_right_checksum

LATER = "2030-01-01T00:00:00Z"
COMMANDS = (
    ("info", "--card", "-o", "jsonl"),
    ("compact", "--lag", "-o", "jsonl"),
    ("compact", "--table", "share-offsets", "-o", "jsonl"),
    ("check", "-o", "json"),
    ("groups", "--now", LATER, "-o", "jsonl"),
    ("rebuild", "-o", "json", "--now", LATER),
    ("rebuild", "-o", "json", "--decide", "--now", LATER),
    ("transactions", "-o", "jsonl", "--now", LATER),
)
STATUSES = (0, 1, 3)
"""All is well; it cannot be answered; something is damaged."""
AT_ONCE = 2
"""Commands that an input is asked with."""

BATCHES = re.compile(r"[0-9]{20}(?:\.log|-[0-9]{10}\.checkpoint)|bootstrap\.checkpoint")
BINARY = re.compile(r"[0-9]{20}\.(?:index|timeindex|txnindex|snapshot)")
NUMBERS = re.compile(rb"[0-9]+")
FORGED_NUMBERS = (b"-1", b"0", b"1", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"9" * 5000, b"x")
MOST_OF_AN_INDEX = 256
"""Bytes of a large file in which something is changed."""


@dataclass(frozen=True)
class Copy:
    """A broker's data directories, and which files of theirs are changed."""

    folders: tuple[Path, ...]
    files: tuple[Path, ...]


@cache
def _unpacked() -> dict[str, Copy]:
    """Of each copy a place of its own, for this process until it ends."""
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="offsets-log-fuzz-", dir=memory if memory.is_dir() else None))
    Finalize(None, shutil.rmtree, (root, True), exitpriority=1)
    for name in {name for name, _ in COPIES}:
        with tarfile.open(PACKED / f"{name}.tar.xz") as tar:
            members = [member for member in tar if member.name.lstrip("./").startswith("copies/")]
            tar.extractall(root / name, members, filter="data")
    found = {}
    for name, copy in COPIES:
        folders = tuple(sorted(path for path in (root / name / "copies" / copy).iterdir() if path.is_dir()))
        files = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
        found[f"{name}/{copy}"] = Copy(folders, tuple(path for path in files if not path.name.startswith(".")))
    return found


def hostile_directories(seed: int) -> Iterator[bytes]:
    """Endless inputs; the same for the same seed."""
    dice = random.Random(seed)
    copies = _unpacked()
    while True:
        name = dice.choice(sorted(copies))
        path = dice.choice(_by_kind(name)[dice.choice(sorted(_by_kind(name)))])
        told = {"copy": name, "file": str(path.relative_to(_root(copies[name])))}
        yield json.dumps(told | _changed(path, dice) | {"commands": dice.sample(COMMANDS, AT_ONCE)}).encode()


def _root(copy: Copy) -> Path:
    return copy.folders[0].parent


@cache
def _by_kind(name: str) -> dict[str, list[Path]]:
    """Name or ending → the files of a copy, so that rare kinds are changed as often as frequent ones."""
    kinds: dict[str, list[Path]] = {}
    for path in _unpacked()[name].files:
        topic = path.parent.name.rpartition("-")[0] if path.parent.name.startswith("__") else ""
        is_numbered = path.name[:20].isdigit()
        kinds.setdefault(f"{topic} {path.suffix if is_numbered else path.name}", []).append(path)
    return kinds


def _changed(path: Path, dice: random.Random) -> dict[str, object]:
    """What stands in a file instead of its bytes, and whether a checksum must notice."""
    match dice.randrange(24):
        case 0:
            return {"data": None, "size": 0, "is_noticed": False}
        case 1:
            return {"data": "", "size": 0, "is_noticed": False}
    size = path.stat().st_size
    is_noticed = False
    if BATCHES.fullmatch(path.name):
        data, is_noticed = _changed_batches(path.read_bytes(), dice)
    elif BINARY.fullmatch(path.name):
        with path.open("rb") as file:
            head = file.read(MOST_OF_AN_INDEX)
            data = mutate(head, dice) + file.read().rstrip(b"\x00")
    else:
        data = _changed_text(path.read_bytes(), dice)
    size = size + len(data) if dice.random() < 0.1 else max(len(data), size if size > len(data) + 4096 else 0)
    return {"data": base64.b64encode(data).decode(), "size": size, "is_noticed": is_noticed}


def _changed_batches(data: bytes, dice: random.Random) -> tuple[bytes, bool]:
    pieces = [item.raw for item in iter_batches(data) if isinstance(item, RecordBatch)]
    if not pieces:
        return dice.randbytes(dice.randrange(200)), False
    at = dice.randrange(len(pieces))
    batch = next(item for item in iter_batches(pieces[at]) if isinstance(item, RecordBatch))
    match dice.randrange(6):
        case 0:  # one bit behind the checksum
            raw = bytearray(batch.raw)
            raw[dice.randrange(21, len(raw))] ^= 1 << dice.randrange(8)
            pieces[at] = bytes(raw)
            return b"".join(pieces), True
        case 1:
            del pieces[at]
        case 2:
            pieces.insert(dice.randrange(len(pieces)), batch.raw)
        case 3:
            pieces[at] = with_right_checksum(mutate(batch.raw, dice))
        case _:
            pieces[at] = mutate_records(batch, dice)
    return b"".join(pieces), False


def _changed_text(data: bytes, dice: random.Random) -> bytes:
    numbers = list(NUMBERS.finditer(data))
    lines = data.splitlines(keepends=True)
    match dice.randrange(4):
        case 0 if numbers:
            one = dice.choice(numbers)
            return data[: one.start()] + dice.choice(FORGED_NUMBERS) + data[one.end() :]
        case 1 if lines:
            lines.insert(dice.randrange(len(lines) + 1), dice.choice(lines))
            return b"".join(lines)
        case 2 if lines:
            del lines[dice.randrange(len(lines))]
            return b"".join(lines)
    return mutate(data, dice)


def check_data_directory(data: bytes) -> tuple[int, int]:
    """Ask the commands of an input; (commands, how many told a problem). Raises AssertionError if one fails."""
    told = json.loads(data)
    copy = _unpacked()[told["copy"]]
    path = _root(copy) / told["file"]
    kept = path.with_name(f"{path.name}.kept")
    path.rename(kept)
    try:
        if told["data"] is not None:
            path.write_bytes(base64.b64decode(told["data"]))
            os.truncate(path, told["size"])
        answers = [_answer(copy, tuple(command)) for command in told["commands"]]
    finally:
        path.unlink(missing_ok=True)
        kept.rename(path)
    for command, (status, shown, words) in zip(told["commands"], answers, strict=True):
        assert status in STATUSES, (command, status, words)
        assert status != 1 or words.startswith("Error: "), (command, words)
        if told["is_noticed"]:
            assert (status, shown) == _right(told["copy"], tuple(command))[:2] or status or words, command
    return len(answers), sum(status != 0 for status, _, _ in answers)


Answer = tuple[int, str, str]
"""Exit status, output, words."""


def _answer(copy: Copy, command: tuple[str, ...]) -> Answer:
    result = CliRunner().invoke(main, [command[0], *map(str, copy.folders), *command[1:]])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@cache
def _right(copy: str, command: tuple[str, ...]) -> Answer:
    return _answer(_unpacked()[copy], command)
