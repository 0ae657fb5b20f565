"""Kernels are compiled once, kept, and linked without numba; nothing depends on who came first."""

from __future__ import annotations

import ast
import inspect
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from offsets_log.columnar.jit.keeping import read
from offsets_log.columnar.jit.modes import IS_CHECKED, IS_PYTHON
from offsets_log.columnar.jit.sources import place_of
from offsets_log.columnar.warm import kernels
from offsets_log.columnar.wire.decompressed import plan

ROOT = Path(__file__).parent.parent.parent

PLAN = """
import sys
import numpy as np
from offsets_log.columnar.wire import decompressed as dp
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record

value = bytes(range(256)) * 8  # stored as it is: copied by the C library
batch = build_batch([Record(offset=0, key=b"key", value=value)], compression="snappy")
data, window, table = np.frombuffer(batch, np.uint8), np.zeros(1 << 14, np.uint8), np.zeros((4, dp.COLUMNS), np.int64)
assert dp.plan(data, 0, len(data), table) == 1
"""
"""Uses a small kernel, which is soon compiled."""
USE = f"""{PLAN}
from offsets_log.columnar.wire.libraries import Library

with Library() as library:
    assert dp.fill(data, window, table, 1, library.addresses) == 1
assert value in window.tobytes()
"""
"""Uses a large one too, which needs functions of the C library."""
WATCH = """
from offsets_log.columnar.jit import numba_backend
code_of = numba_backend.code_of
numba_backend.code_of = lambda *arguments: print("compiled") or code_of(*arguments)
"""
NO_NUMBA = "assert 'numba' not in sys.modules"
WITH_NUMBA = "import numba\n"


def run(program: str, cache: Path, **more: str) -> None:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA_")}
    environment |= {"OFFSETS_LOG_CACHE": str(cache), "PYTHONPATH": str(ROOT)} | more
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def kept(cache: Path) -> list[Path]:
    return sorted((cache / "offsets-log" / "kernels").iterdir())


def test_code_is_kept_and_linked_with_numba_in_the_process_and_without(tmp_path: Path) -> None:
    run(USE + NO_NUMBA, tmp_path)
    files = kept(tmp_path)
    times = [file.stat().st_mtime_ns for file in files]
    assert len(files) == 2
    run(USE + NO_NUMBA, tmp_path)
    run(WITH_NUMBA + USE, tmp_path)
    assert [file.stat().st_mtime_ns for file in kept(tmp_path)] == times


