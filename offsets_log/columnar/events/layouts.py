"""Find layouts of values: several may share a version, and the bytes decide (`messages.registry.decode_value`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.jit.compiled import part
from offsets_log.columnar.wire.primitives import walk
from offsets_log.columnar.wire.programs import NO_PLACE, Program, compile_program
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import Message

Release = tuple[int, int]


def layouts_of(number: int, version: int, release: Release | None) -> list[Message]:
    """Return the tables of a value version, in the order in which they are tried.

    Args:
        release: the release that wrote the log, if it is known.
    """
    found = list(RECORD_TYPES[number].layouts(version)) if number in RECORD_TYPES else []
    return found if release is None else sorted(found, key=lambda layout: not layout.is_written_by(release))


@cache
def programs_of(release: Release | None) -> dict[tuple[int, int | None], Program]:
    """Return programs of keys and of values, by record type and version (None for the key).

    Offset commits are read without one. A key's program notes its first two fields. A value's program is one of several
    layouts, as `layout_of` reads them.
    """
    programs: dict[tuple[int, int | None], Program] = {}
    for number, row in RECORD_TYPES.items():
        if row.key.is_flexible(0):
            continue
        programs[number, None] = compile_program(row.key, 0, noted=[field.name for field in row.key.fields[:2]])
        for version in range(a.VERSIONS if number >= a.COMMIT_TYPES else 0):
            if found := layouts_of(number, version, release):
                programs[number, version] = _chained([compile_program(layout, version) for layout in found])
    return programs


def _chained(programs: Sequence[Program]) -> Program:
    """Join programs, each after the number of words to the next one, 0 for none."""
    chain = [np.concatenate([[len(program.code) + 1], program.code]) for program in programs]
    chain[-1][0] = 0
    return Program(np.concatenate(chain), {})


@part
def layout_of(scan_state: a.ScanState, number: Any, version: Any, data: Any, start: Any, end: Any) -> Any:
    """Return which layout of a value version fits its bytes, −1 if none does.

    The first layout that ends where they do is taken, else the first that leaves some bytes over.
    """
    program = scan_state.value_programs[number, version]
    found = np.int64(-1)
    for layout in range(k.MOST_LAYOUTS if program != NO_PLACE else 0):
        after = walk(scan_state, program + 1, data, start, end)
        if after == end:
            return np.int64(layout)
        if after >= 0 and found < 0:
            found = np.int64(layout)
        link = scan_state.code[program]
        if link == 0:
            break
        program += link
    return found
