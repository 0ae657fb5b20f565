"""Packs recordings of data directories into the archives beside this file; holes of files stay holes.

    python tests/data_directories/pack.py FOLDER

FOLDER is what record.py wrote into. Needs GNU tar and xz. The table of README.md is printed at the end.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

TAR = (
    "tar", "--create", "--xz", "--sparse", "--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
    "--mode=u+rwX,go+rX",
)  # fmt: skip


def main(recordings: Path) -> None:
    """Pack every recording of a folder."""
    here = Path(__file__).parent
    for folder in sorted(path for path in recordings.iterdir() if (path / "recording.json").exists()):
        archive = here / f"{folder.name}.tar.xz"
        members = sorted(path.name for path in folder.iterdir())
        command = [*TAR, f"--file={archive}", f"--directory={folder}", *members]
        subprocess.run(command, check=True, env={"XZ_OPT": "-9e", "PATH": "/usr/bin:/bin"})
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        sys.stdout.write(f"| `{archive.name}` | {archive.stat().st_size} | `{digest}` |\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
