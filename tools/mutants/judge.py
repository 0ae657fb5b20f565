"""Whether the tests of a subject notice a mutant: in a copy of the tree, never in the tree itself."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tools.mutants.forks import (
    LONGEST_S,
    NOTICED,
    SURVIVED,
    TIMED_OUT,
    UNJUDGED,
    Found,
    bound_of,
    bound_processor,
    wait_for,
)
from tools.mutants.subjects import ROOT, Subject

if TYPE_CHECKING:
    from tools.mutants.sample import Mutant

PYTEST = ("-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-p", "tools.mutants.forks", "--hypothesis-seed=0")
MOST_MEMORY = 8 << 30
EQUIVALENT = "equivalent"
"""Verdict on a survivor that `equivalent` gives a reason for."""


class Judge:
    """A copy of the tree, in which one mutant after the other stands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = folder / "pytest.txt"
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def verdicts(self, subject: Subject, mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, Found]]:
        """What the tests say of each mutant. Raises RuntimeError if they do not pass without one."""
        asked = self.folder / "mutants.json"
        asked.write_text(json.dumps([(str(mutant.module), mutant.line, mutant.code) for mutant in mutants]))
        read, write = os.pipe()
        options = ("--mutants", str(asked), "--verdicts", f"/dev/fd/{write}")
        child = self._start(subject, options, keep=(write,))
        os.close(write)
        later = []
        try:
            with os.fdopen(read, encoding="utf-8") as lines:
                found = (Found(**json.loads(line)) for line in lines)
                clean = next(found, Found())
                if clean.verdict != SURVIVED:
                    why = clean.why or self._words()
                    raise RuntimeError(f"{subject.name} fails without a mutant: {clean.failed} {why}")
                for mutant in mutants:
                    one = next(found, None)
                    if one is None:
                        raise RuntimeError(f"the tests of {subject.name} ended early: {self._words()}")
                    if one.verdict == UNJUDGED:
                        later.append(mutant)
                    else:
                        yield mutant, one
        finally:
            wait_for(child.pid, 1)
        for mutant in later:
            yield mutant, self._alone(subject, mutant, sum(clean.seconds.values()))

    def _alone(self, subject: Subject, mutant: Mutant, seconds: float) -> Found:
        """What the tests say in a process that finds the mutant in its file."""
        path = self.folder / mutant.module
        text = path.read_text()
        try:
            path.write_text(mutant.code)
            shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)
            bound_s = bound_of(seconds)
            status = wait_for(self._start(subject, bound_s=bound_s).pid, bound_s)
        finally:
            path.write_text(text)
        if status is None or status < 0:
            return Found(TIMED_OUT)
        return Found(NOTICED, why=self._words()) if status else Found(SURVIVED)

    def _start(
        self, subject: Subject, options: Sequence[str] = (), *, keep: Sequence[int] = (), bound_s: float = LONGEST_S
    ) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.folder}{os.pathsep}{self.folder / 'cli'}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        environment |= {"NUMBA_DISABLE_JIT": "1", "OFFSETS_LOG_EXAMPLES": "0.2"} if subject.plain_python else {}
        command = [sys.executable, "-m", "pytest", *PYTEST]
        with self.words.open("wb") as words:
            return subprocess.Popen(
                [*command, *options, *subject.tests],
                cwd=self.folder,
                env=environment,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=keep,
                preexec_fn=partial(_bound, bound_s),
            )

    def _words(self) -> str:
        return self.words.read_text(errors="replace")[-600:]


def _bound(bound_s: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    bound_processor(bound_s)


def table(verdicts: Sequence[tuple[str, str]]) -> str:
    """How many mutants of each subject were noticed, from (subject, verdict); the score of all, and of the visible."""
    columns = (NOTICED, TIMED_OUT, EQUIVALENT, SURVIVED)
    lines = [f"{'subject':<20}{'mutants':>8}" + "".join(f"{name:>11}" for name in (*columns, "score", "of visible"))]
    names = list(dict.fromkeys(name for name, _ in verdicts))
    for name in [*names, "all"]:
        found = [verdict for subject, verdict in verdicts if name in (subject, "all")]
        counts = [found.count(kind) for kind in columns]
        _, _, equivalent, survived = counts
        seen = [_share(survived + equivalent, len(found)), _share(survived, len(found) - equivalent)]
        lines.append(
            f"{name:<20}{len(found):>8}"
            + "".join(f"{count:>11}" for count in counts)
            + "".join(f"{s:>11.0%}" for s in seen)
        )
    return "\n".join(lines)


def _share(missed: int, count: int) -> float:
    return 1 - missed / count if count else 1
