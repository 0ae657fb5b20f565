"""Which versions of values and which batches a release reads: one that it does not read ends the load."""

from __future__ import annotations

import pytest

from offsets_log.broker.outcome import on_brokers
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, encode_coordinator_record
from offsets_log.replay.profile import CLASSIC, MODERN, RELEASES, Profile
from offsets_log.replay.refusal import is_told_by_kind
from offsets_log.replay.releases import release_named
from tests.builders import LogBuilder, record_bytes
from tests.replay.test_newer_kinds import key_of, value_of
from tests.replay.test_rules import rule_of
from tests.replay.test_rules_newer import consumer_group, current

NEWEST = {
    "0.8.2": {0: 0},
    "0.9": {0: 1, 1: 1, 2: 0},
    "0.10.0": {0: 1, 1: 1, 2: 0},
    "0.10.1": {0: 1, 1: 1, 2: 1},
    "0.11": {0: 1, 1: 1, 2: 1},
    "2.0": {0: 1, 1: 1, 2: 1},
    "2.1": {0: 3, 1: 3, 2: 2},
    "2.3": {0: 3, 1: 3, 2: 3},
    "3.0": {0: 3, 1: 3, 2: 3},
}
"""Release → record type → the newest version of its value."""


def record(record_type: int, version: int) -> tuple[bytes, bytes | None]:
    key = {"group": "g"} if record_type == 2 else {"group": "g", "topic": "t", "partition": 0}
    return record_bytes(record_type, key, next(RECORD_TYPES[record_type].layouts(version)).zeros(version), version)


@pytest.mark.parametrize(("release", "record_type"), [(name, number) for name in NEWEST for number in NEWEST[name]])
def test_a_value_of_a_later_version_ends_the_load(release: str, record_type: int) -> None:
    """Each type has its newest version in each release (``records:Y4``)."""
    newest = NEWEST[release][record_type]
    for version in range(4):
        failure = LogBuilder().add(record(record_type, version), magic=0).load(RELEASES[release]).failure
        assert (failure and failure.rule) == (None if version <= newest else "records:Y4")


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize(("release", "newest"), [("0.9", 0), ("0.10.0", 1), ("0.10.1", 1), ("0.11", 2), ("4.3", 2)])
def test_a_release_reads_its_own_batch_format_and_older_ones(release: str, newest: int, magic: int) -> None:
    """``records:M1``."""
    failure = LogBuilder().add(record(1, 1), magic=magic).load(RELEASES[release]).failure
    assert (failure and failure.rule) == (None if magic <= newest else "records:M1")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize(("release", "reads_zstd"), [("2.0", False), ("2.1", True), ("4.3", True)])
def test_a_release_before_2_1_reads_every_codec_but_zstd(release: str, reads_zstd: bool, codec: str) -> None:
    """``records:M1``."""
    failure = LogBuilder().add(record(1, 1), compression=codec).load(RELEASES[release]).failure
    assert (failure and failure.rule) == (None if reads_zstd or codec != "zstd" else "records:M1")


COMMIT_KEY, COMMIT = record(1, 4)
JOINED_KEY, JOINED = record_bytes(5, {"group_id": "g", "member_id": "m"}, value_of(5, {}), 0)
assert COMMIT is not None
assert JOINED is not None
LATER, UNKNOWN = b"\0\7" + COMMIT[2:], ("records:Y4", "OffsetCommit has no known value version 7", None)


