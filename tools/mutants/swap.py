"""A change of functions put into a process that has imported their module: each function gets its new code."""

from __future__ import annotations

import gc
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

Swap = tuple[CodeType, CodeType]


def swaps(was: str, became: str, path: Path) -> list[Swap]:
    """Functions whose code differs, as (was, became). Raises ValueError if what an import runs differs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of code like ``1 is not 2``, which a mutant may well say
        old, new = (compile(text, str(path), "exec", dont_inherit=True) for text in (was, became))
    return list(_differing(old, new))


def put_in(pairs: list[Swap]) -> None:
    """Give the functions of this process their new code. Raises ValueError if one is not to be found."""
    gc.unfreeze()  # what is frozen is not among the objects
    functions = [thing for thing in gc.get_objects() if isinstance(thing, FunctionType)]
    for old, new in pairs:
        found = [function for function in functions if _is_of(function.__code__, old)]
        if not found:
            raise ValueError(f"no function has the code {old.co_qualname}")
        for function in found:
            function.__code__ = new


def _differing(old: CodeType, new: CodeType) -> Iterator[Swap]:
    if _own(old) != _own(new):
        raise ValueError("what an import runs differs")
    for was, became in zip(_inner(old), _inner(new), strict=True):
        if was == became:
            continue
        if was.co_flags & inspect.CO_OPTIMIZED:  # a function; the body of a class is not
            yield was, became
        else:
            yield from _differing(was, became)


def _inner(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def _own(code: CodeType) -> object:
    """What a code says itself, without the functions and classes in it."""
    consts = [None if isinstance(const, CodeType) else (type(const), const) for const in code.co_consts]
    return code.co_code, repr(consts), code.co_names


def _is_of(code: CodeType, wanted: CodeType) -> bool:
    return (
        code.co_qualname == wanted.co_qualname
        and code.co_firstlineno == wanted.co_firstlineno
        and Path(code.co_filename) == Path(wanted.co_filename)
    )
