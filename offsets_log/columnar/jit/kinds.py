"""Declare what kernels take: an array in C order, of one type and number of dimensions, a record, or a number.

Parameters of kernels are annotated with these names, with a `Record` or with a `Table` of them. They tell mypy what a
caller must pass, and a kernel is compiled for exactly that (`kinds_of`).
"""

from __future__ import annotations

from collections.abc import Callable
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

Kind = tuple[np.dtype[Any], int] | None
"""The type and the number of dimensions of an array, 0 for a record; None for a number."""

KINDS: dict[str, Kind] = {
    "Number": None,
    "Longs": (np.dtype(np.int64), 1),
    "LongRows": (np.dtype(np.int64), 2),
    "LongPlanes": (np.dtype(np.int64), 3),
    "Words": (np.dtype(np.uint64), 1),
    "Ints": (np.dtype(np.int32), 1),
    "IntRows": (np.dtype(np.int32), 2),
    "Bytes": (np.dtype(np.uint8), 1),
    "ByteRows": (np.dtype(np.uint8), 2),
}
"""Kinds by the names above, which annotations use."""


def kinds_of(function: Callable[..., Any]) -> tuple[Kind, ...]:
    """Return what a kernel takes, from its annotations.

    Raises:
        NameError: an annotation is no name of a kind.
    """
    return tuple(
        _kind(kind, function.__globals__) for name, kind in function.__annotations__.items() if name != "return"
    )


def _kind(annotation: str, scope: dict[str, Any]) -> Kind:
    return KINDS[annotation] if annotation in KINDS else type_and_dimensions(eval(annotation, scope))
