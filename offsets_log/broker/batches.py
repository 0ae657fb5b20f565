"""Read batches as a broker finds them in a file: by size alone, without checksum and with few checks (``D-1``,
``D-4``).

References: ``FileLogInputStream.java``, ``ByteBufferLogInputStream.java``, ``DefaultRecordBatch.java``.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import NamedTuple

import google_crc32c

from offsets_log.broker.failures import BrokerError, InvalidBatchError
from offsets_log.errors import OffsetsLogError
from offsets_log.log_format import batch as b
from offsets_log.log_format.batch import NEWEST_MAGIC, RecordBatch, decode_batch_header
from offsets_log.log_format.compression import CODEC_MASK
from offsets_log.log_format.control_record import CONTROL_TYPES
from offsets_log.log_format.record import first_offset

HEADER_UP_TO_MAGIC = b.MAGIC_POSITION + 1
LEGACY_ATTRIBUTES_POSITION = 17

_ENTRY = struct.Struct(">qiib")
_HEADER_FORMAT = "qiibIhiqqqhii"
_HEADER_FIELDS = [
    (struct.Struct(">" + kind), struct.calcsize(">" + _HEADER_FORMAT[:index]))
    for index, kind in enumerate(_HEADER_FORMAT)
]
"""What reads each field of the header of magic 2, and where it stands."""

_PLAIN_MARKER = re.compile(
    rb"\x00\x00\x00\x01\x20.([\x00-\x7f])\x00\x08\x00\x00\x00([\x00\x01])\x0c[\x00-\x7f].(.{4})\x00", re.DOTALL
)
"""The count and the record of a transaction marker whose time is near that of the batch."""


class PlainMarker(NamedTuple):
    """A marker: its type (``COMMIT``, ``ABORT``), the coordinator's epoch, and its time in epoch milliseconds."""

    type: str
    coordinator_epoch: int
    timestamp_ms: int


