"""The kernels with every index checked by numba, and as the plain Python that they are written in."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from offsets_log.columnar.jit.compiled import IS_CHECKED, IS_PYTHON

EQUAL = "tests/columnar/test_equal_engines.py"
WRITERS = "tests/columnar/test_writers.py"
LINES = "tests/columnar/test_lines.py"
GROUP_RECORDS = "tests/columnar/test_group_records.py"
HISTORY = "tests/columnar/test_history.py"
CHECKS = "tests/columnar/test_checks.py"
CLEANER = "tests/cleaner/test_bulk.py"
SAMPLES = "tests/report/test_samples.py"
MODES = {
    "NUMBA_BOUNDSCHECK": (
        EQUAL,
        WRITERS,
        LINES,
        GROUP_RECORDS,
        HISTORY,
        CHECKS,
        CLEANER,
        SAMPLES,
        "-k",
        "generated or hostile or kafka-4.3-mixed or width or dictionar",
    ),
    "NUMBA_DISABLE_JIT": (
        EQUAL,
        WRITERS,
        LINES,
        GROUP_RECORDS,
        HISTORY,
        CHECKS,
        CLEANER,
        SAMPLES,
        "-k",
        "generated or in_a_row or width or used",
    ),
}


@pytest.mark.skipif(IS_CHECKED or IS_PYTHON, reason="in a mode already")
@pytest.mark.parametrize("mode", MODES)
def test_both_engines_are_equal(mode: str) -> None:
    """Checked kernels are compiled for this run alone, so as fast as they can be."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *MODES[mode]]
    done = subprocess.run(
        command, env={**os.environ, "NUMBA_OPT": "0", mode: "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
