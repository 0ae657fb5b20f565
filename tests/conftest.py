"""What several tests share: the recordings, unpacked once a run, and plain readers of their files.

The readers here are test code on purpose: they know nothing of ``offsets_log.disk``.
"""

from __future__ import annotations

import json
import math
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offsets_log.log_format.partition_log import PartitionLog, Segment

PACKED = Path(__file__).parent / "recordings"
VECTORS = Path(__file__).parent / "vectors"
RECORDINGS = sorted(path.name.removesuffix(".tar.xz") for path in PACKED.glob("*.tar.xz"))
"""Names of all recordings."""

NEVER = 1 << 40
"""More bytes than any test's log has."""

PARTITION_DIRECTORY = "__consumer_offsets-"

TOGETHER = (
    "tests/spark/",
    "tests/restore/test_live.py",
    "tests/restore/test_secure.py",
    "tests/test_packaging.py",
)
"""Folders and files whose tests share what takes long to start: one worker runs all of them."""
FIRST = ("tests/columnar/test_modes.py", "tests/restore/test_round_trip.py")
"""Files with tests so long that no worker may begin with them last."""

SLOW = (
    "tests/broker/test_damaged.py",
    "tests/cleaner/test_deep.py",
    "tests/cleaner/test_recorded_cases.py",
    "tests/cli/test_completion.py",
    "tests/cli/test_folders_whole_or_not.py::test_killed",
    "tests/cli/test_help.py",
    "tests/cli/test_missing_log.py",
    "tests/cli/test_text_table.py::test_the_same_as_rich",
    "tests/columnar/test_checks.py",
    "tests/columnar/test_compiled.py",
    "tests/columnar/test_group_records.py",
    "tests/columnar/test_history.py",
    "tests/columnar/test_lines.py",
    "tests/columnar/test_modes.py",
    "tests/columnar/test_partials.py",
    "tests/columnar/test_selection.py",
    "tests/columnar/test_writers.py",
    "tests/dumps/test_dump_log.py",
    "tests/dumps/test_dump_log_in_bulk.py",
    "tests/messages/test_java_strings.py::test_strings_decode_as_the_installed_java",
    "tests/report/test_report.py::test_a_browser_shows_the_recording",
    "tests/report/test_report.py::test_ten_thousand_groups_make_a_page",
    "tests/spark/",
    "tests/test_benchmarks.py",
    "tests/test_docs.py",
    "tests/test_packaging.py",
)
"""What `make test-fast` leaves out, beside brokers and most recordings."""
FAST_RECORDINGS = frozenset({"kafka-4.3-mixed", "kafka-lifetime"})


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests one by one, but those of `TOGETHER` on one worker, which begins with them.

    The marks of xdist for this say nothing under pytest 9.2, where a test's id cannot be changed.
    """
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next(filter(nodeid.startswith, TOGETHER), nodeid)

    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first; those that are slow are marked."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    for item in items:
        if item.nodeid.startswith(SLOW) or item.get_closest_marker("kafka") or _is_of_slow_recording(item):
            item.add_marker(pytest.mark.slow)


def _is_of_slow_recording(item: pytest.Item) -> bool:
    values = getattr(item, "callspec", None)
    names = {value for value in values.params.values() if isinstance(value, str)} if values else set()
    return bool(names & {*RECORDINGS} - FAST_RECORDINGS)


@pytest.fixture(autouse=True)
def no_word_of_how_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands say no more on standard error where the machine is slow."""
    monkeypatch.setattr("cli.progress.LINE_EVERY_S", math.inf)


BulkFrom = Callable[[int], None]


@pytest.fixture
def bulk_from(monkeypatch: pytest.MonkeyPatch) -> BulkFrom:
    """``bulk_from(n)``: commands read inputs of n bytes and more by kernels; 0 for all, `NEVER` for none."""
    return lambda least_bytes: monkeypatch.setattr("cli.engine.BULK_FROM_BYTES", least_bytes)


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """``recording(name)`` is the folder of an unpacked recording, shared by all workers: read it, never write."""
    return lambda name: unpack_once(PACKED / f"{name}.tar.xz", tmp_path_factory, request)


def unpack_once(archive: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The folder of an unpacked archive, shared by all workers: read it, never write."""
    base = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        base = base.parent  # the run's own folder, in which every worker has one
    shared = base / "recordings"
    shared.mkdir(exist_ok=True)
    folder = shared / archive.name.removesuffix(".tar.xz")
    if not folder.exists():
        _unpack(archive, folder)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack beside the place and rename: whoever comes second throws its own copy away."""
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    with tarfile.open(archive) as tar:
        tar.extractall(beside, filter="data")
    try:
        beside.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        shutil.rmtree(beside)


def json_lines(text: str) -> Iterator[Any]:
    """The values of JSON Lines; names in them hold U+2028 and other characters that end a line elsewhere."""
    return (json.loads(line) for line in text.split("\n") if line)


def read_json_lines(path: Path) -> list[Any]:
    """A file of JSON Lines."""
    return list(json_lines(path.read_bytes().decode()))


def read_json(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_bytes())


def log_directories(folder: Path) -> list[Path]:
    """The data folders of a recording: ``log``, and ``log-before``, ``log-torn`` … where it has them."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name.startswith("log"))


def read_partitions(log_directory: Path) -> dict[int, PartitionLog]:
    """Every offsets partition of a data folder, by number, its ``*.log`` files in offset order."""
    logs = (read_partition(path) for path in log_directory.glob(f"{PARTITION_DIRECTORY}*"))
    return {log.offsets_partition: log for log in sorted(logs, key=lambda log: log.offsets_partition)}


def read_partition(directory: Path) -> PartitionLog:
    """One partition folder: its ``*.log`` files and nothing else."""
    return PartitionLog(
        offsets_partition=int(directory.name.removeprefix(PARTITION_DIRECTORY)),
        segments=tuple(
            Segment(f"{directory.name}/{path.name}", int(path.stem), path.read_bytes())
            for path in sorted(directory.glob("*.log"))
        ),
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """With -v: what the tests counted."""
    if config.get_verbosity() < 1:
        return
    for report in terminalreporter.getreports("passed"):
        if report.user_properties:
            counts = ", ".join(f"{name}: {value}" for name, value in report.user_properties)
            terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {counts}")
