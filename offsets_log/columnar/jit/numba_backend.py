"""Compile kernels to machine code by numba: the only module that knows numba, imported only to compile.

Processes that compile import it before any kernel: there the decorators of `compiled` return what numba makes of a
part, and for an instruction its intrinsic. Only public names of numba and llvmlite are used, but for one private
option, ``_nrt``, for how named tuples name symbols, and for `Unlinked`, in processes that compile.
"""

from __future__ import annotations

import platform
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, codegen, typed_passes, types, untyped_passes
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from offsets_log.columnar.jit.kinds import Kind, leaves
from offsets_log.columnar.jit.linking import C_FUNCTIONS
from offsets_log.columnar.jit.modes import IS_CHECKED, IS_COMPILING, LEVEL
from offsets_log.columnar.jit.sources import processor

_LOCK = threading.Lock()
_JIT: Any = numba.njit
_CGUTILS: Any = cgutils
_NUMBA: Any = numba
_LIBRARY: Any = codegen.JITCPUCodegen._library_class
_TYPES: Any = types
_PASSES: tuple[Any, ...] = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)
_PASS_MANAGER: Any = PassManager
_MAKE_ARRAY: Any = make_array
_POPULATE_ARRAY: Any = populate_array
_POINTER = _TYPES.CPointer
_NAMED: Any = types.NamedTuple
_NAMED.mangling_args = types.Tuple.mangling_args
"""Symbols tell the types that a part takes, but of a named tuple as the text of all its fields: thousands of bytes."""


class Unlinked(_LIBRARY):  # type: ignore[misc]
    """The assembly of one part, without those that it calls: numba would link, optimize and load them with each caller.

    All parts of a kernel are optimized once, together (`_object_of`).
    """

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    @property
    def codegen(self) -> Unlinked:
        """What the environment of loaded code is set in."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return that there is no machine code."""
        self._ensure_finalized()
        return 0

    def with_parts(self) -> list[Unlinked]:
        """Return it, and those of all parts that it calls, even indirectly."""
        found = {id(self): self}
        todo = [self]
        while todo:
            for part in todo.pop()._linking_libraries:
                if id(part) not in found:
                    found[id(part)] = part
                    todo.append(part)
        return [*found.values()]


class Passes(CompilerBase):
    """What numba does with a part: what else it could do, closures, parallel loops and literals need.

    Each of its passes looks through the whole part.
    """

    def define_pipelines(self) -> list[Any]:
        self.state.library = Unlinked(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        passes = _PASS_MANAGER("parts")
        for one in _PASSES:
            passes.add_pass(one, one.__name__)
        passes.finalize()
        return [passes]


_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}
"""Kernels make no arrays: they need no reference counts, which would cost more than the work."""
if IS_COMPILING:
    _OPTIONS["pipeline_class"] = Passes

