"""Small Java programs, run with the jars of a release."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.coordinator.broker import NotAvailableError
from tools.release_drift.jars import Jars

PROGRAMS = Path(__file__).with_name("programs")
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=OFF")
RUN_SECONDS = 1800


def run_java(jars: Jars, program: str, *arguments: str, stdin: str = "") -> str:
    """Compile a program of the folder ``programs`` against the release, run it, and return what it prints.

    Raises:
        NotAvailableError: there is no Java, or the program does not compile or end well: the message says why.
    """
    source = str(PROGRAMS / f"{program}.java")
    return run_tool("java", *QUICK, "-Xmx1g", "-cp", f"{jars.folder}/*", source, *arguments, stdin=stdin)


def run_compiled(jars: Jars, program: str, *arguments: str) -> str:
    """The same for a program in a package of Kafka's, whose classes must be beside its own. Raises as `run_java`."""
    with tempfile.TemporaryDirectory() as classes:
        source = str(PROGRAMS / f"{program.rpartition('.')[2]}.java")
        run_tool("javac", "-nowarn", "-cp", f"{jars.folder}/*", "-d", classes, source)
        path = f"{classes}{os.pathsep}{jars.folder}/*"
        return run_tool("java", *QUICK, "-Xmx1g", "-cp", path, program, *arguments)


def run_tool(tool: str, *arguments: str, stdin: str = "") -> str:
    """Run one of the JDK's tools and return what it prints. Raises as `run_java`."""
    if shutil.which(tool) is None:
        raise NotAvailableError(f"there is no {tool}: install a JDK (17 or newer)")
    ran = subprocess.run(
        (tool, *arguments), input=stdin.encode(), capture_output=True, timeout=RUN_SECONDS, check=False
    )
    if ran.returncode:
        said = (ran.stderr or ran.stdout).decode(errors="replace").strip()
        raise NotAvailableError(f"{tool} {_last(arguments)} failed: {said}")
    return ran.stdout.decode()


def _last(arguments: Sequence[str]) -> str:
    return next((Path(word).name for word in arguments if word.endswith(".java")), "")


@cache
def facts_of(jars: Jars) -> dict[str, Any]:
    """Return what ``Facts.java`` prints: enums and settings of a release."""
    facts: dict[str, Any] = json.loads(run_java(jars, "Facts"))
    return facts
