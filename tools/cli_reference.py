"""Writes `docs/commands.md`, the help of every command: ``python -m tools.cli_reference`` or ``make docs``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from offsets_log_cli.help import found_at
from offsets_log_cli.help_page import whole_help
from offsets_log_cli.main import COMMANDS, main
from offsets_log_cli.watch import WATCHED

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
WIDTH = 100
PREFACE = """\
# Commands

What `offsets-log --help` and `offsets-log help COMMAND` say; `offsets-log COMMAND --help` is shorter. `make docs`
writes this file, and a test compares them.
"""
PAGES = (*COMMANDS, *(f"watch {name}" for name in WATCHED), "reading")


def reference() -> str:
    """The whole page."""
    return PREFACE + "".join(f"\n## {title}\n\n```text\n{text}\n```\n" for title, text in _helps())


def _helps() -> Iterator[tuple[str, str]]:
    top = click.Context(main, info_name="offsets-log", terminal_width=WIDTH, **main.context_settings)
    yield "offsets-log", top.get_help().rstrip()
    for page in PAGES:
        found = found_at(page.split(), top)
        yield page, whole_help(found.command, found)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
