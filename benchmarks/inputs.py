"""Generated logs, kept in a work directory from one run to the next."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.data_directory import make_data_directory
from benchmarks.generate import TRUTH, Options, generate


@dataclass(frozen=True, slots=True)
class Log:
    """A data directory and what is in it."""

    folder: Path
    truth: dict[str, Any]

    @property
    def segments(self) -> list[Path]:
        """Of its one partition, in log order."""
        return sorted(self.folder.glob("*/*.log"))

    @property
    def options(self) -> Options:
        """What it was written with."""
        return Options(**self.truth["options"])


def generated_log(work: Path, codec: str, size_bytes: int, *, groups: int = 500, mix: str = "classic") -> Log:
    """The log of that codec, mix and so many uncompressed bytes; written if it is not there as it would be now."""
    options = Options(codec=codec, bytes=size_bytes, groups=groups, mix=mix)
    more = [*([str(groups)] if groups != 500 else []), *([mix] if mix != "classic" else [])]
    folder = work / "-".join([codec, str(size_bytes), *more])
    try:
        truth = json.loads((folder / TRUTH).read_bytes())
    except FileNotFoundError:
        truth = {}
    if truth.get("options") != asdict(options):
        sys.stderr.write(f"generating {folder}\n")
        shutil.rmtree(folder, ignore_errors=True)
        truth = generate(folder, options)
    return Log(folder, truth)


def whole_data_directory(work: Path, partitions: int) -> Log:
    """A data directory with so many partitions, to all of which one group has committed; written if it is not there."""
    folder = work / f"data-directory-{partitions}"
    kept = work / f"data-directory-{partitions}.json"  # written last
    if not kept.exists():
        sys.stderr.write(f"generating {folder}\n")
        shutil.rmtree(folder, ignore_errors=True)
        kept.write_text(json.dumps(make_data_directory(folder, partitions, 1)))
    return Log(folder, json.loads(kept.read_bytes()))
