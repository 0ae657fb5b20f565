"""Partition directories that grow: copies of a recording's, written byte by byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from offsets_log.columnar.scan.layout import Scanner
from offsets_log.disk.growing import read_at, segment_files
from offsets_log.errors import Damage
from offsets_log.following.growth import GrowingLog, GrownPiece, Replaced
from offsets_log.following.pieces import PieceReader
from offsets_log.log_format.partition_log import PartitionLog


@dataclass
class Seen:
    """What was told while a directory was followed."""

    damages: list[Damage] = field(default_factory=list)
    others: list[object] = field(default_factory=list)
    replaced: list[Replaced] = field(default_factory=list)

    def note(self, seen: object) -> None:
        (self.damages if isinstance(seen, Damage) else self.others).append(seen)


class Follower:
    """One directory that is followed by something of `offsets_log.following`."""

    def __init__(self, directory: Path, followed, *, bulk_from: int, piece_bytes: int = 1 << 24) -> None:
        number = int(directory.name.rpartition("-")[2])
        self.directory = directory
        self.followed = followed
        self.growing = GrowingLog(PartitionLog(number, ()), f"{directory}/", partial(read_at, directory), piece_bytes)
        self.reader = PieceReader(Scanner().__enter__(), bulk_from=bulk_from)
        self.seen = Seen()

    def look(self) -> None:
        for found in self.growing.grown(segment_files(self.directory)):
            if isinstance(found, GrownPiece):
                self.followed.take(found, self.reader, self.seen.note)
            elif isinstance(found, Replaced):
                self.seen.replaced.append(found)
                self.followed.begin_again()
            else:
                self.seen.note(found)


def rolled(directory: Path, to: Path, rng: random.Random, rolls: int) -> list[Path]:
    """Write a log's segments again, cut between batches into more of them; their paths, in order."""
    from offsets_log.log_format.batch import RecordBatch
    from offsets_log.log_format.partition_log import iter_log
    from tests.conftest import read_partition

    batches = [item for _, item in iter_log(read_partition(directory)) if isinstance(item, RecordBatch)]
    cuts = {0, *rng.sample(range(len(batches)), min(rolls, len(batches)))}
    to.mkdir(parents=True)
    paths: list[Path] = []
    data: list[bytes] = []
    for i, batch in enumerate(batches):
        if i in cuts:
            paths.append(to / f"{batch.base_offset if paths else 0:020}.log")
            data.append(b"")
        data[-1] += batch.raw
    for path, content in zip(paths, data, strict=True):
        path.write_bytes(content)
    return paths


def growing(source: list[Path], to: Path, rng: random.Random, steps: int) -> Iterator[None]:
    """Copy segments into a directory piece by piece, in random cuts."""
    to.mkdir(parents=True, exist_ok=True)
    total = sum(path.stat().st_size for path in source)
    ends = sorted([*rng.sample(range(1, total), min(steps, total - 1)), total])
    done = 0
    for path in source:
        content, begin = path.read_bytes(), done
        with (to / path.name).open("ab", buffering=0) as file:
            while done < begin + len(content):
                end = next(end for end in ends if end > done)
                upto = min(end, begin + len(content))
                file.write(content[done - begin : upto - begin])
                done = upto
                yield
