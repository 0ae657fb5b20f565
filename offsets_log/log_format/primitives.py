"""Kafka's wire types as construct types, of which batches, records and messages are made.

All integers are big-endian. Every length and count is checked against the bytes that are left before it is used to
read or to loop, so a forged length costs nothing. Strings are text as Java decodes it (`java_text`).

References: ``clients/.../common/protocol/types/Type.java``, ``common/utils/ByteUtils.java``, ``common/Uuid.java``.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from typing import Any

import construct as c

from offsets_log.errors import CorruptRecordError
from offsets_log.log_format import readers, writers
from offsets_log.log_format.java_text import decode_string, encode_string


class WireError(c.ConstructError):  # type: ignore[misc]
    """Bytes that are not this wire type; ``path`` names the field as construct does."""


# ---------------------------------------------------------------------------------------------- values


class Uuid(bytes):
    """16 raw bytes; its text is Kafka's: URL-safe base64 without padding."""

    __slots__ = ()

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self).rstrip(b"=").decode("ascii")

    @classmethod
    def from_text(cls, text: str) -> Uuid:
        """Parse the text that ``str`` gives. Raises ValueError for anything that is not 16 bytes."""
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        if len(raw) != 16:
            raise ValueError(f"{text!r} is not a topic id: {len(raw)} bytes, not 16")
        return cls(raw)


ZERO_UUID = Uuid(16)


# --------------------------------------------------------------------------------------------- streams


def bytes_left(stream: io.BytesIO) -> int:
    """Return how many bytes the enclosing structure still has."""
    return len(stream.getbuffer()) - stream.tell()


def read_exactly(stream: io.BytesIO, size: int, path: str, what: str = "") -> bytes:
    """Read ``size`` bytes or raise, without allocating for a forged size."""
    left = bytes_left(stream)
    if size > left:
        raise WireError(f"{what or 'it'} takes {size} bytes, {left} are left", path=path)
    return stream.read(size)


# -------------------------------------------------------------------------------------------- integers

INT8 = c.Int8sb
INT16 = c.Int16sb
INT32 = c.Int32sb
INT64 = c.Int64sb
UINT16 = c.Int16ub
UINT32 = c.Int32ub


class UnsignedVarint(c.Construct):  # type: ignore[misc]
    """LEB128 of at most ``bits`` bits: 5 bytes for 32, 10 for 64. Bits beyond are dropped as in Java."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self.max_bytes = (bits + 6) // 7
        self.mask = (1 << bits) - 1

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> int:
        value = 0
        for i in range(self.max_bytes):
            byte = stream.read(1)
            if not byte:
                raise WireError("the varint is cut off", path=path)
            value |= (byte[0] & 0x7F) << (7 * i)
            if byte[0] < 0x80:
                return value & self.mask
        raise WireError(f"the varint is longer than {self.max_bytes} bytes", path=path)

    def _build(self, obj: int, stream: io.BytesIO, context: Any, path: str) -> int:
        if not 0 <= obj <= self.mask:
            raise WireError(f"{obj} does not fit into {self.bits} bits", path=path)
        rest = obj
        while rest >= 0x80:
            stream.write(bytes((rest & 0x7F | 0x80,)))
            rest >>= 7
        stream.write(bytes((rest,)))
        return obj

    def reader(self) -> readers.Reader:
        return readers.varint(self.max_bytes, self.mask)

    def writer(self) -> writers.Writer:
        return writers.varint(self.mask)


class SignedVarint(c.Construct):  # type: ignore[misc]
    """Zigzag LEB128: Kafka's varint (32 bits) and varlong (64 bits)."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.unsigned = UnsignedVarint(bits)
        self.limit = 1 << (bits - 1)

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> int:
        value = self.unsigned._parse(stream, context, path)
        return (value >> 1) ^ -(value & 1)

    def _build(self, obj: int, stream: io.BytesIO, context: Any, path: str) -> int:
        if not -self.limit <= obj < self.limit:
            raise WireError(f"{obj} is out of range", path=path)
        self.unsigned._build((obj << 1) ^ (obj >> self.unsigned.bits), stream, context, path)
        return obj

    def reader(self) -> readers.Reader:
        return readers.mapped(self.unsigned.reader(), lambda value: (value >> 1) ^ -(value & 1))

    def writer(self) -> writers.Writer:
        bits = self.unsigned.bits
        return writers.mapped(self.unsigned.writer(), lambda value: (value << 1) ^ (value >> bits))


