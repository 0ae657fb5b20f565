"""All kernels compiled in a process of their own, beside the one that a command needs first.

On a machine that has not compiled yet the largest kernel of a command takes as long as all that go with it. What is
made here is found on disk by whoever asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from offsets_log.columnar.jit.compiled import Kernel
from offsets_log.columnar.jit.sources import MACHINE, PACKAGE, place_of, stamp_of

WITH = {
    "folds.offsets.scan": (
        "scan.",
        "folds.census.",
        "folds.transactions.",
        "folds.state.",
        "folds.merge.",
        "folds.newer_merge.",
        "materialize.",
        "folds.inspection.",
        "cleaning.indexing.",
    ),
    "folds.tally.scan": (
        "scan.",
        "folds.tally.",
        "folds.tally_merge.",
        "folds.naming.",
        "folds.holding.",
        "folds.merge.",
    ),
    "folds.overview.scan": (
        "scan.",
        "folds.overview.",
        "folds.tally.",
        "folds.tally_merge.",
        "folds.state.",
        "folds.merge.",
        "folds.newer_merge.",
        "materialize.",
    ),
    "choose.choice.choose": ("scan.", "choose.", "folds.merge."),
    "events.kernels.fill": ("scan.reading.", "events.", "sinks."),
    "aligning.records.note": ("aligning.",),
    "cleaning.sifting.sift": ("cleaning.indexing.", "cleaning.counting.", "cleaning."),
    "cleaning.whole.whole": ("cleaning.whole.", "cleaning.indexing."),
    "history.kernels.scan": ("scan.", "history.", "folds.merge."),
}
"""The largest kernel of a command → where those stand that go with it, in the order in which it needs them."""


def _modules() -> Iterator[str]:
    """Return the names of all modules that may hold kernels; only packages are imported."""
    names = (module.name for module in walk_packages(import_module(PACKAGE).__path__, f"{PACKAGE}."))
    return (name for name in names if name not in (__name__, f"{PACKAGE}.warm", MACHINE))


def kernels() -> Iterator[Kernel[Any]]:
    """Yield all kernels that there are."""
    for name in _modules():
        found = vars(import_module(name)).values()
        yield from (item for item in found if isinstance(item, Kernel) and item.__module__ == name)


def warm(largest: str = "") -> None:
    """Have all kernels compiled but one, those that go with it first.

    Args:
        largest: by its module and name; without one, all are compiled, in the order of `WITH`.
    """
    rooms = WITH[largest] if largest else tuple(room for item in WITH.items() for room in (item[0], *item[1]))
    for name in _modules():
        stamp_of(name)  # of the texts before they are imported

    def turn(of: Kernel[Any]) -> int:
        place = place_of(of.function)
        return next((i for i, room in enumerate(rooms) if place.startswith(room)), len(rooms) + (place in WITH))

    for of in sorted(kernels(), key=turn):
        if place_of(of.function) != largest:
            of.link()


if __name__ == "__main__":
    warm(*sys.argv[1:])
