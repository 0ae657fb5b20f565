"""What several tests share: the recordings, unpacked once a run, and plain readers of their files.

The readers here are test code on purpose: they know nothing of ``offsets_log.disk``.
"""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from offsets_log.columnar.jit import compiled, making, modes
from offsets_log.log_format.partition_log import PartitionLog, Segment
from tests import kernels
from tests.shared_files import after_the_first, unpacked

PACKED = Path(__file__).parent / "recordings"
VECTORS = Path(__file__).parent / "vectors"
RECORDINGS = sorted(path.name.removesuffix(".tar.xz") for path in PACKED.glob("*.tar.xz"))
"""Names of all recordings."""
DISTINCT = [name for name in RECORDINGS if name != "random-scala"]
"""Those whose segments differ: one log, loaded by both coordinators, is recorded twice, with the answers of each."""


def in_turn(values: Iterable[str], *, with_all: Container[str] = ()) -> list[tuple[str, str]]:
    """Each recording's name with a third of the values, in turn; some names with all."""
    return [
        (name, value)
        for turn, name in enumerate(DISTINCT)
        for shift, value in enumerate(values, turn)
        if shift % 3 == 0 or name in with_all
    ]


NEVER = 1 << 40
"""More bytes than any test's log has."""

PARTITION_DIRECTORY = "__consumer_offsets-"

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
"""A busy machine is no fault of what is tested."""

TOGETHER = tuple(
    f"tests/spark/test_{name}.py"
    for name in (
        "following",
        "programs",
        "source",
        "data_directories",
        "clean",
        "missing_log",
        "daemon",
        "benchmark",
    )
)
"""Files whose tests share a session of Spark, which takes long to start: one worker runs all of them."""
MODES = "tests/columnar/test_modes.py"
APART = (MODES, "tests/repairing/test_real_broker.py")
"""Files with tests so long that several workers share them; of other files one worker has all tests."""
FIRST = (
    "tests/repairing/test_real_broker.py",
    "tests/restore/test_live.py",
    "tests/translation/test_share_starts.py",
    "tests/restore/test_rights.py",
    *TOGETHER,
    "tests/test_packaging.py",
    "tests/spark/test_cluster.py",
    "tests/columnar/test_compiled.py",
    "tests/restore/test_round_trip.py",
    "tests/translation/test_live.py",
    "tests/restore/test_secure.py",
    "tests/pulling/test_live.py",
    "tests/coordinator/test_real_broker.py",
    "tests/cleaner/test_real_broker.py",
    "tests/test_docs.py",
    "tests/restore/test_secrets.py",
)
"""Files that take so long that no worker may begin with them last: those that wait for brokers while kernels are
compiled, then the longest."""
LAST = ("tests/cleaner/", "tests/cli/test_folders_whole_or_not.py", "tests/columnar/", "tests/investigate/")
"""Where most kernels are used."""