UVARINT = UnsignedVarint(32)
VARINT = SignedVarint(32)
VARLONG = SignedVarint(64)

# ------------------------------------------------------------------------- lengths, strings, bytes, arrays


class CompactLength(c.Construct):  # type: ignore[misc]
    """The length of a compact type: uvarint of N + 1, 0 for null (read as −1)."""

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> int:
        return UVARINT._parse(stream, context, path) - 1

    def _build(self, obj: int, stream: io.BytesIO, context: Any, path: str) -> int:
        UVARINT._build(obj + 1, stream, context, path)
        return obj

    def reader(self) -> readers.Reader:
        return readers.mapped(UVARINT.reader(), lambda value: value - 1)

    def writer(self) -> writers.Writer:
        return writers.mapped(UVARINT.writer(), lambda value: value + 1)


COMPACT = CompactLength()

LOWEST_INT32 = -(1 << 31)


class Sized(c.Construct):  # type: ignore[misc]
    """A length, then that many bytes; −1 is null if ``nullable``. Null and empty stay different values.

    Args:
        length: INT16, INT32, VARINT or COMPACT.
        nullable: whether −1 may occur.
        decode, encode: turn the raw bytes to the value, and the value to bytes.
        lowest: the lowest negative length that is read as null.
    """

    def __init__(
        self,
        length: c.Construct,
        nullable: bool,
        decode: Callable[[bytes], Any] = bytes,
        encode: Callable[[Any], bytes] = bytes,
        lowest: int = -1,
    ) -> None:
        super().__init__()
        self.length, self.nullable, self.decode, self.encode = length, nullable, decode, encode
        self.lowest = lowest

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        size = self.length._parsereport(stream, context, path)
        if size < 0:
            _check_null(-1 if size >= self.lowest else size, self.nullable, path)
            return None
        return self.decode(read_exactly(stream, size, path))

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            _check_null(-1, self.nullable, path)
            self.length._build(-1, stream, context, path)
        else:
            raw = self.encode(obj)
            self.length._build(len(raw), stream, context, path)
            stream.write(raw)
        return obj

    def reader(self) -> readers.Reader:
        lowest_null = self.lowest if self.nullable else 0
        return readers.sized(readers.part(self.length), self.decode, lowest_null=lowest_null)

    def writer(self) -> writers.Writer:
        return writers.sized(writers.part(self.length), self.encode, nullable=self.nullable)


class Array(c.Construct):  # type: ignore[misc]
    """A count, then that many elements; −1 is null if ``nullable``. An element takes at least one byte.

    Args:
        is_repeated: whether readers may give the same objects again for equal bytes (`readers.remembered`): the
            array, or elements of it.
    """

    def __init__(
        self, length: c.Construct, element: c.Construct, nullable: bool = False, is_repeated: bool = False
    ) -> None:
        super().__init__()
        self.length, self.element, self.nullable, self.is_repeated = length, element, nullable, is_repeated

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> list[Any] | None:
        count = self.length._parsereport(stream, context, path)
        if count < 0:
            _check_null(count, self.nullable, path)
            return None
        left = bytes_left(stream)
        if count > left:
            raise WireError(f"{count} elements are declared, {left} bytes are left", path=path)
        return [self.element._parsereport(stream, context, f"{path}[{i}]") for i in range(count)]

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            _check_null(-1, self.nullable, path)
            self.length._build(-1, stream, context, path)
        else:
            self.length._build(len(obj), stream, context, path)
            for i, element in enumerate(obj):
                self.element._build(element, stream, context, f"{path}[{i}]")
        return obj

    def reader(self) -> readers.Reader:
        whole = readers.array(readers.part(self.length), self._elements(), nullable=self.nullable)
        return readers.remembered(whole) if self.is_repeated else whole

    def writer(self) -> writers.Writer:
        element = self.element
        is_number = isinstance(element, c.FormatField)
        elements = writers.numbers(element.fmtstr) if is_number else writers.each(writers.part(element))
        return writers.array(writers.part(self.length), elements, nullable=self.nullable)

    def _elements(self) -> readers.Elements:
        if isinstance(self.element, c.FormatField):
            return readers.numbers(self.element.fmtstr)
        element = readers.part(self.element)
        return readers.each(readers.remembered(element) if self.is_repeated else element)


def _check_null(length: int, nullable: bool, path: str) -> None:
    if length != -1:
        raise WireError(f"the length is {length}", path=path)
    if not nullable:
        raise WireError("null, where null is not allowed", path=path)


