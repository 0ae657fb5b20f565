"""Parquet files of the kernels: what readers that are not ours make of them."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsets_log.columnar.events.rows import BOUNDED, SCHEMA
from offsets_log.columnar.parquet import writer as parquet_writer
from offsets_log.columnar.parquet.kernels import BLOCK, MINIBLOCK
from offsets_log.columnar.parquet.pages import MOST_NUMBERS, MOST_TEXTS, Pages
from offsets_log.columnar.parquet.writer import ParquetWriter

TEXTS = pa.dictionary(pa.int32(), pa.string())
BITS = {pa.int32(): 32, pa.int64(): 64}
SIZES = [1, 2, 7, 8, 9, MINIBLOCK, MINIBLOCK + 1, BLOCK, BLOCK + 1, BLOCK + 2, 1000]
KINDS = (pa.int32(), pa.int64(), pa.bool_(), pa.string(), pa.binary(), TEXTS)


def written(path: Path, tables: list[pa.Table], *, bounded: tuple[str, ...] = ()) -> pq.ParquetFile:
    """A file of tables of one schema, at least one."""
    with path.open("wb") as sink, ParquetWriter(sink, tables[0].schema, bounded=bounded, compression_level=1) as writer:
        for table in tables:
            writer.write_table(table)
    return pq.ParquetFile(path)


def assert_same(path: Path, tables: list[pa.Table]) -> None:
    """Rows, schema and what the footer tells."""
    schema = tables[0].schema
    numbers = tuple(field.name for field in schema if pa.types.is_integer(field.type))
    file = written(path, tables, bounded=numbers)
    whole = pa.concat_tables(tables)
    assert file.schema_arrow.equals(schema)
    read = file.read()
    read.validate(full=True)
    assert read.schema.equals(schema)
    assert read.to_pylist() == whole.to_pylist()
    groups = [table for table in tables if len(table)]
    assert file.metadata.num_rows == len(whole)
    assert file.num_row_groups == len(groups)
    for i, table in enumerate(groups):
        group = file.metadata.row_group(i)
        assert group.num_rows == len(table)
        for j, name in enumerate(schema.names):
            chunk = group.column(j)
            values = [value for value in table[name].to_pylist() if value is not None]
            assert chunk.num_values == len(table)
            assert chunk.statistics.null_count == len(table) - len(values)
            assert chunk.statistics.has_min_max == (name in numbers and bool(values))
            if chunk.statistics.has_min_max:
                assert (chunk.statistics.min, chunk.statistics.max) == (min(values), max(values))
    assert read_by_duckdb(path) == whole.to_pylist()


def read_by_duckdb(path: Path) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        found = connection.execute("select * from read_parquet(?)", [str(path)])
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


# ------------------------------------------------------------------------------------------------- tables


def _values(kind: pa.DataType, count: int, dice: random.Random) -> list[Any]:
    """Values of one of the shapes that are written differently."""
    if pa.types.is_boolean(kind):
        return [dice.random() < 0.5 for _ in range(count)]
    if pa.types.is_integer(kind):
        bits = BITS[kind]
        least, most = -(1 << bits - 1), (1 << bits - 1) - 1
        width = dice.randrange(bits)
        begin = dice.randint(least, most - (1 << width))
        step = dice.randint(0, (most - begin) // max(count, 1))
        return dice.choice(
            [
                [begin] * count,
                [begin + dice.randrange((1 << width) + 1) for _ in range(count)],
                [dice.choice([least, -1, 0, 1, most]) for _ in range(count)],
                [begin + step * i for i in range(count)],
                [dice.choice([least, most]) if i % 2 else dice.randint(least, most) for i in range(count)],
            ]
        )
    texts = ["", "g", "é€😀\0", "x" * dice.choice([7, 8, 31, 32, 64, 65, 5000]), "y" * 40, "z" * 40]
    many = [f"text {dice.random()}" for _ in range(count)]
    chosen = [dice.choice(texts) for _ in range(count)]
    made = dice.choice([[texts[3]] * count, [""] * count, chosen, many])
    return [text.encode("utf-16") for text in made] if pa.types.is_binary(kind) else made


def _array(kind: pa.DataType, count: int, nulls: float, dice: random.Random) -> pa.Array:
    values = _values(kind, count, dice)
    kept = [None if dice.random() < nulls else value for value in values]
    if kind != TEXTS:
        return pa.array(kept, kind)
    return pa.array(kept, pa.string()).dictionary_encode().cast(TEXTS)


def _column(kind: pa.DataType, count: int, nulls: float, dice: random.Random) -> pa.ChunkedArray:
    """In pieces, each cut out of something longer."""
    cuts = sorted(dice.randrange(count + 1) for _ in range(dice.choice([0, 0, 1, 3])))
    arrays = []
    for begin, end in pairwise([0, *cuts, count]):
        before, behind = dice.choice([0, 0, 8, 3]), dice.choice([0, 5])
        arrays.append(_array(kind, before + end - begin + behind, nulls, dice).slice(before, end - begin))
    return pa.chunked_array(arrays, kind)


def any_table(rows: int, columns: int) -> pa.Table:
    """Columns of all kinds, each of its own shape."""
    dice = random.Random(rows)
    made = [_column(KINDS[i % len(KINDS)], rows, dice.choice([0, 0.01, 0.5, 0.99]), dice) for i in range(columns)]
    return pa.table(made, [f"column {i}" for i in range(columns)])


@st.composite
def table_lists(draw: st.DrawFn) -> list[pa.Table]:
    dice = random.Random(draw(st.integers(0, 1 << 32)))
    fields = []
    shares = []
    for i, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=8))):
        share = draw(st.sampled_from([None, 0.0, 0.01, 0.5, 0.99, 1.0]))
        shares.append(share or 0.0)
        fields.append(pa.field(f"column {i}", kind, share is not None))
    sizes = draw(st.lists(st.one_of(st.sampled_from(SIZES), st.integers(0, 40)), min_size=1, max_size=3))
    return [
        pa.Table.from_arrays(
            [_column(field.type, count, share, dice) for field, share in zip(fields, shares, strict=True)],
            schema=pa.schema(fields),
        )
        for count in sizes
    ]


@settings(max_examples=150, deadline=None)
@given(tables=table_lists())
def test_any_table_is_read_as_it_was(tables: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert_same(tmp_path_factory.mktemp("parquet") / "file.parquet", tables)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 9, 15, 16, 17, 21, 31, 32, 33, 47, 63, 64])
def test_every_width_of_differences(kind: pa.DataType, width: int, tmp_path: Path) -> None:
    if width > BITS[kind]:
        return
    dice = random.Random(width)
    bits = BITS[kind]
    values = [0]
    for _ in range(3 * BLOCK):
        values.append((values[-1] + dice.randrange(1 << width) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))
    values += [-(1 << bits - 1), (1 << bits - 1) - 1]
    assert_same(tmp_path / "file.parquet", [pa.table({"n": pa.array(values, kind)})])


@pytest.mark.parametrize("entries", [255, 256, 257, MOST_NUMBERS, MOST_NUMBERS + 1, 65536, 65537])
def test_sizes_of_dictionaries(entries: int, tmp_path: Path) -> None:
    numbers = [*range(entries), 0, entries - 1]
    texts = [f"text {number}" for number in numbers]
    table = pa.table(
        {
            "number": pa.array(numbers, pa.int32()),
            "long": pa.array([number - 70 for number in numbers], pa.int64()),
            "text": pa.array(texts),
            "numbered": pa.array(texts).dictionary_encode(),
        }
    )
    assert MOST_TEXTS < 65536
    assert_same(tmp_path / "file.parquet", [table])


def test_a_dictionary_keeps_only_what_is_used_in_order(tmp_path: Path) -> None:
    texts = pa.array(["unused", "b", None, "a", "b"])
    numbers = pa.array([3, 1, None, 2, 3, 4], pa.int32())
    table = pa.table({"text": pa.DictionaryArray.from_arrays(numbers, texts)})
    read = written(tmp_path / "file.parquet", [table]).read(columns=["text"])
    assert read["text"].to_pylist() == ["a", "b", None, None, "a", "b"]
    again = written(tmp_path / "other.parquet", [pa.table({"text": read["text"].combine_chunks()})])
    assert again.read().equals(read)
    whole = pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([3, 1], pa.int32()), pa.array(list("wxyz")))})
    assert written(tmp_path / "whole.parquet", [whole]).read()["text"].chunk(0).dictionary.to_pylist() == ["z", "x"]


def test_the_same_bytes_whatever_dictionaries_were(tmp_path: Path) -> None:
    texts = ["a", "b", "a", None]
    one = pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None], pa.int32()), ["a", "b"])})
    other = pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([2, 1, 2, None], pa.int32()), ["c", "b", "a"])})
    assert one["text"].to_pylist() == other["text"].to_pylist() == texts
    for name, table in (("one", one), ("other", other)):
        written(tmp_path / name, [table])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_tells_nothing_of_what_is_around_its_rows(kind: pa.DataType) -> None:
    """The same bytes from a part of an array, and in memory that was used."""
    pages = Pages()
    dice = random.Random(3)
    for begin, count in ((0, 3), (3, 9), (8, 13), (16, 77)):
        longer = _array(kind, 300, 0.3, dice)
        part = longer.slice(begin, count)
        alone = pa.array(part.to_pylist(), pa.string() if kind == TEXTS else kind)
        alone = alone.dictionary_encode() if kind == TEXTS else alone
        expected = Pages().page(alone, is_optional=True).body.tobytes()
        pages.page(longer, is_optional=True)
        assert pages.page(part, is_optional=True).body.tobytes() == expected


def test_a_large_table_becomes_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"value": pa.array([b"x" * 1000, None] * 500), "n": pa.array(range(1000))})
    monkeypatch.setattr(parquet_writer, "MAX_ROWS", 600)
    monkeypatch.setattr(parquet_writer, "MAX_BYTES", 150_000)
    file = written(tmp_path / "file.parquet", [table])
    assert file.num_row_groups == 4
    assert file.read().equals(table)


def test_a_large_dictionary_makes_no_small_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array([f"{number}" * 1000 for number in range(300)])
    table = pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([*range(300)] * 3, pa.int32()), texts)})
    monkeypatch.setattr(parquet_writer, "MAX_BYTES", 150_000)
    file = written(tmp_path / "file.parquet", [table])
    assert file.num_row_groups == 1
    assert file.read().equals(table)


def test_no_rows_still_tell_the_columns(tmp_path: Path) -> None:
    assert_same(tmp_path / "file.parquet", [SCHEMA.empty_table()])


@pytest.mark.parametrize("kind", [pa.int16(), pa.uint32(), pa.float64(), pa.large_string(), pa.list_(pa.int32())])
def test_other_types_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(TypeError, match="are not written"):
        ParquetWriter(pa.BufferOutputStream(), pa.schema([("x", kind)]), bounded=(), compression_level=1)


def test_tables_that_are_not_of_the_file(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("n", pa.int32(), nullable=False)])
    with (tmp_path / "file").open("wb") as sink:
        writer = ParquetWriter(sink, schema, bounded=(), compression_level=1)
        with pytest.raises(ValueError, match="another schema"):
            writer.write_table(pa.table({"m": pa.array([1], pa.int32())}))
        with pytest.raises(ValueError, match="n must not be null"):
            writer.write_table(pa.Table.from_arrays([pa.array([None], pa.int32())], schema=schema))
        wrong = pa.DictionaryArray.from_arrays(pa.array([1], pa.int32()), ["a"], safe=False)
        writer = ParquetWriter(sink, pa.schema([("t", TEXTS)]), bounded=(), compression_level=1)
        with pytest.raises(ValueError, match="without a text"):
            writer.write_table(pa.table({"t": wrong}))


def test_what_is_broken_off_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    table = pa.table({"n": pa.array([1, 2])})

    def write() -> None:
        with path.open("wb") as sink, ParquetWriter(sink, table.schema, bounded=(), compression_level=1) as writer:
            writer.write_table(table)
            raise InterruptedError

    with pytest.raises(InterruptedError):
        write()
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(path)


def test_bounded_columns_are_in_the_table() -> None:
    assert {SCHEMA.field(name).type for name in BOUNDED} <= BITS.keys()
