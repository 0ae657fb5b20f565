"""Find decompressors of other libraries for kernels: which library has each codec, and how it is reached.

codec    kernels                                        `log_format.compression`, the authority
------   --------------------------------------------   --------------------------------
gzip     zlib, the one that Python's own module uses    zlib
snappy   `decompress`, our own                          cramjam
lz4      `decompress`, our own                          cramjam
zstd     libzstd in the private ``.so`` of zstandard    zstandard

If a library is not reached, because of another build of Python or another version of a package, its codec is
`NOT_PLAIN`: `log_format.compression` reads such batches, with the same results, but slower. `closed_doors` lists these
codecs.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from offsets_log.columnar.jit.compiled import U, instruction

# The only place where kernels use raw addresses. Those of functions come from `Library`; those of bytes are made of
# an array and an index that was checked, and go to functions that are told how many bytes there are from it on.


@instruction
def address(array: Any, index: Any) -> Any:
    """Return the address of an element, or of the end; plain Python has none."""
    return U(0)


@instruction
def call(function: Any, arguments: Any) -> Any:
    """Call the C function at an address.

    Args:
        arguments: a tuple of uint64.

    Returns:
        Its result as uint64, sizes and pointers included.
    """
    return U(0)


# Places in `Library.addresses`: of functions, and from `Z_STREAM` on zlib's structure of that name, where pointers
# and C's long have 8 bytes.
INFLATE, INFLATE_RESET = 0, 1
ZSTD_STATE, ZSTD_BEGIN, ZSTD_NEXT, ZSTD_CONTINUE = 2, 3, 4, 5
Z_STREAM = 6
NEXT_IN, AVAILABLE_IN, NEXT_OUT, AVAILABLE_OUT, TOTAL_OUT = 6, 7, 9, 10, 11
Z_STREAM_WORDS = 14
_ZSTD_PIECEWISE = ("ZSTD_decompressBegin", "ZSTD_nextSrcSizeToDecompress", "ZSTD_decompressContinue")


class Library:
    """The foreign decompressors with their working memory: one for each thread.

    Kernels get ``addresses``; an address is 0 if a library is not found or lacks a function.
    """

    def __init__(self) -> None:
        self.addresses = np.zeros(Z_STREAM + Z_STREAM_WORDS, np.uint64)
        self._closing: list[Callable[[], Any]] = []
        if sys.byteorder == "little":
            self._open_zlib()
            self._open_zstd()

    def _open_zlib(self) -> None:
        library = library_of("gzip")
        if library is None:
            return
        stream = ctypes.c_void_p(self.addresses[Z_STREAM:].ctypes.data)
        gzip = zlib.MAX_WBITS + 16
        # zlib itself compares its version's first number and the structure's size.
        if library.inflateInit2_(stream, gzip, zlib.ZLIB_VERSION.encode(), 8 * Z_STREAM_WORDS) == 0:
            self._closing.append(lambda: library.inflateEnd(stream))
            self.addresses[INFLATE] = _address_of(library.inflate)
            self.addresses[INFLATE_RESET] = _address_of(library.inflateReset)

    def _open_zstd(self) -> None:
        library = library_of("zstd")
        if library is None:
            return
        library.ZSTD_createDCtx.restype = ctypes.c_void_p
        state = library.ZSTD_createDCtx()
        if state is not None:
            self._closing.append(lambda: library.ZSTD_freeDCtx(ctypes.c_void_p(state)))
            self.addresses[ZSTD_STATE] = state
            self.addresses[ZSTD_BEGIN : ZSTD_CONTINUE + 1] = [
                _address_of(getattr(library, name)) for name in _ZSTD_PIECEWISE
            ]

    def close(self) -> None:
        """Free the working memory and set the addresses to zero. No kernel may be running with them."""
        while self._closing:
            self._closing.pop()()
        self.addresses[:] = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


# ------------------------------------------------------------------------------------------------- doors


def _zlib_libraries() -> Iterator[str | None]:
    """Yield where Python's own zlib may be found: its module, which is linked to it, the program, then any other."""
    yield getattr(zlib, "__file__", None)
    yield None
    yield from ("libz.so.1", "libz.dylib")


def _libraries_in_zstandard() -> Iterator[str]:
    """Yield the shared libraries inside the package, which itself is not imported."""
    spec = importlib.util.find_spec("zstandard")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(str(path) for path in Path(folder).glob("_cffi*") if path.suffix in (".so", ".pyd"))


@dataclass(frozen=True, slots=True)
class Door:
    """Where a library is searched, and the functions that it must have."""

    whose: str
    paths: Callable[[], Iterator[str | None]]
    functions: tuple[str, ...]


DOORS = {
    "gzip": Door("Python's zlib", _zlib_libraries, ("inflateInit2_", "inflate", "inflateReset", "inflateEnd")),
    "zstd": Door(
        "the package zstandard", _libraries_in_zstandard, ("ZSTD_createDCtx", "ZSTD_freeDCtx", *_ZSTD_PIECEWISE)
    ),
}
"""Doors by codec; the other codecs need no library."""


@functools.cache
def library_of(codec: str) -> ctypes.CDLL | None:
    """Return the first library of a codec's door that has all the functions; None without one."""
    door = DOORS[codec]
    for path in door.paths():
        try:
            library = ctypes.CDLL(path)
        except (OSError, TypeError):  # TypeError: Windows has no library of the whole program
            continue
        if all(hasattr(library, name) for name in door.functions):
            return library
    return None


def closed_doors() -> list[str]:
    """Return a sentence for each closed door that says what it means."""
    return [
        f"{codec}: {door.whose} does not lend {', '.join(door.functions)} any more; such batches are read one by one"
        for codec, door in DOORS.items()
        if library_of(codec) is None
    ]


def _address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
