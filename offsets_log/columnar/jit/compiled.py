"""Run kernels: functions over NumPy arrays that run as machine code, without the interpreter's lock.

Kernels are written as plain Python. `numba_backend` compiles them, in a process of its own and once on a machine: the
code is kept on disk and linked from there without numba, whose import costs more than the work on a small log. It is
compiled again when the text of its module or of a module imported there changes, or numba or the processor; what is
compiled while one is edited is not kept.

kernel        what Python calls; its arguments are arrays in C order, records and numbers, as its annotations say
              (`kinds`)
part          what kernels call
inlined       a small part that becomes a piece of its callers
instruction   a part for which machine code has an instruction or two that Python has not

Kernels index arrays and check every position against its enclosing end themselves. With ``NUMBA_BOUNDSCHECK=1`` numba
checks too, with ``NUMBA_DISABLE_JIT=1`` they are the plain Python that they look like; then, and on processors that
lack them, instructions run as their Python code.

Over 400 lines: how kernels are declared, kept and linked is one contract, which `numba_backend` keeps too.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import functools
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

import numpy as np

from offsets_log.columnar.jit.kinds import Kind, kinds_of
from offsets_log.columnar.jit.records import Record, Table

Function = TypeVar("Function", bound=Callable[..., Any])
Parameters = ParamSpec("Parameters")

U = np.uint64


def _is_set(name: str) -> bool:
    return os.environ.get(name, "0").strip() not in ("", "0")


IS_PYTHON = _is_set("NUMBA_DISABLE_JIT")
"""Whether kernels run as plain Python."""
IS_CHECKED = _is_set("NUMBA_BOUNDSCHECK")
"""Whether numba checks every index."""
LEVEL = 1 if IS_CHECKED else 2
"""How much machine code is optimized."""
IS_COMPILING = _is_set("OFFSETS_LOG_COMPILES") and not IS_PYTHON
"""Whether this process is one that compiles kernels for others."""

PARTS: dict[Callable[..., Any], bool] = {}
"""Parts → whether they are inlined."""
INSTRUCTIONS: list[Callable[..., Any]] = []


def part(function: Function) -> Function:
    """Declare a function that kernels call."""
    return _made(function, is_inlined=False)


def inlined(function: Function) -> Function:
    """Declare a small function that becomes a piece of the kernels that call it."""
    return _made(function, is_inlined=True)


def instruction(function: Function) -> Function:
    """Declare a small function that machine code may do otherwise: `numba_backend` finds it by its name."""
    INSTRUCTIONS.append(function)
    return _made(function, is_inlined=True)


def _made(function: Function, *, is_inlined: bool) -> Function:
    """Return what numba makes of a part, in processes that compile; elsewhere the part itself."""
    PARTS[function] = is_inlined
    if not IS_COMPILING:
        return function
    from offsets_log.columnar.jit import numba_backend

    made: Function = numba_backend.compiled_part(function)
    return made


class Kernel(Generic[Parameters]):
    """A function that runs as machine code. Use `kernel`."""

    def __init__(self, function: Callable[Parameters, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.kinds = kinds_of(function)
        self._entry: Callable[..., int] | None = None
        self._lock = threading.Lock()

    def __call__(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Any:
        """Run the kernel; return an integer, or None."""
        assert not named
        if IS_PYTHON:
            with np.errstate(over="ignore"):  # hashes are products that go over, as they do in machine code
                return self.function(*arguments, **named)
        return (self._entry or self.link())(*_flat(self.kinds, arguments))

    def link(self) -> Callable[..., int]:
        """Link its code, and compile it first if it is not kept."""
        with self._lock:
            if self._entry is None:
                self._entry = _linked(self)
            return self._entry


def kernel(function: Callable[Parameters, Any]) -> Kernel[Parameters]:
    """Declare a function that Python calls; its parameters are annotated with names of `kinds`."""
    return Kernel(function)


def _flat(kinds: tuple[Kind, ...], arguments: tuple[Any, ...]) -> list[int]:
    """Return arguments as machine code takes them: for an array its address and dimensions."""
    flat: list[int] = []
    for kind, argument in zip(kinds, arguments, strict=True):
        if kind is None:
            flat.append(int(argument))
            continue
        array = argument.rows if isinstance(argument, Record | Table) else argument
        assert (array.dtype, array.ndim) == kind
        assert array.flags.c_contiguous
        flat.append(array.__array_interface__["data"][0])
        flat += array.shape
    return flat


# ------------------------------------------------------------------------------------ code kept and linked

Kept = tuple[str, bytes]
"""The name of a kernel's entry, and its code."""

