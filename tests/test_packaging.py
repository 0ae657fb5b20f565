"""The wheel, made from the source distribution, works in an environment of its own: with the lowest versions that
`pyproject.toml` allows, and without the extras, which it names where they are needed. All other tests run with the
newest versions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from offsets_log.columnar import warm
from offsets_log.columnar.jit.sources import common_stamp_of, place_of
from offsets_log.columnar.needs import WITH
from offsets_log.columnar.warm import kernels
from tools.shipped_kernels import FOLDER, ship

ROOT = Path(__file__).parent.parent
SAMPLE = str(ROOT / "samples" / "kafka-4.3-mixed" / "log")
PROGRAM = "from offsets_log_cli.main import run; run()"
IN_BULK = f"""
from offsets_log.columnar import large
from offsets_log.columnar.jit import making
large.BULK_FROM_BYTES = large.PLAIN_BYTES_PER_S = 0
making.start_rest = lambda: None
{PROGRAM}
"""
HAS_COMMON = common_stamp_of(warm.__name__) is not None
PARTS = re.compile(r"<(?:style|script)>.*?</(?:style|script)>", re.DOTALL)


def lowest() -> list[str]:
    """Each dependency at its lowest version, as pip takes it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = [dependency.split(",")[0].split(">=") for dependency in project["dependencies"]]
    return [f"{name}=={version}" + ".0" * (2 - version.count(".")) for name, version in bounds]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both distributions, the wheel made from the other's contents, with the kernels of `rebalances`."""
    folder, unpacked = (tmp_path_factory.mktemp(name) for name in ("made", "unpacked"))
    build = [sys.executable, "-m", "build", "--outdir", folder]
    subprocess.run([*build, "--sdist", ROOT], check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as opened:
        opened.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    if HAS_COMMON:
        needed = ("choose.", *WITH["choose.choice.choose"])
        some = (one for one in kernels() if place_of(one.function).startswith(needed))
        ship(some, source / FOLDER.relative_to(ROOT))
    subprocess.run([*build, "--wheel", source], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def python(made: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the environment that has the wheel."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the lowest versions are of the lowest Python")
    folder = tmp_path_factory.mktemp("lowest")
    venv.create(folder, with_pip=False)
    made_python = str(folder / "bin" / "python")
    (wheel,) = made.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", made_python, "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, str(wheel), *lowest()], check=True)
    return made_python


def run(
    python: str, *arguments: str, folder: Path, program: str = PROGRAM, **more: str
) -> subprocess.CompletedProcess[str]:
    """The command line under an interpreter, far from the sources; what it imports is compiled once."""
    command = [python, "-c", program, *arguments]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | more
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize(
    "arguments", [("compact", SAMPLE), ("check", SAMPLE), ("explain",)], ids=lambda words: words[0]
)
def test_the_wheel_with_the_lowest_versions_answers_as_the_newest(
    arguments: tuple[str, ...], python: str, tmp_path: Path
) -> None:
    answers = []
    for one in (sys.executable, python):
        done = run(one, *arguments, "-o", "jsonl", folder=tmp_path, program=IN_BULK)
        answers.append((done.returncode, done.stdout))
    assert answers[0] == answers[1]
    assert answers[0][0] in (0, 3)
    assert answers[0][1]


def test_the_report_of_the_wheel_has_its_script_and_style(python: str, tmp_path: Path) -> None:
    """Kernels are plain Python here: other tests compile them."""
    for one, name in ((sys.executable, "here.html"), (python, "there.html")):
        assert run(one, "report", SAMPLE, "--to", name, folder=tmp_path, NUMBA_DISABLE_JIT="1").returncode == 0
    here, there = ((tmp_path / name).read_text(encoding="utf-8") for name in ("here.html", "there.html"))
    assert PARTS.findall(here) == PARTS.findall(there)
    assert len(PARTS.findall(here)) >= 2


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("restore", "plan.json", "--bootstrap-server", "localhost:1"), "offsets-log[restore]"),
    ],
    ids=("restore",),
)
def test_what_needs_an_extra_names_it(arguments: tuple[str, ...], extra: str, python: str, tmp_path: Path) -> None:
    assert run(python, "rescue", SAMPLE, "--to", "rescued", folder=tmp_path).returncode == 0
    (tmp_path / "rescued" / "plan.json").rename(tmp_path / "plan.json")
    done = run(python, *arguments, folder=tmp_path)
    assert done.returncode in (1, 2)
    assert f"pip install '{extra}'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_names_what_reads_large_logs(python: str, tmp_path: Path) -> None:
    said = run(python, "--version", folder=tmp_path).stdout
    numba = next(name for name in lowest() if name.startswith("numba"))
    assert numba.replace("==", " ") in said
    assert "pyarrow 17.0.0" in said


@pytest.mark.skipif(not HAS_COMMON, reason="kernels of this processor are for no others")
def test_kernels_that_the_wheel_brings_are_not_compiled(python: str, tmp_path: Path) -> None:
    """Whatever version of numba has compiled them."""
    words = ("rebalances", SAMPLE, "-o", "jsonl")
    here = run(sys.executable, *words, folder=tmp_path, program=IN_BULK)
    there = run(python, *words, folder=tmp_path, program=IN_BULK, OFFSETS_LOG_CACHE=str(tmp_path))
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)
    assert there.stdout
    assert list((tmp_path / "offsets-log" / "kernels").iterdir()) == []


def test_the_wheel_brings_only_packages_of_its_own_name(made: Path) -> None:
    (wheel,) = made.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        tops = {name.partition("/")[0] for name in opened.namelist()}
        assert "offsets_log/py.typed" in opened.namelist()
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "offsets_log",
        "offsets_log_cli",
        "pyspark_offsets_log",
        "spark_jobs",
    }


def test_the_source_distribution_can_be_tested(made: Path) -> None:
    (archive,) = made.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    needed = {
        name
        for name in tracked
        if name.startswith(("offsets_log/", "cli/", "spark_jobs/", "pyspark_offsets_log/", "tests/", "samples/"))
    }
    assert needed - names == set()
