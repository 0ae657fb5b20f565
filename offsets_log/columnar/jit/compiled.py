"""Run kernels: functions over NumPy arrays that run as machine code, without the interpreter's lock.

Kernels are written as plain Python. `numba_backend` compiles them, in a process of its own and once on a machine: the
code is kept on disk and linked from there without numba, whose import costs more than the work on a small log. It is
compiled again when the text of its module or of a module imported there changes, or numba or the processor; what is
compiled while one is edited is not kept. A wheel may bring code of kernels for most processors (``make wheel``).

kernel        what Python calls; its arguments are arrays in C order, records, numbers and named tuples of these, as
              its annotations say (`kinds`)
part          what kernels call
inlined       a small part that becomes a piece of its callers
instruction   a part for which machine code has an instruction or two that Python has not
within        a part that finds records among plain numbers

Kernels index arrays and check every position against its enclosing end themselves. With ``NUMBA_BOUNDSCHECK=1`` numba
checks too, with ``NUMBA_DISABLE_JIT=1`` they are the plain Python that they look like; then, and on processors that
lack them, instructions run as their Python code.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from offsets_log.columnar.jit.keeping import Kept, file_of, read, shipped
from offsets_log.columnar.jit.kinds import Kind, kinds_of, leaves
from offsets_log.columnar.jit.linking import address_of
from offsets_log.columnar.jit.making import UNKEPT, Wanted, made_here, make
from offsets_log.columnar.jit.modes import IS_CHECKED, IS_COMPILING, IS_PYTHON
from offsets_log.columnar.jit.records import Longs, Of, Record, Table
from offsets_log.columnar.jit.sources import place_of

Function = TypeVar("Function", bound=Callable[..., Any])
Parameters = ParamSpec("Parameters")

U = np.uint64


def part(function: Function) -> Function:
    """Declare a function that kernels call."""
    return _made(function, is_inlined=False)


def inlined(function: Function) -> Function:
    """Declare a small function that becomes a piece of the kernels that call it."""
    return _made(function, is_inlined=True)


def instruction(function: Function) -> Function:
    """Declare a small function that machine code may do otherwise: `numba_backend` finds it by its name."""
    return _made(function, is_inlined=True, is_instruction=True)


def _made(function: Function, *, is_inlined: bool, is_instruction: bool = False) -> Function:
    """Return what numba makes of a part, in processes that compile; elsewhere the part itself."""
    if not IS_COMPILING:
        return function
    from offsets_log.columnar.jit import numba_backend

    made: Function = numba_backend.compiled_part(function, is_inlined=is_inlined, is_instruction=is_instruction)
    return made


def within(of: type[Of]) -> Callable[[Longs, Any, Any], Of]:
    """Return a part that finds a record among plain numbers, in the same memory; the caller has checked the end.

    It takes the numbers, where the records of that type begin among them, and the record's own number.
    """
    if IS_COMPILING:
        from offsets_log.columnar.jit import numba_backend

        found: Callable[[Longs, Any, Any], Of] = numba_backend.record_within(of.dtype)
        return found
    size = of.dtype.itemsize // 8

    def record(numbers: Longs, begin: Any, number: Any) -> Of:
        at = begin + number * size
        return of(numbers[at : at + size])

    return record


class Kernel(Generic[Parameters]):
    """A function that runs as machine code. Use `kernel`."""

    def __init__(self, function: Callable[Parameters, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.kinds = kinds_of(function)
        self.leaves = tuple(leaves(self.kinds))
        self._entry: Callable[..., int] | None = None
        self._lock = threading.Lock()

    def __call__(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Any:
        """Run the kernel; return an integer, or None."""
        assert not named
        if IS_PYTHON:
            with np.errstate(over="ignore"):  # hashes are products that go over, as they do in machine code
                return self.function(*arguments, **named)
        return (self._entry or self.link())(*_flat(self.leaves, arguments))

    @property
    def wanted(self) -> Wanted:
        """What to ask for to have it compiled."""
        return Wanted(self.function.__module__, self.function.__name__, file_of(self.function))

    def link(self) -> Callable[..., int]:
        """Link its code, and compile it first if it is not kept."""
        with self._lock:
            if self._entry is None:
                self._entry = _linked(self)
            return self._entry


def kernel(function: Callable[Parameters, Any]) -> Kernel[Parameters]:
    """Declare a function that Python calls; its parameters are annotated with names of `kinds`."""
    return Kernel(function)


def _flat(kinds: Sequence[Kind], arguments: tuple[Any, ...]) -> list[int]:
    """Return arguments as machine code takes them: for an array its address and dimensions."""
    flat: list[int] = []
    for kind, argument in zip(kinds, leaves(arguments), strict=True):
        if kind is None:
            flat.append(int(argument))
        elif isinstance(argument, Record):
            assert argument.dtype is kind.dtype
            assert argument.numbers.flags.c_contiguous
            flat.append(argument.numbers.ctypes.data)
        else:
            array = argument.rows if isinstance(argument, Table) else argument
            assert array.dtype == kind.dtype
            assert array.ndim == kind.dimensions
            assert array.flags.c_contiguous
            flat.append(array.ctypes.data)
            flat += array.shape
    return flat


# ------------------------------------------------------------------------------------ code kept and linked


def is_kept(of: Kernel[Any]) -> bool:
    """Return whether a kernel's code is on disk, so that nothing must be compiled."""
    return IS_PYTHON or IS_CHECKED or file_of(of.function).exists() or shipped(of.function) is not None


def _linked(of: Kernel[Any]) -> Callable[..., int]:
    kept = code_of(of)
    counts = [1 if kind is None else 1 + kind.dimensions for kind in of.leaves]
    pointer = ctypes.c_void_p
    prototype: Any = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, *[ctypes.c_int64] * sum(counts))
    entry = prototype(address_of(*kept))

    def call(*arguments: int) -> int:
        answer, raised = ctypes.c_int64(), ctypes.c_void_p()
        if entry(ctypes.byref(answer), ctypes.byref(raised), *arguments):
            raise IndexError(f"{place_of(of.function)}: an index is out of bounds")  # where numba checks
        return answer.value

    return call


def code_of(of: Kernel[Any]) -> Kept:
    """Return a kernel's code; it is compiled if it is not kept."""
    file = file_of(of.function)
    if (kept := shipped(of.function) or read(file) or UNKEPT.get(file)) is not None:
        return kept
    if IS_COMPILING:
        return made_here(*of.wanted)
    make([of.wanted])
    return read(file) or UNKEPT[file]