WAIT_SECONDS = 0.02
PACKAGE = "offsets_log.columnar"
MACHINE, WARM = f"{PACKAGE}.jit.numba_backend", f"{PACKAGE}.warm"
_BESIDE: list[subprocess.Popen[bytes]] = []
"""The process that compiles the smaller kernels, if it was started."""
_BY_OURSELVES: list[Kernel[Any]] = []
_ENGINES: list[Any] = []
IMPORT, NAME = re.compile(rb"^from (offsets_log[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE), re.compile(rb"\w+")


@functools.cache
def stamp_of(module: str) -> str:
    """Return a hash of everything that the code of a module's kernels depends on, as it was when this was asked."""
    import llvmlite.binding as llvm

    processor = (llvm.get_host_cpu_name(), sorted(llvm.get_host_cpu_features().items()))
    facts = (_sources(module), processor, sys.version_info[:2], _compiler(), llvm.llvm_version_info, IS_CHECKED)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


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


@functools.cache
def _cache_base() -> Path:
    """Return the user's cache folder, if nobody else can write to it; else one that is removed with the process."""
    base = os.environ.get("OFFSETS_LOG_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with suppress(OSError, RuntimeError):
        found = Path(base).expanduser().absolute()
        folder = found / "offsets-log" / "kernels"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        if status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(folder, os.W_OK):
            return found
    passing = tempfile.TemporaryDirectory(prefix="offsets-log-")
    atexit.register(passing.cleanup)
    (Path(passing.name) / "offsets-log" / "kernels").mkdir(parents=True)
    return Path(passing.name)


def _file_of(function: Callable[..., Any]) -> Path:
    return _cache_base() / "offsets-log" / "kernels" / f"{place_of(function)}-{stamp_of(function.__module__)}"


def place_of(function: Callable[..., Any]) -> str:
    """Return its module in this package, and its name."""
    return f"{function.__module__.removeprefix(f'{PACKAGE}.')}.{function.__name__}"


def is_kept(of: Kernel[Any]) -> bool:
    """Return whether a kernel's code is on disk, so that nothing must be compiled."""
    return IS_PYTHON or IS_CHECKED or _file_of(of.function).exists()


def _linked(of: Kernel[Any]) -> Callable[..., int]:
    file = _file_of(of.function)
    kept = _read(file)
    if kept is None:
        _wait_for(file, of)
        with _one_at_a_time(file):
            kept = _read(file) or _compile(of, file)
    counts = [1 if kind is None else 1 + kind[1] for kind in of.kinds]
    pointer = ctypes.c_void_p
    prototype: Any = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, *[ctypes.c_int64] * sum(counts))
    entry = prototype(_address_of(*kept))

    def call(*arguments: int) -> int:
        answer, raised = ctypes.c_int64(), ctypes.c_void_p()
        if entry(ctypes.byref(answer), ctypes.byref(raised), *arguments):
            raise IndexError(f"{place_of(of.function)}: an index is out of bounds")  # where numba checks
        return answer.value

    return call


def _compile(of: Kernel[Any], file: Path) -> Kept:
    """Compile a kernel in another process: only there are parts what numba makes of them.

    Code that cannot be kept, for example on a full disk, is used all the same.
    """
    if IS_COMPILING:
        from offsets_log.columnar.jit import numba_backend

        made = numba_backend.code_of(of.function, of.kinds)
        check_sources(of.function.__module__)
        with suppress(OSError):
            keep(file, packed(*made))
        return made
    command = (MACHINE, of.function.__module__, of.function.__name__, str(file))
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, env=_environment(), check=False)
    found = _unpacked(done.stdout)
    if done.returncode or found is None:
        raise RuntimeError(f"a kernel cannot be compiled: {done.stderr.decode(errors='replace')[-2000:]}")
    return found


