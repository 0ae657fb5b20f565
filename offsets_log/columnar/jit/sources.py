"""What the code of kernels is made of, texts and a processor: whether they are still those that it was made for."""

from __future__ import annotations

import functools
import hashlib
import platform
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from offsets_log.columnar.jit.modes import IS_CHECKED

PACKAGE = "offsets_log.columnar"
MACHINE = f"{PACKAGE}.jit.numba_backend"
"""What compiles: all code depends on it."""
COMMON = "x86-64-v3"
"""The kind of processors that kernels are compiled for where it fits: most servers are of it or newer."""
COMMON_FEATURES = (
    "avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt",
    "sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave",
)  # fmt: skip
IMPORT, NAME = re.compile(rb"^from (offsets_log[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE), re.compile(rb"\w+")


def place_of(function: Callable[..., Any]) -> str:
    """Return its module in this package, and its name."""
    return f"{function.__module__.removeprefix(f'{PACKAGE}.')}.{function.__name__}"


@functools.cache
def stamp_of(module: str) -> str:
    """Return a hash of everything that the code of a module's kernels depends on, as it was when this was asked."""
    import llvmlite.binding as llvm

    facts = (_sources(module), processor(), sys.version_info[:2], _compiler(), llvm.llvm_version_info, IS_CHECKED)
    return _hash(facts)


@functools.cache
def common_stamp_of(module: str) -> str | None:
    """Return the same of code that runs wherever processors are `COMMON`, whoever compiled it; None elsewhere."""
    is_common = processor() == (COMMON, "") and sys.platform == "linux" and not IS_CHECKED
    return _hash((_sources(module), COMMON, sys.platform)) if is_common else None


def _hash(facts: object) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


@functools.cache
def processor() -> tuple[str, str]:
    """Return for what processor kernels are compiled, and with which features of it, as LLVM takes them."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if platform.machine().lower() in ("x86_64", "amd64") and all(map(features.get, COMMON_FEATURES)):
        return COMMON, ""
    return llvm.get_host_cpu_name(), features.flatten()


def _compiler() -> list[str]:
    """Return the release of numba, without importing it."""
    spec = find_spec("numba")
    assert spec is not None
    assert spec.origin is not None
    return sorted(folder.name for folder in Path(spec.origin).parents[1].glob("numba-*.dist-info"))


def _sources(module: str) -> list[tuple[str, str]]:
    """Return all modules of ours that a module imports at its top, even indirectly, with hashes of their texts."""
    found: dict[str, str] = {}
    names = {module, MACHINE}
    while names:
        source = _source(name := names.pop())
        found[name] = source.digest
        for origin, imported in source.imports:
            of_package = {f"{origin}.{item}" for item in imported} if _source(origin).is_package else set()
            names |= {origin, *of_package} - found.keys()
    return sorted(found.items())


class _Source(NamedTuple):
    digest: str
    is_package: bool
    imports: list[tuple[str, list[str]]]
    """Modules of ours, and the names imported from them."""


class ChangedError(Exception):
    """Sources were edited while kernels were made of them."""


def check_sources(module: str) -> None:
    """Compare the sources with those that `stamp_of` has read, before the module was imported.

    Raises:
        ChangedError: one has changed: what was imported may be either, so that nothing made of it may be kept.
    """
    for name, digest in _sources(module):
        if _read_source(name).digest != digest:
            raise ChangedError(f"{name} was edited meanwhile: start again")


def _read_source(module: str) -> _Source:
    """Return what a module is and needs; nothing for a name in a package that is no module."""
    package, *names = module.split(".")
    place = "/".join(names)
    for file, is_package in ((f"{place}.py", False), (f"{place}/__init__.py", True)):
        with suppress(OSError, KeyError, ImportError):
            text = resources.files(package).joinpath(file).read_bytes()
            found = IMPORT.findall(text)
            imports = [(origin.decode(), [name.decode() for name in NAME.findall(names)]) for origin, names in found]
            return _Source(hashlib.sha256(text).hexdigest(), is_package, imports)
    return _Source("", is_package=False, imports=[])


_source = functools.cache(_read_source)