@pytest.mark.parametrize(
    ("key", "value", "release", "told"),
    [
        (None, b"x", "4.3", ("L-16", "the key is null", None)),
        (b"\0", b"x", "4.3", ("J-3", "1 bytes are too few for the record type", None)),
        (b"\0\x63", b"x", "4.3", None),
        (b"\0\x63", b"x", "3.0", ("L-21", "unknown record type 99", None)),
        (JOINED_KEY, JOINED, "3.0", ("L-21", "unknown record type 5", "g")),
        (COMMIT_KEY, COMMIT[:9], "4.3", ("J-3", "it is cut off (byte 7 of 7)", None)),
        (COMMIT_KEY, COMMIT, "3.0", ("records:Y4", "unknown value version 4 for record type 1", "g")),
        (COMMIT_KEY, LATER, "4.3", UNKNOWN),
        (COMMIT_KEY, LATER, "3.9-java", None),
        (COMMIT_KEY, LATER[:9], "3.9-java", UNKNOWN),
        (COMMIT_KEY, b"\0\1" + COMMIT[2:], "3.9-java", ("J-3", "it is cut off (byte 22 of 22)", None)),
    ],
)
def test_a_record_that_ends_the_load_is_told_with_its_rule_its_words_and_its_group(
    key: bytes | None, value: bytes, release: str, told: tuple[str, str, str | None] | None
) -> None:
    """``L-16``, ``J-3``, ``L-21``, ``records:Y4``: the group where the record can be read.

    Only a later version is read as the newest, never one whose bytes are broken.
    """
    failure = LogBuilder().skip(5).add((key, value)).load(RELEASES[release]).failure
    assert (failure and (failure.rule, failure.problem, failure.group)) == told
    assert failure is None or failure.record_offset == 5


@pytest.mark.parametrize(("release", "number"), [("3.7-java", 1), ("3.8-java", 0), ("3.9-java", 0)])
def test_a_later_version_is_read_in_the_layout_of_the_release_alone(release: str, number: int) -> None:
    """A preview knows no other, whatever its version number says (``records:Y4``, ``B-9``)."""
    rules = []
    for layout in RECORD_TYPES[5].layouts(0):
        joined = CoordinatorRecord(record_type=5, key=key_of(5), value_version=0, value=layout.zeros(0), layout=layout)
        key, value = encode_coordinator_record(joined)
        assert value is not None
        failure = LogBuilder().add((key, b"\0\1" + value[2:])).load(RELEASES[release]).failure
        rules.append(failure and failure.rule)
    assert rules == [None if number == at else "records:Y4" for at in (0, 1)]


def test_a_tombstone_has_no_layout_that_another_release_wrote() -> None:
    for release in ("3.7-java", "3.9-java", "4.3"):
        assert is_told_by_kind(CoordinatorRecord(record_type=5, key=key_of(5)), RELEASES[release])


JAVA = ("3.7-java", "3.8-java", "3.9-java", "4.0", "4.1", "4.2", "4.3")
LAYOUTS = {
    **dict.fromkeys((4, 5, 7, 8), (JAVA[1:], JAVA[:1])),
    9: (("4.0",), ()),
    11: (JAVA[3:], ("4.0",)),
    15: (JAVA[4:], ("4.0",)),
}
"""Record type → releases that read each layout of version 0, the newest one first; share groups came with 4.0."""


@pytest.mark.parametrize(("record_type", "number"), [(of, number) for of in LAYOUTS for number in (0, 1)])
def test_a_value_in_the_layout_of_another_release_ends_the_load(record_type: int, number: int) -> None:
    """A release reads only its own of several layouts that share a version number (``B-9``)."""
    layout = list(RECORD_TYPES[record_type].layouts(0))[number]
    record = CoordinatorRecord(
        record_type=record_type, key=key_of(record_type), value_version=0, value=layout.zeros(0), layout=layout
    )
    built = LogBuilder().add(encode_coordinator_record(record))
    for release in JAVA:
        if record_type in RELEASES[release].known_types:
            failure = built.load(RELEASES[release]).failure
            is_read = failure is None or failure.rule != "B-9"
            assert is_read == (release in LAYOUTS[record_type][number]), release
            assert is_read or not is_told_by_kind(record, RELEASES[release])
        else:
            assert is_told_by_kind(record, RELEASES[release])
    assert any(is_told_by_kind(record, RELEASES[release]) for release in LAYOUTS[record_type][number] or JAVA)


def test_each_release_knows_the_record_types_that_were_there() -> None:
    """Streams groups came with 4.1, when type 9 went."""
    known = [{0}, *[{0, 1, 2}] * 10, *[{*range(9)}] * 3, *[{*range(17)}] * 2, *[{*RECORD_TYPES} - {9}] * 7]
    assert [set(profile.known_types) for profile in RELEASES.values()] == known


