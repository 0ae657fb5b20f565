"""Writes `docs/commands.md`, the help of every command: ``python -m tools.cli_reference`` or ``make docs``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from offsets_log_cli.main import COMMANDS, main

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
WIDTH = 100
PREFACE = """\
# Commands

What `offsets-log --help` and `offsets-log COMMAND --help` say. `make docs` writes this file; a test holds it true.
"""


def reference() -> str:
    """The whole page."""
    return PREFACE + "".join(f"\n## {title}\n\n```text\n{text}\n```\n" for title, text in _helps())


def _helps() -> Iterator[tuple[str, str]]:
    top = click.Context(main, info_name="offsets-log", terminal_width=WIDTH, **main.context_settings)
    yield "offsets-log", top.get_help()
    for name in COMMANDS:
        command = main.get_command(top, name)
        assert command is not None
        yield name, click.Context(command, parent=top, info_name=name).get_help()


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
