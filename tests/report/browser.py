"""A real browser without a window: Chromium, as Debian has it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ERRORS = re.compile(r"^.*CONSOLE.*$", re.MULTILINE)


def opened(page: Path, fragment: str = "", *flags: str) -> str:
    """The page's elements after its script has run, as HTML. What the browser complains of on its console fails."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    profile = page.parent / f"{page.name}.profile"
    done = subprocess.run(
        [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--enable-logging=stderr", f"--user-data-dir={profile}", "--virtual-time-budget=10000", *flags,
            "--dump-dom", f"file://{page}{fragment}",
        ],
        capture_output=True,
        check=False,
        timeout=300,
    )  # fmt: skip
    shutil.rmtree(profile, ignore_errors=True)
    complaints = ERRORS.findall(done.stderr.decode(errors="replace"))
    assert not complaints, complaints
    return done.stdout.decode()
