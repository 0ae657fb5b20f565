"""Sessions in the README and in `docs/`: each command run, and its output put below it.

A session is a block of ``console``; its lines that begin with ``$`` are commands, the others what they print. The
sessions of a page run one after the other in one folder, which sees `samples/`. ``python -m tools.sessions`` (or
``make docs``) writes the outputs; a test holds them true.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
SECONDS = 120


def pages() -> list[Path]:
    """The README and all pages of the documentation that are written by hand."""
    return [
        ROOT / "README.md",
        *sorted(page for page in (ROOT / "docs").rglob("*.md") if BLOCK.search(page.read_text())),
    ]


def name_of(page: Path) -> str:
    """``README.md``, ``docs/runbooks/dead-broker.md``."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """The texts of a page's blocks of one language."""
    return [
        block["text"] for block in BLOCK.finditer(page.read_text(encoding="utf-8")) if block["language"] == language
    ]


def sessions(page: Path) -> Iterator[tuple[str, str]]:
    """Each command of a page, and what the page says that it prints."""
    for block in blocks(page, "console"):
        for found in COMMAND.finditer(block):
            yield found["command"], found["output"]


def see_samples(folder: Path) -> None:
    """Have a folder see the samples, as a clone's top folder does."""
    (folder / "samples").symlink_to(ROOT / "samples")


def run(command: str, folder: Path, given: str = "") -> str:
    """What a command prints there of what it is given; a command that fails is an error.

    This interpreter's scripts are found first.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode in ACCEPTED, f"{command}\n{done.stderr}"
    return done.stdout


ACCEPTED = (0, 3)
"""Exit statuses of a session: all was well, or what was found is told."""


def written_anew(text: str, answer: Callable[[str], str]) -> str:
    """A page with what its commands print now."""

    def session(found: re.Match[str]) -> str:
        command = found["command"]
        return f"$ {command}\n{answer(command)}"

    def block(found: re.Match[str]) -> str:
        if found["language"] != "console":
            return found[0]
        return "```console\n" + COMMAND.sub(session, found["text"]) + "```"

    return BLOCK.sub(block, text)


def main() -> None:
    """Write the outputs of all pages, or of those that are named: ``python -m tools.sessions README.md``."""
    named = {Path(name).resolve() for name in sys.argv[1:]}
    for page in named or pages():
        with tempfile.TemporaryDirectory() as folder:
            see_samples(Path(folder))
            text = page.read_text(encoding="utf-8")
            page.write_text(written_anew(text, partial(run, folder=Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
