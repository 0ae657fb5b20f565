"""Write a topic of any size, its copy in other batches and at other offsets, and groups that are in the middle of it.

``python -m benchmarks.mirrored DIR --records 10000000`` writes ``DIR/source``, ``DIR/target`` and ``DIR/truth.json``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import google_crc32c
import numpy as np

from benchmarks.inputs import Log
from benchmarks.timing import Measured, repeated, run_process, seconds_of
from offsets_log.log_format import batch as b
from offsets_log.log_format.building import build_batch
from offsets_log.log_format.primitives import ZERO_UUID
from offsets_log.log_format.record import Record
from offsets_log.messages.registry import RECORD_TYPES, CoordinatorRecord, encode_coordinator_record

TOPIC = "orders"
START_MS = 1_700_000_000_000
VALUE = b"order 0123456789 of a customer who lives somewhere"
DIGITS = VALUE.index(b"0"), VALUE.index(b"9") + 1
SOURCE_BATCH, TARGET_BATCH = 500, 333
SEGMENT_BATCHES = 4000
RECORD_BYTES = 68
AHEAD = 777
"""So much greater are offsets in the target."""


def write_log(folder: Path, records: int, in_a_batch: int, first_offset: int) -> None:
    """Write the segments of a partition: each record has its number as digits, and a time of its own."""
    folder.mkdir(parents=True)
    template = _template(in_a_batch)
    places = np.array([at for at in range(len(template)) if template.startswith(VALUE, at)])
    digits = (places[:, None] + np.arange(*DIGITS)).ravel()
    data = np.frombuffer(bytearray(template), np.uint8)
    powers = 10 ** np.arange(DIGITS[1] - DIGITS[0] - 1, -1, -1)
    file = None
    for number, first in enumerate(range(0, records - records % in_a_batch, in_a_batch)):
        if number % SEGMENT_BATCHES == 0:
            if file is not None:
                file.close()
            file = (folder / f"{first_offset + first:020}.log").open("wb")
        numbers = first + np.arange(in_a_batch)
        data[digits] = (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8).ravel()
        raw = bytearray(data.tobytes())
        raw[:8] = (first_offset + first).to_bytes(8)
        raw[27:35], raw[35:43] = (START_MS + first).to_bytes(8), (START_MS + first + in_a_batch - 1).to_bytes(8)
        raw[b.CRC_POSITION : b.CRC_POSITION + 4] = google_crc32c.value(bytes(raw[b.ATTRIBUTES_POSITION :])).to_bytes(4)
        assert file is not None
        file.write(raw)
    if file is not None:
        file.close()


def _template(in_a_batch: int) -> bytes:
    return build_batch(
        [Record(offset=i, timestamp_ms=START_MS + i, key=b"customer", value=VALUE) for i in range(in_a_batch)]
    )


def write_groups(folder: Path, committed: dict[str, int]) -> None:
    """Write ``__consumer_offsets-0`` with these groups' offsets."""
    folder.mkdir(parents=True)
    layout = next(RECORD_TYPES[1].layouts(3))
    records = []
    for offset, (group, at) in enumerate(committed.items()):
        value = {"offset": at, "leader_epoch": -1, "metadata": "", "commit_timestamp": START_MS, "topic_id": ZERO_UUID}
        key, raw = encode_coordinator_record(
            CoordinatorRecord(
                record_type=1, key={"group": group, "topic": TOPIC, "partition": 0}, value=value, value_version=3,
                layout=layout,
            )
        )  # fmt: skip
        records.append(Record(offset=offset, timestamp_ms=START_MS, key=key, value=raw))
    (folder / f"{0:020}.log").write_bytes(build_batch(records))


def write(folder: Path, records: int) -> dict[str, int]:
    """Write all; return the committed offset of each group. In the target it is `AHEAD` greater."""
    common = records - records % (SOURCE_BATCH * TARGET_BATCH)
    committed = {f"lag-{lag}": max(0, common - lag) for lag in (0, 10, 10_000, common // 2, common)}
    write_log(folder / "source" / f"{TOPIC}-0", common, SOURCE_BATCH, 0)
    write_log(folder / "target" / f"{TOPIC}-0", common, TARGET_BATCH, AHEAD)
    write_groups(folder / "source" / "__consumer_offsets-0", committed)
    (folder / "truth.json").write_text(json.dumps({"records": common, "committed": committed}))
    return committed


def mirrored_topic(work: Path, size_bytes: int) -> Log:
    """A topic of so many bytes on both sides together; written if it is not there."""
    folder = work / f"mirrored-{size_bytes}"
    if not (folder / "truth.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        write(folder, max(SOURCE_BATCH * TARGET_BATCH, size_bytes // (2 * RECORD_BYTES)))
    truth = json.loads((folder / "truth.json").read_bytes())
    return Log(folder, truth | {"uncompressed_bytes": 2 * RECORD_BYTES * truth["records"]})


def measure(log: Log, repeat: int) -> Measured:
    """``translate`` as a whole process; its records are pairs."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan"
        command = ["offsets-log", "translate", str(log.folder / "source"), "--target", str(log.folder / "target")]

        def run() -> float:
            shutil.rmtree(plan, ignore_errors=True)
            return seconds_of(lambda: run_process([*command, "--to", str(plan), "--quiet"]))

        seconds = repeated(run, repeat)
        rows = map(json.loads, (plan / "translation.jsonl").read_text().splitlines())
        right = {group: at + AHEAD for group, at in log.truth["committed"].items()}
        return Measured(seconds=seconds, agrees={row["group"]: row["target_offset"] for row in rows} == right)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, default=1_000_000)
    asked = parser.parse_args()
    write(asked.folder, asked.records)
