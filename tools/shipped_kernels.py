"""Kernels as files of the package, for a wheel that need not compile any where it is installed: ``make wheel``.

    python -m tools.shipped_kernels [FOLDER]
    python -m tools.shipped_kernels --keep    only keep them for this user: ``make kernels``

They are for processors of the kind `sources.COMMON`, on Linux; elsewhere there are none, and kernels are compiled as
ever, as they are where the sources are others.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

import offsets_log.columnar
from offsets_log.columnar.jit.compiled import Kernel
from offsets_log.columnar.jit.keeping import SHIPPED, file_of, keep, packed, read, shipped, shipped_name
from offsets_log.columnar.jit.making import REST, environment
from offsets_log.columnar.warm import kernels

FOLDER = Path(offsets_log.columnar.__file__).parent / SHIPPED


def ship(some: Iterable[Kernel[Any]], folder: Path) -> int:
    """Have kernels compiled, those that are not kept, and put their code into a folder; return how many there are."""
    folder.mkdir(exist_ok=True)
    count = 0
    for one in some:
        if name := shipped_name(one.function):
            one.link()
            kept = shipped(one.function) or read(file_of(one.function))
            assert kept is not None
            keep(folder / name, packed(*kept))
            count += 1
    return count


def compile_all() -> None:
    """Have all kernels compiled that are not kept."""
    subprocess.run([sys.executable, "-m", REST], env=environment(), check=True)  # all in one process


def main(folder: Path = FOLDER) -> None:
    for path in folder.glob("*"):  # first, for what is there need not be compiled
        path.unlink()
    compile_all()
    click.echo(f"{folder}: {ship(kernels(), folder)} kernels", err=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--keep"]:
        compile_all()
    else:
        main(*map(Path, sys.argv[1:]))
