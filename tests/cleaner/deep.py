"""Logs cleaned deeply or with records dropped, and random logs for that."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest

from offsets_log.broker.recovery import OpenLog
from offsets_log.cleaner.batches import batches
from offsets_log.cleaner.deep import Deep, clean_deep
from offsets_log.cleaner.drops import Drops, dropped
from offsets_log.cleaner.opening import open_for_cleaning
from offsets_log.cleaner.settings import Rules, Settings
from offsets_log.errors import OffsetsLogError
from offsets_log.events import EVERYTHING, Until
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import CoordinatorState, finish
from offsets_log.replay.profile import Profile
from tests.builders import TIME, LogBuilder, member

SETTINGS = Settings(now_ms=TIME + 10**12, rules=Rules.of((4, 4)))


def opened(log: PartitionLog) -> OpenLog:
    found = open_for_cleaning(log, SETTINGS)
    assert found.refusal is None
    return found


def deep(log: PartitionLog, settings: Settings = SETTINGS) -> Deep:
    """The same by kernels and without."""
    try:
        made = clean_deep(log, opened(log), settings)
    except OffsetsLogError as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            clean_deep(log, opened(log), settings, in_bulk=True)
        raise
    in_bulk = clean_deep(log, opened(log), settings, in_bulk=True)
    assert contents(in_bulk.log) == contents(made.log)
    assert in_bulk.kept == made.kept
    return made


def without(log: PartitionLog, drops: Drops, settings: Settings = SETTINGS) -> PartitionLog:
    """The same by kernels and without."""
    made = dropped(log, opened(log), drops, settings)[0]
    assert contents(dropped(log, opened(log), drops, settings, in_bulk=True)[0]) == contents(made)
    return made


def load(log: PartitionLog, profile: Profile, until: Until = EVERYTHING) -> CoordinatorState:
    return finish(replay(iter_events(log, until=until), profile, on_damage=lambda damage: None))


def answers(state: CoordinatorState) -> dict[str, Any]:
    """All that is answered from a state, whatever the order in which it was found."""
    return {
        "committed": {value.key: value for value in state.committed},
        "pending": set(state.pending),
        "groups": state.groups,
        "problems": set(state.problems),
        "end_offset": state.end_offset,
    }


def contents(log: PartitionLog) -> list[tuple[int | None, bytes]]:
    return [(segment.base_offset, bytes(segment.buffer)) for segment in log.segments]


def random_log(seed: int, batches: int = 60) -> PartitionLog:
    """Offsets, transactions and groups in any order, with few names, so that they meet."""
    choice = random.Random(seed)
    log = LogBuilder()
    for _ in range(batches):
        group, producer = choice.choice("ab"), choice.choice((-1, -1, 5, 6))
        match choice.choice(("commit", "commit", "commit", "end", "group", "gone", "newer", "skip", "twice")):
            case "commit":
                offset = choice.choice((None, choice.randrange(100)))
                type_ = choice.choice((0, 1, 1))
                log.commit(offset, group=group, partition=choice.randrange(2), producer=producer, type_=type_)
            case "end":
                log.end(choice.choice((5, 6)), commit=choice.random() < 0.6)
            case "group":
                log.group(*[member("m")][: choice.randrange(2)], group=group, generation=choice.randrange(9))
            case "gone":
                log.group(group=group, gone=True)
            case "newer":
                value: Any = choice.choice((None, {"epoch": choice.randrange(9)}))
                log.newer(3, value, group="n")
            case "skip":
                log.skip(choice.randrange(3))
            case "twice":
                once = LogBuilder().commit(choice.randrange(9), group=group), LogBuilder().group(group=group)
                log.add(*(_only_record(one.log) for one in once))
    return log.log


def _only_record(log: PartitionLog) -> tuple[bytes | None, bytes | None]:
    (record,) = (event.record for event in iter_events(log) if hasattr(event, "record"))
    return record.key, record.value


def in_segments(log: PartitionLog, limit: int) -> PartitionLog:
    """The same in several segments, of so many batches each."""
    (file,) = opened(log).files.values()
    found = list(batches(file))
    runs = [found[at : at + limit] for at in range(0, len(found), limit)]
    segments = [
        Segment(f"{run[0].offset:020}.log", run[0].offset, b"".join(batch.raw() for batch in run)) for run in runs
    ]
    return replace(log, segments=tuple(segments) or log.segments)
