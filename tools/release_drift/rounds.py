"""Rounds of a release's own log cleaner over the recorded cases, and ours beside them, byte for byte."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.cleaner.cases import Case, all_cases, differences, read_cases
from tools.release_drift.findings import Finding
from tools.release_drift.jars import Jars
from tools.release_drift.java import run_compiled

PROGRAM = "org.apache.kafka.storage.internals.log.CleanRounds"
PLACE = "offsets_log/kafka_releases.py"


def cleaner_drift(jars: Jars, _: Jars) -> Iterator[Finding]:
    """Yield the cases whose round ends otherwise than ours by the rules of the release, and why.

    Raises:
        NotAvailableError: there is no Java, or the program does not compile against the release.
    """
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        for name, case in all_cases().items():
            _unpack(case, folder / name)
        run_compiled(jars, PROGRAM, jars.version, str(folder))
        for name, case in read_cases(folder).items():
            outcome = case.results[jars.version]
            found = [] if "exception" not in outcome else [f"Kafka: {outcome['exception']}"]
            problems = differences(case, jars.version)
            if problems:
                yield Finding(f"cleaner case {name} ends otherwise", (*problems, *found), PLACE)


def _unpack(case: Case, folder: Path) -> None:
    before = folder / "before"
    before.mkdir(parents=True)
    (folder / "case.json").write_text(json.dumps(case.case), encoding="utf-8")
    for name, data in case.folders["before"].items():
        (before / name).write_bytes(data)
