"""Where committed offsets are by the records that both sides have: the surest way to translate them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from offsets_log.actions.translate_sides import Asking, Committed, Side, is_here
from offsets_log.data_directory.copied_logs import CopiedPartition
from offsets_log.disk.translating import Aligned, Alone, Headed, Made, RowReading, run_each
from offsets_log.disk.user_logs import open_user_log, whole
from offsets_log.errors import Damage, InputError
from offsets_log.translation.alignment import MIXED, Alignment
from offsets_log.translation.answers import Told, Untold
from offsets_log.translation.by_headers import ByHeaders, by_headers
from offsets_log.translation.moving import Lacking, are_moved
from offsets_log.translation.unread import Gaps, doubts_of, is_cleaned, move_back, uncounted

COMPACTED = frozenset({"compact"})
BEGINNING = (0,)

Alignments = dict[tuple[str, int], Made[Alignment]]
"""By topic and partition of the source."""


class ByRecords:
    """Aligns the partitions of all topics that both sides have.

    Args:
        rename_topic: what a topic of the source is called in the target.
    """

    def __init__(
        self, source: Side, target: Side, rename_topic: Callable[[str], str], asking: Asking, reading: RowReading
    ) -> None:
        self._source, self._target, self._rename_topic = source, target, rename_topic
        self._asking, self._reading = asking, reading
        self._aligned: Alignments = {}
        self._moved: set[str] = set()

    def align(self, topics: Mapping[str, Committed]) -> None:
        """Look for committed offsets, and whether records were assigned to partitions again."""
        self._aligned = self._alignments(topics)
        lacking = {topic: _only_here(topic, self._aligned) for topic in topics}
        others = {
            topic: dict.fromkeys(self._source.copies(topic).keys() - committed.keys(), BEGINNING)
            for topic, committed in topics.items()
            if any(one.has_of_source for one in lacking[topic])
        }
        more = self._alignments(others)
        alone = {topic: self._alone(topic, some) for topic, some in lacking.items()}
        self._moved = {
            topic for topic, some in lacking.items() if are_moved([*some, *_only_here(topic, more), *alone[topic]])
        }

    def is_moved(self, topic: str) -> bool:
        """Whether records of a topic were assigned to partitions again: nothing else tells where its offsets are."""
        return topic in self._moved

    def _alone(self, topic: str, lacking: Sequence[Lacking]) -> Iterator[Lacking]:
        """Yield the records of partitions that only one side has, where some lack that may be among them."""
        sources, targets = self._source.copies(topic), self._target.copies(self._rename_topic(topic))
        asked = [
            Alone(whole(there[number]), there is sources, self._reading)
            for there, others, is_asked in (
                (sources, targets, any(one.has_of_target for one in lacking)),
                (targets, sources, any(one.has_of_source for one in lacking)),
            )
            for number in there.keys() - others.keys()
            if is_asked and is_here(there[number])
        ]
        for made in run_each(asked):
            for damage in made.damages:
                self._asking.note(damage)
            yield from made.value or ()

    def __call__(self, topic: str, target: str, committed: Committed) -> dict[int, tuple[int, dict[int, Told]]]:
        """Return what is told of partitions."""
        sources, targets = self._source.copies(topic), self._target.copies(target)
        found: dict[int, tuple[int, dict[int, Told]]] = {}
        for number, some in committed.items():
            if (made := self._aligned.get((topic, number))) is None:
                continue
            try:
                alignment = self._asking.take(made)
                told = self._counted(
                    made,
                    alignment.told,
                    (self._source, sources[number], alignment.source_gaps),
                    (self._target, targets[number], alignment.target_gaps),
                )
                told = dict.fromkeys(told, MIXED) if self.is_moved(topic) else told
                again = alignment.is_copied_again
                found[number] = number, self.moved_back(targets[number], told, is_copied_again=again)
            except InputError as error:
                found[number] = number, dict.fromkeys(some, Untold(str(error)))
        return found

    def by_headers(
        self, target: str, asked: Mapping[int, Headed], committed: Committed
    ) -> dict[int, tuple[int, Mapping[int, Told]]]:
        """Return what headers tell of partitions, by those of the target that have them. Raises InputError."""
        targets = self._target.copies(target)
        found: list[dict[int, ByHeaders]] = []
        for number, made in zip(asked, run_each(asked.values()), strict=True):
            side, copy, there = self._target, targets[number], self._asking.take(made)
            told = {of: self._counted(made, one.told, (side, copy, one.gaps)) for of, one in there.items()}
            found.append({of: replace(one, told=told[of]) for of, one in there.items()})
        return {
            number: (one.target_partition, one.told)
            for number, one in by_headers(found, committed).items()
            if one.target_partition is not None
        }

    def _counted(
        self, made: Made[Any], told: Mapping[int, Told], *gaps: tuple[Side, CopiedPartition, Gaps]
    ) -> Mapping[int, Told]:
        """Return answers that count nothing where something could not be read; note what lacks."""
        lost = [damage for one in gaps for damage in self._gaps(*one)]
        damaged = {Path(one.error.file).parent for one in made.damages if one.error.file is not None}
        for damage in lost:
            if Path(str(damage.error.file)) not in damaged:  # else it may be what is damaged, and is noted
                self._asking.note(damage)
        return uncounted(told) if lost or made.damages else told

    def moved_back(
        self, copy: CopiedPartition, told: Mapping[int, Told], *, is_copied_again: bool = False
    ) -> dict[int, Told]:
        """Return answers that do not lie behind what the target's copy lacks, and note what that is.

        Args:
            is_copied_again: as of `move_back`.

        Raises:
            InputError: it cannot be read.
        """
        assert self._target.logs is not None
        ends = self._target.logs.ends(copy.topic, copy.partition)
        start = 0 if ends is None else ends.log_start_offset
        with ExitStack() as stack:
            log = open_user_log(copy, stack)
            moved, stretches = move_back(
                told, log, start, self._target.policies(copy.topic), is_copied_again=is_copied_again
            )
        for sentence in doubts_of(f"{copy.topic}-{copy.partition}", moved, stretches, start):
            self._asking.doubt(sentence)
        for one in stretches:
            if not one.is_damaged:
                self._asking.note(one.error(copy.shown_path))
        return moved

    def _alignments(self, topics: Mapping[str, Committed]) -> Alignments:
        asked: dict[tuple[str, int], Aligned] = {}
        found: Alignments = {}
        for topic, committed in topics.items():
            targets = self._target.copies(self._rename_topic(topic))
            sources = self._source.copies(topic)
            for number in sources.keys() & targets.keys() & committed.keys():
                is_same_count = max(*sources, *committed) == max(targets)
                try:
                    asked[topic, number] = self._pair(
                        sources[number], targets[number], committed[number], is_same_count
                    )
                except InputError as error:
                    found[topic, number] = Made(None, (), error)
        return found | dict(zip(asked, run_each(asked.values()), strict=True))

    def _pair(
        self, source: CopiedPartition, target: CopiedPartition, committed: Sequence[int], is_same_count: bool
    ) -> Aligned:
        assert self._target.logs is not None
        assert self._source.logs is not None
        ends, of_source = (
            logs.ends(one.topic, one.partition)
            for logs, one in ((self._target.logs, target), (self._source.logs, source))
        )
        assert ends is not None
        assert of_source is not None
        sides = whole(source), whole(target)
        source_end = (of_source.is_short and of_source.high_watermark) or 0
        reached = max(of_source.log_end_offset, source_end)
        if (last := max(committed)) > reached and not of_source.is_clean:
            self._asking.doubt(
                f"the source's copy of {source.topic}-{source.partition} ends at offset {reached}, and a group has "
                f"committed {last}: records may be missing at its end, and others be taken for them, so offsets of it "
                "may only be known as at least"
            )
        is_compacted = self._source.policies(source.topic) == COMPACTED
        return Aligned(
            *sides, committed, ends.log_start_offset, ends.log_end_offset, is_same_count, source_end,
            of_source.is_clean, is_compacted, self._reading,
        )  # fmt: skip

    @staticmethod
    def _gaps(side: Side, copy: CopiedPartition, gaps: Gaps) -> list[Damage]:
        """Return what is in no segment, if that is not the cleaner's work."""
        is_of_cleaner = is_cleaned(side.policies(copy.topic), lacks_within=gaps.lacks_within)
        return [] if is_of_cleaner else [one.error(copy.shown_path) for one in gaps.between]


def _only_here(topic: str, aligned: Alignments) -> list[Lacking]:
    """Return what lacks on one side of a topic's partitions."""
    values = (made.value for (name, _), made in aligned.items() if name == topic)
    return [one for value in values if value is not None for one in value.only_here]
