"""Which memory is asked for before records of a block need it: of speed, and of no answer."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import offsets as fold
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.jit.records import Table
from offsets_log.columnar.wire.primitives import hash_bytes
from offsets_log.replay.profile import MODERN

IN_A_LINE = a.CACHE_LINE - a.SIZE_BYTES
"""The size of the longest key that stands in one line of memory with the size before it."""
KINDS = (a.VALUE, a.TOMBSTONE, a.COMMIT, a.ABORT, a.PASSED)


def raw_key(topic: str) -> bytes:
    return b"\0\1\0\1g" + len(topic).to_bytes(2) + topic.encode() + bytes(4)


KNOWN = ["t" * (size - len(raw_key(""))) for size in (30, *range(IN_A_LINE - 2, IN_A_LINE + 3), 2 * IN_A_LINE)]
KNOWN += [f"{number}" for number in range(8)]
UNKNOWN = [f"{number}" for number in range(8, 24)]


def state_of_keys(seed: int) -> ColumnarState:
    """The known keys, some of which stand behind others in the table of slots."""
    state = ColumnarState(MODERN)
    state.arrays.scan_state.seed = seed
    for topic in KNOWN:
        state.register(raw_key(topic), 1, {"group": "g", "topic": topic, "partition": 0}, 0)
    return state


def staged_of(keys: list[bytes], kinds: list[int]) -> tuple[Table[a.Staged], np.ndarray[Any, Any]]:
    staged, at = Table(a.Staged, len(keys)), 5
    for one, key, kind in zip((staged[number] for number in range(len(keys))), keys, kinds, strict=True):
        one.key_at, one.key_size, one.kind = at, len(key), kind
        at += len(key) + 3
    return staged, np.frombuffer(bytes(5) + b"".join(key + b"any" for key in keys), np.uint8)


@pytest.mark.parametrize("seed", range(6))
def test_slots_of_keys_are_asked_for_then_known_rows_then_their_keys(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all records of a block first the slots. Markers have no key, and records of damaged ones are passed over."""
    monkeypatch.setattr(a, "LEAST_KEYS", 16)
    state, dice = state_of_keys(seed), random.Random(seed)
    s, arrays = state.arrays, state.arrays.all
    topics, kinds = dice.sample([*KNOWN, *UNKNOWN], k=24), dice.choices(KINDS, [3, 3, 1, 1, 1], k=24)
    staged, data = staged_of([raw_key(topic) for topic in topics], kinds)
    names = {id(arrays.slots): "slots", id(arrays.rows): "rows", id(arrays.arena): "arena"}
    for first, last in pairwise((0, 7, 8, 8, 24)):
        asked: list[tuple[str, int]] = []
        monkeypatch.setattr(fold, "prefetch", lambda array, index: asked.append((names[id(array)], int(index))))  # noqa: B023
        s.scan_state.found[:] = s.scan_state.hashes[:] = 99
        with np.errstate(over="ignore"):
            fold.prepare(arrays, data, staged, np.int64(first), np.int64(last))
            keyed = [number for number in range(first, last) if kinds[number] <= a.TOMBSTONE]
            hashes = {at: int(hash_bytes(data, staged[at].key_at, staged[at].key_size, seed)) for at in keyed}
        rows = {at: KNOWN.index(topics[at]) if topics[at] in KNOWN else a.NOTHING for at in keyed}
        expected = [("slots", found & len(s.slots) - 1) for found in hashes.values()]
        expected += [("rows", row) for row in rows.values() if row >= 0]
        for at, row in rows.items():
            if row >= 0:
                key_at = int(s.rows[row].key_at)
                lines = [key_at, key_at + a.CACHE_LINE] if len(raw_key(topics[at])) > IN_A_LINE else [key_at]
                expected += [("arena", line) for line in lines]
        assert asked == expected
        assert {at: int(s.scan_state.hashes[at - first]) for at in keyed} == hashes
        assert {at: int(s.scan_state.found[at - first]) for at in keyed} == rows