# ------------------------------------------------------------------------------------------- intrinsics


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Return the address of an element of an array, in the generated code."""
    view = context.make_array(array_type)(context, builder, array)
    return builder.gep(view.data, [index])


@intrinsic
def _crc32c_word(typing_context: Any, crc: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * 2)
        name = "llvm.x86.sse42.crc32.64.64"
        return builder.call(_CGUTILS.get_or_insert_function(builder.module, function, name), arguments)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def _crc32c_byte(typing_context: Any, crc: Any, byte: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        i8, i32, i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
        callee = _CGUTILS.get_or_insert_function(
            builder.module, ir.FunctionType(i32, [i32, i8]), "llvm.x86.sse42.crc32.32.8"
        )
        return builder.zext(builder.call(callee, [builder.trunc(arguments[0], i32), arguments[1]]), i64)

    return types.uint64(types.uint64, types.uint8), generate


@intrinsic
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(_place(context, builder, signature.args[0], *arguments), pointer)
        function = ir.FunctionType(ir.VoidType(), [pointer, i32, i32, i32])
        callee = _CGUTILS.get_or_insert_function(builder.module, function, "llvm.prefetch.p0i8")
        builder.call(callee, [place, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def _load64(typing_context: Any, data: Any, position: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments)
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


@intrinsic
def _copy8(typing_context: Any, source: Any, at: Any, target: Any, out: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64).as_pointer()
        begin = builder.bitcast(_place(context, builder, signature.args[0], *arguments[:2]), word)
        place = builder.bitcast(_place(context, builder, signature.args[2], *arguments[2:]), word)
        builder.store(builder.load(begin, align=1), place, align=1)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), generate


@intrinsic
def _copy_bytes(typing_context: Any, source: Any, at: Any, target: Any, out: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        begin = _place(context, builder, signature.args[0], *arguments[:2])
        place = _place(context, builder, signature.args[2], *arguments[2:4])
        _CGUTILS.raw_memcpy(builder, place, begin, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64, types.int64), generate


@intrinsic
def _address(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(_place(context, builder, signature.args[0], *arguments), ir.IntType(64))

    return types.uint64(array, types.int64), generate


@intrinsic
def _call(typing_context: Any, function: Any, arguments: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(64)
        given = _CGUTILS.unpack_tuple(builder, values[1], len(signature.args[1]))
        callee = ir.FunctionType(word, [word] * len(given)).as_pointer()
        return builder.call(builder.inttoptr(values[0], callee), given)

    return types.uint64(types.uint64, arguments), generate


@intrinsic
def _array(typing_context: Any, pointer: Any, shape: Any) -> Any:
    """Return the array in C order at an address."""
    array_type = _TYPES.Array(pointer.dtype, len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = _MAKE_ARRAY(array_type)(context, builder)
        lengths = _CGUTILS.unpack_tuple(builder, arguments[1])
        size = ir.IntType(64)(context.get_abi_sizeof(context.get_data_type(pointer.dtype)))
        strides = [size]
        for length in lengths[:0:-1]:
            strides.insert(0, builder.mul(strides[0], length))
        data = builder.bitcast(arguments[0], array.data.type)
        _POPULATE_ARRAY(array, data=data, shape=lengths, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()

    return array_type(pointer, shape), generate


ANYWHERE: dict[str, Any] = {"prefetch": _prefetch, "address": _address, "call": _call}
"""Name of an instruction → its intrinsic."""
IN_WORDS: dict[str, Any] = {"load64": _load64, "copy8": _copy8, "copy_bytes": _copy_bytes}
"""Intrinsics that bypass numba's check of every index, for processors with little-endian words."""


def _intrinsics() -> dict[str, Any]:
    found = dict(ANYWHERE)
    if sys.byteorder == "little" and not IS_CHECKED:
        found |= IN_WORDS
    has_crc32c = llvmlite.binding.get_host_cpu_features().get("sse4.2")
    if platform.machine().lower() in ("x86_64", "amd64") and has_crc32c:
        found |= {"crc32c_word": _crc32c_word, "crc32c_byte": _crc32c_byte}
    return found


