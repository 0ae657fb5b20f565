"""Choose between copies of one partition: the one that reaches farthest is read, and how others differ is noted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from offsets_log.broker.leader_lines import EpochEntry, truncation
from offsets_log.columnar.large import is_large
from offsets_log.disk.alike import Alike
from offsets_log.log_format.partition_log import PartitionLog

if TYPE_CHECKING:
    from offsets_log.disk.extents import Extent
    from offsets_log.disk.replica_words import Other

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Leader:
    """The broker that led a partition last, by the cluster's metadata.

    Attributes:
        node_id: the broker's id.
        epoch: the leader epoch in which it led.
        copies: which of the replicas are from its data directories, by their indices.
    """

    node_id: int
    epoch: int
    copies: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice among replicas.

    Attributes:
        log: what is read: the replica of the highest high watermark, or files joined to one log.
        best: the number of the replica; None of joined files.
        others: how each of the others differs from it.
        note: what is said of all of them.
    """

    log: PartitionLog
    best: int | None = None
    others: Sequence[Other] = ()
    note: str = ""


def choose_replica(
    replicas: Sequence[PartitionLog],
    leader: Leader | None = None,
    alike: Alike | None = None,
    advance: Advance = lambda size_bytes: None,
    *,
    in_bulk: bool | None = None,
) -> PartitionLog:
    """Return the replica that `choice` finds; its last note tells the choice, and how each other replica differs.

    Args:
        alike: takes what is to tell where the replicas agree.
    """
    found = choice(replicas, leader, advance, in_bulk=in_bulk)
    if found.best is None:
        return found.log
    from offsets_log.disk.replica_words import home

    chosen = found.log
    is_told = False
    if alike is not None:
        homes = [home(chosen), *(home(log) for number, log in enumerate(replicas) if number != found.best)]
        is_told = alike.take([other.agreement for other in found.others], homes, found.note)
        alike.are_in_doubt |= any(other.is_in_doubt for other in found.others)
    return chosen if is_told else replace(chosen, notes=(*chosen.notes, found.note))


def choice(
    replicas: Sequence[PartitionLog],
    leader: Leader | None = None,
    advance: Advance = lambda size_bytes: None,
    *,
    in_bulk: bool | None = None,
) -> Choice:
    """Choose the replica that lacks least at its begin and, of those, the one whose batches reach the highest offset.

    What is below the log start offset that is noted beside it a replica does not lack. One is not chosen that a cluster
    would have truncated, as `leader_lines.truncation` says, while another lacks no more at its begin. Ties are decided
    by the least damage, then by the size of the batches, then by whether nothing follows them, then by order. Files
    without a segment's name that follow each other are joined to one log; they are not replicas.

    If the leader is known, its own replica, if undamaged, has the epoch in which it led: what others have beyond its
    end counts only if it is of that epoch, too.

    Every replica is read whole. The high watermark of the answer is the highest of all replicas', but for those without
    a batch in common; of a truncated one no more than what it would keep.

    Args:
        advance: called with the number of bytes read since the last call, from any thread.
        in_bulk: whether a kernel reads them; None to decide by their size.
    """
    if len(replicas) == 1:
        return Choice(replicas[0])
    from offsets_log.disk.extents import extent_of
    from offsets_log.disk.replica_words import Comparing, place

    if in_bulk is None:
        in_bulk = is_large(sum(log.bytes_to_read for log in replicas), "scan.batch_rows._note")
    with ThreadPoolExecutor() as pool:
        extents = [*pool.map(partial(extent_of, advance=advance, in_bulk=in_bulk), replicas)]
    joined = _join(replicas, extents)
    if joined is not None:
        return Choice(joined)
    if leader is not None:
        extents = _led(extents, leader)
    ranks = [_rank(index, replicas, extents, leader) for index in range(len(extents))]
    best = ranks.index(max(ranks))
    chosen = replicas[best]
    others = [*Comparing(replicas, extents, best, in_bulk).others()]
    marks = [chosen.checkpoints.high_watermark, *(other.high_watermark for other in others)]
    mark = max((mark for mark in marks if mark is not None), default=None)
    why = "" if leader is None else _why(best, extents, leader)
    note = f"{len(replicas)} replicas: {place(chosen)} is read, its whole batches end before offset {extents[best].end}"
    note = "; ".join([f"{note}{why}", *(other.words() for other in others)])
    log = replace(chosen, checkpoints=replace(chosen.checkpoints, high_watermark=mark))
    return Choice(log, best, others, note)


def _led(extents: Sequence[Extent], leader: Leader) -> list[Extent]:
    """Return the extents with the epoch in which the leader led, behind the batches of its own copies."""
    return [
        replace(extent, epochs=[*extent.epochs, EpochEntry(leader.epoch, extent.end)])
        if index in leader.copies and not extent.damages
        else extent
        for index, extent in enumerate(extents)
    ]


def _rank(
    index: int, replicas: Sequence[PartitionLog], extents: Sequence[Extent], leader: Leader | None
) -> tuple[int, ...]:
    own = extents[index]
    lacked = max(own.begin - (replicas[index].checkpoints.log_start_offset or 0), 0)
    is_truncated = any(truncation(own.epochs, other.epochs) is not None for other in extents)
    is_leaders = leader is not None and index in leader.copies
    return -lacked, not is_truncated, own.end, -len(own.damages), is_leaders, own.size_bytes, own.tail is None


def _why(best: int, extents: Sequence[Extent], leader: Leader) -> str:
    led = f"broker {leader.node_id} led the partition last, in leader epoch {leader.epoch}"
    if best in leader.copies:
        return f"; {led}, and this is its copy"
    if not leader.copies:
        return f"; {led}, and no copy of it was given"
    is_damaged = any(extents[index].damages for index in leader.copies)
    return f"; {led}, but its copy is {'damaged' if is_damaged else 'older'}"


def _join(logs: Sequence[PartitionLog], extents: Sequence[Extent]) -> PartitionLog | None:
    """Join named files that each hold one piece of the log, in order of offsets; return None if any two overlap."""
    if any(log.segments[0].base_offset is not None for log in logs):
        return None
    order = sorted(range(len(logs)), key=lambda i: extents[i].begin)
    if any(extents[i].end > extents[j].begin for i, j in pairwise(order)):
        return None
    return replace(logs[order[0]], segments=tuple(segment for i in order for segment in logs[i].segments))
