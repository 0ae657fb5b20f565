"""Number the kinds of rows: rows of one kind have the same template."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from offsets_log.columnar import arrays as a
from offsets_log.columnar.events import columns as k
from offsets_log.columnar.events.layouts import layouts_of
from offsets_log.columnar.wire import batches as bt
from offsets_log.messages.registry import RECORD_TYPES


@dataclass(frozen=True, slots=True)
class Kind:
    """What rows with the same template have in common: facts of `events.columns`."""

    kind: int
    attributes: int
    record_type: int
    value_version: int
    layout: int
    has_topic_id: bool


def _values() -> Iterator[tuple[int, int, int]]:
    """Yield all combinations of record types, value versions and their layouts, −1 where there is none."""
    yield -1, -1, 0
    for number in RECORD_TYPES:
        yield number, -1, 0
        for version in range(a.VERSIONS):
            for layout in range(len(layouts_of(number, version, None))):
                yield number, version, layout


VALUES = tuple(_values())


def _value_numbers() -> npt.NDArray[np.int32]:
    """Return the index in `VALUES` for every combination of record type, version and layout, each from −1 or 0 on."""
    numbers = np.zeros((a.RECORD_TYPES + 1, a.VERSIONS + 1, k.MOST_LAYOUTS), np.int32)
    for i, (number, version, layout) in enumerate(VALUES):
        numbers[number + 1, version + 1, layout] = i
    return numbers


VALUE_NUMBERS = _value_numbers()
ATTRIBUTES_WIDTH, VALUE_WIDTH, TOPIC_ID_WIDTH = bt.OLDER_SHIFT + 2, len(VALUES).bit_length(), 1
WIDTHS = 3, ATTRIBUTES_WIDTH, VALUE_WIDTH, TOPIC_ID_WIDTH
"""Bits of the parts of a kind's number."""
KINDS = 1 << sum(WIDTHS)


def kind_numbers(ints: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the kinds of a chunk's rows as numbers below `KINDS`."""
    kinds = ints[k.KIND]
    layouts = np.where(kinds == k.GROUP_VALUE, ints[k.LAYOUT], 0)
    parts = (
        kinds,
        ints[k.ATTRIBUTES],
        VALUE_NUMBERS[ints[k.RECORD_TYPE] + 1, ints[k.VALUE_VERSION] + 1, layouts],
        ints[k.TOPIC_ID] >= 0,
    )
    numbers = np.zeros(len(kinds), np.int32)
    for width, part in zip(WIDTHS, parts, strict=True):
        numbers <<= width
        numbers |= part
    return numbers


def kind_of(number: int) -> Kind:
    """Return the kind of a number, the inverse of `kind_numbers`."""
    parts = []
    for width in reversed(WIDTHS):
        parts.append(number & (1 << width) - 1)
        number >>= width
    has_topic_id, value, attributes, kind = parts
    return Kind(kind, attributes, *VALUES[value], bool(has_topic_id))
