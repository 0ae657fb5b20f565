"""Which kernels a question needs, and how long it takes to compile those that are not kept."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from offsets_log.columnar.jit.compiled import Kernel, is_kept
from offsets_log.columnar.jit.making import makers
from offsets_log.columnar.jit.sources import PACKAGE

JOINING = (
    "scan.reading._step_to",
    "scan.interner.fill_slots",
    "folds.merge.number_all",
    "folds.merge.join_producers",
    "folds.transactions.join",
    "folds.newer_merge.join_newer",
)
"""What joins the parts of a log that threads have read."""
KEYS = ("ledger.kernels.name_keys", "scan.interner.fill_slots")
"""What tells the keys of a ledger."""
SHOWING = ("scan.gather.gather", "scan.gather.read_columns")
"""What finds the records again that are shown."""

WITH = {
    "folds.offsets.scan": (*SHOWING, *JOINING, "folds.merge.join_rows"),
    "folds.holding.scan": KEYS,
    "ledger.kernels.name_keys": ("folds.offsets.scan", "scan.interner.fill_slots"),
    "folds.overview.scan": (*SHOWING, *KEYS),
    "choose.choice.choose": ("scan.reading._step_to",),
    "events.kernels.fill": ("scan.reading._step_to",),
    "aligning.records.note": (),
    "cleaning.sifting.sift": ("cleaning.indexing.follow", "cleaning.counting.count"),
    "cleaning.whole.whole": ("cleaning.indexing.index",),
    "history.kernels.scan": (
        "scan.reading._step_to",
        "history.order.count",
        "history.order.put_in_order",
        "history.columns.find_more",
    ),
    "scan.batch_rows._note": (),
    "scan.gather.gather": ("folds.offsets.scan", "scan.gather.read_columns", "scan.interner.fill_slots"),
    "shuffle.records.copy_records": ("scan.reading._step_to",),
    "texts.kernels.read_batches": (),
}
"""The largest kernel of a question, or one that no other has → those that go with it on nearly every large log; others
are rarer, or small."""

SECONDS = {
    "aligning.records.note": 4.0,
    "choose.choice.choose": 9.0,
    "cleaning.sifting.sift": 9.0,
    "cleaning.whole.whole": 6.0,
    "events.kernels.fill": 9.0,
    "folds.holding.scan": 13.0,
    "folds.offsets.scan": 10.5,
    "folds.overview.scan": 12.0,
    "history.kernels.scan": 15.0,
    "shuffle.records.copy_records": 4.0,
    "sinks.kernels.write_lines": 4.0,
    "texts.kernels.read_batches": 6.0,
}
"""Kernel → how long it takes to compile alone, in the mean of processors of ten years."""
OTHER_SECONDS = 0.7
START_SECONDS = 1.5
"""Of a process that compiles: the import of numba."""

LACKED: set[str] = set()
"""Kernels that were not kept when this process asked for them."""


def kernel_at(place: str) -> Kernel[Any]:
    """Return a kernel by its module and name."""
    module, _, name = place.rpartition(".")
    of: Kernel[Any] = getattr(import_module(f"{PACKAGE}.{module}"), name)
    return of


def lacking(largest: str, *also: str) -> list[Kernel[Any]]:
    """Return the kernels that a question needs and are not kept, the longest first."""
    places = sorted({largest, *WITH[largest], *also}, key=lambda place: (-_seconds(place), place))
    return [of for of in map(kernel_at, places) if not is_kept(of)]


def seconds_to_compile(largest: str) -> float:
    """Return how long somebody waits for the kernels of a question that are not kept."""
    places = [place for place in (largest, *WITH[largest]) if not is_kept(kernel_at(place))]
    LACKED.update(places)
    seconds = [*map(_seconds, places)]
    return START_SECONDS + max(max(seconds), sum(seconds) / makers()) if seconds else 0.0


def _seconds(place: str) -> float:
    return SECONDS.get(place, OTHER_SECONDS)
