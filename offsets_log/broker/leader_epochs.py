"""A partition's ``leader-epoch-checkpoint``: whether it keeps the broker from starting, and what of it stays.

References: ``CheckpointFile.java``, ``LeaderEpochCheckpointFile.java``, ``LeaderEpochFileCache.assign``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from offsets_log.broker.failures import BrokerError
from offsets_log.log_format.segment import Buffer

LEADER_EPOCHS = "leader-epoch-checkpoint"
LEADER_EPOCHS_VERSION = 0

_LINE_END = re.compile(r"\r\n|\r|\n")
_ENTRY = re.compile(r"\+?[0-9]+\s+\+?[0-9]+\s*")


def check_leader_epochs(data: Buffer) -> None:
    """Of a file that cannot be read the broker takes the whole data directory offline (``D-8``).

    Raises:
        BrokerError: it holds something else than a version, a count and as many lines of epoch and offset.
    """
    try:
        lines = _LINE_END.split(bytes(data).decode())
    except UnicodeDecodeError:
        raise _unreadable("it is no text") from None
    if lines[-1] == "":
        del lines[-1]
    if lines and _number(lines[0]) != LEADER_EPOCHS_VERSION:
        raise _unreadable(f"its version is {lines[0]}")
    entries = lines[2:]
    if len(lines) > 1 and _number(lines[1]) != len(entries):
        raise _unreadable(f"it should hold {lines[1]} entries and holds {len(entries)}")
    for entry in entries:
        if not _ENTRY.fullmatch(entry):
            raise _unreadable(f"{entry!r} is no epoch with its offset")


def leader_epochs(data: Buffer) -> dict[int, int]:
    """Epoch → where it begins, of a file that `check_leader_epochs` passes."""
    lines = [line.split() for line in _LINE_END.split(bytes(data).decode())[2:] if line]
    return {int(epoch): int(offset) for epoch, offset in lines}


def leader_epochs_within(data: Buffer, start_checkpoint: int, end_offset: int) -> bytes:
    """The file of a log that was opened: epochs that end before it, or begin behind it, are gone (``CL-50``).

    Args:
        data: a file that `check_leader_epochs` passes.
        start_checkpoint: the entry of ``log-start-offset-checkpoint``, 0 without one.
    """
    epochs = leader_epochs(data)
    before = [epoch for epoch, offset in epochs.items() if offset <= start_checkpoint]
    within = {epoch: offset for epoch, offset in epochs.items() if start_checkpoint < offset < end_offset}
    if before and start_checkpoint < end_offset:
        within[before[-1]] = start_checkpoint
    if within == epochs:
        return bytes(data)
    return encode_leader_epochs(within)


def encode_leader_epochs(epochs: Mapping[int, int]) -> bytes:
    """The file: epoch → where it begins (``CL-50``)."""
    entries = "".join(f"{epoch} {offset}\n" for epoch, offset in sorted(epochs.items()))
    return f"{LEADER_EPOCHS_VERSION}\n{len(epochs)}\n{entries}".encode()


def _number(line: str) -> int | None:
    return int(line) if re.fullmatch(r"[+-]?[0-9]+", line) else None


def _unreadable(problem: str) -> BrokerError:
    return BrokerError(f"the leader epochs cannot be read: {problem}", rule="D-8", file=LEADER_EPOCHS)
