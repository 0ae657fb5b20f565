"""Make Arrow tables: the columns of `rows.tables` with their types, filled from rows or from a replay's arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.jit.compiled import U, kernel
from offsets_log.columnar.jit.kinds import Bytes, Ints, Longs
from offsets_log.columnar.materialize import values as fi
from offsets_log.columnar.materialize.timelines import group_names
from offsets_log.columnar.scan import gather as ga
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.rows.tables import Column, Row, raw_names, to_json

TYPES = {
    "string": pa.string(),
    "json": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
}
"""SQL type without parts → Arrow type."""

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Epoch milliseconds of the years 1 to 9999: `datetime`, pandas and Spark have no others."""

SORTED_BY = [
    ("group", "ascending"),
    ("topic", "ascending"),
    ("partition", "ascending"),
    ("offsets_partition", "ascending"),
]


def schema_of(columns: Iterable[Column]) -> pa.Schema:
    """Return the Arrow schema of columns."""
    return pa.schema([pa.field(column.name, arrow_type(column.sql_type)) for column in columns])


def arrow_type(sql_type: str) -> pa.DataType:
    """Return the Arrow type of an SQL type, such as ``int`` or ``array<struct<topic:string,partition:int>>``.

    Raises:
        KeyError: there is none.
    """
    if sql_type in TYPES:
        return TYPES[sql_type]
    kind, _, inner = sql_type.removesuffix(">").partition("<")
    return _NESTED[kind](*_parts(inner))


def _struct(*fields: str) -> pa.StructType:
    named = (field.partition(":") for field in fields)
    return pa.struct([(name, arrow_type(sql_type)) for name, _, sql_type in named])


_PLAIN = TYPES.keys() - {"json"}

_NESTED: dict[str, Callable[..., pa.DataType]] = {
    "array": lambda element: pa.list_(pa.field("element", arrow_type(element))),
    "map": lambda key, value: pa.map_(arrow_type(key), arrow_type(value)),
    "struct": _struct,
}
"""Kind of SQL type with parts → makes the Arrow type of these."""


