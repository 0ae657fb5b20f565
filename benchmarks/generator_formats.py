"""What becomes of generated batches on their way to a file: compressed, of an older magic, or some of them broken.

The records stay the same, and so does what a coordinator makes of them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import generator_kernels as k
from benchmarks.generator_bytes import ATTRIBUTES_POSITION, HEADER_SIZE, Array
from benchmarks.generator_messages import as_messages
from offsets_log.log_format.compression import CODEC_NAMED

BREAK_EVERY = 10_000
"""Batches of a damaged log from one that is broken to the next."""
RUN = 1000
"""Batches of an old log that a broker writes in one form."""
OLD_CODECS = ("none", "none", "snappy", "gzip")
MESSAGE = struct.Struct(">qiIbb")
"""Offset, size, checksum, magic, attributes."""
CRC_AT, MAGIC_AT = 12, 16
NULL = struct.pack(">i", -1)


@dataclass(frozen=True, slots=True)
class Written:
    """Batches as they are written.

    Attributes:
        starts: where each begins in ``data``, and where the last one ends.
        base_offsets: of each.
        plain_bytes: of all of them, before they are compressed.
        broken: how many of them nobody can read.
    """

    data: Array
    starts: Array
    base_offsets: Array
    plain_bytes: int
    broken: int = 0

    @property
    def count(self) -> int:
        """Of those that can be read."""
        return len(self.starts) - 1 - self.broken


Form = Callable[[Array, Array], Written]
"""Batches of magic 2, and where each begins and the last one ends → what is written for them."""


def _base_offsets(plain: Array, starts: Array) -> Array:
    heads = plain[starts[:-1, None] + np.arange(8)]
    return heads.copy().view(">i8").reshape(-1).astype(np.int64)


# ---------------------------------------------------------------------------------------- compressed


def compressed(codec_name: str) -> Form:
    """The batches with their records compressed."""
    codec = CODEC_NAMED[codec_name]

    def form(plain: Array, starts: Array) -> Written:
        base_offsets, size = _base_offsets(plain, starts), int(starts[-1])
        if codec.id == 0:
            return Written(plain, starts, base_offsets, size)
        data = plain.tobytes()
        parts = [
            records if flags & k.CONTROL else codec.compress(records, 2)  # nobody compresses a marker
            for records, flags in _iter_records(data, starts.tolist())
        ]
        packed_starts = np.zeros(len(starts), np.int64)
        np.cumsum([len(part) for part in parts], out=packed_starts[1:])
        out = np.empty(int(packed_starts[-1]) + HEADER_SIZE * len(parts), np.uint8)
        out_starts = np.zeros(len(starts), np.int64)
        k.wrap(plain, starts, np.frombuffer(b"".join(parts), np.uint8), packed_starts, codec.id, out, out_starts)
        return Written(out, out_starts, base_offsets, size)

    return form


def _iter_records(data: bytes, starts: list[int]) -> Iterator[tuple[bytes, int]]:
    """The records and the lower attributes of each batch."""
    for i in range(len(starts) - 1):
        start = starts[i]
        yield data[start + HEADER_SIZE : starts[i + 1]], data[start + ATTRIBUTES_POSITION + 1]


# ---------------------------------------------------------------------------------- of an older magic


def old(codec_name: str) -> Form:
    """As messages of magic 0 and 1 by turns, run after run, plain and in compressed ones.

    Args:
        codec_name: of all of them; ``none`` for several by turns.
    """
    codecs = [CODEC_NAMED[name] for name in (OLD_CODECS if codec_name == "none" else (codec_name,))]
    batches = 0

    def form(plain: Array, starts: Array) -> Written:
        nonlocal batches
        runs, plain_bytes = [], 0
        for first in range(0, len(starts) - 1, RUN):
            last, turn = min(first + RUN, len(starts) - 1), (batches + first) // RUN
            codec, magic = codecs[turn % len(codecs)], turn // len(codecs) % 2
            data, message_starts, batch_starts, offsets = _messages(plain, starts[first : last + 1], magic, codec.id)
            plain_bytes += len(data)
            if codec.id == 0:
                runs.append((data, np.diff(message_starts), offsets))
                continue
            raw = data.tobytes()
            wrapped = [
                _wrapper(raw[begin:end], magic, codec.id, codec.compress(raw[begin:end], magic), int(last_offset))
                for begin, end, last_offset in _inner(batch_starts, message_starts, offsets)
            ]
            sizes = np.array([len(message) for message in wrapped], np.int64)
            firsts = offsets[np.searchsorted(message_starts, batch_starts[:-1])]
            runs.append((np.frombuffer(b"".join(wrapped), np.uint8), sizes, firsts))
        batches += len(starts) - 1
        ends = np.cumsum(np.concatenate([sizes for _, sizes, _ in runs]))
        return Written(
            np.concatenate([data for data, _, _ in runs]),
            np.concatenate([np.zeros(1, np.int64), ends]),
            np.concatenate([offsets for _, _, offsets in runs]),
            plain_bytes,
        )

    return form


def _messages(plain: Array, starts: Array, magic: int, codec_id: int) -> tuple[Array, Array, Array, Array]:
    """The records as messages: their bytes, where each begins and the last one ends, the same of what was a batch, and
    their offsets."""
    size = int(starts[-1] - starts[0])
    most = size // k.LEAST_RECORD
    data = np.zeros(size + most * k.MESSAGE_OVERHEAD, np.uint8)
    message_starts, offsets = np.zeros(most + 1, np.int64), np.zeros(most, np.int64)
    batch_starts = np.zeros(len(starts), np.int64)
    is_relative = bool(codec_id and magic)
    count = as_messages(plain, starts, magic, is_relative, data, message_starts, batch_starts, offsets)
    return data[: message_starts[count]], message_starts[: count + 1], batch_starts, offsets[:count]


def _inner(batch_starts: Array, message_starts: Array, offsets: Array) -> Iterator[tuple[int, int, int]]:
    """Where the messages of each batch begin and end, and the last one's offset."""
    ends = np.searchsorted(message_starts, batch_starts[1:])
    yield from zip(batch_starts[:-1].tolist(), batch_starts[1:].tolist(), offsets[ends - 1].tolist(), strict=True)


