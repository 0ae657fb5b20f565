"""Threads of a cleaning own what they work in until they end."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from offsets_log.cleaner import bulk_threads
from offsets_log.cleaner.bulk import KeyTable
from offsets_log.cleaner.transactions import Transactions
from offsets_log.errors import OffsetsLogError


def test_tables_outlive_the_threads_that_fill_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decompressors write into memory that closing frees; the first part's error ends the waiting for the others."""
    closed, begun = threading.Event(), threading.Event()
    seen: list[bool] = []

    def enter(part: Sequence[Any], first_dirty: int, table: KeyTable, transactions: Transactions) -> None:
        if table is first:
            begun.wait()
            raise OffsetsLogError("unreadable")
        begun.set()
        seen.append(closed.wait(0.2))

    monkeypatch.setattr(bulk_threads, "enter_segments", enter)
    monkeypatch.setattr(KeyTable, "close", lambda self: closed.set())
    segments: Any = [(SimpleNamespace(size_bytes=10, base_offset=offset), offset + 1) for offset in (0, 1)]
    first = KeyTable()
    with pytest.raises(OffsetsLogError, match="unreadable"):
        bulk_threads.enter_in_parts(first, segments, 0, Transactions(), threads=2)
    assert closed.is_set()
    assert seen == [False]
