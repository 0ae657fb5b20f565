"""Commits, plain and transactional: who may, what is written, what is remembered."""

from __future__ import annotations

import pytest

from offsets_log.coordinator.answers import NO_OFFSET, UNSTABLE, FetchedOffset
from offsets_log.coordinator.cache import GroupCoordinatorCache
from offsets_log.coordinator.config import OffsetConfig
from offsets_log.coordinator.errors import CoordinatorError, Errors, answer_to_append
from offsets_log.coordinator.log import MemoryLog
from offsets_log.coordinator.records import OffsetCommit, Producer
from offsets_log.coordinator.validation import NOBODY, MemberIdentity
from offsets_log.errors import CorruptRecordError
from offsets_log.messages.registry import CoordinatorRecord
from tests.coordinator.caches import (
    FIRST,
    JAVA_AND_SCALA,
    NOW,
    SECOND,
    batches,
    classic_group,
    member_row,
    memories,
    newer_group,
    put,
    started,
    with_log,
)

OFFSET = {("t", 0): OffsetCommit(5)}
STABLE = FetchedOffset(5)
RECORD = CoordinatorRecord(
    record_type=1,
    key={"group": "g", "topic": "t", "partition": 0},
    value_version=2,
    value={"offset": 1, "metadata": "", "commit_timestamp": 0},
)


def loaded_with(group: str, *records: CoordinatorRecord, release: str = "4.3") -> GroupCoordinatorCache:
    log = MemoryLog()
    put(log, started().partition_for(group), *records)
    return started(release, log)


def commit_error(
    cache: GroupCoordinatorCache, who: MemberIdentity = NOBODY, *, producer: Producer | None = None
) -> Errors:
    """What a commit of group g says."""
    try:
        if producer is None:
            cache.commit_offsets("g", OFFSET, who=who)
        else:
            cache.commit_transactional_offsets("g", producer, OFFSET, who=who)
    except CoordinatorError as error:
        return error.error
    return Errors.NONE


