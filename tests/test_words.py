from __future__ import annotations

from offsets_log.words import counted


def test_one_is_one() -> None:
    assert [counted(n, "offset") for n in (0, 1, 2)] == ["0 offsets", "1 offset", "2 offsets"]
    assert [counted(n, "batch", "batches") for n in (0, 1, 2)] == ["0 batches", "1 batch", "2 batches"]
