"""A fresh recording of a release's broker at work, and whether what is read of its log is what it answered.

`programs/Record.java` has clients of every kind of group at work and asks the broker at known ends of its log; then the
broker stops, starts, and is asked again. The tests of recordings compare the same.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from offsets_log.replay.profile import Profile
from offsets_log.replay.releases import release_named
from tests.coordinator.broker import Broker
from tests.replay.test_compact_recordings import answered
from tests.replay.test_rebuild_recordings import differences, rebuild
from tools.release_drift.findings import Finding
from tools.release_drift.jars import Jars
from tools.release_drift.java import run_java

PARTITIONS = 4
"""So many has the offsets topic, as the program knows."""


def recording_drift(jars: Jars, _: Jars) -> Iterator[Finding]:
    """Yield the steps after which offsets or groups of the log are not those that the broker answered.

    Raises:
        NotAvailableError: there is no Java, or the program does not compile against the release or does not end well.
    """
    with tempfile.TemporaryDirectory() as work:
        broker = Broker(jars.folder, Path(work), PARTITIONS)
        answers = [_answers(jars, broker, what) for what in ("work", "ask")]
        for answer in answers:
            yield from differing_steps(broker.data, release_named(jars.version).profile, answer)


def differing_steps(data: Path, profile: Profile, answer: dict[str, Any]) -> Iterator[Finding]:
    """Yield the steps of a recording after which the log, cut where it then ended, says something else."""
    for step in answer["steps"]:
        document = rebuild(data, profile, answer["topics"], step["end_offsets"])
        served, theirs = answered(document), answered(step)
        details = [f"only served here: {row}" for row in sorted(served - theirs, key=repr)]
        details += [f"only the broker's: {row}" for row in sorted(theirs - served, key=repr)]
        details += differences(document, step)
        if details:
            yield Finding(f"recorded step: {step['what']}", tuple(details))


def _answers(jars: Jars, broker: Broker, what: str) -> dict[str, Any]:
    told = broker.work / f"{what}.json"
    with broker.running():
        run_java(jars, "Record", str(broker.port), str(told), what)
    answers: dict[str, Any] = json.loads(told.read_bytes())
    return answers
