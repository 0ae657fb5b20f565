"""Recognise files of brokers that speak Kafka's protocol and keep their logs in another form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from offsets_log.disk.stored import StorePath
from offsets_log.errors import InputError

_REDPANDA = re.compile(r"[0-9]+-[0-9]+-v[0-9]+\.log")
"""``BASE-TERM-vVERSION.log``, in ``kafka/__consumer_offsets/PARTITION_REVISION/``."""
MAX_DEPTH = 4
MAX_LOOKED_AT = 10_000


def refuse_named(paths: Iterable[object]) -> None:
    """Refuse files that are named as another broker's segments.

    Raises:
        InputError: one of them is.
    """
    for path in paths:
        if not isinstance(path, StorePath) and _REDPANDA.fullmatch(Path(str(path)).name):
            raise redpanda_error(str(path))


def find_in(paths: Iterable[object]) -> str | None:
    """Return the first such file in local directories; None if there is none in those looked at."""
    return next(
        (str(file) for path in paths if not isinstance(path, StorePath) for file in _files(Path(str(path)))), None
    )


def redpanda_error(file: str) -> InputError:
    """Return the error that says whose file it is, and what to do."""
    return InputError(
        "this is a segment of Redpanda by its name (BASE-TERM-v1.log): its batches do not lie on disk as Kafka's "
        "do, and cannot be read here. Ask the cluster while it runs: offsets-log pull --from-admin writes what it "
        "answers about groups and their offsets",
        file=file,
    )


def _files(directory: Path) -> Iterator[Path]:
    for depth in range(MAX_DEPTH + 1):
        try:
            found = islice(directory.glob("*/" * depth + "*-v*.log"), MAX_LOOKED_AT)
            yield from (file for file in found if _REDPANDA.fullmatch(file.name))
        except (OSError, ValueError):
            return
