"""A partition's folder as Kafka's DumpLogSegments tells it, and as it is read here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from offsets_log.errors import Damage
from offsets_log.log_format.batch import RecordBatch
from offsets_log.log_format.record import iter_records
from offsets_log.log_format.segment import iter_batches

SUFFIXES = ("log", "index", "timeindex", "txnindex", "snapshot")
"""Of what the tool reads."""
BATCH = re.compile(r"(?:baseOffset: (\d+) lastOffset: (\d+) |offset: (\d+) position).* size: (\d+) .* (isvalid: \w+)$")
RECORD = re.compile(r"\| offset: (\d+) \w+: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)")
PAIR = re.compile(r"  (?:Index timestamp: )?(-?\d+)(?: is followed by |, log timestamp: )(-?\d+)")
GAPS, TIMES = "Non-consecutive offsets in ", "Found timestamp mismatch in :"
BEFORE_ALL = "-1"
"""With this the tool of 4.3 begins to look for gaps."""


@dataclass(slots=True)
class Dump:
    """What DumpLogSegments finds in a folder, or what is read here of it.

    Attributes:
        batches: file, first and last offset (of magic 0 and 1 the latter alone), size, and whether it is valid.
        records: file, offset, timestamp, and sizes of key and value.
        gaps: file, and two offsets that follow each other.
        is_damaged: whether something is no whole batch or no record, or offsets do not rise.
        times: index of time, and a batch's greatest timestamp as its header and as its records have it.
    """

    batches: set[tuple[str, ...]] = field(default_factory=set)
    records: set[tuple[str, ...]] = field(default_factory=set)
    gaps: set[tuple[str, ...]] = field(default_factory=set)
    times: set[tuple[str, ...]] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)
    is_damaged: bool = False

    @classmethod
    def told(cls, output: str, errors: str) -> Dump:
        found = cls()
        file = ""
        for line in output.splitlines():
            if line.startswith("Dumping "):
                file = Path(line.removeprefix("Dumping ")).name
            elif match := BATCH.match(line):
                first, last, offset, *facts = match.groups()
                found.batches.add((file, *((offset,) if first is None else (first, last)), *facts))
            elif match := RECORD.match(line):
                found.records.add((file, *match.groups()))
            elif "invalid" in line:
                found.complaints.append(line)
        pairs: set[tuple[str, ...]] | None = None
        for line in errors.splitlines():
            if line.startswith((GAPS, TIMES)):
                pairs, file = found.gaps if line.startswith(GAPS) else found.times, Path(line).name
            elif pairs is not None and (match := PAIR.match(line)):
                pairs.add((file, *match.groups()))
            elif not line.startswith("log4j:WARN"):
                pairs = None
                found.complaints.append(line)
        found.gaps = {(file, before, after) for file, before, after in found.gaps if before != BEFORE_ALL}
        return found

    @classmethod
    def of(cls, folder: Path) -> Dump:
        found = cls()
        for path in sorted(folder.glob("*.log")):
            found._add(path)
        return found

    def _add(self, path: Path) -> None:
        offsets: list[int] = []
        end = -1
        for batch in iter_batches(path.read_bytes()):
            records = [*iter_records(batch)] if isinstance(batch, RecordBatch) else []
            if not isinstance(batch, RecordBatch) or any(isinstance(record, Damage) for record in records):
                self.is_damaged = True
                return
            self.is_damaged |= batch.last_offset < batch.base_offset or batch.base_offset <= end
            end = max(end, batch.last_offset)
            span = (batch.base_offset, batch.last_offset)[batch.magic < 2 :]
            self.batches.add((path.name, *map(str, (*span, len(batch.raw))), "isvalid: true"))
            for record in records:
                sizes = (-1 if part is None else len(part) for part in (record.key, record.value))
                self.records.add((path.name, *map(str, (record.offset, record.timestamp_ms, *sizes))))
                offsets.append(record.offset)
            newest = max((record.timestamp_ms for record in records), default=-1)
            times = (str(batch.max_timestamp_ms), str(newest))
            self.times.add((f"{path.stem}.timeindex", *times))
        self.gaps |= {(path.name, str(one), str(other)) for one, other in pairwise(offsets) if other != one + 1}


def files_of(folder: Path) -> dict[str, list[str]]:
    """All that DumpLogSegments reads, and of it the indexes."""
    files = {suffix: sorted(map(str, folder.glob(f"*.{suffix}"))) for suffix in SUFFIXES}
    indexes = files["index"] + files["timeindex"]
    return {"files": [name for names in files.values() for name in names], "indexes": indexes}
