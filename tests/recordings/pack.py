"""Packs recording folders into the archives beside this file, byte for byte the same on every run.

    python tests/recordings/pack.py FOLDER

FOLDER holds one folder per recording, as README.md describes them. The tables of README.md are printed at the end.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import tarfile
from pathlib import Path

PREFIXES = ("kafka-", "random-", "load-fails")
INDEXES = re.compile(r"\.(index|timeindex|txnindex|snapshot)(\.deleted)?$")
WITH_INDEXES = {"kafka-4.3-cleaned"}
"""Every file is kept here, so that a reader meets those it has to ignore."""


def kept_files(folder: Path) -> list[Path]:
    """The files of a recording that go into its archive, sorted by path."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and (folder.name in WITH_INDEXES or not INDEXES.search(path.name))
    )


def pack(folder: Path, archive: Path) -> None:
    """Write one archive: names sorted, no times, no owners."""
    with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        for path in kept_files(folder):
            data = path.read_bytes()
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))


def main(corpus: Path) -> None:
    """Pack every recording of a folder."""
    here = Path(__file__).parent
    for folder in sorted(path for path in corpus.iterdir() if path.name.startswith(PREFIXES)):
        archive = here / f"{folder.name}.tar.xz"
        pack(folder, archive)
        version = json.loads((folder / "recording.json").read_bytes())["kafka_version"]
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        sys.stdout.write(f"{archive.name} {version} {archive.stat().st_size} {digest}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