def record_within(dtype: np.dtype[np.void]) -> Any:
    """Return the part for `compiled.within`."""
    record: Any = numba.from_dtype(dtype)
    size = dtype.itemsize // 8

    @intrinsic
    def find(typing_context: Any, numbers: Any, begin: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            numbers, begin, number = arguments
            at = builder.add(begin, builder.mul(number, ir.IntType(64)(size)))
            place = _place(context, builder, signature.args[0], numbers, at)
            return builder.bitcast(place, context.get_value_type(record))

        return record(numbers, types.int64, types.int64), generate

    def checked(numbers: Any, begin: Any, number: Any) -> Any:
        first, last = begin + number * size, begin + number * size + size - 1
        numbers[first], numbers[last] = numbers[first], numbers[last]
        return found(numbers, begin, number)

    found: Any = find
    return compiled_part(checked, is_inlined=True) if IS_CHECKED else find


# ------------------------------------------------------------------------------------------- compilation


def compiled_part(function: Callable[..., Any], *, is_inlined: bool, is_instruction: bool = False) -> Any:
    """Return what numba makes of a part."""
    intrinsics = _intrinsics() if is_instruction else {}
    if function.__name__ in intrinsics:
        return intrinsics[function.__name__]
    return _JIT(nogil=True, forceinline=is_inlined, **_OPTIONS)(function)


def code_of(function: Callable[..., Any], kinds: Sequence[Kind]) -> tuple[str, bytes]:
    """Compile a kernel; return the name of its entry, and the object code.

    The entry takes the address for its answer, an integer, then the address for an exception, and then for each array
    its address and its dimensions.

    Raises:
        LinkError: the code needs anything but `C_FUNCTIONS`.
    """
    with _LOCK:
        return _object_of(*_parts_of(function, kinds))


class LinkError(Exception):
    """A kernel needs functions that do not exist where it is linked."""


def _parts_of(function: Callable[..., Any], kinds: Sequence[Kind]) -> tuple[str, list[Unlinked]]:
    """Return the name of a kernel's entry, and LLVM's assembly of it and of all its parts."""
    parameters: list[str] = []
    parameter_types: list[Any] = []
    for i, kind in enumerate(leaves(kinds)):
        parameters += _names(i, kind)
        if kind is None:
            parameter_types.append(types.int64)
        else:
            parameter_types += [_POINTER(numba.from_dtype(kind.dtype)), *[types.int64] * kind.dimensions]
    scope: dict[str, Any] = {"array": _array, "int64": np.int64}
    call = f"kernel({', '.join(_given(kinds, count(), scope))})"
    is_silent = function.__annotations__.get("return", "") in (None, "None")
    answer = f"    {call}\n    return 0" if is_silent else f"    return int64({call})"
    inner = _JIT(nogil=True, forceinline=True, **_OPTIONS)(function)
    scope["kernel"] = inner
    name = f"entry_{function.__name__}"
    exec(f"def {name}({', '.join(parameters)}):\n{answer}\n", scope)
    made = _JIT(**_OPTIONS)(scope[name])
    made.compile(tuple(parameter_types))
    return name, made.overloads[made.signatures[0]].library.with_parts()


def _names(i: int, kind: Kind) -> list[str]:
    """Return the entry's parameters for an array or number: its address and dimensions, or itself."""
    return [f"x{i}", *(f"x{i}_{dimension}" for dimension in range(0 if kind is None else kind.dimensions))]


def _given(kinds: Iterable[Kind], numbers: Iterator[int], scope: dict[str, Any]) -> Iterator[str]:
    """Yield what the kernel is called with, made of the entry's parameters; tuples get their class by its name."""
    for kind in kinds:
        if isinstance(kind, tuple):
            made = type(kind).__name__
            assert scope.setdefault(made, type(kind)) is type(kind)
            yield f"{made}({', '.join(_given(kind, numbers, scope))})"
            continue
        place, *dimensions = _names(next(numbers), kind)
        if kind is None:
            yield place
        else:
            yield f"array({place}, ({', '.join(dimensions)},))" if dimensions else f"array({place}, (1,))[0]"


def _object_of(name: str, parts: Iterable[Unlinked]) -> tuple[str, bytes]:
    """Return the symbol of the entry, and the object code of all that it needs."""
    llvm: Any = llvmlite.binding
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly("")
    for part in parts:
        module.link_in(part._final_module, preserve=True)
    (entry,) = (item for item in module.functions if not item.is_declaration and name in item.name)
    for item in module.functions:
        if not item.is_declaration and item.name != entry.name:
            item.linkage = "internal"
    cpu, features = processor()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=LEVEL, jit=True)
    options = llvm.create_pipeline_tuning_options(LEVEL)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_dead_arg_elimination_pass()  # parts take whole bundles, and of each array what numba knows of it
    passes.run(module, builder)
    foreign = [item.name for item in module.functions if item.is_declaration and not item.name.startswith("llvm.")]
    if missing := sorted({*foreign} - {*C_FUNCTIONS}):
        raise LinkError(f"{name} needs {', '.join(missing)}")
    return entry.name, machine.emit_object(module)
