"""The tests that start real brokers and Kafka's own tools, with a release's jars in place of the usual ones."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.coordinator.broker import NotAvailableError
from tools.release_drift.findings import Finding
from tools.release_drift.jars import Jars
from tools.release_drift.tables import ROOT

LAST_LINES = 12

BROKERS = (
    "tests/coordinator/test_real_broker.py",
    "tests/cleaner/test_real_broker.py",
    "tests/repairing/test_real_broker.py",
    "tests/repairing/test_hostile.py",
    "tests/pulling/test_live.py",
    "tests/restore/test_live.py",
    "tests/restore/test_share_groups.py",
)
"""What brokers make of logs that were written, cleaned and repaired here, and what is committed and copied live."""
TOOLS = ("tests/serving/test_tools.py", "tests/serving/test_records.py")
"""What Kafka's tools and clients say of a copy that is served."""


def failing(tests: Sequence[str]) -> Callable[[Jars, Jars], Iterator[Finding]]:
    """Return a step that yields the tests that do not pass with a release's jars.

    Raises:
        NotAvailableError: a test was skipped, or none was run: the message says why.
    """

    def run(jars: Jars, _: Jars) -> Iterator[Finding]:
        with tempfile.TemporaryDirectory() as work:
            told = Path(work) / "tests.xml"
            how = ("-q", "-n", "0", "-o", "junit_family=xunit1", f"--junitxml={told}")
            command = (sys.executable, "-m", "pytest", *how, *tests)
            names = {"OFFSETS_LOG_KAFKA_VERSION": jars.version, "OFFSETS_LOG_KAFKA_DIR": str(jars.folder)}
            ran = subprocess.run(command, cwd=ROOT, env=os.environ | names, capture_output=True, text=True, check=False)
            if not told.exists():
                raise NotAvailableError(f"pytest did not run: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
            cases = list(ElementTree.parse(told).iter("testcase"))
        for case in cases:
            name = f"{case.get('classname')}.{case.get('name')}"
            if (skipped := case.find("skipped")) is not None:
                raise NotAvailableError(f"{name} was skipped: {skipped.get('message')}")
            failure = case.find("failure")
            failure = case.find("error") if failure is None else failure
            if failure is not None:
                yield Finding(f"{name} fails", tuple((failure.text or "").splitlines()[-LAST_LINES:]))

    return run
