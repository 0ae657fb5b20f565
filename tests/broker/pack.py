"""Packs recorded damaged partitions into NAME.tar.xz beside this file, byte for byte the same on every run.

    python tests/broker/pack.py FOLDER NAME

FOLDER holds ``verdicts.jsonl`` and ``data/*.tar.gz``, as README.md here describes them. The data folders are unpacked
into the archive: compressed together they take a fourth.
"""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent


def iter_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name in the archive and contents of every file."""
    yield "verdicts.jsonl", (folder / "verdicts.jsonl").read_bytes()
    for packed in sorted((folder / "data").glob("*.tar.gz")):
        data_folder = packed.name.removesuffix(".tar.gz")
        with tarfile.open(packed) as tar:
            for member in sorted(tar, key=lambda member: member.name):
                if (file := tar.extractfile(member)) is not None:
                    yield f"{data_folder}/{member.name.removeprefix('./')}", file.read()


def pack(folder: Path, archive: Path) -> None:
    """Write the archive: names sorted, no times, no owners."""
    with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        for name, content in iter_files(folder):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))


if __name__ == "__main__":
    pack(Path(sys.argv[1]), HERE / f"{sys.argv[2]}.tar.xz")
