"""What is kept of a partition, batch by batch, answers about groups as a load of the whole log does."""

from __future__ import annotations

import pytest

from offsets_log.following.keeping import KeptPartition
from offsets_log.log_format.partition_log import PartitionLog, Segment
from offsets_log.pipeline import iter_events, replay
from offsets_log.replay.profile import CLASSIC, MODERN, MODERN_3_7, Profile
from tests.builders import LogBuilder, member

LOGS = {
    "offsets alone": LogBuilder().commit(5).commit(6, group="h", producer=7),
    "a group with members": LogBuilder().group(member("m")).commit(5).commit(6, partition=1),
    "a removed group": LogBuilder().group().commit(5).group(gone=True).commit(6, group="h"),
    "a group that comes after its offsets": LogBuilder().commit(5).commit(6, producer=7).group(member("m")).end(7),
    "a tombstone in a transaction": LogBuilder()
    .commit(5).commit(6, producer=7).commit(None, producer=8).end(8).end(7).commit(1, group="h"),
}  # fmt: skip


@pytest.mark.parametrize("profile", [MODERN, MODERN_3_7, CLASSIC], ids=lambda profile: profile.name)
@pytest.mark.parametrize("name", LOGS)
def test_groups_and_their_offsets(name: str, profile: Profile) -> None:
    built = LOGS[name]
    kept = KeptPartition(profile, 0)
    for raw in built.batches:
        log = PartitionLog(0, (Segment("built.log", int.from_bytes(raw[:8]), raw),))
        kept.add(replay(iter_events(log), profile, on_damage=lambda damage: None))
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
