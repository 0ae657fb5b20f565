"""Every command over a store says and writes what it does over a copy on this machine."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from benchmarks.generate import Options, generate
from offsets_log_cli.main import ALSO, COMMANDS, main
from tests.conftest import BulkFrom
from tests.data_directories.copies import Recorded, data_directories, recorded

__all__ = ["recorded"]

Recording = Callable[[str], Path]
NOW = ("--now", "2026-12-24")
TO = "{to}"
"""In the place of a directory that is written."""

QUESTIONS: dict[str, tuple[str, ...]] = {
    "check": ("check",),
    "clean": ("clean", *NOW, "--to", TO),
    "clean-deep": ("clean", *NOW, "--deep", "--dry-run"),
    "compact": ("compact", "--unstable", "--orphans"),
    "compact-as-broker": ("compact", "--as-broker"),
    "compact-decided": ("compact", "--decide", *NOW),
    "compact-share-offsets": ("compact", "--table", "share-offsets"),
    "decode": ("decode", "-g", "*a*", "-o", "csv"),
    "decode-dump-log": ("decode", "--as", "dump-log"),
    "decode-parquet": ("decode", "-o", "parquet", "--to", TO),
    "decode-states": ("decode", "--internal-topic", "__transaction_state"),
    "diff": ("diff", "--from-offset", "60", "--why"),
    "expire": ("expire", *NOW),
    "groups": ("groups", *NOW, "-g", "*", "-g", "nobody"),
    "history": ("history", "-g", "*"),
    "info": ("info", "-o", "table"),
    "info-card": ("info", "--card"),
    "info-until": ("info", "--until-time", "2026-09-01", "-p", "0", "-p", "1"),
    "members": ("members",),
    "rebalances": ("rebalances", "--verify"),
    "rebuild": ("rebuild", "--expand", *NOW),
    "repair": ("repair", "--to", TO),
    "report": ("report", "--to", TO),
    "rescue": ("rescue", "--to", TO),
    "top": ("top", "--per", "client"),
    "transactions": ("transactions", *NOW, "-o", "table"),
    "where": ("where", "--of"),
}
NO_READERS = {"assign", "explain", "help", "pull", "restore", "vote"}
"""Commands that read no logs, or a cluster's; `serve`, `sql`, `translate` and `watch` have tests of their own."""


def damaged(log: Path) -> None:
    """Bytes changed in the middle of files, one cut, one with zeros behind, one missing."""
    files = sorted(path for path in log.glob("*/*.log") if path.stat().st_size > 1000)
    for path in files[::3]:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    files[-1].write_bytes(files[-1].read_bytes()[:-30])
    files[0].write_bytes(files[0].read_bytes() + bytes(4096))
    files[1].unlink()


