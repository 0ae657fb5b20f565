"""Expiry of a streams group whose topology's description the brokers' plugin may have, as a real 4.4.0 wrote it.

``expired-4.4.tar.xz`` has two segments. The first 95 records of both are those of the offsets partition 0 of the
recording ``kafka-4.4-modern-groups``, in which ``streams-later-desert`` is Empty at last, with a description that the
plugin had refused for the time being. A broker of 4.4.0 was started over them, with a retention of a minute and a check
every three seconds: with that plugin, and with none. The rest is what it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from offsets_log.disk.reader import open_logs
from offsets_log.events import Event, Until
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.expiry import ERAS, cycle_of, tombstones
from offsets_log.replay.profile import MODERN
from tests.conftest import unpack_once

GROUP, BEGIN, MINUTE_MS = "streams-later-desert", 95, 60_000

Written = tuple[int, int, list[tuple[bytes, bytes | None]]]
"""A batch: its first record offset, its time, keys and values."""
Log = Callable[[int | None], CoordinatorState]


@pytest.fixture(params=["plugin", "no-plugin"])
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Log, list[Written]]]:
    """Whether there was a plugin; the state before a record offset; the batches that the broker wrote."""
    folder = unpack_once(Path(__file__).with_name("expired-4.4.tar.xz"), tmp_path_factory, request)
    with open_logs([str(folder / request.param)]) as disk:
        (log,) = disk.logs

        def before(offset: int | None) -> CoordinatorState:
            events = iter_events(log, until=Until(record_offset=offset))
            return finish(replay(events, MODERN, on_damage=pytest.fail))

        def written() -> Iterator[Written]:
            events = (it for it in iter_events(log) if isinstance(it, Event) and it.record.offset >= BEGIN)
            for offset, batch in groupby(events, lambda event: event.batch.base_offset):
                records = [event.record for event in batch]
                yield offset, records[0].timestamp_ms, [(one.key or b"", one.value) for one in records]

        yield request.param, before, list(written())


def cycle(state: CoordinatorState, now_ms: int, era: str) -> list[Any]:
    """The records that a cycle of expiry writes, in the order of their bytes."""
    return sorted(tombstones(state, now_ms, ERAS[era].retention(MINUTE_MS)))


def test_a_description_keeps_its_group_while_brokers_have_a_plugin(recorded: tuple[str, Log, list[Written]]) -> None:
    """``K44-2``, ``K44-41``: the offsets go, then the description, then the group; else all at once."""
    plugin, before, batches = recorded
    (offset, now_ms, first), *later = batches
    state = before(offset)
    assert state.groups[GROUP].stored_description_topology_epoch == -2
    assert cycle(state, now_ms, "modern" if plugin == "plugin" else "4.0.1") == sorted(first)
    (found,) = (group for group in cycle_of(state, now_ms, ERAS["modern"].retention(MINUTE_MS)) if group.offsets)
    assert (found.removed, found.removed_at_ms, found.rule) == (False, None, "K44-41")
    if plugin == "no-plugin":
        assert not later
        return
    (described, _, epochs), (removed, removed_at_ms, last) = later
    assert [value is None for _, value in epochs] == [False]
    assert not cycle(before(described), now_ms + MINUTE_MS, "modern")
    assert before(removed).groups[GROUP].stored_description_topology_epoch == -1
    assert cycle(before(removed), removed_at_ms, "modern") == sorted(last)
    assert GROUP not in before(None).groups
