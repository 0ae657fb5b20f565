"""The rows of the table: what is measured, over which log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import bounds, mirrored, peers, serving, stored
from benchmarks.commands import COMMANDS, COMPACT, COPIES, DAMAGED, LAG, construct_path
from benchmarks.inputs import Log, generated_log, whole_data_directory
from benchmarks.timing import Measured, NotMeasuredError

OWN, PYTHON, KAFKA = "own", "python", "kafka"
KINDS = {"none": (OWN,), "python": (OWN, PYTHON), "all": (OWN, PYTHON, KAFKA)}
"""What ``--peers`` takes."""
CODECS = ("none", "lz4", "snappy", "zstd", "gzip")
CONSTRUCT_BYTES = 2 * 10**6
TEXT_BYTES = 200 * 10**6
DUMP_LOG_BYTES = 50 * 10**6
MOST_PARTITIONS = 20_000
PARTITION_BYTES = 17_000
WHOLE = "whole data directory"
"""A mix of its own: thousands of partitions of other topics."""
MIRRORED = "mirrored topic"
"""Another: a topic and its copy at other offsets."""
AT_MOST = {
    "history": TEXT_BYTES,
    "history to a table": TEXT_BYTES,
    "history to parquet": TEXT_BYTES,
    "decode to jsonl": TEXT_BYTES,
    "decode --expand": TEXT_BYTES,
    "decode to csv": TEXT_BYTES,
    "decode --as dump-log": TEXT_BYTES,
    "compact of a dump-log text": DUMP_LOG_BYTES,
}
"""Of commands whose output is longer than the log."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A row; slow readers get ``at_most`` so many bytes, and their rates count."""

    what: str
    measure: Callable[[Log, int], Measured]
    codec: str = "none"
    kind: str = OWN
    at_most: int | None = None
    mix: str = "classic"


BASE = "compact, none"
SUBJECTS = (
    Subject("memcpy", bounds.copying),
    Subject("read, page cache", bounds.reading),
    Subject("CRC-32C, one call", bounds.checksums),
    *(Subject(f"compact, {codec}", COMPACT.measure, codec) for codec in CODECS),
    *(Subject(what, command.measure, at_most=AT_MOST.get(what)) for what, command in COMMANDS.items()),
    Subject("clean, lz4", COMMANDS["clean"].measure, "lz4"),
    Subject("repair, lz4", COMMANDS["repair"].measure, "lz4"),
    Subject("compact of two copies", COPIES.measure),
    Subject("compact of a store", stored.measure),
    Subject("compact, modern", COMPACT.measure, mix="modern"),
    Subject("rebuild, modern", COMMANDS["rebuild"].measure, mix="modern"),
    Subject("decode to jsonl, modern", COMMANDS["decode to jsonl"].measure, mix="modern", at_most=TEXT_BYTES),
    Subject("top of some groups, modern", COMMANDS["top of some groups"].measure, mix="modern"),
    Subject("history, modern", COMMANDS["history"].measure, mix="modern", at_most=TEXT_BYTES),
    Subject("compact, old", COMPACT.measure, mix="old"),
    Subject("decode, old", COMMANDS["decode"].measure, mix="old"),
    Subject("compact, damaged", COMPACT.measure, mix="damaged"),
    Subject("decode, damaged", COMMANDS["decode"].measure, mix="damaged"),
    Subject("compact --lag of a data directory", LAG.measure, mix=WHOLE),
    Subject("translate of a mirrored topic", mirrored.measure, mix=MIRRORED),
    Subject("diff, old", COMMANDS["diff"].measure, mix="old"),
    Subject("groups, old", COMMANDS["groups"].measure, mix="old"),
    Subject("check, old", COMMANDS["check, all releases"].measure, mix="old"),
    Subject("check, modern", COMMANDS["check, all releases"].measure, mix="modern"),
    Subject("check, damaged", DAMAGED["check"].measure, mix="damaged"),
    Subject("rebuild, damaged", DAMAGED["rebuild"].measure, mix="damaged"),
    Subject("serve, 20,000 requests on 200 connections", serving.under_load),
    Subject("construct path, in process", construct_path, at_most=CONSTRUCT_BYTES),
    Subject("aiokafka + struct", peers.aiokafka, kind=PYTHON),
    Subject("Kafka 4.3 coordinator's load", peers.coordinator_load, kind=KAFKA),
    Subject("Kafka 4.3 LogCleaner", peers.log_cleaner, kind=KAFKA),
    Subject("Kafka 4.3 LogCleaner, lz4", peers.log_cleaner, "lz4", kind=KAFKA),
    Subject("kafka-dump-log 4.3", peers.dump_log, kind=KAFKA, at_most=DUMP_LOG_BYTES),
)

HEAD = (
    "| what | records | bytes, uncompressed | s | s per GB | M records/s | of compact | agrees |",
    "|---|--:|--:|--:|--:|--:|--:|---|",
)


def _log_for(subject: Subject, work: Path, size_bytes: int) -> Log:
    if subject.mix == WHOLE:
        return whole_data_directory(work, min(size_bytes // PARTITION_BYTES, MOST_PARTITIONS))
    if subject.mix == MIRRORED:
        return mirrored.mirrored_topic(work, size_bytes)
    return generated_log(work, subject.codec, min(size_bytes, subject.at_most or size_bytes), mix=subject.mix)


def measure(subjects: Sequence[Subject], work: Path, size_bytes: int, repeat: int) -> Iterator[dict[str, Any]]:
    """A row each, as it is kept in ``--json``; ``problem`` says why there are no figures."""
    for subject in subjects:
        log = _log_for(subject, work, size_bytes)
        row: dict[str, Any] = {"what": subject.what, "codec": subject.codec, "kind": subject.kind}
        sys.stderr.write(f"measuring {subject.what}\n")
        try:
            measured = subject.measure(log, repeat)
        except NotMeasuredError as reason:
            yield row | {"problem": str(reason)}
            continue
        records, size = log.truth["records"], log.truth["uncompressed_bytes"]
        yield row | {
            "records": records,
            "uncompressed_bytes": size,
            "seconds": measured.median,
            "all_seconds": measured.seconds,
            "start_seconds": measured.start_seconds,
            "seconds_per_gb": measured.work_seconds / size * 1e9,
            "records_per_second": records / measured.work_seconds,
            "agrees": measured.agrees,
        }


def figure(value: float) -> str:
    """Three digits that matter, without exponent."""
    return np.format_float_positional(value, precision=3, fractional=False, trim="-")


def iter_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The table in Markdown; "of compact" is time per byte beside that of `BASE`."""
    yield from HEAD
    base = next((row["seconds_per_gb"] for row in rows if row["what"] == BASE and "problem" not in row), None)
    for row in rows:
        if "problem" in row:
            yield f"| {row['what']} | | | not measured: {row['problem']} | | | | |"
            continue
        ratio = "" if base is None else f"{figure(row['seconds_per_gb'] / base)} x"
        agrees = {None: "", True: "yes", False: "NO"}[row["agrees"]]
        yield (
            f"| {row['what']} | {row['records']:,} | {row['uncompressed_bytes']:,} | {figure(row['seconds'])} | "
            f"{figure(row['seconds_per_gb'])} | {figure(row['records_per_second'] / 1e6)} | {ratio} | {agrees} |"
        )
