"""The command line as a process: what it imports, its streams, pipes and full disks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from offsets_log.replay.partition_for import DEFAULT_PARTITIONS
from offsets_log_cli import where
from tests.cli.runs import ROOT, SAMPLE, rows, run
from tests.conftest import json_lines, log_directories
from tests.waiting import PATIENCE_S


def start(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    code = f"from offsets_log_cli.main import main; main({list(arguments)!r})"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=ROOT, timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("asked", "light"),
    [
        (["--help"], ()),
        (
            ["offsets", "--help"],
            (
                "actions",
                "actions.follow_asked",
                "asked_time",
                "kafka_releases",
                "release_names",
                "session",
                "session.decide",
                "session.scope",
                "words",
            ),
        ),
    ],
)
def test_help_imports_nothing_heavy(asked: list[str], light: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom offsets_log_cli.main import main\n"
        f"try: main({asked})\nexcept SystemExit: pass\n"
        "heavy = {'construct', 'cramjam', 'rich', 'numba', 'pyarrow'} & set(sys.modules)\n"
        "print(sorted(heavy), sorted(name for name in sys.modules if name.startswith('offsets_log.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=PATIENCE_S
    )
    assert done.stdout.endswith(f"[] {[f'offsets_log.{name}' for name in light]}\n"), done.stdout


def test_what_help_states_without_the_library_is_what_the_library_has() -> None:
    assert where.DEFAULT_PARTITIONS == DEFAULT_PARTITIONS


def test_a_reader_that_goes_away_is_quiet() -> None:
    code = f"from offsets_log_cli.main import main; main(['decode', {SAMPLE!r}, '-q'])"
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{code}" | head -c 100 >/dev/null; echo "${{PIPESTATUS[0]}}"'],
        capture_output=True, text=True, check=True, cwd=ROOT, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == "0\n"


def test_words_go_to_standard_error_and_data_to_standard_output() -> None:
    done = start("compact", SAMPLE)
    assert done.returncode == 0
    assert b"4 partitions" in done.stderr
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
    script = f'offsets-log() {{ "{sys.executable}" -c "from offsets_log_cli.main import run; run()" "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=PATIENCE_S,
        errors="replace",
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
