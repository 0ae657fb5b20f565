"""The kernels with every index checked by numba, and as the plain Python that they are written in."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from offsets_log.columnar.jit.modes import IS_CHECKED, IS_PYTHON
from tests.conftest import KEPT_MEMORY

EQUAL = "tests/columnar/test_equal_engines.py"
WRITERS = "tests/columnar/test_writers.py"
LEDGER = "tests/columnar/test_ledger.py"
LINES = "tests/columnar/test_lines.py"
GROUP_RECORDS = "tests/columnar/test_group_records.py"
HISTORY = "tests/columnar/test_history.py"
CHECKS = "tests/columnar/test_checks.py"
CLEANER = "tests/cleaner/test_bulk.py"
OLD_CLEANER = "tests/cleaner/test_bulk_old.py"
SAMPLES = "tests/report/test_samples.py"
PLAIN_PYTHON = "NUMBA_DISABLE_JIT"
MODES = {
    "NUMBA_BOUNDSCHECK": (EQUAL, LEDGER, "-k", "generated or hostile or kafka-4.3-mixed"),
    PLAIN_PYTHON: (
        EQUAL,
        WRITERS,
        LEDGER,
        LINES,
        GROUP_RECORDS,
        HISTORY,
        CHECKS,
        CLEANER,
        OLD_CLEANER,
        SAMPLES,
        "-k",
        "generated or in_a_row or width or used",
    ),
}


@pytest.mark.skipif(IS_CHECKED or IS_PYTHON, reason="in a mode already")
@pytest.mark.parametrize("mode", MODES)
def test_both_engines_are_equal(mode: str) -> None:
    """Checked kernels are kept as others are.

    Random logs are as many as elsewhere where numba checks indexes: of staging and replay, which all other kernels
    go through. As plain Python, kernels are slow, and fewer logs show that they mean there what they mean as machine
    code; NumPy checks the indexes of all of them.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *MODES[mode]]
    environment = {**os.environ, **KEPT_MEMORY, mode: "1"}
    if mode == PLAIN_PYTHON:
        environment["OFFSETS_LOG_EXAMPLES"] = environment.get("OFFSETS_LOG_EXAMPLES") or "0.2"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    assert " passed" in done.stdout
