"""Packs folders of cases of Kafka's own cleaner into ``cases.tar.xz`` beside this file, the same on every run.

    python tests/cleaner/pack.py FOLDER

Every case folder holds ``case.json``, ``before/``, ``after/``, ``result.json``, and of other releases
``result-VERSION.json`` with ``after-VERSION/`` where that differs. README.md says what they are.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from pathlib import Path

ARCHIVE = Path(__file__).parent / "cases.tar.xz"


def pack(folder: Path, archive: Path) -> None:
    """Write the archive: names sorted, no times, no owners."""
    with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        for case in sorted(path.parent for path in folder.glob("*/case.json")):
            for path in sorted(path for path in case.rglob("*") if path.is_file()):
                data = path.read_bytes()
                entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
                entry.size, entry.mode = len(data), 0o644
                tar.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    pack(Path(sys.argv[1]), ARCHIVE)
    raw = ARCHIVE.read_bytes()
    sys.stdout.write(f"{ARCHIVE.name} {len(raw)} {hashlib.sha256(raw).hexdigest()}\n")
