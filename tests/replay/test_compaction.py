"""Check that the broker's cleaner changes no answers: a cleaned log replays like the log (``C-4``–``C-6``, ``C-12``).

The cleaner is imitated on generated logs; recorded logs before and after the real one are in
`test_compact_recordings`. Two hazards are left out because they do change the answers: a Scala coordinator with
tombstones over pending values (``C-21``), and a group that only an aborted offset had brought back (``B-17``).
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.replay.profile import CLASSIC, MODERN, Profile
from tests.builders import LogBuilder
from tests.sizes import examples


@dataclass(frozen=True)
class Entry:
    """A record of a generated log: a commit or tombstone (``offset`` None) of a key, or a marker."""

    partition: int = 0
    offset: int | None = None
    producer: int = -1
    commit: bool | None = None


ENTRIES = st.one_of(
    st.builds(Entry, st.integers(0, 2), st.integers(1, 99), st.sampled_from((-1, -1, 7, 8))),
    st.builds(Entry, st.integers(0, 2), st.none(), st.just(-1)),
    st.builds(Entry, producer=st.sampled_from((7, 8)), commit=st.booleans()),
)


def write(entries: list[tuple[int, Entry]]) -> LogBuilder:
    built = LogBuilder()
    for record_offset, entry in entries:
        built.skip(record_offset - built.offset)
        if entry.commit is not None:
            built.end(entry.producer, commit=entry.commit)
        else:
            built.commit(entry.offset, partition=entry.partition, producer=entry.producer)
    return built


def outcomes(entries: list[tuple[int, Entry]]) -> dict[int, bool | None]:
    """Return record offset of a transactional record → how its transaction ended."""
    found: dict[int, bool | None] = {}
    for record_offset, entry in entries:
        if entry.commit is not None:
            for other, previous in entries:
                if other < record_offset and previous.producer == entry.producer and found.get(other, 0) is None:
                    found[other] = entry.commit
        elif entry.producer != -1:
            found[record_offset] = None
    return found


def clean(entries: list[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """Return what the cleaner keeps below the last stable offset: latest of each key, markers, no aborted data."""
    ended = outcomes(entries)
    last_stable = min((offset for offset, end in ended.items() if end is None), default=len(entries))
    dirty = [(o, e) for o, e in entries if o < last_stable and e.commit is None and ended.get(o) is not False]
    latest = {entry.partition: record_offset for record_offset, entry in dirty}
    kept = {record_offset for record_offset, entry in dirty if latest[entry.partition] == record_offset}
    return [(o, e) for o, e in entries if o >= last_stable or e.commit is not None or o in kept]


@pytest.mark.parametrize("profile", [MODERN, CLASSIC], ids=lambda profile: profile.name)
@examples(250)
@given(entries=st.lists(ENTRIES, max_size=25))
def test_replay_of_a_cleaned_log_is_replay_of_the_log(profile: Profile, entries: list[Entry]) -> None:
    """A cleaned log and the log itself replay alike (``C-4``–``C-6``, ``C-12``)."""
    if profile is CLASSIC:
        entries = [entry for entry in entries if entry.offset is not None or entry.commit is not None]
    numbered = list(enumerate(entries))
    whole = write(numbered).load(profile)
    cleaned = write(clean(numbered)).load(profile)
    assert sorted((v.key, v.committed_offset, v.record_offset) for v in cleaned.committed) == sorted(
        (v.key, v.committed_offset, v.record_offset) for v in whole.committed
    )
    assert sorted((v.key, v.record_offset) for v in cleaned.pending) == sorted(
        (v.key, v.record_offset) for v in whole.pending
    )


def test_a_dropped_tombstone_changes_what_scala_makes_of_a_pending_value() -> None:
    """A dropped tombstone changes Scala's answer for a pending value (``C-21``, ``L-19``)."""
    log = LogBuilder().commit(5, producer=7).commit(None).end(7)
    without_value = LogBuilder().skip(1).commit(None).end(7)
    assert log.served(CLASSIC) != without_value.served(CLASSIC)
    assert log.served(MODERN) == without_value.served(MODERN) == {}


def test_a_cleaned_group_tombstone_gives_its_offsets_back_in_java() -> None:
    """Cleaning away a group's tombstone gives its offsets back in Java (``C-22``)."""
    assert LogBuilder().commit(5).group(gone=True).served(MODERN) == {}
    cleaned = LogBuilder().commit(5).skip(1)
    assert cleaned.served(MODERN) == {"g/t/0": 5}
    assert cleaned.load(MODERN).groups["g"].is_simple
    assert LogBuilder().commit(5).group(gone=True).served(CLASSIC) == {"g/t/0": 5}


def test_a_type_0_value_comes_back_when_a_type_1_tombstone_is_cleaned_away() -> None:
    """A type 0 value returns when its type 1 tombstone is cleaned away, since the keys differ (``C-20``, ``C-4``)."""
    assert LogBuilder().commit(5, type_=0).commit(6).commit(None).served(MODERN) == {}
    assert LogBuilder().commit(5, type_=0).skip(2).served(MODERN) == {"g/t/0": 5}
