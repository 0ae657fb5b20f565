"""Logs of any size, like those of a busy cluster: ``python -m benchmarks.generate OUT --bytes 1GB --codec lz4``.

``OUT`` gets a data directory: ``__consumer_offsets-N/<20 digits>.log``, and ``truth.json``, which says what is in them
and what a coordinator must make of them. The same options give the same bytes; the codec changes no record.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

import click
import numpy as np

from benchmarks import generator_kernels as k
from benchmarks.generator_bytes import HEADER_SIZE, NO_VALUE, Array
from benchmarks.generator_content import Group, content, groups
from benchmarks.generator_formats import Written, compressed, damaged, old
from offsets_log.log_format.compression import CODEC_NAMED
from offsets_log.replay.partition_for import partition_for

TRUTH = "truth.json"
CHUNK = 4 << 20
"""Uncompressed bytes between two writes."""
CHUNK_BATCHES = CHUNK // 128
START_MS = 1_790_000_000_000
FIRST_PRODUCER_ID = 1000
MAX_FIRST_OFFSET = 1_000_000
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to write.

    Attributes:
        bytes: of all batches, uncompressed, over all offsets partitions.
        groups, topics, partitions: so many groups; topics of a group; partitions of a topic.
        batch: records of a batch in the mean (geometric).
        transactions: share of the batches that belong to one.
        aborts: share of the transactions.
        groups_metadata, tombstones: shares of the records.
        with_metadata: share of the groups whose commits carry text.
        value_version: of offset commits.
        segment_bytes: where a broker begins a new segment.
        mix: ``classic``; ``modern``: a fifth of the records is of newer groups, and offset commits have version 4;
            ``old``: in messages of magic 0 and 1, without transactions; ``damaged``: some batches cannot be read.
    """

    bytes: int = 10**9
    codec: str = "none"
    groups: int = 500
    topics: int = 4
    partitions: int = 25
    batch: float = 5.0
    transactions: float = 0.02
    aborts: float = 0.1
    groups_metadata: float = 0.01
    tombstones: float = 0.005
    with_metadata: float = 0.1
    seed: int = 1
    offsets_partitions: int = 1
    value_version: int = 3
    segment_bytes: int = 100 << 20
    mix: str = "classic"


MIXES = {"classic": compressed, "modern": compressed, "old": old, "damaged": damaged}
"""Name → what becomes of the batches, by the name of a codec."""
LEAVING = 3
"""Records by which a member leaves."""
NEWER = 0.2
"""Share of the batches of a modern log that are of newer groups."""


def generate(out: Path, options: Options) -> dict[str, Any]:
    """Write a data directory that must not exist or be empty; returns what ``truth.json`` says."""
    out.mkdir(parents=True, exist_ok=True)
    if next(out.iterdir(), None) is not None:
        raise FileExistsError(f"{out} is not empty")
    names = groups(options.groups, options.topics, options.with_metadata)
    total: dict[str, Any] = {}
    for partition in range(options.offsets_partitions):
        members = [group for group in names if partition_for(group.name, options.offsets_partitions) == partition]
        with Segments(out / f"__consumer_offsets-{partition}", options.segment_bytes) as segments:
            written = _write_partition(segments, members, partition, options) if members else {}
        _add(total, written | {"segments": segments.count, "bytes": segments.size_bytes})
    truth = {"options": asdict(options)} | total
    (out / TRUTH).write_text(json.dumps(truth, indent=1) + "\n")
    return truth


