"""The forms of headers that tell a record's offset and partition in another cluster: as given, or as their values show.

A number of 4 or 8 bytes in the wrong order is huge, or goes up by huge steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from offsets_log.columnar import arrays as a
from offsets_log.columnar.aligning import records as r
from offsets_log.columnar.aligning.reading import NO_HEADERS, Headers
from offsets_log.columnar.jit.records import Rows
from offsets_log.errors import AskedError, InputError

FORMS = {"le": r.LITTLE_ENDIAN, "be": r.BIG_ENDIAN, "text": r.TEXT}
MOST_OFFSET, MOST_PARTITION = 1 << 48, 1 << 20
"""No log has more."""

Chunks = Callable[[Headers], Iterator[Rows]]
"""Reads all rows with some headers asked for."""


def headers_of(asked: str | None) -> Headers:
    """Return the headers that a user asks for: ``NAME`` or ``NAME:FORM``.

    Raises:
        AskedError: there is no name, or no such form.
    """
    if asked is None:
        return NO_HEADERS
    name, colon, form = asked.rpartition(":") if ":" in asked else (asked, "", "")
    if not name or (colon and form not in FORMS):
        raise AskedError(f"--offset-header {asked}: it takes NAME, NAME:le, NAME:be or NAME:text")
    return Headers(((name.encode(), FORMS.get(form, r.ANY_FORM)), NO_HEADERS.asked[1]))


def with_forms(headers: Headers, chunks: Chunks) -> Headers | None:
    """Return headers with the forms that their first values show; None if no record has the one with the offset.

    Raises:
        InputError: the values make sense in no form.
    """
    (offset, offset_form), (partition, partition_form) = headers.asked
    found, count = _values(chunks, offset, offset_form)
    if not len(found):
        return None
    if offset_form == r.ANY_FORM:
        offset_form = _form(found, MOST_OFFSET, offset, r.ANY_FORM)
    found, _ = _values(chunks, partition, partition_form, count)
    if len(found):
        partition_form = _form(found, MOST_PARTITION, partition, offset_form)
    return Headers(((offset, offset_form), (partition, partition_form)))


def _values(chunks: Chunks, name: bytes, form: int, most: int | None = None) -> tuple[a.Int64s, int]:
    """Return a header's values in the first chunk that has it, in the form given and big-endian, and which chunk it is.

    Args:
        most: so many chunks are read; None for all.
    """
    count = 0
    for rows in chunks(Headers(((name, form), (name, r.BIG_ENDIAN)))):
        count += 1
        values = np.stack([rows["source_offset"], rows["source_partition"]], axis=1)
        values = values[(values >= 0).any(axis=1)]
        if len(values) or count == most:
            return values, count
    return np.zeros((0, 2), np.int64), count


def _form(values: a.Int64s, most: int, name: bytes, usual: int) -> int:
    """Return the form in which all values make sense, and lie the closest together."""
    spans = {
        form: int(column.max() - column.min())
        for form, column in zip((r.ANY_FORM, r.BIG_ENDIAN), values.T, strict=True)
        if column.min() >= 0 and column.max() <= most
    }
    if not spans:
        raise InputError(f"the values of header {name.decode()} are numbers in no form that is known")
    least = min(spans.values())
    best = [form for form, span in spans.items() if span == least]
    return usual if usual in best else best[0]