class FileBatch(NamedTuple):
    """An entry of a file whose size fits; everything else in it may be wrong.

    Attributes:
        view: the file.
        position, size_bytes: where it lies.
        offset: the first 8 bytes: the base offset of magic 2, the last offset of magic 0 and 1.
        magic: signed, with any value.
        limit: position up to which its header may be read: the end of the file, or in memory the end of the batch.
    """

    file: str
    view: memoryview
    position: int
    size_bytes: int
    offset: int
    magic: int
    limit: int

    @property
    def end(self) -> int:
        """The position of the next entry."""
        return self.position + self.size_bytes

    @property
    def is_legacy(self) -> bool:
        """Whether it is read as magic 0 or 1, as every magic below 2 is."""
        return self.magic < NEWEST_MAGIC

    def _field(self, index: int) -> int:
        """Return a field of the header of magic 2, whatever its magic is. Raises BrokerError."""
        if self.limit - self.position < b.BATCH_HEADER_SIZE:
            raise BrokerError("the batch header is cut off", rule="D-9", file=self.file, position=self.position)
        numbers, place = _HEADER_FIELDS[index]
        value: int = numbers.unpack_from(self.view, self.position + place)[0]
        return value

    @property
    def attributes(self) -> int:
        """The attributes of magic 2; 0 for other magics."""
        return 0 if self.is_legacy else self._field(5)

    @property
    def last_offset(self) -> int:
        """The last offset according to the header alone."""
        return self.offset if self.is_legacy else self.offset + self._field(6)

    @property
    def base_offset(self) -> int:
        """The first record's offset; a compressed batch of magic 0 and 1 must be decompressed for that.

        Raises:
            BrokerError: the batch cannot be read.
        """
        if not self.is_legacy or not self.view[self.position + LEGACY_ATTRIBUTES_POSITION] & CODEC_MASK:
            return self.offset
        if self.magic < 0:
            raise self.invalid(f"a compressed message of magic {self.magic}")
        try:
            return first_offset(self.whole())
        except BrokerError:
            raise
        except OffsetsLogError as error:
            raise BrokerError(error.problem, rule="D-4", file=self.file, position=self.position) from None

    @property
    def next_offset(self) -> int:
        """The offset where the log continues."""
        return self.last_offset + 1

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp of its records, in epoch milliseconds."""
        return self.whole().max_timestamp_ms if self.is_legacy else self._field(8)

    @property
    def base_timestamp_ms(self) -> int:
        """The timestamp that those of its records are told from, in epoch milliseconds; of magic 2."""
        return self._field(7)

    @property
    def producer_id(self) -> int:
        """The producer id; −1 for magic 0 and 1."""
        return b.NO_PRODUCER_ID if self.is_legacy else self._field(9)

    @property
    def partition_leader_epoch(self) -> int:
        """The partition leader epoch; −1 for magic 0 and 1."""
        return b.NO_PARTITION_LEADER_EPOCH if self.is_legacy else self._field(2)

    @property
    def producer_epoch(self) -> int:
        """The producer epoch; −1 for magic 0 and 1."""
        return b.NO_PRODUCER_EPOCH if self.is_legacy else self._field(10)

    @property
    def records_count(self) -> int:
        """The declared number of records; 1 for magic 0 and 1, whose wrapper is one message."""
        return 1 if self.is_legacy else self._field(12)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers inside may be removed; None if not set (attribute bit 6, ``records:X4``)."""
        return self._field(7) if self.attributes & b.DELETE_HORIZON_MASK else None

    @property
    def last_sequence(self) -> int:
        """The producer's sequence number of its last offset; −1 without one."""
        first = b.NO_SEQUENCE if self.is_legacy else self._field(11)
        return first if first == b.NO_SEQUENCE else first + self._field(6) & b.MAX_SEQUENCE

    @property
    def is_transactional(self) -> bool:
        """Whether attribute bit 4 is set."""
        return bool(self.attributes & b.TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        """Whether attribute bit 5 is set."""
        return bool(self.attributes & b.CONTROL_MASK)

    def raw(self) -> bytes:
        """Return all bytes of the batch."""
        return bytes(self.view[self.position : self.end])

    def whole(self) -> RecordBatch:
        """Decode its header; a magic beyond 2 is read as 2, as a broker's classes do.

        Raises:
            InvalidBatchError: it is too small for its magic.
        """
        raw = self.raw()
        magic = min(max(self.magic, 0), NEWEST_MAGIC)
        if len(raw) < b.MIN_SIZE[magic] + b.LOG_OVERHEAD:
            raise self.invalid(f"{len(raw)} bytes are too few for a batch of magic {self.magic}")
        if self.magic != magic:
            raw = raw[: b.MAGIC_POSITION] + bytes([magic]) + raw[HEADER_UP_TO_MAGIC:]
        return decode_batch_header(raw, self.position)

    def plain_marker(self) -> PlainMarker | None:
        """Return the marker in a control batch that has the form coordinators write; None for any other."""
        found = _PLAIN_MARKER.fullmatch(self.view, self.position + b.BATCH_HEADER_SIZE - 4, self.end)
        if found is None or self.attributes & (CODEC_MASK | b.TIMESTAMP_TYPE_MASK):
            return None
        delta, kind, coordinator_epoch = found[1][0], found[2][0], int.from_bytes(found[3], signed=True)
        return PlainMarker(CONTROL_TYPES[kind], coordinator_epoch, self._field(7) + (delta >> 1 ^ -(delta & 1)))

    def ensure_valid(self) -> None:
        """Verify the checksum (``ensureValid``). Raises InvalidBatchError."""
        start, crc = (b.MAGIC_POSITION, b.LEGACY_CRC_POSITION) if self.is_legacy else (b.ATTRIBUTES_POSITION, 17)
        if not self.is_legacy and self.size_bytes < b.BATCH_HEADER_SIZE:
            raise self.invalid(f"{self.size_bytes} bytes are too few for a batch")
        body = self.view[self.position + start : self.end]
        computed = zlib.crc32(body) if self.is_legacy else google_crc32c.value(bytes(body))
        stored = int.from_bytes(self.view[self.position + crc : self.position + crc + 4])
        if computed != stored:
            raise self.invalid(f"the checksum is {computed:#010x}, the batch says {stored:#010x}")

    def invalid(self, problem: str, rule: str = "D-2") -> InvalidBatchError:
        """Return an error about this batch."""
        return InvalidBatchError(problem, rule=rule, file=self.file, position=self.position)


def entry_at(file: str, view: memoryview, position: int, end: int) -> FileBatch | None:
    """Return the entry at a position of a file, or None if no whole one ends before ``end``.

    A broker takes such a place for the end of the log.

    Raises:
        InvalidBatchError: the size is below any entry's.
    """
    if position >= end - HEADER_UP_TO_MAGIC:
        return None
    offset, size, _, magic = _ENTRY.unpack_from(view, position)
    if size < b.MIN_SIZE[0]:
        raise _too_small(file, position, size)
    if position > end - b.LOG_OVERHEAD - size:
        return None
    return FileBatch(file, view, position, size + b.LOG_OVERHEAD, offset, magic, end)


def entry_in_memory(file: str, view: memoryview, position: int, end: int) -> FileBatch | None:
    """Return the entry at a position of bytes read into memory, where more is checked and less is skipped.

    Raises:
        InvalidBatchError: the size is below any entry's, or the magic is not 0, 1 or 2.
        BrokerError: the size exceeds a broker's arithmetic.
    """
    left = end - position
    if left < b.LOG_OVERHEAD:
        return None
    size = int.from_bytes(view[position + 8 : position + b.LOG_OVERHEAD], signed=True)
    if size < b.MIN_SIZE[0]:
        raise _too_small(file, position, size)
    if left < HEADER_UP_TO_MAGIC:
        return None
    offset, _, _, magic = _ENTRY.unpack_from(view, position)
    if not 0 <= magic <= NEWEST_MAGIC:
        raise InvalidBatchError(f"the batch has magic {magic}", rule="D-4", file=file, position=position)
    size += b.LOG_OVERHEAD
    if size >= 1 << 31:
        raise BrokerError(f"a batch of {size} bytes", rule="D-5", file=file, position=position)
    return FileBatch(file, view, position, size, offset, magic, position + size) if size <= left else None


def _too_small(file: str, position: int, size: int) -> InvalidBatchError:
    return InvalidBatchError(
        f"an entry of {size} bytes, where none has fewer than {b.MIN_SIZE[0]}", rule="D-9", file=file, position=position
    )