def _environment() -> dict[str, str]:
    """Return the environment of a process that compiles.

    Levels above 2 take half as long again and gain nothing here. Code whose every index is checked is for tests, which
    compile it longer than they run it; below 1 it would need functions that count references.
    """
    path = os.pathsep.join(sys.path)
    ours = {"OFFSETS_LOG_CACHE": str(_cache_base()), "OFFSETS_LOG_COMPILES": "1", "NUMBA_OPT": str(LEVEL)}
    return {**os.environ, **ours, "PYTHONPATH": path}


def compile_beside(but: Kernel[Any]) -> None:
    """Start another process that compiles all kernels but one, which is about to be used.

    It begins with the kernels used together with that one. If this process ends earlier, the other continues, so that
    later commands need not wait.
    """
    if not _BESIDE:
        nothing = subprocess.DEVNULL
        command = [sys.executable, "-m", WARM, place_of(but.function)]
        _BESIDE.append(subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, env=_environment()))
        _BY_OURSELVES.append(but)


def _wait_for(file: Path, of: Kernel[Any]) -> None:
    """Wait for the code that the other process makes, but not beyond that process's end."""
    for process in _BESIDE if of not in _BY_OURSELVES else ():
        while process.poll() is None and not file.exists():
            time.sleep(WAIT_SECONDS)


@contextmanager
def _one_at_a_time(file: Path) -> Iterator[None]:
    """Wait while another process makes a file, so that it then exists; if nothing can be kept, nobody waits."""
    lock = file.with_name(f".{file.name}.lock")
    with ExitStack() as stack:
        with suppress(OSError):
            held = stack.enter_context(lock.open("wb"))
            fcntl.flock(held, fcntl.LOCK_EX)
            stack.callback(lock.unlink, missing_ok=True)
        yield


def _read(file: Path) -> Kept | None:
    """Return the entry and the code of a kernel; None if it is not kept, or is damaged."""
    try:
        return _unpacked(file.read_bytes())
    except OSError:
        return None


def packed(symbol: str, code: bytes) -> bytes:
    """Return a kernel's code as it is kept: after the name of its entry, after a digest of both."""
    kept = symbol.encode() + b"\n" + code
    return hashlib.sha256(kept).hexdigest().encode() + b"\n" + kept


def _unpacked(data: bytes) -> Kept | None:
    digest, _, kept = data.partition(b"\n")
    if digest != hashlib.sha256(kept).hexdigest().encode():
        return None
    symbol, _, code = kept.partition(b"\n")
    return symbol.decode(), code


def keep(file: Path, data: bytes) -> None:
    """Write what `packed` returned, whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".", delete=False) as made:
        try:
            made.write(data)
            made.flush()
        except OSError:
            Path(made.name).unlink()
            raise
    Path(made.name).replace(file)


C_FUNCTIONS = ("memcpy", "memmove", "memset")
"""All functions that a kernel may need from elsewhere: machine code calls them without the source naming them."""


def _address_of(symbol: str, code: bytes) -> int:
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


# ------------------------------------------------------------------------------------------- instructions

POLYNOMIAL = 0x82F63B78


def crc_tables(polynomial: int) -> np.ndarray[Any, Any]:
    """Return eight tables of 256: the CRC of a byte followed by 0 to 7 zero bytes, for a reflected polynomial."""
    tables = np.zeros((8, 256), np.uint64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
        tables[0, byte] = crc
    for i in range(1, 8):
        previous = tables[i - 1]
        tables[i] = (previous >> U(8)) ^ tables[0][(previous & U(0xFF)).astype(np.int64)]
    return tables


CRC_TABLES = crc_tables(POLYNOMIAL)


@instruction
def crc32c_word(crc: Any, word: Any) -> Any:
    """Add eight bytes, given as a little-endian integer, to a CRC-32C."""
    mixed = crc ^ word
    result = U(0)
    for i in range(8):
        byte = mixed >> U(8 * i) & U(0xFF)
        result ^= CRC_TABLES[7 - i, byte]
    return result


@instruction
def crc32c_byte(crc: Any, byte: Any) -> Any:
    """Add one byte to a CRC-32C."""
    return crc >> U(8) ^ CRC_TABLES[0, (crc ^ U(byte)) & U(0xFF)]


@instruction
def prefetch(array: Any, index: Any) -> None:
    """Request the cache line of an element that will be needed soon."""


@instruction
def load64(data: Any, position: Any) -> Any:
    """Return 8 bytes as a little-endian integer; the caller has checked the end."""
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
