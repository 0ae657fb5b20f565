"""One error tree for everything this library can refuse.

*Corrupt* means that Kafka cannot have written these bytes; *unsupported* means that it may have and we do not
read them yet. Every error knows where it happened: file, byte position, record offset, field.
"""

from __future__ import annotations

from dataclasses import dataclass


class OffsetsLogError(Exception):
    """Base of all errors of this package.

    Attributes:
        problem: one sentence, without the place.
        file: name of the file, or None where bytes came from nowhere in particular.
        position: bytes from the start of the file.
        record_offset: offset of the record (or of the batch's first record) in the log.
        field: path of the field, such as ``value.members[2].client_id``.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        position: int | None = None,
        record_offset: int | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.file = file
        self.position = position
        self.record_offset = record_offset
        self.field = field

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle for other processes: errors come from tasks of a cluster, whatever more their kind is made of."""
        return _error_again, (type(self), self.args, self.__dict__)

    def at(
        self,
        *,
        file: str | None = None,
        position: int | None = None,
        record_offset: int | None = None,
        field: str | None = None,
    ) -> OffsetsLogError:
        """Fill in what is not known yet of the place, and return this same error."""
        self.file = self.file if self.file is not None else file
        self.position = self.position if self.position is not None else position
        self.record_offset = self.record_offset if self.record_offset is not None else record_offset
        self.field = self.field if self.field is not None else field
        return self

    def __str__(self) -> str:
        place = [
            f"{label} {value}"
            for label, value in (
                ("position", self.position),
                ("record offset", self.record_offset),
                ("field", self.field),
            )
            if value is not None
        ]
        where = ", ".join(place)
        head = f"{self.file}: {where}" if self.file and where else self.file or where
        return f"{head}: {self.problem}" if head else self.problem


def _error_again(
    kind: type[OffsetsLogError], args: tuple[object, ...], facts: dict[str, object]
) -> OffsetsLogError:  # fmt: skip
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class InputError(OffsetsLogError):
    """What was given cannot be opened, is empty, or is nothing we know."""


class AskedError(InputError):
    """What was asked for makes no sense by itself, or not of what was given."""


class OutputError(OffsetsLogError):
    """The output could not be written whole; nothing was left behind."""


class ClusterError(OffsetsLogError):
    """A Kafka cluster cannot be reached, or refuses what was asked."""


class ClusterLostError(ClusterError):
    """A Kafka cluster that had answered does not answer any more, however often it was asked."""


class AssignorError(OffsetsLogError):
    """Kafka's own assignor ends with an exception here, and assigns nothing."""


class CorruptLogError(OffsetsLogError, ValueError):
    """Kafka cannot have written these bytes."""


class TruncatedBatchError(CorruptLogError):
    """A batch is cut off, and not by the end of the last segment."""


class CorruptBatchError(CorruptLogError):
    """A batch header, its checksum or its compressed records make no sense."""


class CorruptRecordError(CorruptLogError):
    """A record, its key or its value does not parse."""


class CorruptFileError(CorruptLogError):
    """A file beside the segments, such as a checkpoint, is not of its form; ``problem`` names the line."""


class MissingLogError(OffsetsLogError):
    """Offsets of a log are in no segment, and nothing explains it."""


class UnsupportedError(OffsetsLogError):
    """Kafka may have written these bytes; this version does not read them."""


class UnsupportedCompressionTypeError(UnsupportedError):
    """A codec id other than none, gzip, snappy, lz4 and zstd."""


class UnknownRecordTypeError(UnsupportedError):
    """A record type no known release writes."""


class UnsupportedVersionError(UnsupportedError):
    """A value version no known release writes for this record type."""


class ReplayError(OffsetsLogError):
    """A coordinator would refuse to load a partition because of this record; ``rule`` names why."""

    def __init__(self, problem: str, *, rule: str) -> None:
        super().__init__(problem)
        self.rule = rule


RECORD_PARTS = frozenset({"key", "value", "control"})
"""First part of the path of a field in a record's contents."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A piece of a segment that could not be read, kept as it is.

    Attributes:
        error: what is wrong with it and where it lies.
        raw: the bytes of the piece, from ``error.position`` on.
    """

    error: OffsetsLogError
    raw: bytes

    @property
    def is_unsupported(self) -> bool:
        """Whether Kafka may have written it."""
        return isinstance(self.error, UnsupportedError)

    @property
    def is_of_content(self) -> bool:
        """Whether only a record's key or value cannot be read; the record and its batch are whole."""
        part = (self.error.field or "").partition(".")[0]
        return part in RECORD_PARTS and not isinstance(self.error, CorruptBatchError)
