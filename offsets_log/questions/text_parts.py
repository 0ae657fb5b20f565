"""The text of parts of logs, made in parallel and joined; the heading of a file appears once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from offsets_log.columnar.sinks.lines import Headings, Lines
from offsets_log.disk.spool import Spool
from offsets_log.log_format.partition_log import PartitionLog


@dataclass(slots=True)
class _Part:
    log: PartitionLog
    headings: Headings | None = None
    heading_at: int = 0


class Parts:
    """Takes the lines of parts, and hands them out in the order of the parts; a context manager."""

    def __init__(self) -> None:
        self._spool = Spool()
        self._parts: dict[int, _Part] = {}
        self._log: PartitionLog | None = None
        self._heading: bytes | None = None

    def keep(self, log: PartitionLog, number: int, made: Iterator[Lines]) -> int:
        """Keep the text of a part, in place of an earlier one; return how many records are in it."""
        part = self._parts[number] = _Part(log)
        records = 0

        def pieces() -> Iterator[memoryview | bytes]:
            nonlocal records
            for lines in made:
                records += lines.records
                part.headings = lines.headings
                for piece in lines:
                    if lines.headings.first is None:
                        part.heading_at += len(piece)
                    yield piece

        self._spool.write(number, pieces())
        return records

    def take(self, number: int) -> Iterator[bytes | memoryview]:
        """Yield the text of a part, with the heading of its first file unless that file had one before."""
        part = self._parts.pop(number)
        headings = part.headings
        if part.log is not self._log:
            self._log, self._heading = part.log, None
        if headings is None or headings.first is None:
            yield from self._spool.take(number)
            return
        heading = b"" if headings.first == self._heading else headings.first
        self._heading = headings.last
        left = part.heading_at
        for piece in self._spool.take(number):
            if heading and len(piece) > left:
                yield bytes(piece[:left]) + heading
                piece, heading = piece[left:], b""
            left -= len(piece)
            yield piece

    def __enter__(self) -> Self:
        self._spool.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spool.__exit__(kind, error, trace)
