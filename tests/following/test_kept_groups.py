"""What is kept of a partition, batch by batch, answers about groups as a load of the whole log does."""

from __future__ import annotations

import pickle

import pytest

from offsets_log.following.keeping import KeptPartition
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.messages.registry import RECORD_TYPES
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.coordinator_state import finish
from offsets_log.replay.partial import PartialState
from offsets_log.replay.profile import CLASSIC, MODERN, MODERN_3_7, Profile
from tests.builders import LogBuilder, member

HAS_TO_GIVE_BACK = RECORD_TYPES[22].values[0].zeros(0) | {"member_epoch": 1, "state": 2}
STREAMS_MEMBER = RECORD_TYPES[19].values[0].zeros(0) | {"user_endpoint": None}
LOGS = {
    "offsets alone": LogBuilder().commit(5).commit(6, group="h", producer=7),
    "a group with members": LogBuilder().group(member("m")).commit(5).commit(6, partition=1),
    "a removed group": LogBuilder().group().commit(5).group(gone=True).commit(6, group="h"),
    "a group that comes after its offsets": LogBuilder().commit(5).commit(6, producer=7).group(member("m")).end(7),
    "a tombstone in a transaction": LogBuilder()
    .commit(5).commit(6, producer=7).commit(None, producer=8).end(8).end(7).commit(1, group="h"),
    "a member that has yet to give tasks back, and then its own record": LogBuilder().commit(5, group="h")
    .newer(22, HAS_TO_GIVE_BACK, member_id="m").newer(22, HAS_TO_GIVE_BACK, member_id="m").commit(6)
    .newer(19, STREAMS_MEMBER, member_id="m"),
    "a member that has yet to give tasks back, and then has nothing": LogBuilder().commit(5, group="h")
    .newer(22, HAS_TO_GIVE_BACK, member_id="m").newer(22, None, member_id="m"),
    "a record of another kind behind a member of no kind": LogBuilder().commit(5, group="h")
    .newer(22, HAS_TO_GIVE_BACK, member_id="m").newer(3, {"epoch": 1, "metadata_hash": 0})
    .newer(19, STREAMS_MEMBER, member_id="m"),
}  # fmt: skip


def loaded(raw: bytes, profile: Profile) -> PartialState:
    log = PartitionLog(0, (Segment("built.log", int.from_bytes(raw[:8]), raw),))
    return replay(iter_events(log), profile, on_damage=lambda damage: None)


@pytest.mark.parametrize("profile", [MODERN, MODERN_3_7, CLASSIC], ids=lambda profile: profile.name)
@pytest.mark.parametrize("name", LOGS)
def test_groups_and_their_offsets(name: str, profile: Profile) -> None:
    """And what ends a load, at each moment: also what later records mend (``J-25``)."""
    built = LOGS[name]
    kept = KeptPartition(profile, 0)
    for count, raw in enumerate(built.batches, 1):
        kept.add(loaded(raw, profile))
        until_here = finish(loaded(b"".join(built.batches[:count]), profile))
        assert kept.failure == next((each for each in until_here.problems if not each.is_served), None)
    whole = built.load(profile)
    asked = {"g", "h"}
    found = kept.state(asked)
    assert found.groups == whole.groups
    assert sorted(found.committed, key=repr) == sorted(whole.committed, key=repr)
    assert sorted(found.pending, key=repr) == sorted(whole.pending, key=repr)
    assert {value.key for value in kept.served()} == {value.key for value in whole.iter_served()}
    one = kept.state({"h"})
    assert one.groups.keys() == whole.groups.keys() & {"h"}
    assert {value.group for value in (*one.committed, *one.pending)} <= {"h"}


@pytest.mark.parametrize("profile", [MODERN, CLASSIC], ids=lambda profile: profile.name)
def test_of_what_is_gone_nothing_is_kept(profile: Profile) -> None:
    """Offsets, groups, transactions and records that end a load are as if they had never been, but for the first."""

    def kept_bytes(count: int) -> int:
        kept, log = KeptPartition(profile, 0), LogBuilder().commit(5, group="alive").add((None, b"x"))
        for name in (f"{number:04}" for number in range(count)):
            log.group(member("m"), group=name).commit(1, group=name).commit(2, group=name, producer=7, partition=1)
            log.end(7, commit=False).commit(3, group=name, producer=8).commit(None, group=name).end(8).add((None, b"x"))
            log.commit(None, group=name).group(group=name, gone=True)
        for raw in log.batches:
            kept.add(loaded(raw, profile))
            kept.settle()
        assert kept.names() == {"alive"}
        assert kept.failure is not None
        assert kept.failure.record_offset == 1
        return len(pickle.dumps(vars(kept)))

    assert kept_bytes(40) - kept_bytes(2) < 20
