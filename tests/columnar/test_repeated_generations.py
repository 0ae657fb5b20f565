"""Generations of a classic group that differ in numbers only: the same answers whether they are decoded or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.events import EVERYTHING
from offsets_log.messages.repeated import RepeatedRecords
from tests.builders import LogBuilder, member
from tests.columnar import test_newer
from tests.columnar.test_selection import Asked
from tests.sizes import examples

ASSIGNED = member("m", assignment=bytes.fromhex("0001 00000001 0001 74 00000001 00000002 ffffffff"))
STATIC = member("m", group_instance_id="i"), member("n", group_instance_id="i")
AGAIN: dict[str, Callable[[LogBuilder, dict[str, int]], LogBuilder]] = {
    "same": lambda log, numbers: log.group(ASSIGNED, **numbers),
    "others": lambda log, numbers: log.group(ASSIGNED, member("n"), **numbers),
    "nobody": lambda log, numbers: log.group(**numbers),
    "new": lambda log, numbers: log.group(protocol_type="", **numbers),
    "another type": lambda log, numbers: log.group(ASSIGNED, protocol_type="connect", **numbers),
    "refused by L-31": lambda log, numbers: log.group(*STATIC, **numbers),
    "gone": lambda log, numbers: log.group(gone=True),
    "newer": lambda log, numbers: log.add(test_newer.record(3, "g", "m", 1)),
    "newer, gone": lambda log, numbers: log.add(test_newer.record(3, "g", "m", 0)),
    "commit": lambda log, numbers: log.commit(1),
    "hole": lambda log, numbers: log.skip(1),
}
"""What may come between generations that differ in numbers only."""


def add_again(log: LogBuilder, step: str, number: int) -> None:
    AGAIN[step](log, {"generation": number, "current_state_timestamp": number})


@examples(150)
@given(steps=st.lists(st.tuples(st.sampled_from(("same", "same", "same", *AGAIN)), st.integers(0, 9)), max_size=14))
def test_generations_that_differ_in_numbers_only(steps: list[tuple[str, int]]) -> None:
    log = LogBuilder()
    for step, number in steps:
        add_again(log, step, number)
    slow_path, in_bulk = (Asked(log.log, EVERYTHING, "*", is_bulk=is_bulk).rebalances() for is_bulk in (False, True))
    assert in_bulk == slow_path


def test_a_generation_that_differs_in_numbers_only_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogBuilder()
    for number in range(1, 9):
        add_again(log, "same", number)
    decoded: list[int] = []
    decode = RepeatedRecords.decode
    monkeypatch.setattr(RepeatedRecords, "decode", lambda *of: decoded.append(1) or decode(*of))
    entries, _, _, _ = Asked(log.log, EVERYTHING, "*", is_bulk=True).rebalances()
    assert (len(entries), len(decoded)) == (8, 1)
