"""What is asked of whole logs when offsets are translated.

A question is about one partition, or about one and its copy. Answers are small: they grow with the offsets asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from offsets_log.columnar.aligning.reading import Headers, RowReader
from offsets_log.columnar.scan.layout import Scanner
from offsets_log.disk.ahead import ahead
from offsets_log.disk.scratch import Pieces
from offsets_log.disk.user_logs import open_user_log, release
from offsets_log.disk.user_partitions import UserPartition
from offsets_log.errors import Damage, OffsetsLogError
from offsets_log.translation.alignment import Alignment, align, all_of
from offsets_log.translation.answers import Told, Untold
from offsets_log.translation.by_headers import ByHeaders, in_partition
from offsets_log.translation.by_syncs import by_syncs
from offsets_log.translation.by_time import times_to_ask
from offsets_log.translation.moving import Lacking
from offsets_log.translation.offset_syncs import PartitionSyncs
from offsets_log.translation.sight import Pair
from offsets_log.translation.unread import Gaps

T = TypeVar("T")
OnDamage = Callable[[Damage], None]


@dataclass(frozen=True, slots=True)
class RowReading:
    """How records of both sides are read.

    Attributes:
        seed: of the hashes; what is compared needs the same.
    """

    seed: int
    headers: Headers

    def reader(self, stack: ExitStack, on_damage: OnDamage) -> RowReader:
        """Return a reader with buffers of its own, which the stack closes."""
        return RowReader(stack.enter_context(Scanner()), self.seed, self.headers, on_damage, release)


@dataclass(frozen=True, slots=True)
class Made(Generic[T]):
    """An answer.

    Attributes:
        value: None if a problem ended it.
        damages: what could not be read, each piece once however often it was met.
    """

    value: T | None
    damages: Sequence[Damage] = ()
    problem: OffsetsLogError | None = None


class Question(ABC, Generic[T]):
    """Something asked of logs."""

    __slots__ = ()

    def run(self) -> Made[T]:
        """Open the logs, and answer."""
        damages: dict[str, Damage] = {}

        def note(damage: Damage) -> None:
            damages.setdefault(str(damage.error), Damage(damage.error, bytes(damage.raw)))

        value, problem = None, None
        with ExitStack() as stack:
            try:
                value = self._answer(stack, note)
            except OffsetsLogError as error:
                problem = error.with_traceback(None)  # its frames hold mappings that are closed here
        return Made(value, [*damages.values()], problem)

    @abstractmethod
    def _answer(self, stack: ExitStack, on_damage: OnDamage) -> T: ...


def run_each(asked: Iterable[Question[T]]) -> Iterator[Made[T]]:
    """Answer questions in their order."""
    return (one.run() for one in asked)


@dataclass(frozen=True, slots=True)
class Aligned(Question[Alignment]):
    """Where committed offsets are by the records of both sides; attributes as of `alignment.Pair`."""

    source: UserPartition
    target: UserPartition
    committed: Sequence[int]
    target_start: int
    target_end: int
    is_same_count: bool
    source_end: int
    is_end_told: bool
    is_compacted: bool
    reading: RowReading

    def _answer(self, stack: ExitStack, on_damage: OnDamage) -> Alignment:
        pair = Pair(
            open_user_log(self.source, stack),
            open_user_log(self.target, stack),
            self.reading.reader(stack, on_damage),
            self.reading.reader(stack, on_damage),
            partial(Pieces, stack),
            self.target_start,
            self.target_end,
            ahead,
            self.is_same_count,
            self.source_end,
            self.is_end_told,
            self.is_compacted,
        )
        return align(pair, self.committed)


@dataclass(frozen=True, slots=True)
class Alone(Question[tuple[Lacking, ...]]):
    """The records of a partition that only one side has."""

    copy: UserPartition
    is_source: bool
    reading: RowReading

    def _answer(self, stack: ExitStack, on_damage: OnDamage) -> tuple[Lacking, ...]:
        chunks = ahead(self.reading.reader(stack, on_damage).chunks(open_user_log(self.copy, stack)))
        return all_of(chunks, is_source=self.is_source)


@dataclass(frozen=True, slots=True)
class Headed(Question[dict[int, ByHeaders]]):
    """Where committed offsets of all partitions are by the headers in one of the target."""

    target: UserPartition
    committed: Mapping[int, Sequence[int]]
    reading: RowReading

    def _answer(self, stack: ExitStack, on_damage: OnDamage) -> dict[int, ByHeaders]:
        reader = self.reading.reader(stack, on_damage)
        log = open_user_log(self.target, stack)
        return in_partition(self.target.partition, ahead(reader.chunks(log)), self.committed, Gaps.of(log))


@dataclass(frozen=True, slots=True)
class Synced(Question[dict[int, Told]]):
    """Where committed offsets are by offset syncs; attributes as of `by_syncs`."""

    syncs: PartitionSyncs
    committed: Sequence[int]
    target: UserPartition | None
    target_end: int | None

    def _answer(self, stack: ExitStack, on_damage: OnDamage) -> dict[int, Told]:
        target = None if self.target is None else open_user_log(self.target, stack)
        return by_syncs(self.syncs, self.committed, target, self.target_end)


@dataclass(frozen=True, slots=True)
class Timed(Question[dict[int, int | Untold]]):
    """What times tell where committed offsets are; attributes as of `times_to_ask`."""

    source: UserPartition
    committed: Sequence[int]
    start: int
    end: int
    reading: RowReading

    def _answer(self, stack: ExitStack, on_damage: OnDamage) -> dict[int, int | Untold]:
        reader = self.reading.reader(stack, on_damage)
        return times_to_ask(reader, open_user_log(self.source, stack), self.committed, self.start, self.end)
