"""What kernels know of records, by the rules of releases: which they take, in which layouts, and what each is about."""

from __future__ import annotations

import pytest

from offsets_log.columnar import arrays as a
from offsets_log.columnar.folds import newer
from offsets_log.columnar.folds.known import new_state, newer_layouts, newer_programs, plain_programs, rules_of
from offsets_log.columnar.folds.offsets import (
    CANCELS_OWN,
    ENDS_BY_RECORD,
    LATEST_BY_MARKER,
    TOMBSTONE_SPARES_COMMITTED,
)
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.replay.profile import PROFILES, RELEASES

ALL = PROFILES | RELEASES
VERSIONS = {
    "0.8.2": (1, 0, 0),
    "0.9": (2, 2, 1),
    "0.10.0": (2, 2, 1),
    "0.10.1": (2, 2, 2),
    "0.11": (2, 2, 2),
    "2.0": (2, 2, 2),
    "2.1": (4, 4, 3),
    "2.3": (4, 4, 4),
    "3.0": (4, 4, 4),
    "3.9-java": (5, 5, 5),
    "4.0": (5, 5, 5),
    "4.1": (1, 5, 5),
}
"""Release → how many value versions of types 0, 1 and 2 it replays: what it does not know is for the slow path."""


@pytest.mark.parametrize("release", VERSIONS)
def test_versions_that_a_release_replays_are_taken(release: str) -> None:
    programs = plain_programs(ALL[release])
    found = [[version for number, version in programs if number == each and version is not None] for each in range(3)]
    assert found == [[*range(count)] for count in VERSIONS[release]]
    assert {number for number, version in programs if version is None} == {0, 1, 2}


@pytest.mark.parametrize(
    ("names", "rules"),
    [
        (("modern", "3.8-java", "3.9-java", "4.0", "4.3"), ENDS_BY_RECORD),
        (("modern-3.7", "3.7-java"), LATEST_BY_MARKER),
        (("0.8.2", "0.11", "2.3", "3.0", "3.4.1", "classic"), TOMBSTONE_SPARES_COMMITTED | CANCELS_OWN),
    ],
)
def test_who_wins_where_records_meet_is_told_by_bits(names: tuple[str, ...], rules: int) -> None:
    bits = LATEST_BY_MARKER, ENDS_BY_RECORD, TOMBSTONE_SPARES_COMMITTED, CANCELS_OWN
    assert sorted(bits) == [1, 2, 4, 8]
    for name in names:
        profile = ALL[name]
        assert rules_of(profile) == rules
        for with_newer in (False, True):
            scan_state = new_state(profile, with_newer=with_newer).scan_state
            assert (scan_state.rules, bool(scan_state.by_bit)) == (rules, profile.transactions_by_bit)


SINCE_3_8, SINCE_4_1 = {4, 5, 7, 8}, {11, 15}
"""Types whose values had another layout before."""
CONSUMER, SHARE, STREAMS = {3, 4, 5, 6, 7, 8, 16}, {10, 11, 12, 13, 14, 15}, {17, 19, 20, 21, 22, 23}
OF_4_0 = CONSUMER | SHARE | {9}