SLOW = (
    "tests/broker/test_bulk_recovery.py",
    "tests/broker/test_damaged.py",
    "tests/cleaner/test_bulk.py",
    "tests/cleaner/test_bulk_old.py",
    "tests/cleaner/test_deep.py",
    "tests/cleaner/test_recorded_cases.py",
    "tests/cli/test_check.py::test_pieces_make_no_difference",
    "tests/cli/test_clean.py",
    "tests/cli/test_completion.py",
    "tests/cli/test_folders_whole_or_not.py",
    "tests/cli/test_follow.py",
    "tests/cli/test_help.py",
    "tests/cli/test_loads_told.py",
    "tests/cli/test_metrics.py",
    "tests/cli/test_missing_log.py",
    "tests/cli/test_nothing_found.py",
    "tests/cli/test_process.py",
    "tests/cli/test_rebuild.py",
    "tests/cli/test_repair.py",
    "tests/cli/test_several_partitions.py",
    "tests/cli/test_text_table.py::test_in_a_pipe_the_same_as_rich",
    "tests/cli/test_times.py",
    "tests/cli/test_whose_rules.py",
    "tests/columnar/test_checks.py",
    "tests/columnar/test_compiled.py",
    "tests/columnar/test_cuts.py",
    "tests/columnar/test_decompress.py",
    "tests/columnar/test_decompress_hostile.py",
    "tests/columnar/test_equal_engines.py::test_hostile_segments",
    "tests/columnar/test_events.py",
    "tests/columnar/test_group_records.py",
    "tests/columnar/test_history.py",
    "tests/columnar/test_lengths_and_numbers.py::test_lengths_of_metadata_that_do_not_fit",
    "tests/columnar/test_lines.py",
    "tests/columnar/test_lines_commands.py",
    "tests/columnar/test_modes.py",
    "tests/columnar/test_packed.py",
    "tests/columnar/test_partials.py",
    "tests/columnar/test_records.py::test_hostile_segments",
    "tests/columnar/test_selection.py",
    "tests/columnar/test_selection_commands.py",
    "tests/columnar/test_surveys.py::test_hostile_segments",
    "tests/columnar/test_surveys.py::test_transactions_of_more_producers_than_there_was_room_for",
    "tests/columnar/test_whole_or_not.py",
    "tests/columnar/test_writers.py",
    "tests/coordinator/test_same_memory.py",
    "tests/data_directories/test_busy.py",
    "tests/data_directories/test_card.py",
    "tests/data_directories/test_decisions.py",
    "tests/data_directories/test_lag_elsewhere.py::test_the_page_shows_lag_in_a_browser",
    "tests/data_directories/test_log_ends.py",
    "tests/data_directories/test_metadata_log.py",
    "tests/data_directories/test_packed.py",
    "tests/data_directories/test_several_copies.py",
    "tests/data_directories/test_share_history.py",
    "tests/data_directories/test_short_logs.py",
    "tests/data_directories/test_starts.py",
    "tests/data_directories/test_stranded.py",
    "tests/disk/test_archives.py",
    "tests/disk/test_renamed.py",
    "tests/disk/test_replica_words.py",
    "tests/disk/test_spool.py",
    "tests/dumps/test_dump_log.py",
    "tests/dumps/test_dump_log_in_bulk.py",
    "tests/dumps/test_events.py",
    "tests/dumps/test_foreign_lines.py",
    "tests/dumps/test_formatter.py",
    "tests/dumps/test_new_fields.py",
    "tests/dumps/test_newer_releases.py",
    "tests/field/test_cut_texts.py",
    "tests/field/test_wrapped.py",
    "tests/following/test_state.py",
    "tests/fuzz/",
    "tests/library/test_expire_and_top.py",
    "tests/library/test_groups.py",
    "tests/library/test_history.py",
    "tests/library/test_records.py",
    "tests/library/test_sql.py",
    "tests/library/test_transactions.py",
    "tests/messages/test_java_strings.py::test_strings_decode_as_the_installed_java",
    "tests/messages/test_record_vectors.py",
    "tests/protocol/test_tables.py::test_both_sides_of_the_wire_agree",
    "tests/pulling/test_interrupted.py::test_brokers_come_and_go_and_the_copy_is_whole",
    "tests/rebalance/test_assignors.py",
    "tests/rebalance/test_properties.py",
    "tests/repairing/test_damaged_copies.py",
    "tests/repairing/test_repair.py",
    "tests/report/test_report.py",
    "tests/report/test_samples.py",
    "tests/serving/test_incomplete.py",
    "tests/serving/test_recordings.py",
    "tests/serving/test_serve.py",
    "tests/spark/",
    "tests/stores/",
    "tests/test_benchmarks.py",
    "tests/test_docs.py",
    "tests/test_house.py::test_no_module_imports_in_a_circle",
    "tests/test_packaging.py",
    "tests/translation/test_alignment.py",
)
"""What `make test-fast` leaves out, beside brokers and most recordings."""
MANY = 100
"""Tests, so many that they need most kernels."""
FAST_RECORDINGS = frozenset({"kafka-4.3-mixed", "kafka-lifetime"})


KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 28)}
"""glibc's settings for processes that run tests: the arrays of kernels, made again for each log, are of memory that was
used before, for the system takes longer to give new pages than kernels need to read a small log."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than there are processors: those that ask brokers wait most of the time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Workers begin with `KEPT_MEMORY`; `pytest_configure` hides it from the processes that tests start."""
    os.environ.update(KEPT_MEMORY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files one by one, in the order of `pytest_collection_modifyitems`; a worker has all tests of a unit.

    The marks of xdist for this say nothing under pytest 9.2, where a test's id cannot be changed.
    """
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return Scheduling(config, log)


def unit_of(nodeid: str) -> str:
    """What one worker runs without the others: all files of `TOGETHER`, a test of `APART`, or the tests of a file."""
    file = nodeid.partition("::")[0]
    return TOGETHER[0] if file in TOGETHER else nodeid if file in APART else file


def turn_of(nodeid: str) -> int:
    """When a test's turn comes: of lower ones first."""
    file = nodeid.partition("::")[0]
    if file == MODES:  # which waits until all of its kernels are compiled
        return len(FIRST) + 1
    return FIRST.index(file) if file in FIRST else len(FIRST) + 2 * file.startswith(LAST)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What pytest compiles of all tests one worker compiles, in a third of a minute; the others read what it keeps."""
    keeps = hasattr(session.config, "workerinput") and not sys.dont_write_bytecode
    with after_the_first(Path(__file__).parent) if keeps else nullcontext():
        return (yield)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test-fast` does not read files of which it leaves out everything."""
    name = collection_path.relative_to(config.rootpath).as_posix()
    return True if config.option.markexpr == "not slow" and name.startswith(SLOW) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, those of kernels last, which are compiled beside the others; those that are slow are marked."""
    items.sort(key=lambda item: turn_of(item.nodeid))
    for item in items:
        if item.nodeid.startswith(SLOW) or item.get_closest_marker("kafka") or _is_of_slow_recording(item):
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    """Processes that tests start do not ignore an interrupt, even where a shell runs the tests in the background."""
    if hasattr(config, "workerinput"):
        for name in KEPT_MEMORY:
            os.environ.pop(name, None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Kernels that are not kept are compiled beside a run of many tests: by one process for all workers.

    What was collected stays: it is not looked through again for garbage, which took an eighth of the time.
    """
    gc.freeze()
    if len(session.items) < MANY or modes.IS_PYTHON or modes.IS_CHECKED or session.config.option.collectonly:
        return
    making.make = compiled.make = kernels.waiting(kernels.compile_all(), making.make)


def pytest_sessionfinish() -> None:
    """What no test has needed is not compiled."""
    kernels.stop()


def _is_of_slow_recording(item: pytest.Item) -> bool:
    values = getattr(item, "callspec", None)
    names = {value for value in values.params.values() if isinstance(value, str)} if values else set()
    return bool(names & {*RECORDINGS} - FAST_RECORDINGS)


@pytest.fixture(autouse=True)
def no_word_of_how_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands say no more on standard error where the machine is slow."""
    monkeypatch.setattr("offsets_log_cli.progress.LINE_EVERY_S", math.inf)


@pytest.fixture(autouse=True)
def whatever_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands choose kernels by the size of logs alone, and none has others compiled."""
    monkeypatch.setattr("offsets_log.columnar.large.PLAIN_BYTES_PER_S", 0)
    monkeypatch.setattr("offsets_log_cli.session._compile_rest", lambda: None)


BulkFrom = Callable[[int], None]


@pytest.fixture
def bulk_from(monkeypatch: pytest.MonkeyPatch) -> BulkFrom:
    """``bulk_from(n)``: commands read inputs of n bytes and more by kernels; 0 for all, `NEVER` for none."""
    return lambda least_bytes: monkeypatch.setattr("offsets_log.columnar.large.BULK_FROM_BYTES", least_bytes)


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """``recording(name)`` is the folder of an unpacked recording, shared by all workers: read it, never write."""
    return lambda name: unpack_once(PACKED / f"{name}.tar.xz", tmp_path_factory, request)


def unpack_once(archive: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The folder of an unpacked archive, shared by all workers: read it, never write."""
    base = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        base = base.parent  # the run's own folder, in which every worker has one
    return unpacked(archive, base / "recordings" / archive.name.removesuffix(".tar.xz"))


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