def test_processes_that_need_the_same_code_make_it_once(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "OFFSETS_LOG_CACHE": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "OFFSETS_LOG_COMPILES": "1",
    }
    watched = PLAN.replace("\nimport sys\n", f"\nimport sys\n{WATCH}", 1)
    command = [sys.executable, "-c", watched]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    made = [process.communicate()[0].count("compiled") for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert sum(made) == len(kept(tmp_path)) == 1


def test_code_is_made_by_a_process_that_has_numba_already(tmp_path: Path) -> None:
    run(WITH_NUMBA + PLAN, tmp_path)
    run(PLAN + NO_NUMBA, tmp_path)


def test_a_kernel_that_needs_what_is_not_there_is_refused_where_it_is_compiled(tmp_path: Path) -> None:
    program = """
import math
from offsets_log.columnar.jit.numba_backend import LinkError, code_of

def kernel(number):
    return math.gamma(float(number)) > 1

try:
    code_of(kernel, (None,))
except LinkError as error:
    assert str(error).startswith("entry_kernel needs "), error
else:
    raise AssertionError
"""
    run(program, tmp_path, OFFSETS_LOG_COMPILES="1")


@pytest.mark.skipif(os.getuid() != 0, reason="for the superuser any folder but such a one can be written")
def test_without_a_folder_to_keep_it_code_goes_with_the_process() -> None:
    run(PLAN, Path("/proc/none"))


def test_a_folder_that_others_may_write_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "offsets-log" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    run(PLAN, tmp_path)
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `PLAN` has run once; to be copied."""
    cache = tmp_path_factory.mktemp("planned")
    run(PLAN, cache)
    return cache


def test_what_is_not_as_it_was_kept_is_compiled_again(planned: Path, tmp_path: Path) -> None:
    shutil.copytree(planned, tmp_path, dirs_exist_ok=True)
    (file,) = kept(tmp_path)
    data = file.read_bytes()
    assert read(file) is not None
    for damaged in (b"", data[: len(data) // 2], b"?" * 99):
        file.write_bytes(damaged)
        assert read(file) is None
    run(PLAN, tmp_path)
    run(PLAN + NO_NUMBA, tmp_path)


def test_what_cannot_be_kept_is_used_all_the_same(tmp_path: Path) -> None:
    """As on a full disk."""
    no_files = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    run(no_files + PLAN, tmp_path)
    assert kept(tmp_path) == []


def test_kernels_of_a_package_in_an_archive_are_told_by_its_contents(tmp_path: Path) -> None:
    """`--py-files` of Spark: another version must not be given the kept kernels of this one."""
    stamps = []
    for number, more in enumerate(("", "", "# another version\n")):
        archive = tmp_path / str(number) / "package.zip"
        archive.parent.mkdir()
        with zipfile.ZipFile(archive, "w") as made:
            for path in sorted((ROOT / "offsets_log").rglob("*.py")):
                text = path.read_text() + (more if path.name == "staging.py" else "")
                made.writestr(str(path.relative_to(ROOT)), text)
        asked = (
            "from offsets_log.columnar.jit.sources import stamp_of as s, __file__ as f; assert '.zip' in f; "
            "print([s('offsets_log.columnar.' + m) for m in ('folds.replay', 'history.kernels', 'jit.kinds')])"
        )
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, 'package.zip'); {asked}"]
        done = subprocess.run(command, cwd=archive.parent, capture_output=True, text=True, check=True)
        stamps.append(ast.literal_eval(done.stdout))
    assert stamps[0] == stamps[1]
    changed = [before != after for before, after in zip(stamps[0], stamps[2], strict=True)]
    assert changed == [True, True, False]  # what imports the module, and what does not


@pytest.mark.parametrize(
    "make",
    [
        "making.made_here(MODULE, 'plan', cache / f'plan-{sources.stamp_of(MODULE)}')",
        "stamp = sources.stamp_of(MODULE)\nedit()\nsources.stamp_of.cache_clear()\nsources._source.cache_clear()\n"
        "making.made_here(MODULE, 'plan', cache / f'plan-{stamp}')",
        "numba_backend.code_of = lambda *of: ('entry', b'code')\n"
        "warm.import_module = lambda name: edit() or import_module(name)\nwarm.warm()",
    ],
    ids=["one", "asked under another text", "all"],
)
def test_what_is_compiled_while_a_source_is_edited_is_not_kept(make: str, tmp_path: Path) -> None:
    """Otherwise a process that has imported the text before keeps its code under the name of the next one."""
    shutil.copytree(ROOT / "offsets_log", tmp_path / "offsets_log", ignore=shutil.ignore_patterns("__pycache__"))
    program = f"""
import sys
from importlib import import_module
from pathlib import Path
sys.path.insert(0, {str(tmp_path)!r})
from offsets_log.columnar import warm
from offsets_log.columnar.jit import compiled, keeping, making, numba_backend, sources
assert compiled.__file__.startswith({str(tmp_path)!r})

MODULE, place = "offsets_log.columnar.wire.decompressed", "plan"
cache = keeping.cache_base() / "offsets-log" / "kernels"

def edit():
    with Path("{tmp_path}/offsets_log/columnar/jit/kinds.py").open("a") as source:
        source.write("# edited")

def code_of(function, kinds):
    edit()
    return "entry", b"code"

numba_backend.code_of = code_of
try:
    exec({make!r})
except sources.ChangedError as error:
    assert "edited" in str(error)
else:
    raise AssertionError
assert not [file for file in cache.iterdir() if not file.name.startswith(".")]
"""
    run(program, tmp_path / "cache", OFFSETS_LOG_COMPILES="1")


def test_all_kernels_are_found() -> None:
    """Each of them by what its annotations say that it takes."""
    found = {place_of(of.function): of for of in kernels()}
    assert len(found) > 40
    for of in found.values():
        assert len(of.kinds) == len(inspect.signature(of.function).parameters)


@pytest.mark.skipif(IS_PYTHON or IS_CHECKED, reason="plain Python takes anything")
def test_a_kernel_takes_what_it_says() -> None:
    with pytest.raises(AssertionError):
        plan(np.zeros(1, np.int64), 0, 0, np.zeros((1, 3), np.int64))


def test_a_checked_kernel_refuses_an_index_that_is_not_there(planned: Path, tmp_path: Path) -> None:
    """Its code is kept beside the unchecked one; neither is taken for the other."""
    shutil.copytree(planned, tmp_path, dirs_exist_ok=True)
    none = "\ntry:\n    dp.plan(data, 0, len(data), np.zeros((1, 0), np.int64))\nexcept IndexError as error:\n    "
    checked = f"import os\nos.environ['NUMBA_BOUNDSCHECK'] = '1'\n{PLAN}{none}"
    run(f"{checked}assert 'wire.decompressed.plan' in str(error)\nelse:\n    raise AssertionError", tmp_path)
    run(PLAN + NO_NUMBA, tmp_path)
    assert len(kept(tmp_path)) == 2
