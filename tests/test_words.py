from __future__ import annotations

from offsets_log.words import counted, shown_duration, shown_span


def test_one_is_one() -> None:
    assert [counted(n, "offset") for n in (0, 1, 2)] == ["0 offsets", "1 offset", "2 offsets"]
    assert [counted(n, "batch", "batches") for n in (0, 1, 2)] == ["0 batches", "1 batch", "2 batches"]


def test_a_duration_is_told_in_its_largest_whole_unit() -> None:
    shown = [shown_duration(ms) for ms in (604_800_000, 5_400_000, 7000, 10_080, 0)]
    assert shown == ["7d", "90m", "7s", "10080 ms", "0 ms"]


def test_a_span_is_told_in_its_two_largest_units() -> None:
    shown = [shown_span(ms) for ms in (168_531_551, 172_800_000, 3_600_000, 2_763_999, 60_000, 59_999, 0, -90_000)]
    assert shown == ["1d 22h", "2d 0h", "1h 0m", "46m 3s", "1m 0s", "59.999s", "0.000s", "-1m 30s"]