def _parts(text: str) -> list[str]:
    """Return what commas separate, but for those between angle brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "<") - (sign == ">")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _cell(value: Any, kind: pa.DataType) -> Any:
    """Return a value of a row as pyarrow takes it: a map as pairs; a structure in a column of texts as JSON."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_cell(part, kind.value_type) for part in value]
    if pa.types.is_struct(kind):
        return {field.name: _cell(value.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        return list(value.items())
    return to_json(value) if isinstance(value, dict | list) else value


def numbers(values: npt.NDArray[Any], is_there: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers as a column, without a copy if they are contiguous.

    This, `repeated`, `flags` and `strings` do what pyarrow's `array` and `scalar` do, which import pandas first.
    """
    values = np.ascontiguousarray(values)
    validity = None if is_there is None else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, pa.py_buffer(values)])


def repeated(number: int | None, count: int) -> pa.Int32Array:
    """Return a column that repeats a number ``count`` times."""
    return pa.nulls(count, pa.int32()) if number is None else numbers(np.full(count, number, np.int32))


def flags(values: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """Return truth values as a column."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


def strings(texts: Sequence[str | None]) -> pa.StringArray:
    """Return texts as a column."""
    raw = [b"" if text is None else text.encode() for text in texts]
    bounds = np.zeros(len(raw) + 1, np.int32)
    np.cumsum([*map(len, raw)], out=bounds[1:])
    is_there = np.array([text is not None for text in texts], np.bool_)
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(raw), [validity, pa.py_buffer(bounds), pa.py_buffer(b"".join(raw))])


def table_of_rows(rows: Sequence[Row], columns: Sequence[Column]) -> pa.Table:
    """Return rows as a table of these columns; those of raw names, which only some rows have, come last."""
    schema = schema_of(columns)
    if structured := [column.name for column in columns if column.sql_type not in _PLAIN]:
        kinds = {name: schema.field(name).type for name in structured}
        rows = [row | {name: _cell(row.get(name), kind) for name, kind in kinds.items()} for row in rows]
    for name in sorted(raw_names(rows) - set(schema.names)):
        schema = schema.append(pa.field(name, pa.string()))
    if not rows:
        return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    return pa.Table.from_pylist(list(rows), schema)


def served_table(
    layout: Layout,
    state: ColumnarState,
    scanner: Scanner,
    *,
    shows_group: Callable[[str], bool] = lambda name: True,
    shows_topic: Callable[[str], bool] = lambda name: True,
    orphans: bool = False,
    unstable: bool = False,
) -> pa.Table | None:
    """Return the served offsets of one log as `COMPACT_COLUMNS`.

    Args:
        orphans: include offsets of groups that do not exist.
        unstable: add a column that marks offsets under an open transaction.

    Returns:
        None if rows are needed, because some records were read on the slow path or a text is not UTF-8.
    """
    found = fi.find(state)
    rows = state.arrays.rows
    if np.any(rows.column(a.Row.batch)[found.committed] == a.SLOW_PATH):
        return None
    names = group_names(state)
    is_shown = np.array([shows_group(name) for name in names], np.bool_)
    if not orphans:
        is_shown &= fi.existing_groups(layout, state, scanner, found)
    committed = found.committed[is_shown[rows.column(a.Row.group)[found.committed]]]
    rows = rows.of(committed)
    copied, table = scanner.gather(layout, rows.columns(a.Row.batch, a.Row.index))
    columns = offset_columns(copied, table)
    if columns is None:
        return None
    group = pa.DictionaryArray.from_arrays(numbers(rows.column(a.Row.group).astype(np.int32)), strings(names))
    made = {
        "group": group.cast(pa.string()),
        **columns,
        "record_offset": numbers(rows.column(a.Row.record_offset)),
        "offsets_partition": repeated(layout.log.offsets_partition, len(committed)),
    }
    if unstable:
        made["unstable"] = flags(np.isin(committed, found.pending[:, 0]))
    made_table = pa.table(made)
    if shows_topic is not None:
        topics = columns["topic"].dictionary_encode()
        shown = np.array([shows_topic(name) for name in topics.dictionary.to_pylist()], np.bool_)
        if not shown.all():
            made_table = made_table.filter(flags(shown[topics.indices.to_numpy()]))
    return made_table


def offset_columns(copied: a.Bytes, table: a.Int64s) -> dict[str, pa.Array] | None:
    """Return what offset commits contain besides their group, as copied by `Scanner.gather`; None without UTF-8."""
    keys, key_sizes = fi.key_reader().read(copied, table, ga.KEY)
    values, sizes = fi.offset_reader().read(copied, table, ga.VALUE)
    topic = texts(copied, keys[:, fi.TOPIC], key_sizes[:, fi.TOPIC])
    metadata = texts(copied, values[:, fi.METADATA], sizes[:, fi.METADATA])
    raw_group = texts(copied, keys[:, fi.GROUP], key_sizes[:, fi.GROUP])
    if topic is None or metadata is None or raw_group is None:
        return None
    leader_epoch, expire = values[:, fi.LEADER_EPOCH], values[:, fi.EXPIRE_TIMESTAMP]
    return {
        "topic": topic,
        "partition": numbers(keys[:, fi.PARTITION].astype(np.int32)),
        "committed_offset": numbers(values[:, fi.OFFSET]),
        "leader_epoch": numbers(leader_epoch.astype(np.int32), leader_epoch != -1),
        "metadata": metadata,
        "commit_timestamp_ms": numbers(values[:, fi.COMMIT_TIMESTAMP]),
        "expire_timestamp_ms": numbers(expire, expire != -1),
        "topic_id": strings(fi.topic_ids(copied.tobytes(), values[:, fi.TOPIC_ID])),
    }


def texts(data: a.Bytes, places: a.Int64s, sizes: a.Int64s) -> pa.StringArray | None:
    """Return texts out of bytes as one column; None if one is not UTF-8. A negative place is null."""
    column = pa.Array.from_buffers(pa.string(), len(places), _text_buffers(data, places, sizes))
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return column


def _text_buffers(data: a.Bytes, places: a.Int64s, sizes: a.Int64s) -> list[Any]:
    bounds = np.zeros(len(places) + 1, np.int32)
    is_there = places >= 0
    np.cumsum(np.where(is_there, sizes, 0), out=bounds[1:])
    copied = np.zeros(int(bounds[-1]), np.uint8)
    copy_texts(data, np.ascontiguousarray(places), bounds, copied)
    validity: npt.NDArray[Any] | None = None if is_there.all() else np.packbits(is_there, bitorder="little")
    return [None if validity is None else pa.py_buffer(validity), pa.py_buffer(bounds), pa.py_buffer(copied)]


@kernel
def copy_texts(data: Bytes, places: Longs, bounds: Ints, copied: Bytes) -> None:
    """Copy texts one after the other; ``bounds`` says where each begins and ends."""
    for i in range(len(places)):
        for j in range(np.int64(bounds[i + 1]) - np.int64(bounds[i])):
            copied[U(bounds[i] + j)] = data[U(places[i] + j)]
