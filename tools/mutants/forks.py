"""A plugin of pytest that judges mutants in forks of a process that has collected the tests, each in one of its own.

    pytest -p tools.mutants.forks --mutants FILE --verdicts FILE

The first fork runs all tests without a mutant and notes which of them runs which line. A mutant is shown to the tests
that run its line, the quick ones first; if there are none, it survives. A mutant that an import meets, or the
collection, is left to a process of its own: its verdict is `UNJUDGED`.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings

from tools.mutants.swap import put_in, swaps

NOTICED, SURVIVED, TIMED_OUT, UNJUDGED = "noticed", "survived", "timed out", "unjudged"
BOUND_FACTOR, LEAST_BOUND_S = 3, 10
"""A mutant may take so many times the processor's time that the tests take without one, but so much in any case."""
WAIT_FACTOR = 20
"""And so many times that by the clock, for the machine has other work."""
LONGEST_S = 3600
"""What tests may take without a mutant."""

Lines = dict[str, dict[int, list[str]]]
"""Module → line → tests."""


@dataclass(slots=True)
class Found:
    """What tests said.

    Attributes:
        failed: the test that failed first, "" if none did.
        why: the end of its words.
        seconds: of the processor, of each test.
        lines: that each test ran.
    """

    verdict: str = UNJUDGED
    failed: str = ""
    why: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    lines: Lines = field(default_factory=dict)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", type=Path, help="a JSON file: [module, line, its code] of each mutant")
    parser.addoption("--verdicts", type=Path, help="a JSON file that gets a line for each, the first for none")


def pytest_configure(config: pytest.Config) -> None:
    settings.register_profile("mutants", deadline=None, suppress_health_check=list(HealthCheck))
    settings.load_profile("mutants")  # a test that is slow on a busy machine notices nothing
    if config.getoption("mutants"):
        config.pluginmanager.register(_Forks(config))


class _Forks:
    """Takes the place of running the tests."""

    def __init__(self, config: pytest.Config) -> None:
        self.mutants: list[tuple[str, int, str]] = json.loads(config.getoption("mutants").read_text())
        self.verdicts: Path = config.getoption("verdicts")
        self.found = Found()
        self.imports = _coverage([module for module, _, _ in self.mutants])
        self.imports.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.found.failed:
            self.found.failed, self.found.why = report.nodeid, report.longreprtext[-600:]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.imports.stop()
        imported = _lines(self.imports)
        factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        self.answers = factory.mktemp("answers")
        clean = self._forked(lambda: self._noted(session), LONGEST_S)
        with self.verdicts.open("w") as target:
            print(json.dumps(asdict(replace(clean, lines={}))), file=target, flush=True)
            if clean.verdict != SURVIVED:
                return True
            for module, line, code in self.mutants:
                found = self._judged(session, clean, imported, (module, line, code))
                print(json.dumps(asdict(found)), file=target, flush=True)
        return True

    def _judged(
        self,
        session: pytest.Session,
        clean: Found,
        imported: dict[str, dict[int, list[str]]],
        mutant: tuple[str, int, str],
    ) -> Found:
        module, line, code = mutant
        text = Path(module).read_text()
        try:
            pairs = swaps(text, code, Path(module).absolute())
        except ValueError:
            return Found()
        span = _statement(text, line)
        tests = clean.lines.get(module, {})
        near = {test for number in span for test in tests.get(number, ())}
        items = sorted(
            (item for item in session.items if item.nodeid in near),
            key=lambda item: round(clean.seconds[item.nodeid], 1),
        )
        seconds = {item.nodeid: clean.seconds[item.nodeid] for item in items}
        work = partial(self._run, session, items, lambda: put_in(pairs), seconds)
        found = self._forked(work, bound_of(sum(seconds.values())))
        if found.verdict == SURVIVED and any(number in imported.get(module, {}) for number in span):
            return Found()
        if not near:
            found.why = found.why or "no test runs the line"
        return found

    def _run(
        self,
        session: pytest.Session,
        items: Sequence[pytest.Item],
        begin: Callable[[], None],
        seconds: Mapping[str, float] = {},
    ) -> Found:
        """What tests say, each within the bound of the seconds that it takes without a mutant, if they are known."""
        try:
            begin()
        except ValueError:
            return Found()
        for item, following in zip_longest(items, items[1:]):
            began = time.process_time()
            if item.nodeid in seconds:
                bound_processor(began + bound_of(seconds[item.nodeid]), resource.getrlimit(resource.RLIMIT_CPU)[1])
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self.found.seconds[item.nodeid] = time.process_time() - began
            if self.found.failed:
                self.found.verdict = NOTICED
                return self.found
        self.found.verdict = SURVIVED
        return self.found

    def _noted(self, session: pytest.Session) -> Found:
        """All tests without a mutant, with what they took and the lines that they ran."""
        coverage = _coverage([module for module, _, _ in self.mutants])
        coverage.start()

        class Switch:
            @pytest.hookimpl(tryfirst=True)
            def pytest_runtest_protocol(self, item: pytest.Item) -> None:
                coverage.switch_context(item.nodeid)

        session.config.pluginmanager.register(Switch())
        found = self._run(session, session.items, lambda: None)
        coverage.stop()
        found.lines = _lines(coverage)
        return found

    def _forked(self, work: Callable[[], Found], bound_s: float) -> Found:
        """What the work found in a fork; TIMED_OUT if it took too long or died."""
        shutil.rmtree(".hypothesis", ignore_errors=True)
        answer = self.answers / "found.json"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            try:
                os.setpgid(0, 0)
                bound_processor(bound_s)
                answer.write_text(json.dumps(asdict(work())))
            except BaseException:  # noqa: BLE001 - nothing may come back from here
                traceback.print_exc(file=sys.__stderr__)
            finally:
                os._exit(0)
        wait_for(child, bound_s)
        return _read(answer)


