"""Compare a Kafka release with all that is known here: ``make release-drift KAFKA=X.Y.Z``.

    python -m tools.release_drift X.Y.Z [--jars DIR] [--since X.Y.Z] [--steps messages,classes]

Drift goes to standard output, what is being done to standard error. Exit status: 0 nothing differs, 1 something does,
2 a step could not be run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from offsets_log.kafka_releases import version_of
from offsets_log.release_names import release_asked
from tests.coordinator.broker import NotAvailableError
from tools.release_drift.findings import Finding, read_caps, uncapped
from tools.release_drift.jars import jars_of
from tools.release_drift.steps import STEPS, Step

MOST_DETAILS = 40
OLDEST = (4, 3, 0, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps that are asked for, and return the exit status."""
    asked = _asked(arguments)
    try:
        jars = jars_of(asked.kafka, asked.jars)
        since = asked.since or known_before(asked.kafka)
        known = jars if since == asked.kafka else jars_of(since)
    except NotAvailableError as error:
        _say(f"error: {error}")
        return 2
    status = 0
    for step in asked.steps:
        _say(f"{step.name}: {step.what}; {step.takes}")
        try:
            found = uncapped(step.name, step.run(jars, known), read_caps(), tells_idle=jars.is_newest)
        except NotAvailableError as error:
            _say(f"error: {step.name}: {error}")
            status = 2
            continue
        if found:
            _print(step, found)
            status = max(status, 1)
    return status


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.release_drift", description="What a Kafka release has new.")
    parser.add_argument("kafka", help="the release, such as 4.4.0")
    parser.add_argument("--jars", type=Path, metavar="DIR", help="a folder with its jars, instead of Maven Central's")
    parser.add_argument("--since", metavar="X.Y.Z", help="the release before it, if not the newest known")
    parser.add_argument("--steps", default=",".join(STEPS), help="some of %(default)s")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.steps.split(",") if name not in STEPS]
    if unknown:
        parser.error(f"no step is called {', '.join(unknown)}; there are {', '.join(STEPS)}")
    if version_of(asked.kafka) < OLDEST:
        parser.error("releases from 4.3 on are compared: classes of earlier ones stand elsewhere")
    asked.steps = [STEPS[name] for name in asked.steps.split(",")]
    return asked


def known_before(version: str) -> str:
    """Return the newest release, with all three numbers, that the table of releases knows, up to one."""
    asked = release_asked(version)
    numbers = asked.version if asked.is_verified else version_of(asked.row.until or asked.row.name)
    return ".".join(map(str, numbers[:3]))


def _print(step: Step, found: Sequence[Finding]) -> None:
    lines = [f"== {step.name}: {len(found)}"]
    for finding in found:
        lines.append(f"* {finding.what}")
        lines += [f"      {line}" for line in finding.details[:MOST_DETAILS]]
        if len(finding.details) > MOST_DETAILS:
            lines.append(f"      and {len(finding.details) - MOST_DETAILS} more")
        if finding.place:
            lines.append(f"    -> {finding.place}")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