def test_rules_are_named_by_a_release_that_has_them() -> None:
    """It is the last one of the Scala coordinator, else the first."""
    names = {
        name: "0.11" if name == "2.0" else "2.3" if name == "2.4.1" else "3.9" if name == "3.4.1" else name
        for name in RELEASES
    }
    numbers = {name: tuple(map(int, like.removesuffix("-java").split(".")[:2])) for name, like in names.items()}
    assert {name: profile.release for name, profile in RELEASES.items()} == numbers


@pytest.mark.parametrize(
    ("release", "serves_what_it_read", "reads_large_batches"),
    [
        ("0.8.2", True, False),
        ("0.10.0.1", True, False),
        ("0.10.1", False, False),
        ("0.10.2", False, False),
        ("1.1.1", False, False),
        ("2.0", False, True),
        ("4.3", False, True),
    ],
)
def test_what_a_release_does_with_the_rest_of_a_load(
    release: str, serves_what_it_read: bool, reads_large_batches: bool
) -> None:
    """Up to 0.10.0 what was read before a failure is served (``L-10``); from 2.0 on the buffer grows (``L-6``)."""
    found = release_named(release)
    assert (found.serves_what_it_read, found.reads_large_batches) == (serves_what_it_read, reads_large_batches)


@pytest.mark.parametrize(("has_bit", "producer_id"), [(False, -1), (True, -1), (False, 0), (True, 0), (False, -2)])
def test_a_batch_is_of_a_transaction_by_its_bit_or_by_its_producer(has_bit: bool, producer_id: int) -> None:
    """``L-11``, ``J-5``: any producer id but −1 is one."""
    assert CLASSIC.is_in_transaction(has_bit, producer_id) is has_bit
    assert MODERN.is_in_transaction(has_bit, producer_id) is (producer_id != -1)


def test_a_release_has_another_coordinator_from_3_7_to_3_9() -> None:
    names = ("3.6.2", "3.7", "3.7-java", "3.9.1", "3.9.1-java", "4.0")
    others = [release_named(name).other_coordinator for name in names]
    assert others == [None, "3.7-java", "3.7", "3.9.1-java", "3.9.1", None]


def commit_with_tag_size(size: bytes) -> tuple[bytes, bytes]:
    """A commit with a topic id, whose size is said to be another."""
    value = {"offset": 1, "metadata": "", "leader_epoch": -1, "commit_timestamp": 1, "topic_id": b"\1" * 16}
    key, raw = record_bytes(1, {"group": "g", "topic": "t", "partition": 0}, value, 4)
    assert raw is not None
    assert raw.endswith(b"\1\0\x10" + b"\1" * 16)
    return key, raw[:-17] + size + raw[-16:]


@pytest.mark.parametrize("profile", [*(RELEASES[release] for release in JAVA[2:]), CLASSIC], ids=lambda one: one.name)
@pytest.mark.parametrize(("size", "fits"), [(b"\x10", True), (b"\x00", True), (b"\x30", False)])
def test_a_release_goes_by_the_size_of_a_tag_that_it_does_not_know(profile: Profile, size: bytes, fits: bool) -> None:
    """``records:P6``: the topic id of a commit came with 4.1; what is left over behind a size is not looked at."""
    built = LogBuilder().add(commit_with_tag_size(b"\x10")).add(commit_with_tag_size(size))
    expected = None if fits or profile.release >= (4, 1) else "records:P6"
    failure = built.load(profile).failure
    assert (failure and failure.rule) == expected
    assert (on_brokers(built.log, [profile], [True])[True][profile].answers is None) == (expected is None)


@pytest.mark.parametrize(
    ("release", "is_strict"),
    [
        ("4.0.0", True), ("4.0.1", True), ("4.0.2", False), ("4.1.0", True), ("4.1.1", True), ("4.1.2", False),
        ("4.2.0", False), ("4.4.0", False),
    ],
)  # fmt: skip
def test_patch_releases_let_a_holder_give_way_too(release: str, is_strict: bool) -> None:
    """``J-20``: 4.0.2 and 4.1.2 have the code of 4.2."""
    built = consumer_group().newer(8, current(1, 0), member_id="m").newer(8, current(2, 0), member_id="n")
    assert rule_of(built, release_named(release).profile) == ("J-20" if is_strict else None)
