"""The text files and snapshots of a data directory: as brokers wrote them, as brokers refuse them, and hostile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets_log.broker.producers import ProducerEntry, encode_snapshot
from offsets_log.data_directory.checkpoints import (
    decode_leader_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_offset_checkpoint,
)
from offsets_log.data_directory.identity import (
    decode_clean_shutdown,
    decode_meta_properties,
    decode_partition_metadata,
    decode_quorum_state,
)
from offsets_log.data_directory.producer_snapshots import decode_producer_snapshot, open_transactions
from offsets_log.errors import CorruptFileError
from offsets_log.log_format.primitives import Uuid
from tests.data_directories.copies import COPIES, Recorded, data_directories, metadata_log, partition_folders, words

CHECKPOINTS = ("recovery-point", "replication", "log-start", "cleaner")
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
TOPIC_ID = b"\x48\x5b\xb7\xcb\x79\x60\x4c\x16\x82\x63\xf3\x7f\x3f\xec\xc9\xfa"

DECODERS: dict[str, Callable[[bytes, str], Any]] = {
    "replication-offset-checkpoint": decode_offset_checkpoint,
    "leader-epoch-checkpoint": decode_leader_epoch_checkpoint,
    "meta.properties": decode_meta_properties,
    "partition.metadata": decode_partition_metadata,
    "quorum-state": decode_quorum_state,
    ".kafka_cleanshutdown": decode_clean_shutdown,
    "00000000000000000007.snapshot": decode_producer_snapshot,
}
GOOD = {
    "replication-offset-checkpoint": b"0\n2\norders 0 7\n__consumer_offsets 3 185\n",
    "leader-epoch-checkpoint": b"0\n2\n0 0\n2 108\n",
    "meta.properties": b"#\n#Sun Nov 22\nnode.id=1\ndirectory.id=SFu3y3lgTBaCY_N_P-zJ-g\nversion=1\ncluster.id=c\n",
    "partition.metadata": b"version: 0\ntopic_id: SFu3y3lgTBaCY_N_P-zJ-g",
    "quorum-state": b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"currentVoters":[{"voterId":1}],"data_version":0}',
    ".kafka_cleanshutdown": b'{"version":0,"brokerEpoch":249}',
    "00000000000000000007.snapshot": encode_snapshot({5: ProducerEntry(epoch=1, first_offset=3), 6: ProducerEntry()}),
}

# ------------------------------------------------------------------------------------------- real brokers


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_every_file_of_the_recordings_is_read(recorded: Recorded, name: str, copy: str) -> None:
    seen = set()
    for data in data_directories(recorded(name), copy):
        for path in sorted(path for path in data.rglob("*") if path.is_file()):
            kind = "00000000000000000007.snapshot" if path.suffix == ".snapshot" else path.name
            kind = "replication-offset-checkpoint" if kind.endswith("-offset-checkpoint") else kind
            if kind in DECODERS:
                DECODERS[kind](path.read_bytes(), path.name)
                seen.add(kind)
    absent = {".kafka_cleanshutdown"} if copy != "stopped" else set()
    if name == "kafka-4.3-three":  # of none of its partitions a segment was rolled
        absent.add("00000000000000000007.snapshot")
    assert seen == set(DECODERS) - absent


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_identity_is_that_of_admin_client(recorded: Recorded, name: str, copy: str) -> None:
    """Folders bear the ids of topics, directories belong to one node, and each has an id of its own."""
    folder, said = recorded(name), words(recorded(name), copy)
    directories = data_directories(folder, copy)
    found = [decode_meta_properties((path / "meta.properties").read_bytes(), path.name) for path in directories]
    assert {(one.version, one.cluster_id) for one in found} == {(1, said["cluster_id"])}
    assert {one.node_id for one in found} == {int(copy.rpartition("-")[2]) if "broker" in copy else 1}
    assert len({one.directory_id for one in found}) == len(directories)
    topics: Any = said["topics"]
    for topic, facts in topics.items():
        for path in partition_folders(folder, copy, topic):
            topic_id = decode_partition_metadata((path / "partition.metadata").read_bytes(), path.name)
            assert str(topic_id) == facts["id"]


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_high_watermarks_and_log_starts_are_those_of_admin_client(recorded: Recorded, name: str, copy: str) -> None:
    """A log start that no checkpoint names is 0 here."""
    if copy == "stopped":
        pytest.skip("after what was said the broker started and ended more")
    folder, said = recorded(name), words(recorded(name), copy)
    offsets: Any = said["offsets"]
    for data in data_directories(folder, copy):
        told = {kind: checkpoint(data, kind) for kind in CHECKPOINTS}
        for (topic, partition), high_watermark in told["replication"].items():
            if f"{topic}-{partition}" in offsets and leads(said, copy, topic, partition):
                row = offsets[f"{topic}-{partition}"]
                assert (high_watermark, told["log-start"].get((topic, partition), 0)) == (
                    row["latest"],
                    row["earliest"],
                )


def leads(said: Any, copy: str, topic: str, partition: int) -> bool:
    node = int(copy.rpartition("-")[2]) if "broker" in copy else 1
    return any(row["leader"] == node for row in said["topics"][topic]["partitions"] if row["partition"] == partition)


def checkpoint(data: Path, kind: str) -> dict[tuple[str, int], int]:
    path = data / f"{kind}-offset-checkpoint"
    return decode_offset_checkpoint(path.read_bytes(), path.name) if path.exists() else {}


@pytest.mark.parametrize(("name", "copy"), COPIES)
def test_quorum_state_is_that_of_admin_client(recorded: Recorded, name: str, copy: str) -> None:
    said: Any = words(recorded(name), copy)
    _, beside = metadata_log(recorded(name), copy)
    state = decode_quorum_state(beside["quorum-state"](), "quorum-state")
    assert (state.leader_id, state.leader_epoch) == (said["quorum"]["leader"], said["quorum"]["leader_epoch"])
    if state.voters is not None:
        assert sorted(state.voters) == said["quorum"]["voters"]


# ------------------------------------------------------------------------------------------------- rules


def test_what_good_files_say() -> None:
    read = {name: decode(GOOD[name], name) for name, decode in DECODERS.items()}
    assert read["replication-offset-checkpoint"] == {("orders", 0): 7, ("__consumer_offsets", 3): 185}
    assert read["leader-epoch-checkpoint"] == {0: 0, 2: 108}
    meta, quorum = read["meta.properties"], read["quorum-state"]
    assert (meta.version, meta.cluster_id, meta.node_id, meta.directory_id) == (1, "c", 1, TOPIC_ID)
    assert read["partition.metadata"] == Uuid(TOPIC_ID)
    assert (quorum.leader_id, quorum.leader_epoch, quorum.voted_id, quorum.voters) == (1, 2, -1, (1,))
    assert read[".kafka_cleanshutdown"] == 249
    producers = read["00000000000000000007.snapshot"]
    assert sorted(producers) == [5, 6]
    assert set(open_transactions(producers)) == {5}


def test_other_good_files() -> None:
    assert decode_offset_checkpoint(b"", "f") == {}
    assert decode_offset_checkpoint(b"0\r\n1\r\na\t1  +5\r\n", "f") == {("a", 1): 5}
    assert decode_clean_shutdown(b"", "f") is None
    old = decode_meta_properties(b"broker.id=7\ncluster.id=a\\:b\n", "f")
    assert (old.version, old.node_id, old.cluster_id, old.directory_id) == (0, 7, "a:b", None)
    newer = decode_quorum_state(b'{"leaderId":3,"votedDirectoryId":"SFu3y3lgTBaCY_N_P-zJ-g","data_version":1}', "f")
    assert (newer.leader_id, newer.leader_epoch, newer.voters, newer.voted_directory_id) == (3, -1, None, TOPIC_ID)
    assert decode_partition_metadata(b"version: 1\ntopic_id:\tSFu3y3lgTBaCY_N_P-zJ-g==\n", "f") == TOPIC_ID


@given(
    st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,9}", fullmatch=True), st.integers(0, 99)), st.integers(0, 1 << 62)
    )
)
def test_checkpoints_come_back(offsets: dict[tuple[str, int], int]) -> None:
    """``CL-48``."""
    assert decode_offset_checkpoint(encode_offset_checkpoint(offsets).encode(), "f") == offsets


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("replication-offset-checkpoint", b"1\n0\n", "line 1: the version is '1', not 0"),
        ("replication-offset-checkpoint", b"0\nx\n", "line 2: 'x' is no number of entries"),
        ("replication-offset-checkpoint", b"0\n2\na 0 1\n", "line 2: 2 entries are declared, 1 follow"),
        ("replication-offset-checkpoint", b"0\n1\na 0\n", "line 3: 'a 0' is no topic, partition and offset"),
        ("replication-offset-checkpoint", b"0\n1\na 0 9223372036854775808\n", "line 3: "),
        ("replication-offset-checkpoint", b"0\n1\na 0 " + b"1" * 9999, "line 3: "),
        ("replication-offset-checkpoint", b"0\n1\na\xff 0 1\n", "byte 5 is no UTF-8"),
        ("leader-epoch-checkpoint", b"0\n1\n0 x\n", "no epoch with its offset"),
        ("meta.properties", b"version=2\n", "the version is 2; 0 and 1 are known"),
        ("meta.properties", b"version=1\nnode.id=x\n", "node.id is 'x', which is no number"),
        ("meta.properties", b"version=1\ndirectory.id=short\n", "'short' is no id"),
        ("meta.properties", b"version=1\nnode.id\n", "line 2 is not name=value"),
        ("partition.metadata", b"", "line 1: version is missing"),
        ("partition.metadata", b"version: 0\n", "line 2: topic_id is missing"),
        ("partition.metadata", b"version: x\ntopic_id: SFu3y3lgTBaCY_N_P-zJ-g", "line 1: 'version: x' names no"),
        ("partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "line 2: the topic id is zero"),
        ("partition.metadata", b"version: 0\ntopic_id: SFu3y3lgTBaCY_N_P-zJ!g", "line 2: "),
        ("quorum-state", b"{\n]", "line 2: it is no JSON"),
        ("quorum-state", b"[" * 99999, "it is no JSON that can be read"),
        ("quorum-state", b"[]", "it is no JSON object"),
        ("quorum-state", b'{"data_version":7}', "data_version is 7; 0 and 1 are known"),
        ("quorum-state", b'{"data_version":0,"leaderId":"1"}', "leaderId is '1', which is no number"),
        ("quorum-state", b'{"data_version":0,"currentVoters":[1]}', "currentVoters is no list of voters"),
        (".kafka_cleanshutdown", b"{}", "brokerEpoch is None, which is no number"),
        ("00000000000000000007.snapshot", b"\0\1", "it is no whole snapshot of producers"),
    ],
)  # fmt: skip
def test_files_that_are_refused(name: str, data: bytes, problem: str) -> None:
    """``CL-48``, ``CL-50``, ``CL-51``, ``CL-57``: the error names file and line."""
    with pytest.raises(CorruptFileError) as caught:
        DECODERS[name](data, f"d/{name}")
    assert problem in caught.value.problem
    assert caught.value.file == f"d/{name}"


@given(st.sampled_from(sorted(DECODERS)), st.data())
def test_hostile_files(name: str, data: st.DataObject) -> None:
    """Changed, cut and arbitrary bytes are read or refused, nothing else."""
    raw = bytearray(data.draw(st.one_of(st.just(GOOD[name]), st.binary(max_size=60))))
    for _ in range(data.draw(st.integers(0, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptFileError):
        DECODERS[name](bytes(raw[: data.draw(st.integers(0, len(raw)))]), name)
