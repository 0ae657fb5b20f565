"""Random logs, and copies of them that are damaged at places of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from offsets_log.broker.leader_epochs import encode_leader_epochs
from offsets_log.log_format.batch import BATCH_HEADER_SIZE, decode_batch_header, encode_batch
from offsets_log.log_format.partition_log import Checkpoints, PartitionLog, Segment
from tests.builders import LogBuilder

Parts = list[tuple[int, list[bytes]]]
"""Segments: base offset and batches."""


@dataclass
class Original:
    """A log: the batches of each segment, and what lies beside them."""

    parts: Parts
    epochs: dict[int, int]
    has_checkpoints: bool
    is_cleaned: bool = False

    @property
    def batches(self) -> list[bytes]:
        return [raw for _, raws in self.parts for raw in raws]

    def log(self, name: str, parts: Parts | None = None, tail: bytes = b"") -> PartitionLog:
        """A copy in a folder of this name."""
        parts = self.parts if parts is None else parts
        segments = [Segment(f"{name}/{base:020}.log", base, b"".join(raws)) for base, raws in parts]
        segments[-1] = replace(segments[-1], contents=bytes(segments[-1].buffer) + tail)
        told = {"leader-epoch-checkpoint": lambda: encode_leader_epochs(self.epochs)} if self.has_checkpoints else {}
        end = int.from_bytes(self.batches[-1][:8]) + 1
        marks = Checkpoints(high_watermark=end) if self.has_checkpoints else Checkpoints()
        return PartitionLog(0, tuple(segments), beside=told, checkpoints=marks)

    def broken(self, numbers: set[int]) -> Parts:
        """Its segments with zeros in the place of the second half of some batches."""
        count = 0
        parts: Parts = []
        for base, raws in self.parts:
            parts.append((base, []))
            for raw in raws:
                half = len(raw) // 2
                parts[-1][1].append(raw[:half] + bytes(len(raw) - half) if count in numbers else raw)
                count += 1
        return parts

    def forked(self, dice: random.Random) -> Original:
        """A log that is the same up to some batch, behind which another leader wrote others, in a later epoch."""
        fork, count, epoch = dice.randrange(1, len(self.batches)), 0, max(self.epochs) + 1
        parts: Parts = []
        for base, raws in self.parts:
            parts.append((base, []))
            for raw in raws:
                parts[-1][1].append(_other(raw, epoch) if count >= fork else raw)
                count += 1
        begin = int.from_bytes(self.batches[fork][:8])
        epochs = {one: first for one, first in self.epochs.items() if first < begin} | {epoch: begin}
        return Original(parts, epochs, self.has_checkpoints, self.is_cleaned)


def _other(raw: bytes, epoch: int) -> bytes:
    """A batch at the same offsets, of another time and epoch."""
    batch = decode_batch_header(raw)
    moved = replace(
        batch,
        partition_leader_epoch=epoch,
        base_timestamp_ms=batch.base_timestamp_ms + 5,
        max_timestamp_ms=batch.max_timestamp_ms + 5,
    )
    return encode_batch(moved, raw[BATCH_HEADER_SIZE:])


def original(dice: random.Random) -> Original:
    """A log of commits, tombstones and transactions, in several leader epochs and segments; cleaned, or not."""
    builder, epoch, epochs = LogBuilder(), 0, {0: 0}
    parts: Parts = [(0, [])]
    is_cleaned = dice.random() < 0.4
    for _ in range(dice.randrange(6, 40)):
        if dice.random() < 0.1:
            epoch += dice.choice((1, 1, 3))
            epochs[epoch] = builder.offset
        if parts[-1][1] and dice.random() < 0.15:
            parts.append((builder.offset, []))
        begun = len(builder.batches)
        _append(builder, dice, epoch)
        parts[-1][1].extend(builder.batches[begun:])
        if is_cleaned and dice.random() < 0.3:
            builder.skip(dice.randrange(1, 9))
    return Original(parts, epochs, dice.random() < 0.5, is_cleaned)


def _append(builder: LogBuilder, dice: random.Random, epoch: int) -> None:
    for _ in range(dice.choice((1, 1, 2))):
        builder.commit(dice.choice((None, dice.randrange(1000))), group=dice.choice("gh"), partition=dice.randrange(5))
    if dice.random() < 0.2:
        builder.commit(dice.randrange(1000), producer=7).end(7, commit=dice.random() < 0.5)
    for at in range(len(builder.batches) - 1, -1, -1):
        raw = builder.batches[at]
        if int.from_bytes(raw[12:16]) or not epoch:
            break
        builder.batches[at] = raw[:12] + epoch.to_bytes(4) + raw[16:]


@dataclass
class Damaged:
    """A copy with damage, and the numbers of the batches that it has lost."""

    log: PartitionLog
    lost: set[int]


def damaged(whole: Original, name: str, dice: random.Random, spared: set[int], is_cut: bool) -> Damaged:
    """A copy that is damaged anywhere but in some batches."""
    parts = [(base, list(raws)) for base, raws in whole.parts]
    numbers, first = list[tuple[int, int]](), list[int]()
    for part, (_, raws) in enumerate(parts):
        first.append(len(numbers))
        numbers += [(part, at) for at in range(len(raws))]
    lost: set[int] = set()
    tail = b""
    for _ in range(dice.randrange(1, 5)):
        number = dice.randrange(len(numbers))
        if number in spared or len(lost | spared) + 1 >= len(numbers):
            continue
        part, at = numbers[number]
        kind = dice.choice(KINDS)
        parts[part][1][at] = kind(whole.batches[number], dice)
        lost.add(number)
    if not is_cut and dice.random() < 0.3 and len(parts) > 2:
        part = dice.randrange(len(parts))
        gone = {number for number, (of, _) in enumerate(numbers) if of == part}
        if not gone & spared and len(lost | gone | spared) < len(numbers):
            lost |= gone
            del parts[part]
    if is_cut:
        part = dice.randrange(len(parts))
        kept = dice.randrange(len(parts[part][1]) + 1)
        gone = {number for number, place in enumerate(numbers) if place >= (part, kept)}
        if (part or kept) and not gone & spared and len(lost | gone | spared) < len(numbers):
            lost |= gone
            torn = parts[part][1][kept : kept + 1]
            parts = parts[: part + 1]
            del parts[part][1][kept:]
            tail = torn[0][: dice.randrange(len(torn[0]))] if torn and torn[0] and dice.random() < 0.5 else b""
    return Damaged(whole.log(name, parts, tail), lost)


def _flipped(raw: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ dice.randrange(1, 256)]) + raw[at + 1 :]


def _zeroed(raw: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(raw))
    return raw[:at] + bytes(len(raw) - at)


KINDS: Sequence[Callable[[bytes, random.Random], bytes]] = (
    _flipped,
    _flipped,
    _zeroed,
    lambda raw, dice: b"",
    lambda raw, dice: dice.randbytes(len(raw)),
    lambda raw, dice: raw[: dice.randrange(len(raw) // 2)],
)
"""How a batch is damaged; the third last way takes it out."""
