"""Make a broker's data directory with many partitions, whose groups have committed to all of them.

``python -m benchmarks.data_directory OUT [--partitions 20000] [--groups 50]``. Logs are of a few batches each, their
indexes sparse files of 10 MiB, as those of active segments are.
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from offsets_log.data_directory.checkpoints import encode_offset_checkpoint
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.record import Record
from offsets_log.replay.partition_for import partition_for

INDEX_BYTES = 10 << 20
TOPIC_PARTITIONS = 100
RECORDS, BATCH_RECORDS = 40, 10
VALUE = b"v" * 400
"""So long that a log of `RECORDS` has more than one interval of its index."""
TIME_MS = 1_700_000_000_000
COMMITS_A_BATCH = 500
FIRST_SEGMENT = f"{0:020}"


def make_data_directory(folder: Path, partitions: int, groups: int) -> dict[str, int]:
    """Write it; return what is in it: records of all topics but the offsets topic, their bytes, and the sum of all lag.

    Args:
        partitions: of all topics together.
        groups: each has committed an offset of every partition, somewhere in its log.
    """
    folder.mkdir(parents=True)
    topics = [(f"topic-{n // TOPIC_PARTITIONS:04}", n % TOPIC_PARTITIONS) for n in range(partitions)]
    log, index, times = _user_log()
    for topic, partition in topics:
        directory = folder / f"{topic}-{partition}"
        directory.mkdir()
        (directory / f"{FIRST_SEGMENT}.log").write_bytes(log)
        _write_sparse(directory / f"{FIRST_SEGMENT}.index", index)
        _write_sparse(directory / f"{FIRST_SEGMENT}.timeindex", times)
        (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (directory / "partition.metadata").write_text("version: 0\ntopic_id: SFu3y3lgTBaCY_N_P-zJ-g")
    ends = encode_offset_checkpoint(dict.fromkeys(topics, RECORDS))
    (folder / "replication-offset-checkpoint").write_text(ends)
    (folder / "recovery-point-offset-checkpoint").write_text(ends)
    (folder / "log-start-offset-checkpoint").write_text("0\n0\n")
    (folder / "meta.properties").write_text("version=1\ncluster.id=generated\nnode.id=0\n")
    committed = sum(_write_commits(folder, f"group-{number:04}", topics) for number in range(groups))
    lag = groups * partitions * RECORDS - committed
    return {"records": partitions * RECORDS, "uncompressed_bytes": partitions * len(log), "lag": lag}


def _user_log() -> tuple[bytes, bytes, bytes]:
    """A segment, its index and its index of times."""
    log, index, times = b"", b"", b""
    for first in range(0, RECORDS, BATCH_RECORDS):
        offsets = range(first, first + BATCH_RECORDS)
        if first:
            index += struct.pack(">ii", offsets[-1], len(log))
            times += struct.pack(">qi", TIME_MS + 1000 * offsets[-1], offsets[-1])
        log += build_batch([Record(offset=n, timestamp_ms=TIME_MS + 1000 * n, key=None, value=VALUE) for n in offsets])
    return log, index, times


def _write_sparse(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.truncate(INDEX_BYTES)


def _write_commits(folder: Path, group: str, topics: Sequence[tuple[str, int]]) -> int:
    """Return the sum of the offsets."""
    directory = folder / f"__consumer_offsets-{partition_for(group, 50)}"
    directory.mkdir(exist_ok=True)
    path = directory / f"{FIRST_SEGMENT}.log"
    marks = directory / "next-offset"  # of generated groups that share the partition
    base = int(marks.read_text()) if marks.exists() else 0
    with path.open("ab") as file:
        for i in range(0, len(topics), COMMITS_A_BATCH):
            some = topics[i : i + COMMITS_A_BATCH]
            file.write(build_batch(list(_commits(group, some, base + i))))
    marks.write_text(str(base + len(topics)))
    return sum(_committed(group, base + i) for i in range(len(topics)))


def _committed(group: str, record_offset: int) -> int:
    return (record_offset * 7 + len(group)) % (RECORDS + 1)


def _commits(group: str, topics: Sequence[tuple[str, int]], base: int) -> Iterator[Record]:
    """An offset of each partition, by group and partition another one."""
    for offset, (topic, partition) in enumerate(topics, base):
        key = struct.pack(">h", 1) + _string(group) + _string(topic) + struct.pack(">i", partition)
        value = (
            struct.pack(">hqi", 3, _committed(group, offset), -1) + _string("") + struct.pack(">q", TIME_MS + offset)
        )
        yield Record(offset=offset, timestamp_ms=TIME_MS + offset, key=key, value=value)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--groups", type=int, default=1)
    options = parser.parse_args()
    make_data_directory(options.out, options.partitions, options.groups)


if __name__ == "__main__":
    main()
