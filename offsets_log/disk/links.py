"""Links in directories that lead to no file of a log: where they lead, in words."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from offsets_log.disk.folder import DirectoryName, Folder, matters
from offsets_log.disk.local import Place

NAMED = 3
"""So many links of a circle are named."""


def dead_links(path: Place, folder: Folder, names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each link that should lead to a log and does not, and one for those that lead in a circle.

    Args:
        names: what is neither a file nor a directory in the directory.
    """
    circular = [name for name in names if is_circular(path / name)]
    if circular:
        more = f" and {len(circular) - NAMED} more" if len(circular) > NAMED else ""
        yield f"{', '.join(map(folder.shown, circular[:NAMED]))}{more}: left out, these links lead in a circle"
    for name in names:
        what = "file" if matters(name) else "directory" if DirectoryName.parse(name).is_offsets else None
        if what is not None and name not in circular:
            yield f"{folder.shown(name)} is left out: it leads to no {what}"


def is_circular(path: Place) -> bool:
    """Return whether a link leads to itself, perhaps by way of others."""
    try:
        return isinstance(path, Path) and not path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP


def leads_up(path: Place) -> bool:
    """Return whether a path below a directory is a link to that directory, or to one above it."""
    if not isinstance(path, Path) or not path.is_symlink():
        return False
    real, above = (Path(os.path.realpath(one)) for one in (path, path.parent))
    return real == above or real in above.parents
