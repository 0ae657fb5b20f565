"""The files of a plan, in a directory."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from offsets_log.restore.rows import Files

DOUBTS_SHOWN = 10
"""So many doubts of a plan are said; README.txt has all."""
SCRIPT_SUFFIX = ".sh"
PIECES = 1 << 12
"""How many pieces of a text are written at a time."""


def write_files(directory: Path, files: Files) -> None:
    """Write files; it is an error if one would replace another, also where names differ in case only."""
    folders = {directory}
    for name, pieces in files:
        path = directory / name
        if path.parent not in folders:
            path.parent.mkdir(parents=True, exist_ok=True)
            folders.add(path.parent)
        with path.open("xb") as file:
            texts = iter(pieces)
            while some := list(islice(texts, PIECES)):
                file.write("".join(some).encode())
        if path.suffix == SCRIPT_SUFFIX:
            path.chmod(0o755)
