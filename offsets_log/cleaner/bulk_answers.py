"""The answers of coordinators from a log by kernels: offsets as tables, of which only differing ones are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from offsets_log.cleaner.answer import Answer, Standing
from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds.replay import Replayed, replay_logs
from offsets_log.columnar.folds.state import ColumnarState
from offsets_log.columnar.materialize.timelines import names_told
from offsets_log.columnar.materialize.values import (
    committed_places,
    find,
    offsets_at,
    settled,
    topic_names,
)
from offsets_log.columnar.scan import gather as ga
from offsets_log.columnar.scan.layout import Layout, Scanner
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.replay.partial import OffsetAndMetadata
from offsets_log.replay.profile import Profile


def answers_in_bulk(log: PartitionLog, profiles: Sequence[Profile]) -> Iterator[Answer]:
    """Return the memory of each profile after a load, without what cannot be read."""
    for profile in profiles:
        for replayed in replay_logs([log], profile, note=lambda log: lambda seen: None):
            yield _answer(replayed)


def _answer(replayed: Replayed) -> Answer:
    layout, state = replayed.layout, replayed.state
    found = find(state)
    pending = found.pending[:, [2, 3, 1, 1]]
    places = np.concatenate([committed_places(state, found), pending])
    places = places[np.argsort(places[:, 2], kind="stable")]
    with Scanner() as scanner:
        groups, problems = settled(layout, state, scanner, found, whole=True)
        return Answer(
            standing=Standing(
                places[:, 2].tolist(), _digest(layout, state, scanner, places), partial(_values, layout, state, places)
            ),
            groups=groups,
            problems=problems,
            topic_names=topic_names(state, names_told(layout, state, scanner)),
        )


def _digest(layout: Layout, state: ColumnarState, scanner: Scanner, places: a.Int64s) -> bytes:
    """Return a digest of all that is known of the offsets at ascending places, int64[n, 4]."""
    is_slow = places[:, 0] == a.SLOW_PATH
    copied, table = scanner.gather(layout, places[~is_slow, :2])
    used = int((table[:, [ga.KEY_SIZE, ga.VALUE_SIZE]].clip(0)).sum())
    others = [state.values[index] for index in places[is_slow, 1].tolist()]
    digest = hashlib.sha256(repr(others).encode())
    for part in (np.ascontiguousarray(places[:, 2:]), table, copied[:used]):
        digest.update(part.tobytes())
    return digest.digest()


def _values(layout: Layout, state: ColumnarState, places: a.Int64s) -> set[OffsetAndMetadata]:
    with Scanner() as scanner:
        return set(offsets_at(layout, state, scanner, places))
