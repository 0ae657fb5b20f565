"""Kernels that the driver has compiled, for executors on other machines: these compile none.

A wheel of ``make wheel`` brings its kernels to wherever it is installed; others travel with the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from offsets_log.columnar.jit.keeping import file_of, keep
from offsets_log.columnar.jit.making import make
from offsets_log.columnar.large import is_large
from offsets_log.columnar.needs import WITH, kernel_at, lacking

LARGEST = {
    "history": "history.kernels.scan",
    "records": "events.kernels.fill",
    "raw_records": "shuffle.records.copy_records",
    "transactions": "scan.gather.gather",
}
"""Level → the largest kernel that large logs need for it, with those of `needs.WITH`; for others it is `REPLAY`."""
REPLAY = "folds.offsets.scan"


@dataclass(frozen=True, slots=True)
class Kernels:
    """Files of kernels by their names; where they are unpickled they are kept.

    Of another kind of processor a kernel has another name: there nobody looks for these.
    """

    files: Mapping[str, bytes]

    def __reduce__(self) -> tuple[Any, ...]:
        return _kept, (dict(self.files),)


def _kept(files: Mapping[str, bytes]) -> Kernels:
    for name, data in files.items():
        file = file_of(kernel_at(REPLAY).function).with_name(name)
        if not file.exists():
            with suppress(OSError):
                keep(file, data)
    return Kernels(files)


def kernels_for(*levels: str) -> Kernels:
    """Return those that this machine has for some levels."""
    largest = dict.fromkeys(LARGEST.get(level, REPLAY) for level in levels)
    names = largest.keys() | {name for one in largest for name in WITH[one]}
    files = [file_of(kernel_at(name).function) for name in names]
    return Kernels({file.name: file.read_bytes() for file in files if file.exists()})


def compile_first(size_bytes: int, *levels: str) -> None:
    """Compile here what the largest log needs for some levels and is not kept."""
    largest = dict.fromkeys(LARGEST.get(level, REPLAY) for level in levels)
    needed = (one for one in largest if is_large(size_bytes, one))
    if lacked := dict.fromkeys(of.wanted for one in needed for of in lacking(one)):
        make(list(lacked))
