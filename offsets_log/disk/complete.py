"""Complete the copy of a partition that is read from the others: what `repair` reads instead of one copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from offsets_log.columnar.large import is_large
from offsets_log.disk.alike import Alike
from offsets_log.disk.replica_words import home, place
from offsets_log.disk.replicas import Advance, Leader, choice
from offsets_log.disk.scratch import mapped
from offsets_log.errors import InputError, OffsetsLogError
from offsets_log.log_format.partition_log import PartitionLog
from offsets_log.repairing.completing import Completed, Taken, completed
from offsets_log.repairing.one_log import ForeignLogError, NotJoinedError, NotOneLogError
from offsets_log.rows.tables import partition_name


@dataclass(slots=True)
class FromOthers:
    """What a partition's log has from other copies.

    Attributes:
        read, used: the home of the copy that is read, and of those that complete it.
        taken: the copy, in words, and the batch.
    """

    read: str
    used: list[str] = field(default_factory=list)
    taken: list[tuple[str, Taken]] = field(default_factory=list)
    locates: list[Callable[[OffsetsLogError], None]] = field(default_factory=list)

    def locate(self, error: OffsetsLogError) -> None:
        """Set the place of an error in a log that was put together to the file of the copy that has the bytes."""
        for locate in reversed(self.locates):
            locate(error)


class Completing:
    """Completes logs; `log` stands where `choose_replica` chooses one of several copies.

    Args:
        scratch: holds what is put together, until it closes.
    """

    def __init__(self, scratch: ExitStack) -> None:
        self._join = partial(mapped, scratch)
        self._found: dict[int | None, FromOthers] = {}

    def of(self, offsets_partition: int | None) -> FromOthers | None:
        """Return what a partition has from other copies; None if there is one only."""
        return self._found.get(offsets_partition)

    def log(
        self,
        replicas: Sequence[PartitionLog],
        leader: Leader | None,
        alike: Alike,
        advance: Advance,
        *,
        in_bulk: bool | None = None,
    ) -> PartitionLog:
        """Return the copy that `choice` chooses, completed from each of the others that is of the same log.

        Its last notes say from which, and why not from which. The arguments are those of `choose_replica`.

        Raises:
            InputError: copies hold the same offsets and not one batch that is the same.
        """
        chosen = choice(replicas, leader, advance, in_bulk=in_bulk)
        if chosen.best is None:
            return chosen.log
        if in_bulk is None:
            in_bulk = is_large(sum(log.bytes_to_read for log in replicas), "scan.batch_rows._note")
        found = self._found[chosen.log.offsets_partition] = FromOthers(home(chosen.log))
        log, notes = chosen.log, list[str]()
        for other in (log for number, log in enumerate(replicas) if number != chosen.best):
            try:
                made = completed(log, other, self._join, in_bulk=in_bulk)
            except ForeignLogError as error:
                raise InputError(
                    f"it is no copy of the same log as {place(other)}: {error.problem}; give one of both alone",
                    file=place(chosen.log),
                ) from None
            except NotJoinedError as error:
                notes.append(f"nothing is taken of {place(other)}: {error.problem}; to repair it, give it alone")
                alike.are_in_doubt |= isinstance(error, NotOneLogError)
                continue
            log = self._note(found, made, place(other))
            if made.is_other:
                found.used.append(home(other))
        return replace(log, notes=(*log.notes, *notes))

    def in_words(self) -> str:
        """Say which copy is read of which partitions, and from which it is completed; nothing without several."""
        read: dict[str, list[str]] = {}
        for offsets_partition, found in self._found.items():
            by = f", completed from {' and '.join(found.used)}," if found.used else ""
            read.setdefault(f"{found.read}{by}", []).append(partition_name(offsets_partition))
        if not read:
            return ""
        said = "; ".join(f"{copy} is read for {', '.join(names)}" for copy, names in read.items())
        nothing = "" if any(found.used for found in self._found.values()) else "; no other has what it lacks"
        return f"of several copies of a partition, {said}{nothing}"

    @staticmethod
    def _note(found: FromOthers, made: Completed, copy: str) -> PartitionLog:
        found.taken += ((copy, taken) for taken in made.taken)
        found.locates.append(made.locate)
        return made.log