class PlainStruct(c.Struct):  # type: ignore[misc]
    """A construct Struct that gives a plain dict; its fields cannot refer to each other."""

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> dict[str, Any]:
        return {field.name: field._parsereport(stream, context, path) for field in self.subcons}

    def _build(self, obj: dict[str, Any], stream: io.BytesIO, context: Any, path: str) -> dict[str, Any]:
        for field in self.subcons:
            field._build(obj[field.name], stream, context, path)
        return obj

    def reader(self) -> readers.Reader:
        return readers.fields([(field.name, readers.part(field)) for field in self.subcons])

    def writer(self) -> writers.Writer:
        return writers.fields(self.subcons)


def string(length: c.Construct, nullable: bool) -> Sized:
    """Return the type of a string behind the given length type."""
    return Sized(length, nullable, decode_string, encode_string)


UUID = c.ExprAdapter(c.Bytes(16), lambda raw, _: Uuid(raw), lambda uuid, _: bytes(uuid))
"""16 bytes, most significant first."""


FLOAT64 = c.Float64b
BOOL = c.ExprAdapter(
    c.Bytes(1), lambda raw, _: raw[0] if raw[0] > 1 else raw[0] == 1, lambda value, _: bytes((int(value),))
)
"""A byte: 0 is False, 1 is True; any other is true and keeps its number."""


# ------------------------------------------------------------------------------------ parsing, explained


def field_of(path: str | None, root: str) -> str:
    """Turn construct's ``(parsing) -> members[2] -> clientId`` to ``root.members[2].clientId``."""
    names = (path or "").split(" -> ")[1:]
    return ".".join([root, *names]) if root else ".".join(names)


def parse_exactly(struct: c.Construct, data: bytes, root: str) -> Any:
    """Parse the whole of ``data``; leftovers are an error.

    Raises:
        CorruptRecordError: with the field path below ``root``.
    """
    value, trailing = parse_prefix(struct, data, root)
    if trailing:
        raise CorruptRecordError(f"{len(trailing)} bytes are left over after the last field", field=root)
    return value


def parse_prefix(struct: c.Construct, data: bytes, root: str) -> tuple[Any, bytes]:
    """Parse the head of ``data``; return the value and the bytes behind it (``records:P4``).

    Raises:
        CorruptRecordError: with the field path below ``root``.
    """
    value, end = parse_from(struct, data, root)
    return value, data[end:]


def parse_from(struct: c.Construct, data: bytes, root: str, at: int = 0) -> tuple[Any, int]:
    """Parse what begins at a place; return the value and where it ends.

    Raises:
        CorruptRecordError: with the field path below ``root``.
    """
    if (found := readers.read(struct, data, at)) is not None:
        return found
    stream = io.BytesIO(data)
    stream.seek(at)
    try:
        value = struct.parse_stream(stream)
    except c.ConstructError as error:
        raise CorruptRecordError(
            f"{_sentence(error)} (byte {stream.tell()} of {len(data)})", field=field_of(error.path, root)
        ) from None
    return value, stream.tell()


def parse_at(struct: c.Construct, data: bytes, at: int) -> tuple[Any, int]:
    """Parse what begins at a place; return the value and its end. Raises construct's own errors."""
    if (found := readers.read(struct, data, at)) is not None:
        return found
    stream = io.BytesIO(data)
    stream.seek(at)
    return struct.parse_stream(stream), stream.tell()


def build(struct: c.Construct, value: Any, root: str) -> bytes:
    """Write a value, the inverse of parsing.

    Raises:
        CorruptRecordError: the value does not fit the struct.
    """
    if (found := writers.write(struct, value)) is not None:
        return found
    stream = io.BytesIO()
    try:
        struct.build_stream(value, stream)
    except c.ConstructError as error:
        raise CorruptRecordError(_sentence(error), field=field_of(error.path, root)) from None
    except KeyError as error:
        raise CorruptRecordError(f"the field {error} is missing", field=root) from None
    return stream.getvalue()


UNFIT = re.compile(r"struct '.*' error during building, given value (?P<value>.*)")
"""What construct says of a number that has a fraction, or is too large."""


def _sentence(error: c.ConstructError) -> str:
    lines = str(error).splitlines()
    sentence = lines[-1] if lines else "it does not parse"
    if found := UNFIT.fullmatch(sentence):
        return f"{found['value']} is no number that fits there"
    return "it is cut off" if sentence.startswith("stream read less") else sentence