# ------------------------------------------------------------------------------------------ what is written


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_a_request_is_one_plain_batch(release: str) -> None:
    """``W-1``, ``W-2``."""
    cache, log = with_log(release)
    answers = cache.commit_offsets("g", {("t", 0): OffsetCommit(1), ("u", 3): OffsetCommit(2, "m", 4)})
    assert answers == {("t", 0): Errors.NONE, ("u", 3): Errors.NONE}
    (batch,) = batches(log, cache.partition_for("g"))
    assert (batch.records_count, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (2, -1, -1, 0)
    assert (batch.is_transactional, batch.timestamp_type, batch.max_timestamp_ms) == (False, "create", NOW)
    assert cache.fetch_offsets("g") == {("t", 0): FetchedOffset(1), ("u", 3): FetchedOffset(2, 4, "m")}


def test_no_offset_is_minus_1_without_an_error() -> None:
    assert (NO_OFFSET.committed_offset, NO_OFFSET.leader_epoch, NO_OFFSET.metadata) == (-1, None, "")
    assert (NO_OFFSET.error, UNSTABLE.error) == (Errors.NONE, Errors.UNSTABLE_OFFSET_COMMIT)
    assert UNSTABLE.committed_offset == -1


def test_metadata_is_measured_in_utf_16_units_and_only_what_is_too_long_is_refused() -> None:
    """``W-8``."""
    cache, log = with_log()
    fits, too_long = "😀" * 2048, "😀" * 2048 + "x"
    answers = cache.commit_offsets("g", {("t", 0): OffsetCommit(1, fits), ("t", 1): OffsetCommit(2, too_long)})
    assert answers == {("t", 0): Errors.NONE, ("t", 1): Errors.OFFSET_METADATA_TOO_LARGE}
    assert cache.fetch_offsets("g", [("t", 0), ("t", 1)]) == {
        ("t", 0): FetchedOffset(1, None, fits),
        ("t", 1): NO_OFFSET,
    }
    before = log.written(cache.partition_for("g"))
    cache.commit_offsets("g", {("t", 1): OffsetCommit(2, too_long)})
    cache.commit_offsets("g", {})
    assert log.written(cache.partition_for("g")) == before, "without a record nothing is written"
    small = OffsetConfig(offsets_topic_num_partitions=4, offset_metadata_max_bytes=2)
    answers = started(config=small).commit_offsets("g", {("t", 0): OffsetCommit(1, "abc")})
    assert answers == {("t", 0): Errors.OFFSET_METADATA_TOO_LARGE}
    first_too_long = {("t", 2): OffsetCommit(1, too_long), ("t", 3): OffsetCommit(7)}
    assert [*cache.commit_offsets("g", first_too_long).values()] == [Errors.OFFSET_METADATA_TOO_LARGE, Errors.NONE]
    assert cache.fetch_offsets("g", [*first_too_long]) == {("t", 2): NO_OFFSET, ("t", 3): FetchedOffset(7)}


def test_any_number_may_be_committed_for_any_topic_under_any_group_id() -> None:
    """``W-9``, ``W-10``, ``B-13``."""
    cache, _ = with_log()
    offsets = {("", 0): OffsetCommit(-1), ("no such topic", -5): OffsetCommit((1 << 63) - 1, leader_epoch=-7)}
    cache.commit_offsets("", offsets)
    fetched = cache.fetch_offsets("")
    assert {key: value.committed_offset for key, value in fetched.items()} == {
        key: value.committed_offset for key, value in offsets.items()
    }


def test_a_group_id_that_is_needed_must_not_be_empty() -> None:
    """``W-10``."""
    cache, _ = with_log()
    for call in (
        lambda: cache.commit_transactional_offsets("", FIRST, OFFSET),
        lambda: cache.delete_offsets("", [("t", 0)]),
        lambda: cache.commit_offsets(None, OFFSET),  # type: ignore[arg-type]
    ):
        with pytest.raises(CoordinatorError) as caught:
            call()
        assert caught.value.error is Errors.INVALID_GROUP_ID


# ------------------------------------------------------------------------------------------ what goes wrong


TOLD_AS = {
    Errors.NOT_ENOUGH_REPLICAS: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_LEADER_OR_FOLLOWER: Errors.NOT_COORDINATOR,
    Errors.RECORD_LIST_TOO_LARGE: Errors.INVALID_COMMIT_OFFSET_SIZE,
    Errors.UNKNOWN_SERVER_ERROR: Errors.UNKNOWN_SERVER_ERROR,
}
TOLD_LIKE_THESE = {
    Errors.UNKNOWN_TOPIC_OR_PARTITION: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.KAFKA_STORAGE_ERROR: Errors.NOT_COORDINATOR,
    Errors.MESSAGE_TOO_LARGE: Errors.INVALID_COMMIT_OFFSET_SIZE,
}


def test_what_a_log_says_is_told_to_clients_in_their_words() -> None:
    """``maybeConvertOffsetCommitError``; all others are told as they are."""
    told = {error: answer_to_append(CoordinatorError(error, "why")) for error in Errors}
    assert {error: answer.error for error, answer in told.items()} == (
        {error: error for error in Errors} | TOLD_AS | TOLD_LIKE_THESE
    )
    assert {answer.problem for answer in told.values()} == {"why"}


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
@pytest.mark.parametrize(("refusal", "answer"), TOLD_AS.items())
def test_what_the_log_refuses_is_not_remembered(release: str, refusal: Errors, answer: Errors) -> None:
    """``W-5``: a marker is applied only if it is written, as any record."""
    cache, log = with_log(release)
    cache.commit_offsets("g", OFFSET)
    cache.commit_transactional_offsets("g", FIRST, {("t", 1): OffsetCommit(6)})
    before = memories(cache)
    log.fail_with = CoordinatorError(refusal, "it is down")
    assert commit_error(cache) is answer
    assert commit_error(cache, producer=SECOND) is answer
    with pytest.raises(CoordinatorError, match=answer.name):
        cache.delete_offsets("g", [("t", 0)])
    if release == "4.3":
        with pytest.raises(CoordinatorError, match=answer.name):
            cache.delete_group("g")
    assert set(cache.write_txn_marker(FIRST, commit=True).values()) == {answer}
    assert memories(cache) == before
    log.fail_with = None
    cache.commit_offsets("g", OFFSET)
    assert memories(started(release, log)) == memories(cache)


def test_a_value_that_fits_no_record_is_not_written() -> None:
    cache, log = with_log()
    for commit in (OffsetCommit(1 << 63), OffsetCommit(0, leader_epoch=1 << 31)):
        with pytest.raises(CorruptRecordError):
            cache.commit_offsets("g", {("t", 0): commit})
    assert log.partitions() == []
    assert cache.fetch_offsets("g") == {}


# --------------------------------------------------------------------------------------- who may commit


@pytest.mark.parametrize(
    ("release", "unknown"), [("4.3", Errors.GROUP_ID_NOT_FOUND), ("3.9", Errors.ILLEGAL_GENERATION)]
)
def test_without_membership_a_group_that_nobody_knows_becomes_a_simple_one(release: str, unknown: Errors) -> None:
    """``W-7``, ``J-6``, ``L-36``."""
    cache, _ = with_log(release)
    assert commit_error(cache, MemberIdentity("m", None, 0)) is unknown
    assert commit_error(cache, MemberIdentity("m", None, 0), producer=FIRST) is Errors.ILLEGAL_GENERATION
    assert cache.list_groups() == []
    assert commit_error(cache) is Errors.NONE
    assert [(row.group, row.protocol_type, row.state) for row in cache.list_groups()] == [("g", "", "Empty")]


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
@pytest.mark.parametrize(
    ("who", "plain", "transactional"),
    [
        (NOBODY, Errors.UNKNOWN_MEMBER_ID, Errors.NONE),
        (MemberIdentity("m", None, 3), Errors.NONE, Errors.NONE),
        (MemberIdentity("m", None, 2), Errors.ILLEGAL_GENERATION, Errors.ILLEGAL_GENERATION),
        (MemberIdentity("m"), Errors.ILLEGAL_GENERATION, Errors.ILLEGAL_GENERATION),
        (MemberIdentity("other", None, 3), Errors.UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID),
        (MemberIdentity("s", "static", 3), Errors.NONE, Errors.NONE),
        (MemberIdentity("m", "static", 3), Errors.FENCED_INSTANCE_ID, Errors.FENCED_INSTANCE_ID),
        (MemberIdentity("m", "nobody", 3), Errors.UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID),
        (MemberIdentity("", "static"), Errors.FENCED_INSTANCE_ID, Errors.FENCED_INSTANCE_ID),
        (MemberIdentity("", None, 0), Errors.UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID),
        (MemberIdentity("s", "static", 4), Errors.ILLEGAL_GENERATION, Errors.ILLEGAL_GENERATION),
    ],
)
def test_of_a_group_with_members_only_members_of_its_generation_commit(
    release: str, who: MemberIdentity, plain: Errors, transactional: Errors
) -> None:
    """``W-7``."""
    members = [member_row("m", "t"), member_row("s", "t", instance_id="static")]
    cache = loaded_with("g", classic_group("g", members), release=release)
    assert commit_error(cache, who) is plain
    assert commit_error(cache, who, producer=FIRST) is transactional


@pytest.mark.parametrize("release", JAVA_AND_SCALA)
def test_to_an_empty_group_anybody_commits_who_claims_no_generation(release: str) -> None:
    """``W-7``."""
    cache = loaded_with("g", classic_group("g"), release=release)
    assert commit_error(cache) is Errors.NONE
    assert commit_error(cache, MemberIdentity("m")) is Errors.NONE
    for generation in (0, 1, 3):
        assert commit_error(cache, MemberIdentity("m", None, generation)) is Errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("who", "plain", "transactional"),
    [
        (NOBODY, Errors.UNKNOWN_MEMBER_ID, Errors.NONE),
        (MemberIdentity("m", None, 5), Errors.NONE, Errors.NONE),
        (MemberIdentity("m", None, 4), Errors.STALE_MEMBER_EPOCH, Errors.ILLEGAL_GENERATION),
        (MemberIdentity("m", None, 6), Errors.STALE_MEMBER_EPOCH, Errors.ILLEGAL_GENERATION),
        (MemberIdentity("m"), Errors.STALE_MEMBER_EPOCH, Errors.ILLEGAL_GENERATION),
        (MemberIdentity("other", None, 5), Errors.UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID),
        (MemberIdentity("", None, 0), Errors.UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID),
        (MemberIdentity("", "static"), Errors.UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID),
    ],
)
def test_members_of_a_consumer_group_commit_at_their_epoch(
    who: MemberIdentity, plain: Errors, transactional: Errors
) -> None:
    cache = loaded_with("g", *newer_group("g", member_id="m"))
    assert commit_error(cache, who) is plain
    assert commit_error(cache, who, producer=FIRST) is transactional