@pytest.mark.parametrize(
    ("name", "release", "taken"),
    [
        ("4.3", None, CONSUMER | SHARE | STREAMS),
        ("4.3", (4, 3), CONSUMER | SHARE | STREAMS),
        ("4.3", (4, 1), CONSUMER | SHARE | STREAMS),
        ("4.3", (4, 0), (CONSUMER | SHARE | STREAMS) - SINCE_4_1),
        ("4.3", (3, 8), (CONSUMER | SHARE | STREAMS) - SINCE_4_1),
        ("4.3", (3, 7), (CONSUMER | SHARE | STREAMS) - SINCE_4_1 - SINCE_3_8),
        ("4.1", None, CONSUMER | SHARE | STREAMS),
        ("4.0", None, OF_4_0 - SINCE_4_1),
        ("4.0", (4, 3), OF_4_0 - SINCE_4_1),
        ("4.0", (4, 0), OF_4_0),
        ("4.0", (3, 9), OF_4_0 - {9}),
        ("4.0", (3, 7), OF_4_0 - SINCE_3_8 - {9}),
        ("3.9-java", None, set()),
        ("3.9-java", (3, 9), set()),
        ("3.7-java", (3, 7), set()),
        ("3.4.1", None, set()),
        ("0.8.2", None, set()),
    ],
)
def test_newer_kinds_are_taken_in_the_layout_of_the_release_that_wrote_the_log(
    name: str, release: tuple[int, int] | None, taken: set[int]
) -> None:
    """Where the release whose rules act reads it too; other layouts are known so that they are told apart."""
    profile = ALL[name]
    layouts, programs = newer_layouts(profile, release), newer_programs(profile, release)
    assert layouts.keys() == taken
    for number, layout in layouts.items():
        written_by = profile.release if release is None else release
        known = [other for other in RECORD_TYPES[number].layouts(0) if other.is_written_by(written_by)]
        assert layout in known or not known
        assert layout.is_written_by(profile.release)
        assert (number, None) in programs
        assert (number, 0) in programs
    others = {number for number, version in programs if version not in (None, 0)}
    assert others == {number for number in layouts if len([*RECORD_TYPES[number].layouts(0)]) > 1}


def test_hashes_of_keys_cannot_be_foreseen() -> None:
    """Of each state others; a seed fits in 63 bits."""
    seeds = {int(new_state(PROFILES["modern"], with_newer=False).scan_state.seed) for _ in range(9)}
    assert len(seeds) == 9
    assert all(0 <= seed < 1 << 63 for seed in seeds)


def test_what_each_record_of_a_newer_kind_is_about() -> None:
    """Its part in the life of a group, the group's kind, and the type of its member's own records."""
    rows = {number: newer.TYPES[number].tolist() for number in RECORD_TYPES if newer.TYPES[number, newer.ACTION] >= 0}
    assert {number for number, row in rows.items() if row[newer.KIND] == 1} == CONSUMER
    assert {number for number, row in rows.items() if row[newer.KIND] == 2} == SHARE | {9}
    assert {number for number, row in rows.items() if row[newer.KIND] == 3} == STREAMS
    actions = {action: {n for n, row in rows.items() if row[newer.ACTION] == action} for action in range(7)}
    assert actions == {
        newer.EXISTENCE: {4, 9, 15},
        newer.METADATA: {3, 11, 17},
        newer.MEMBER: {5, 10, 19},
        newer.TARGET_METADATA: {6, 12, 20},
        newer.TARGET: {7, 13, 21},
        newer.CURRENT: {8, 14, 22},
        newer.OTHER: {16, 23},
    }
    members = {number: row[newer.OF_MEMBER] for number, row in rows.items() if row[newer.OF_MEMBER] != a.NOTHING}
    assert members == {5: 5, 7: 5, 8: 5, 10: 10, 13: 10, 14: 10, 19: 19, 21: 19, 22: 19}
    assert {number for number, row in rows.items() if row[newer.NAMES]} == {4, 9, 15}
    assert {number for number, row in rows.items() if row[newer.OPTIONAL]} == {9, 16}
    assert newer.MEMBER_TYPES.tolist() == [5, 10, 19]
    assert (newer.HEADS, newer.EPOCHS) == ([3, 11, 17], [6, 12, 20])
    assert sorted([*newer.KINDS.values(), newer.NO_KIND]) == [1, 2, 3, 4]


def test_values_that_are_numbers_around_one_string_are_told_by_their_sizes() -> None:
    """Bytes before the string's length, and all but the string's; nothing of other values, nor of newer kinds."""
    scan_state = new_state(ALL["modern"], with_newer=True).scan_state
    shapes = {(0, 0): (10, 20), (1, 0): (10, 20), (1, 1): (10, 28), (1, 2): (10, 20), (1, 3): (14, 24)}
    for number in range(a.RECORD_TYPES):
        for version in range(a.VERSIONS):
            found = int(scan_state.one_string[number, version]), int(scan_state.around_string[number, version])
            assert found == shapes.get((number, version), (a.NOTHING, 0))


def test_no_two_states_hash_alike() -> None:
    seeds = {int(new_state(ALL["modern"], with_newer=True).scan_state.seed) for _ in range(4)}
    assert len(seeds) == 4
    assert 0 not in seeds
