"""Link machine code that is kept into this process, without numba."""

from __future__ import annotations

import ctypes
from typing import Any

_ENGINES: list[Any] = []
C_FUNCTIONS = ("memcpy", "memmove", "memset")
"""All functions that a kernel may need from elsewhere: machine code calls them without the source naming them."""


def address_of(symbol: str, code: bytes) -> int:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    library = ctypes.CDLL(None)
    for name in C_FUNCTIONS:
        llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append((engine, code))  # neither must go while the code is used
    address: int = engine.get_function_address(symbol)
    return address