def test_a_member_of_a_consumer_group_that_speaks_the_classic_protocol_has_a_generation() -> None:
    """``W-7``: its epoch is one to it."""
    records = newer_group("g", member_id="m")
    assert records[1].value is not None
    records[1].value["classic_member_metadata"] = {"session_timeout_ms": 1, "supported_protocols": []}
    cache = loaded_with("g", *records)
    assert commit_error(cache, MemberIdentity("m", None, 5)) is Errors.NONE
    stale = MemberIdentity("m", None, 4)
    assert commit_error(cache, stale) is Errors.ILLEGAL_GENERATION
    assert commit_error(cache, stale, producer=FIRST) is Errors.ILLEGAL_GENERATION
    with pytest.raises(CoordinatorError, match="ILLEGAL_GENERATION"):
        cache.fetch_offsets("g", who=stale)


@pytest.mark.parametrize("who", [MemberIdentity("nobody", None, 9), MemberIdentity("", "static")])
def test_of_a_classic_group_anybody_fetches(who: MemberIdentity) -> None:
    cache = loaded_with("g", classic_group("g", [member_row("m", "t", instance_id="static")]))
    assert cache.fetch_offsets("g", [("t", 0)], who=who) == {("t", 0): NO_OFFSET}


def test_only_a_member_of_a_consumer_group_that_says_who_it_is_is_checked_when_it_fetches() -> None:
    cache = loaded_with("g", *newer_group("g", member_id="m"))
    assert cache.fetch_offsets("g", [("t", 0)]) == {("t", 0): NO_OFFSET}
    assert cache.fetch_offsets("g", [("t", 0)], who=MemberIdentity("m", None, 5)) == {("t", 0): NO_OFFSET}
    with pytest.raises(CoordinatorError, match="STALE_MEMBER_EPOCH"):
        cache.fetch_offsets("g", who=MemberIdentity("m", None, 4))


@pytest.mark.parametrize("kind", ["consumer", "streams"])
def test_to_an_empty_group_of_a_newer_kind_anybody_commits(kind: str) -> None:
    """``W-7``."""
    cache = loaded_with("g", *newer_group("g", kind=kind))
    assert commit_error(cache) is Errors.NONE
    assert cache.fetch_offsets("g") == {("t", 0): STABLE}
    assert commit_error(cache, MemberIdentity("m", None, 0)) is Errors.UNKNOWN_MEMBER_ID, (
        "who says to be a member is one"
    )


def test_a_share_group_has_no_offsets() -> None:
    cache = loaded_with("g", *newer_group("g", kind="share"), RECORD)
    assert commit_error(cache) is Errors.GROUP_ID_NOT_FOUND
    assert cache.fetch_offsets("g", [("t", 0)]) == {("t", 0): NO_OFFSET}, "even if its log has some"
    assert cache.fetch_offsets("g") == {}
    with pytest.raises(CoordinatorError, match="GROUP_ID_NOT_FOUND"):
        cache.delete_offsets("g", [("t", 0)])