def bound_processor(bound_s: float, most_s: int | None = None) -> None:
    """Have this process end after so many seconds of the processor; the bound may be set again up to a second one."""
    most_s = int(bound_s) + 1 if most_s is None else most_s
    resource.setrlimit(resource.RLIMIT_CPU, (min(int(bound_s), most_s), most_s))


def wait_for(child: int, bound_s: float) -> int | None:
    """Status of a leader of processes; None if it takes too long. None of them is there afterwards."""
    end, status = time.monotonic() + WAIT_FACTOR * bound_s, None
    while status is None and time.monotonic() < end:
        time.sleep(0.02)
        done, ended = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(ended) if done else None
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return status


def bound_of(seconds: float) -> float:
    """Seconds of the processor for a mutant whose tests take so many without one."""
    return max(LEAST_BOUND_S, BOUND_FACTOR * seconds)


def _read(answer: Path) -> Found:
    try:
        values: dict[str, Any] = json.loads(answer.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return Found(TIMED_OUT)
    values["lines"] = {path: {int(line): tests for line, tests in of.items()} for path, of in values["lines"].items()}
    return Found(**values)


def _coverage(modules: Sequence[str]) -> Coverage:
    coverage = Coverage(data_file=None, config_file=False, include=sorted(set(modules)))
    coverage.set_option("run:disable_warnings", ["no-data-collected"])  # where no import, or no test, meets them
    return coverage


def _lines(coverage: Coverage) -> Lines:
    data, here = coverage.get_data(), Path.cwd()
    return {str(Path(path).relative_to(here)): data.contexts_by_lineno(path) for path in data.measured_files()}


def _statement(text: str, line: int) -> range:
    """Lines of the innermost statement that a line belongs to; of one that has others in it, those before them."""
    spans = [_own_lines(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    return min((span for span in spans if line in span), key=len, default=range(line, line + 1))


def _own_lines(node: ast.stmt) -> range:
    inner = [child.lineno for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]
    end = min(inner, default=(node.end_lineno or node.lineno) + 1)
    return range(node.lineno, max(end, node.lineno + 1))
