"""Declare what kernels take: an array in C order, of one type and number of dimensions, a record, or a number.

Parameters of kernels are annotated with these names, with a `Record` or with a `Table` of them. They tell mypy what a
caller must pass, and a kernel is compiled for exactly that (`kinds_of`). What always travels together is one parameter,
a `NamedTuple` whose fields are annotated in the same way; machine code takes its `leaves`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from offsets_log.columnar.jit.records import type_and_dimensions

Number = int | np.integer[Any] | bool
Longs = npt.NDArray[np.int64]
LongRows = npt.NDArray[np.int64]
LongPlanes = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
IntRows = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
ByteRows = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """The type of an array, and the number of its dimensions: 0 for a record."""

    dtype: np.dtype[Any]
    dimensions: int


Kind = Any
"""An `ArrayKind`; None for a number; of a named tuple one of the same class that holds the kinds of its fields."""

KINDS: dict[str, Kind] = {
    "Number": None,
    "Longs": ArrayKind(np.dtype(np.int64), 1),
    "LongRows": ArrayKind(np.dtype(np.int64), 2),
    "LongPlanes": ArrayKind(np.dtype(np.int64), 3),
    "Words": ArrayKind(np.dtype(np.uint64), 1),
    "Ints": ArrayKind(np.dtype(np.int32), 1),
    "IntRows": ArrayKind(np.dtype(np.int32), 2),
    "Bytes": ArrayKind(np.dtype(np.uint8), 1),
    "ByteRows": ArrayKind(np.dtype(np.uint8), 2),
}
"""Kinds by the names above, which annotations use."""


def kinds_of(function: Callable[..., Any]) -> tuple[Kind, ...]:
    """Return what a kernel takes, from its annotations.

    Raises:
        NameError: an annotation is no name of a kind.
    """
    parameters = (kind for name, kind in function.__annotations__.items() if name != "return")
    return tuple(_kinds(parameters, function.__globals__))


def leaves(nested: Iterable[Any]) -> Iterator[Any]:
    """Yield what tuples in tuples hold, in order."""
    for item in nested:
        if isinstance(item, tuple):
            yield from leaves(item)
        else:
            yield item


def _kinds(annotations: Iterable[Any], scope: dict[str, Any]) -> Iterator[Kind]:
    for annotation in annotations:
        name = getattr(annotation, "__forward_arg__", annotation)  # of a field
        if name in KINDS:
            yield KINDS[name]
            continue
        of = eval(name, scope)
        if isinstance(of, type) and issubclass(of, tuple):
            yield of(*_kinds(of.__annotations__.values(), vars(sys.modules[of.__module__])))
        else:
            yield ArrayKind(*type_and_dimensions(of))
