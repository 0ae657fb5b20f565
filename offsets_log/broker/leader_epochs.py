"""Read ``leader-epoch-checkpoint``: whether it keeps the broker from starting, and which entries stay.

References: ``CheckpointFile.java``, ``LeaderEpochCheckpointFile.java``, ``LeaderEpochFileCache.assign``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from offsets_log.broker.failures import BrokerError
from offsets_log.java_properties import LINE_END
from offsets_log.log_format.file_names import LEADER_EPOCHS
from offsets_log.log_format.segment import Buffer

LEADER_EPOCHS_VERSION = 0

_ENTRY = re.compile(r"\+?0*([0-9]{1,19})\s+\+?0*([0-9]{1,19})\s*")
_NUMBER = re.compile(r"([+-]?)0*([0-9]{1,19})")
"""Java refuses more digits; zeros before them do not count."""


def check_leader_epochs(data: Buffer) -> None:
    """Check a file; if it cannot be read, the broker takes the whole data directory offline (``D-8``).

    Raises:
        BrokerError: it holds anything but a version, a count and as many lines of epoch and offset.
    """
    try:
        lines = LINE_END.split(bytes(data).decode())
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


LeaderEpochs = dict[int, int]
"""Epoch → the first offset in it; epochs ascend."""


def decode_leader_epochs(data: Buffer) -> LeaderEpochs:
    """Return the entries of a file that passes `check_leader_epochs`."""
    entries = [match.groups() for line in LINE_END.split(bytes(data).decode())[2:] if (match := _ENTRY.fullmatch(line))]
    return dict(sorted((int(epoch), int(offset)) for epoch, offset in entries))


def told_leader_epochs(files: Mapping[str, Callable[[], Buffer]]) -> LeaderEpochs | None:
    """Return the epochs that the files beside a log tell; None if none does, or a broker cannot read it."""
    if LEADER_EPOCHS not in files:
        return None
    data = files[LEADER_EPOCHS]()
    try:
        check_leader_epochs(data)
    except BrokerError:
        return None
    return decode_leader_epochs(data)


def encode_leader_epochs(epochs: LeaderEpochs) -> bytes:
    """Return the file's contents."""
    entries = "".join(f"{epoch} {offset}\n" for epoch, offset in sorted(epochs.items()))
    return f"{LEADER_EPOCHS_VERSION}\n{len(epochs)}\n{entries}".encode()


def assign(epochs: LeaderEpochs, epoch: int, offset: int) -> None:
    """Note a batch's epoch while its segment is recovered; an epoch later than all others is added (``CL-50``)."""
    if epoch > latest_of(epochs):
        while epochs and epochs[latest_of(epochs)] >= offset:
            epochs.popitem()
        epochs[epoch] = offset


def latest_of(epochs: LeaderEpochs) -> int:
    """Return the last of ascending epochs; −1 without one."""
    return next(reversed(epochs), -1)


def leader_epochs_within(epochs: LeaderEpochs, start_checkpoint: int, end_offset: int) -> LeaderEpochs:
    """Return the epochs of a log that was opened; those that end before it or begin after it are dropped (``CL-50``).

    Args:
        start_checkpoint: the entry of ``log-start-offset-checkpoint``, 0 without one.
    """
    before = [epoch for epoch, offset in epochs.items() if offset <= start_checkpoint]
    within = {epoch: offset for epoch, offset in epochs.items() if start_checkpoint < offset < end_offset}
    if before and start_checkpoint < end_offset:
        within = {before[-1]: start_checkpoint} | within
    return within


def _number(line: str) -> int | None:
    match = _NUMBER.fullmatch(line)
    return int(match[1] + match[2]) if match else None


def _unreadable(problem: str) -> BrokerError:
    return BrokerError(f"the leader epochs cannot be read: {problem}", rule="D-8", file=LEADER_EPOCHS)
