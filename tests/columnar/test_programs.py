"""Column programs walk over the bytes of every schema table as its codec does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.columnar import arrays as a
from offsets_log.columnar.wire.primitives import walk
from offsets_log.columnar.wire.programs import compile_program
from offsets_log.log_format import primitives as p
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import INT16, INT32, INT64, STRING, ArrayOf, Field, Message, Struct
from tests.columnar.test_lengths_and_numbers import as_array
from tests.log_format.test_readers import by_construct, fields_of
from tests.sizes import examples

NESTED = Struct((Field("number", INT16), Field("name", STRING, nullable=True), Field("many", ArrayOf(INT64))))
ALL_FORMS = (
    Field("plain", NESTED),
    Field("some", NESTED, nullable=True),
    Field("rows", ArrayOf(NESTED), nullable=True),
    Field("last", INT32),
)
TAGGED = (Field("tagged", NESTED, tag=0, nullable=True, default=None), Field("text", STRING, tag=2))
TABLES = [
    (layout, version)
    for row in RECORD_TYPES.values()
    for layout in (row.key, *row.values)
    for version in range(20)
    if layout.has_version(version)
]
OWN = [(Message("Plain", ALL_FORMS), 0), (Message("Flexible", ALL_FORMS + TAGGED, flexible="0+"), 0)]


def walked(message: Message, version: int, raw: bytes) -> tuple[int, list[int]]:
    """Where a program ends over bytes that have others around them, and what it noted."""
    names = [row.name for row in message.fields_of(version)][: a.NOTES]
    scan_state = a.new_scan_state(compile_program(message, version, noted=names).code, seed=1)
    data = as_array(b"\xaa" * 3 + raw + b"\0" * 9)
    end = int(walk(scan_state, np.int64(0), data, np.int64(3), np.int64(3 + len(raw))))
    return end - 3 if end >= 0 else end, (scan_state.notes[: len(names)] - 3).tolist()


@examples(150)
@given(st.data())
def test_a_program_ends_where_the_codec_does(data: st.DataObject) -> None:
    """And notes where each field is that is always there; of bytes that the codec refuses it accepts none."""
    message, version = data.draw(st.sampled_from(TABLES) | st.sampled_from(OWN))
    values: dict[str, Any] = data.draw(fields_of(message.fields, version))
    code = message.struct(version)
    raw = p.build(code, values, "")
    end, notes = walked(message, version, raw)
    assert end == len(raw)
    rows = [row for row in message.fields_of(version) if row.tag is None]
    for i, noted in enumerate(notes[: len(rows)]):
        before = Message("", tuple(rows[:i]), flexible="0+" if message.is_flexible(version) else None)
        assert noted == len(p.build(before.struct(version), values, "")) - message.is_flexible(version)
    at = data.draw(st.integers(0, len(raw)))
    change = data.draw(st.binary(min_size=1, max_size=3))
    for odd in (raw[:at], raw[:at] + change + raw[at:], raw[:at] + change + raw[at + len(change) :]):
        end, _ = walked(message, version, odd)
        found = by_construct(code, odd)
        assert end < 0 or (found is not None and found[1] == end)