@pytest.fixture(scope="module")
def data(recording: Recording, recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Logs of this machine, which are in a store of the same name, too."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name) / "data"
        if name == "generated":
            generate(folder, Options(bytes=1 << 19, groups=30, partitions=6, transactions=0.2, segment_bytes=40_000))
        elif name == "damaged":
            shutil.copytree(recording("kafka-4.3-mixed") / "log", folder)
            damaged(folder)
        else:
            shutil.copytree(data_directories(recorded(name), "running")[0], folder)
        put(folder)
        return folder

    return made


def put(folder: Path) -> None:
    """Put a directory into fsspec's store in memory, by its own path."""
    store = fsspec.filesystem("memory")
    for path in folder.rglob("*"):
        if path.is_file():
            store.pipe_file(f"/copies{path}", path.read_bytes())


def url_of(path: Path) -> str:
    return f"memory://copies{path}"


Answer = tuple[int, str, list[str], dict[str, bytes]]


def asked(question: tuple[str, ...], place: str, to: Path, shown: Path) -> Answer:
    """Exit status, output, words and files of a run, by the names of this machine."""
    words = [word.replace(TO, str(to)) for word in question]
    done = CliRunner().invoke(main, [*words, place], catch_exceptions=False)
    files = [to] if to.is_file() else sorted(path for path in to.rglob("*") if path.is_file())
    written = {str(path.relative_to(to)): contents_of(path) for path in files}
    if to.is_dir():
        shutil.rmtree(to)
    to.unlink(missing_ok=True)
    return (
        done.exit_code,
        named(done.stdout, place, shown),
        [one for one in named(done.stderr, place, shown).splitlines() if not one.startswith("compiling ")],
        {name: named(data.decode("latin-1"), place, shown).encode("latin-1") for name, data in written.items()},
    )


def contents_of(path: Path) -> bytes:
    """A table as its rows: compressed bytes hide the names of files."""
    return repr(pq.read_table(path).to_pylist()).encode() if path.suffix == ".parquet" else path.read_bytes()


def named(text: str, place: str, shown: Path) -> str:
    text = re.sub(r'"(made_ms|made|at)": ?("[^"]*"|[0-9]+)', r'"\1": 0', text)
    return text.replace(place, str(shown))


@pytest.mark.parametrize("name", ["kafka-4.3-one", "kafka-3.9-blocked", "damaged", "generated"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_of_the_copy_here(
    question: str, name: str, data: Callable[[str], Path], tmp_path: Path, bulk_from: BulkFrom
) -> None:
    """Whole data directories with lag, a damaged log, one that kernels read."""
    if name == "generated":
        bulk_from(0)
    folder = data(name)
    here, there = (
        asked(QUESTIONS[question], place, tmp_path / "to", folder) for place in (str(folder), url_of(folder))
    )
    assert there[2] == here[2]
    assert there[:2] == here[:2]
    if question != "report":
        assert there[3] == here[3]
    else:
        assert there[3].keys() == here[3].keys()


def test_every_command_is_asked() -> None:
    asked_here = {ALSO.get(question[0], question[0]) for question in QUESTIONS.values()}
    assert asked_here | NO_READERS | {"serve", "sql", "translate", "watch"} == set(COMMANDS)


def test_a_segment_a_partition_a_glob_an_archive_and_both_kinds_of_paths_together(
    data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = data("damaged")
    partition = sorted(folder.glob("__consumer_offsets-*"))[-1]
    segment = sorted(partition.glob("*.log"))[0]
    for place in (partition, segment):
        here, there = (asked(("info",), one, tmp_path / "to", place) for one in (str(place), url_of(place)))
        assert there == here
    every, others = f"{folder}/__consumer_offsets-*", folder / "__consumer_offsets-0"
    globbed = asked(("compact",), f"memory://copies{every}", tmp_path / "to", folder)
    assert globbed[1] == asked(("compact",), every, tmp_path / "to", folder)[1] != ""
    archive = shutil.make_archive(str(tmp_path / "copy"), "gztar", folder)
    fsspec.filesystem("memory").pipe_file("/archives/copy.tar.gz", Path(archive).read_bytes())
    packed = asked(("compact",), "memory://archives/copy.tar.gz", tmp_path / "to", folder)
    assert packed[1] == asked(("compact",), archive, tmp_path / "to", folder)[1]
    together = asked(("compact", str(others)), url_of(partition), tmp_path / "to", folder)
    assert together[1] == asked(("compact", str(others)), str(partition), tmp_path / "to", folder)[1]


def test_what_is_not_there_is_named_without_secrets(tmp_path: Path) -> None:
    for place in ("memory://copies/none", "memory://user:secret@copies/no*ne", "memory://copies?key=secret"):
        status, _, words, _ = asked(("compact",), place, tmp_path / "to", tmp_path)
        assert (status, len(words)) == (1, 1)
        assert "secret" not in words[0]


def test_translated_offsets(data: Callable[[str], Path], tmp_path: Path) -> None:
    """Of a whole data directory to itself: by the records of its users' topics."""
    folder, plans = data("kafka-4.3-one"), []
    for number, place in enumerate((str(folder), url_of(folder))):
        to = tmp_path / str(number)
        done = CliRunner().invoke(main, ["translate", place, "--target", place, "--to", str(to)])
        assert done.exit_code in (0, 3), done.output
        plan: dict[str, Any] = json.loads(named((to / "plan.json").read_text(), place, folder))
        plans.append((done.exit_code, plan["offsets"]))
    assert plans[0] == plans[1]
    assert plans[0][1]