def _add(total: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict):
            _add(total.setdefault(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value


def _write_partition(segments: Segments, members: list[Group], partition: int, options: Options) -> dict[str, Any]:
    is_modern = options.mix == "modern"
    is_old = options.mix == "old"
    version = 4 if is_modern else min(options.value_version, 1) if is_old else options.value_version
    made = content(members, options.partitions, version, options.seed, newer=is_modern)
    chances = _chances(len(members), made.group_size, replace(options, transactions=0.0) if is_old else options)
    room = _largest_batch(made, chances)
    state = _first_state(len(members), made, int(chances.lengths.max()), options, partition)
    target = options.bytes * len(members) // options.groups
    plain = np.zeros(max(CHUNK, room), np.uint8)
    starts = np.zeros(CHUNK_BATCHES + 1, np.int64)
    form = MIXES[options.mix](options.codec)
    counts = {"uncompressed_bytes": 0, "batches": 0, "broken": 0}
    while batches := k.fill(made, chances, state, plain, starts, room, target):
        written = form(plain, starts[: batches + 1])
        segments.add(written)
        counts["uncompressed_bytes"] += written.plain_bytes
        counts["batches"] += written.count
        counts["broken"] += written.broken
    return counts | _summary(state)


# ------------------------------------------------------------------------------------- what is drawn


def _chances(count: int, group_size: int, options: Options) -> k.Chances:
    """Group g of n is drawn in proportion to 1/√(g+1), about: the busiest tenth makes a third of the commits."""
    ranks = (np.arange(1 << 16) + 0.5) / (1 << 16)
    busy = (ranks**2 * count).astype(np.int64)
    quantiles = (np.arange(1 << 12) + 0.5) / (1 << 12)
    if options.batch > 1:
        drawn = np.floor(np.log(1 - quantiles) / np.log(1 - 1 / options.batch)).astype(np.int64) + 1
    else:
        drawn = np.ones(1 << 12, np.int64)
    lengths = np.minimum(drawn, min(group_size, max(1, int(8 * options.batch))))
    mean = float(lengths.mean())
    # Shares of records → shares of batches: a batch of group metadata has one record, any other `mean`.
    share = options.groups_metadata
    group_metadata = share * mean / (1 - share + share * mean)
    tombstones = options.tombstones * (group_metadata + (1 - group_metadata) * mean) / mean
    transactions, aborts = float(options.transactions), float(options.aborts)
    return k.Chances(busy, lengths, group_metadata, tombstones, transactions, aborts, NEWER)


def _largest_batch(made: k.Content, chances: k.Chances) -> int:
    around = 32  # the lengths and deltas around a key and a value
    groups, values = made.groups, made.values
    group = int((groups[:, k.VALUE_END] - groups[:, k.KEY_START]).max()) + around
    commit = int(np.diff(made.keys).max() + (values[:, k.END] - values[:, k.START]).max()) + around
    newer = made.newer
    sizes = newer[:, k.NEWER_KEY_END] - newer[:, k.NEWER_KEY] + newer[:, k.NEWER_VALUE_END] - newer[:, k.NEWER_VALUE]
    record = max(commit, int(sizes.max(initial=0)) + around)
    return HEADER_SIZE + max(group, record * (int(chances.lengths.max()) + LEAVING))


def _first_state(count: int, made: k.Content, longest: int, options: Options, partition: int) -> k.State:
    choice = np.random.SeedSequence([options.seed, partition])
    counts = np.zeros(k.COUNTS, np.int64)
    counts[k.NOW], counts[k.NEXT_MARKER] = START_MS, k.NEVER
    keys = np.full((count * made.group_size, k.KEY_COLUMNS), NO_VALUE, np.int64)
    keys[:, k.NEWEST] = choice.generate_state(len(keys), np.uint32) % MAX_FIRST_OFFSET
    producers = np.zeros((k.PRODUCERS + 1, k.PRODUCER_COLUMNS), np.int64)
    producers[:, k.ID] = np.arange(k.PRODUCERS + 1) + FIRST_PRODUCER_ID
    producers[:, k.MARKER_AT] = k.NEVER
    producers[k.NO_PRODUCER, [k.ID, k.EPOCH]] = -1
    return k.State(
        random=choice.generate_state(1, np.uint64) | np.uint64(1),
        counts=counts,
        keys=keys,
        generations=np.zeros(count, np.int64),
        producers=producers,
        pending=np.zeros((k.PRODUCERS, k.MARKER_WITHIN * longest, k.PENDING_COLUMNS), np.int64),
        rounds=np.zeros((len(made.newer_begins) - 1, k.ROUND_COLUMNS), np.int64),
    )


def _summary(state: k.State) -> dict[str, Any]:
    """Numbers that may be added up over partitions."""
    counts = [int(count) for count in state.counts]
    return {
        "records": counts[k.OFFSET],
        "offset_commits": counts[k.COMMITS],
        "tombstones": counts[k.TOMBSTONES],
        "group_metadata": counts[k.GROUP_RECORDS],
        "newer_records": counts[k.NEWER_RECORDS],
        "transactional_batches": counts[k.TRANSACTIONAL_BATCHES],
        "transactional_records": counts[k.TRANSACTIONAL_RECORDS],
        "transactions_committed": counts[k.COMMITTED],
        "transactions_aborted": counts[k.ABORTED],
        "served": _answer(state.keys[:, k.HELD]),
        "in_record_order": _answer(state.keys[:, k.LATEST]),
    }


def _answer(offsets: Array) -> dict[str, int]:
    held = offsets[offsets != NO_VALUE]
    return {"keys": len(held), "sum": int(held.sum())}


# ------------------------------------------------------------------------------------------- writing


class Segments:
    """The files of one partition, rolled as a broker does: before the batch that would not fit."""

    def __init__(self, folder: Path, limit: int) -> None:
        folder.mkdir()
        self.folder, self.limit = folder, limit
        self.count = self.size_bytes = 0
        self._roll(0)

    def _roll(self, base_offset: int) -> None:
        if self.count:
            self._file.close()
        self._file: IO[bytes] = (self.folder / f"{base_offset:020}.log").open("xb")
        self._room = self.limit
        self.count += 1

    def add(self, written: Written) -> None:
        """Append whole batches."""
        data, starts = written.data, written.starts
        first, last = 0, len(starts) - 1
        while first < last:
            fitting = int(np.searchsorted(starts, starts[first] + self._room, side="right")) - 1
            if fitting == first and self._room == self.limit:
                fitting = first + 1  # a batch larger than any segment has one of its own
            if fitting > first:
                size = int(starts[fitting] - starts[first])
                self._file.write(data[starts[first] : starts[fitting]].data)
                self._room -= size
                self.size_bytes += size
                first = fitting
            if first < last:
                self._roll(int(written.base_offsets[first]))

    def __enter__(self) -> Segments:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


# -------------------------------------------------------------------------------------- command line


class Size(click.ParamType):  # type: ignore[type-arg]
    """``1GB``, ``200 KiB``, ``1500`` → bytes."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Fails for anything else."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?i?B)?", str(value), re.IGNORECASE)
        if match is None:
            self.fail(f"{value!r} is no size, such as 1GB or 200KB", param, ctx)
        return int(float(match[1]) * UNITS[(match[2] or "B").upper()])


def _option(name: str, default: Any) -> Any:
    flag = "--" + name.replace("_", "-")
    if name == "codec":
        return click.option(flag, type=click.Choice(list(CODEC_NAMED)), default=default, show_default=True)
    if name == "mix":
        return click.option(flag, type=click.Choice(list(MIXES)), default=default, show_default=True)
    if name == "value_version":
        return click.option(flag, type=click.IntRange(0, 4), default=default, show_default=True)
    kind = Size() if name.endswith("bytes") else type(default)
    return click.option(flag, name, type=kind, default=default, show_default=True)


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
def main(out: Path, **values: Any) -> None:
    """Write a data directory OUT with a generated log and its truth.json."""
    try:
        truth = generate(out, Options(**values))
    except FileExistsError as error:
        sys.exit(str(error))
    click.echo(json.dumps(truth))


for _field in fields(Options):
    main = _option(_field.name, _field.default)(main)


if __name__ == "__main__":
    main()
