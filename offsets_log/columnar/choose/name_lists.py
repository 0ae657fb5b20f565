"""The lists of topic ids with names in values of newer kinds, as `choice` reads them: by the tables, in numbers."""

from __future__ import annotations

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import newer
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.messages.schema import INT32, STRING, UUID, Message

TOPICS, TOPICS_WITH_PARTITIONS, LIST_KINDS = range(1, 4)
"""Kinds of lists with names: of ids with names, and with partitions behind them."""


def _lists_of(layout: Message) -> int:
    """Return the kinds of a layout's lists as digits, the first one last; 0 if it has anything else."""
    kinds = {(UUID, STRING): TOPICS, (UUID, STRING, (INT32,)): TOPICS_WITH_PARTITIONS}
    digits = 0
    for row in reversed(layout.fields):
        parts = newer.parts_of(row.type)
        if parts not in kinds or row.nullable or row.tag is not None or not layout.is_flexible(0):
            return 0
        digits = digits * LIST_KINDS + kinds[parts]
    return digits


LISTS = np.zeros(a.RECORD_TYPES, np.int64)
"""`_lists_of` the layout that kernels know, by record type of the newer kinds; 0 for those that name no topics."""
for _number in np.flatnonzero(newer.TYPES[:, newer.NAMES] == 1).tolist():
    LISTS[_number] = _lists_of(RECORD_TYPES[_number].values[0])
