"""Numbers with names, which kernels and Python share: a record of them, or a table of records.

A subclass of `Record` names its fields by annotations:

Long                      a number
Annotated[Long, "other"]  another name of a number before it
Annotated[Longs, 4, 3]    an array of that shape

To NumPy and to numba it is a structured type of int64, `Record.dtype`; here as there a field is ``record.field``, and
``table[i].field``. Outside of kernels ``table.column(X.field)`` is the field of all records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar, get_args, get_origin, get_type_hints, overload

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Rows = npt.NDArray[np.void]


class Long:
    """A number of a record; of the class itself, what `Table.column` takes."""

    def __init__(self, at: int) -> None:
        self.at = at

    @overload
    def __get__(self, record: Record, of: type[Record]) -> np.int64: ...
    @overload
    def __get__(self, record: None, of: type[Record]) -> Long: ...
    def __get__(self, record: Record | None, of: type[Record]) -> np.int64 | Long:
        if record is None:
            return self
        found: np.int64 = record.numbers[self.at]
        return found

    def __set__(self, record: Record, value: int | np.integer[Any]) -> None:
        record.numbers[self.at] = value


class _Array:
    """An array of a record."""

    def __init__(self, at: int, shape: tuple[int, ...]) -> None:
        self._places, self._shape = slice(at, at + int(np.prod(shape))), shape

    def __get__(self, record: Record, of: type[Record]) -> Longs:
        return record.numbers[self._places].reshape(self._shape)


class Record:
    """Numbers with names.

    Args:
        numbers: all of them in order; zeros if they are not given.
    """

    dtype: ClassVar[np.dtype[np.void]]
    __slots__ = ("numbers",)

    def __init_subclass__(cls) -> None:
        places: dict[str, int] = {}
        shapes: list[tuple[int, ...]] = []
        end = 0
        for name, hint in get_type_hints(cls, include_extras=True).items():
            if get_origin(hint) is ClassVar:
                continue
            more = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
            is_alias = bool(more) and isinstance(more[0], str)
            shape = () if is_alias else more
            places[name] = at = places[more[0]] if is_alias else end
            shapes.append(shape)
            setattr(cls, name, _Array(at, shape) if shape else Long(at))
            end = max(end, at + int(np.prod(shape, dtype=int)))
        size = np.dtype(np.int64).itemsize
        cls.dtype = np.dtype(
            {
                "names": [*places],
                "formats": [(np.int64, shape) for shape in shapes],
                "offsets": [size * at for at in places.values()],
                "itemsize": size * end,
            }
        )

    def __init__(self, numbers: Longs | None = None) -> None:
        self.numbers: Longs = np.zeros(self.dtype.itemsize // 8, np.int64) if numbers is None else numbers

    @property
    def rows(self) -> Rows:
        """The record as a structured array without dimensions, in the same memory."""
        return self.numbers.view(self.dtype).reshape(())

    def copy(self) -> Self:
        """Return a record of its own with the same numbers."""
        return type(self)(self.numbers.copy())


Of = TypeVar("Of", bound=Record)


def places(*fields: Long) -> list[int]:
    """Return where fields stand among the numbers of a record."""
    return [field.at for field in fields]


class Table(Generic[Of]):
    """Records of one type.

    NumPy copies structured arrays field by field, ``numbers`` at once.

    Args:
        rows: their number, or a structured array.
    """

    __slots__ = ("numbers", "rows", "type")

    def __init__(self, of: type[Of], rows: int | Rows) -> None:
        self.type = of
        self.rows: Rows = np.zeros(rows, of.dtype) if isinstance(rows, int) else rows
        self.numbers: Longs = self.rows.view(np.int64).reshape(len(self.rows), of.dtype.itemsize // 8)

    @classmethod
    def of_numbers(cls, of: type[Of], numbers: Longs) -> Table[Of]:
        """Return a table in the memory of all its numbers, int64[n, fields]."""
        return cls(of, numbers.view(of.dtype).reshape(-1))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process restores it: its rows and numbers are one memory there, too."""
        return Table.of_numbers, (self.type, self.numbers)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int | np.integer[Any]) -> Of:
        return self.type(self.numbers[i])

    def __setitem__(self, i: int | np.integer[Any], record: Of) -> None:
        self.numbers[i] = record.numbers

    def __iter__(self) -> Iterator[Of]:
        return map(self.type, self.numbers)

    def column(self, field: Long) -> Longs:
        """Return a field of all records, in the same memory."""
        return self.numbers[:, field.at]

    def columns(self, *fields: Long) -> Longs:
        """Return copies of fields of all records, int64[n, fields]."""
        return self.numbers[:, places(*fields)]

    def of(self, places: npt.NDArray[Any]) -> Table[Of]:
        """Return copies of some records, by a mask or their numbers."""
        return self.of_numbers(self.type, self.numbers[places])

    def up_to(self, count: int | np.integer[Any]) -> Table[Of]:
        """Return the first records, in the same memory."""
        return Table(self.type, self.rows[:count])

    def grown(self, count: int) -> Table[Of]:
        """Return a larger copy, with zeros behind what was there."""
        grown = Table(self.type, count)
        grown.numbers[: len(self)] = self.numbers
        return grown

    def copy(self) -> Table[Of]:
        """Return a table of its own with the same numbers."""
        return self.grown(len(self))


def type_and_dimensions(annotation: Any) -> tuple[np.dtype[np.void], int]:
    """Return what ``Table[X]``, or a record X, is to kernels: its type, and 1 or 0."""
    of: tuple[type[Record], ...] = get_args(annotation)
    return (of[0].dtype, 1) if of else (annotation.dtype, 0)
