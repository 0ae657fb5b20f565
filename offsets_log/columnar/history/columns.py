"""Copy texts of entries to columns, in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from offsets_log.columnar.history import entries as e
from offsets_log.columnar.jit.compiled import U, kernel
from offsets_log.columnar.jit.kinds import ByteRows, Bytes, Ints, LongRows, Number
from offsets_log.columnar.scan.interner import is_plain_text, is_utf8
from offsets_log.columnar.sinks.writers import says_more


@kernel
def are_utf8(entries: LongRows, count: Number, texts: Bytes) -> Any:
    """Return whether the metadata of all entries is UTF-8."""
    for n in range(count):
        start, size = entries[U(n), e.METADATA_AT], entries[U(n), e.METADATA_SIZE]
        if not is_plain_text(texts, start, size) and not is_utf8(texts, start, size):
            return np.int64(0)
    return np.int64(1)


@kernel
def metadata(entries: LongRows, texts: Bytes, letters: ByteRows, out: Bytes, ends: Ints, more: Bytes) -> None:
    """Copy the metadata of entries; note where each ends, and whether it may contain more than text.

    Args:
        letters: see `writers.says_more`.
        out: has room for all.
    """
    used = np.int64(0)
    for i in range(len(entries)):
        start, size = entries[U(i), e.METADATA_AT], entries[U(i), e.METADATA_SIZE]
        more[U(i)] = says_more(texts, start, size, letters)
        for at in range(size):
            out[U(used + at)] = texts[U(start + at)]
        used += size
        ends[U(i)] = used
