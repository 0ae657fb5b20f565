"""A choice of records that stay, and what is left of the batches."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from offsets_log.broker.batches import FileBatch
from offsets_log.broker.log_file import LogFile
from offsets_log.log_format.record import Record
from offsets_log.log_format.segment import Buffer

NO_OFFSET = (1 << 63) - 1


@dataclass(slots=True)
class Named:
    """A choice by the offsets of records, as far as kernels can make it: other batches are asked for one by one.

    Attributes:
        stay: whether records with these offsets stay and all others go; else they go, and other batches stay unchanged.
        until_offset: batches that end after it are asked for one by one.
        open_from: so are batches in transactions from this offset on.
        with_data: producers with data that stays in their open transactions, at the place that is read.
    """

    offsets: Set[int]
    stay: bool
    until_offset: int = NO_OFFSET
    open_from: int = NO_OFFSET
    with_data: set[int] = field(default_factory=set)


class Choice(Protocol):
    """A choice of records that stay; it is asked in log order about every batch and every data record."""

    @property
    def named(self) -> Named | None:
        """The choice by offsets, if it depends on offsets alone; else None."""

    def end_within(self, batch: FileBatch) -> int | None:
        """Return where the log ends if it ends within this batch: no record from there on stays."""

    def keeps_all(self, batch: FileBatch) -> bool:
        """Return whether a batch of data stays as it is, whatever its records are."""

    def keeps_bare(self, batch: FileBatch) -> bool:
        """Return whether a batch without data stays: a control batch, or one without records."""

    def keeps_record(self, batch: FileBatch, record: Record) -> bool:
        """Return whether a data record stays."""


class CutPiece(NamedTuple):
    """A batch of the new log, or several behind each other."""

    raw: Buffer
    base_offset: int
    last_offset: int
    file: LogFile
    is_copied: bool


class Run(NamedTuple):
    """Batches that were taken in bulk: what is left of them, and the last one."""

    pieces: Sequence[CutPiece] = ()
    last: FileBatch | None = None
