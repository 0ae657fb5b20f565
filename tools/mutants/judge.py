"""Whether the tests of a subject notice a mutant: in a copy of the tree, never in the tree itself."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.mutants.sample import Mutant

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("subjects.toml")
NOTICED, SURVIVED, TIMED_OUT = "noticed", "survived", "timed out"
MOST_MEMORY = 8 << 30
BOUND_FACTOR, LEAST_BOUND_S = 4, 60
"""A mutant may take so many times what the tests take without one, but a minute in any case."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Modules, and the tests that are to notice what becomes of them.

    Attributes:
        tests: arguments of pytest.
        plain_python: whether kernels run as the Python that they are written in.
    """

    name: str
    modules: tuple[Path, ...]
    tests: tuple[str, ...]
    plain_python: bool = False


def subjects() -> list[Subject]:
    """The rows of the table, each with the modules that its patterns match."""
    rows = tomllib.loads(TABLE.read_text())["subject"]
    return [
        Subject(
            row["name"],
            tuple(sorted(path.relative_to(ROOT) for glob in row["modules"] for path in ROOT.glob(glob))),
            tuple(row["tests"]),
            row.get("plain_python", False),
        )
        for row in rows
    ]


class Judge:
    """A copy of the tree, in which one mutant after the other stands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def seconds(self, subject: Subject) -> float:
        """How long the tests take without a mutant. Raises RuntimeError if they do not pass."""
        begin = time.monotonic()
        status, words = self._run(subject, None)
        if status != 0:
            raise RuntimeError(f"the tests of {subject.name} do not pass without a mutant:\n{words[-3000:]}")
        return time.monotonic() - begin

    def verdict(self, subject: Subject, mutant: Mutant, seconds: float) -> str:
        """NOTICED, SURVIVED or TIMED_OUT, which a user would notice too."""
        path = self.folder / mutant.module
        text = path.read_text()
        try:
            path.write_text(mutant.code)
            status, _ = self._run(subject, max(LEAST_BOUND_S, BOUND_FACTOR * seconds))
        finally:
            path.write_text(text)
        return TIMED_OUT if status is None else NOTICED if status else SURVIVED

    def _run(self, subject: Subject, bound_s: float | None) -> tuple[int | None, str]:
        """Status and words of the tests, which begin with no example of an earlier run; None: they took too long."""
        shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {"NUMBA_DISABLE_JIT": "1"} if subject.plain_python else {}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
        child = subprocess.Popen(
            [*command, "--hypothesis-seed=0", *subject.tests],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=_bound_memory,
        )
        try:
            words, _ = child.communicate(timeout=bound_s)
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            _end(child)
        return child.returncode, words


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def _end(child: subprocess.Popen[str]) -> None:
    """End what still runs of a test run, its own children too."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def table(verdicts: Sequence[tuple[str, str]]) -> str:
    """How many mutants of each subject were noticed, from (subject, verdict)."""
    lines = [f"{'subject':<14}{'mutants':>8}{'noticed':>9}{'timed out':>11}{'survived':>10}{'score':>7}"]
    names = list(dict.fromkeys(name for name, _ in verdicts))
    for name in [*names, "all"]:
        found = [verdict for subject, verdict in verdicts if name in (subject, "all")]
        counts = [found.count(kind) for kind in (NOTICED, TIMED_OUT, SURVIVED)]
        score = 1 - counts[2] / len(found) if found else 1
        lines.append(f"{name:<14}{len(found):>8}{counts[0]:>9}{counts[1]:>11}{counts[2]:>10}{score:>7.0%}")
    return "\n".join(lines)
