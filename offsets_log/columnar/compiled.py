"""How kernels are compiled: one decorator, and the two instructions that Python has no word for.

A kernel is a function over NumPy arrays that numba compiles to machine code, without the interpreter's lock. What was
compiled is kept on disk and loaded the next time; it is made anew when any source of this folder has changed, because
numba itself looks at the file of the outermost function only.

Kernels index arrays and check every position against its enclosing end themselves. With ``NUMBA_BOUNDSCHECK=1`` numba
checks too, with ``NUMBA_DISABLE_JIT=1`` the same functions run as plain Python; then, and on processors that lack
them, the CRC-32C instruction is a table and the prefetch does nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

U = np.uint64

_function: Any = cgutils.get_or_insert_function
_CONFIG: Any = numba.config
_JIT: Any = numba.njit
_FOLDER = Path(__file__).parent
_STAMP = (
    _CONFIG.BOUNDSCHECK,
    *((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(_FOLDER.glob("*.py"))),
)

IS_PYTHON = bool(_CONFIG.DISABLE_JIT)
"""Whether kernels run as plain Python."""


_PART: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def kernel(function: Kernel) -> Kernel:
    """Compile a function that Python calls; its machine code is kept on disk where that can be written."""
    compiled = _JIT(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    if not IS_PYTHON:
        try:
            compiled.enable_caching()
            compiled._cache._cache_file._source_stamp = _STAMP
        except RuntimeError:  # no folder to keep it in: compiled each time
            pass
    return cast(Kernel, compiled)


def inlined(function: Kernel) -> Kernel:
    """Compile a small function into the kernels that call it. Python must not call it: it has no entry for that."""
    options = {**_PART, "no_cpython_wrapper": not IS_PYTHON, "forceinline": True}
    return cast(Kernel, _JIT(**options)(function))


def part(function: Kernel) -> Kernel:
    """Compile a function that kernels call."""
    return cast(Kernel, _JIT(**_PART)(function))


def is_compiled() -> bool:
    """Whether the largest kernel is kept on disk already, as it is now."""
    from offsets_log.columnar.scan import scan

    cache = getattr(getattr(scan, "_cache", None), "_cache_file", None)
    return IS_PYTHON or (cache is not None and bool(cache._load_index()))


# ------------------------------------------------------------------------------------------- instructions


def _has_crc32c() -> str | None:
    """The LLVM intrinsic of the processor's CRC-32C instruction over 8 bytes; None if it has none."""
    if IS_PYTHON:
        return None
    features = llvmlite.binding.get_host_cpu_features()
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64") and features.get("sse4.2"):
        return "llvm.x86.sse42.crc32.64.64"
    return None


_CRC_INTRINSIC = _has_crc32c()
POLYNOMIAL = 0x82F63B78


def _crc_tables() -> np.ndarray[Any, Any]:
    """Eight tables of 256: the CRC-32C of a byte followed by 0 to 7 zero bytes."""
    tables = np.zeros((8, 256), np.uint64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for i in range(1, 8):
        previous = tables[i - 1]
        tables[i] = (previous >> U(8)) ^ tables[0][(previous & U(0xFF)).astype(np.int64)]
    return tables


CRC_TABLES = _crc_tables()


@intrinsic
def _crc32c_word_instruction(typing_context, crc, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        function = ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * 2)
        callee = _function(builder.module, function, _CRC_INTRINSIC)
        return builder.call(callee, arguments)

    return types.uint64(types.uint64, types.uint64), generate


@inlined
def _crc32c_word_table(crc: Any, word: Any) -> Any:
    mixed = crc ^ word
    result = U(0)
    for i in range(8):
        byte = mixed >> U(8 * i) & U(0xFF)
        result ^= CRC_TABLES[7 - i, byte]
    return result


crc32c_word: Any = _crc32c_word_table if _CRC_INTRINSIC is None else _crc32c_word_instruction
"""(crc, 8 bytes as a little-endian integer) → crc."""


@inlined
def crc32c_byte(crc: Any, byte: Any) -> Any:
    """One byte more."""
    return crc >> U(8) ^ CRC_TABLES[0, (crc ^ U(byte)) & U(0xFF)]


@intrinsic
def _prefetch_instruction(typing_context, array, index):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array_type = signature.args[0]
        view = context.make_array(array_type)(context, builder, arguments[0])
        place = builder.gep(view.data, [arguments[1]])
        byte_pointer = ir.IntType(8).as_pointer()
        place = builder.bitcast(place, byte_pointer)
        i32 = ir.IntType(32)
        function = ir.FunctionType(ir.VoidType(), [byte_pointer, i32, i32, i32])
        callee = _function(builder.module, function, "llvm.prefetch.p0i8")
        builder.call(callee, [place, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@inlined
def _prefetch_nothing(array: Any, index: Any) -> None:
    return None


prefetch: Any = _prefetch_nothing if IS_PYTHON else _prefetch_instruction
"""(array, index): ask for the cache line of an element that will be needed soon."""

# -------------------------------------------------------------------------------------------- whole words


@inlined
def load64(data: Any, position: Any) -> Any:
    """8 bytes as a little-endian integer; the compiler makes one load of it."""
    at = U(position)
    return (
        U(data[at])
        | U(data[at + U(1)]) << U(8)
        | U(data[at + U(2)]) << U(16)
        | U(data[at + U(3)]) << U(24)
        | U(data[at + U(4)]) << U(32)
        | U(data[at + U(5)]) << U(40)
        | U(data[at + U(6)]) << U(48)
        | U(data[at + U(7)]) << U(56)
    )