def _wrapper(inner: bytes, magic: int, codec_id: int, packed: bytes, last_offset: int) -> bytes:
    """A compressed message around others, with the time of the first, which is that of all."""
    timestamp = inner[MESSAGE.size : MESSAGE.size + 8] if magic else b""
    behind = timestamp + NULL + struct.pack(">i", len(packed)) + packed
    size = MESSAGE.size - CRC_AT + len(behind)
    whole = bytearray(MESSAGE.pack(last_offset, size, 0, magic, codec_id) + behind)
    whole[CRC_AT:MAGIC_AT] = zlib.crc32(whole[MAGIC_AT:]).to_bytes(4)
    return bytes(whole)


# --------------------------------------------------------------------------------------------- broken


def damaged(codec_name: str) -> Form:
    """The batches, and one in `BREAK_EVERY` once more before itself, broken: by its records, its length or its end."""
    whole, batches = compressed(codec_name), 0

    def form(plain: Array, starts: Array) -> Written:
        nonlocal batches
        made = whole(plain, starts)
        first = -(batches + 1) % BREAK_EVERY
        places = np.arange(first, len(starts) - 1, BREAK_EVERY)
        pieces, sizes, begin = [], np.diff(made.starts), 0
        for n, place in enumerate(places.tolist()):
            at, end = made.starts[place], made.starts[place + 1]
            broken = BREAKS[((batches + place) // BREAK_EVERY) % len(BREAKS)](made.data[at:end].copy())
            pieces += [made.data[begin:at], broken]
            begin = at
            sizes = np.insert(sizes, place + n, len(broken))
        pieces.append(made.data[begin : made.starts[-1]])
        batches += len(starts) - 1
        return Written(
            np.concatenate(pieces),
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            np.insert(made.base_offsets, places, made.base_offsets[places]),
            made.plain_bytes,
            len(places),
        )

    return form


def _with_other_records(batch: Array) -> Array:
    batch[-1] ^= 0xFF
    return batch


def _with_other_length(batch: Array) -> Array:
    batch[10] ^= 0x40
    return batch


def _cut_off(batch: Array) -> Array:
    return batch[: len(batch) // 2]


BREAKS = (_with_other_records, _with_other_length, _cut_off)
